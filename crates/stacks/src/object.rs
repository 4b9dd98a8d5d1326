//! The description in a compiled stack.

use std::borrow::Cow;

use crate::StackError;
use crate::elf::section;

/// A parameter of a stack, set when it is loaded: a whole number of 1/unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// As in `--cc fast:alpha=200`.
    pub name: String,
    /// The number that represents 1.
    pub unit: u32,
    /// Its default, in 1/unit.
    pub value: u32,
    /// Bounds, in 1/unit.
    pub least: u32,
    /// The upper one.
    pub most: u32,
}

impl Parameter {
    /// A value in this parameter's units as text.
    #[must_use]
    pub fn shown(&self, value: u32) -> f64 {
        f64::from(value) / f64::from(self.unit)
    }

    /// Parses a value.
    pub(crate) fn read(&self, stack: &str, text: &str) -> Result<u32, StackError> {
        let (least, most) = (self.shown(self.least), self.shown(self.most));
        let scaled = text.parse::<f64>().map(|value| (value * f64::from(self.unit)).round());
        match scaled {
            Ok(value) if value >= f64::from(self.least) && value <= f64::from(self.most) => Ok(value as u32),
            _ => Err(StackError::Parameter {
                stack: stack.into(),
                what: format!("{}={text} is not valid", self.name),
                remedy: format!("use {least} to {most}").into(),
            }),
        }
    }
}

/// A compiled stack. Its layout is that of `bpf/stack.h`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Object {
    /// The file.
    pub(crate) bytes: Cow<'static, [u8]>,
    /// Its name in the kernel.
    pub(crate) name: String,
    /// Its parameters.
    pub(crate) parameters: Vec<Parameter>,
    /// Whether it takes rules for destinations.
    pub(crate) takes_rules: bool,
}

/// The section of a stack's parameters.
pub(crate) const PARAMETERS: &str = ".rodata.params";
/// The section of its rules.
pub(crate) const RULES: &str = ".rodata.rules";
/// `struct param`: a name of 12 bytes, then unit, value, minimum, maximum.
pub(crate) const PARAMETER_BYTES: usize = 28;
/// Offset of the value in it.
#[cfg_attr(not(feature = "load"), allow(dead_code, reason = "only the loader fills objects in"))]
pub(crate) const VALUE_AT: usize = 16;

impl Object {
    pub(crate) fn read(origin: &str, bytes: impl Into<Cow<'static, [u8]>>) -> Result<Self, StackError> {
        let bytes = bytes.into();
        let wrong = |what: &str| StackError::Object { origin: origin.into(), what: what.into() };
        let find = |name: &str| section(&bytes, name).map_err(wrong);
        let head = find(".struct_ops.link")?.and_then(|head| head.get(..16));
        let head = head.ok_or_else(|| wrong("it registers no congestion control"))?;
        let name = text(head).filter(|name| is_name(name)).ok_or_else(|| {
            wrong(
                "the congestion control's structure does not match stack.h, or its name has characters other than \
                letters, digits, _ and -",
            )
        })?;
        let table = find(PARAMETERS)?.unwrap_or_default();
        let parameters = table.chunks_exact(PARAMETER_BYTES).map(parameter).collect::<Option<_>>();
        let parameters = parameters.ok_or_else(|| wrong("its parameters do not match stack.h"))?;
        let takes_rules = find(RULES)?.is_some();
        Ok(Self { name, parameters, takes_rules, bytes })
    }
}

fn parameter(entry: &[u8]) -> Option<Parameter> {
    let number = |index: usize| {
        let start = 12 + 4 * index;
        Some(u32::from_le_bytes(entry.get(start..start + 4)?.try_into().ok()?))
    };
    let name = text(entry.get(..12)?)?;
    let unit = number(0).filter(|unit| *unit > 0)?;
    Some(Parameter { name, unit, value: number(1)?, least: number(2)?, most: number(3)? })
}

/// Text that ends at the first zero byte.
fn text(bytes: &[u8]) -> Option<String> {
    let text = bytes.split(|byte| *byte == 0).next()?;
    String::from_utf8(text.to_vec()).ok()
}

fn is_name(name: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '-';
    (1..16).contains(&name.len()) && name.chars().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_read_in_their_units() {
        let parameter = Parameter { name: "b".into(), unit: 1_000, value: 125, least: 1, most: 999 };
        assert_eq!(parameter.read("scalable", "0.3").ok(), Some(300));
        for wrong in ["0", "1", "x", "NaN", "-1"] {
            let message = parameter.read("scalable", wrong).unwrap_err().to_string();
            assert!(message.contains("use 0.001 to 0.999") && message.contains(wrong), "{message}");
        }
    }
}
