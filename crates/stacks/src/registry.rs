//! The stacks that come with the program.

use crate::StackError;
use crate::object::{Object, Parameter};

/// A congestion control that comes with the program.
#[derive(Debug, PartialEq, Eq)]
pub struct Stack {
    /// Short name, as in `--cc fast`.
    pub name: &'static str,
    /// What it does, in a line.
    pub title: &'static str,
    /// Where it was published.
    pub paper: &'static str,
    /// Its source, which includes `stack.h`.
    pub source: &'static str,
    /// The compiled object.
    pub(crate) object: &'static [u8],
}

macro_rules! stack {
    ($name:literal, $title:literal, $paper:literal) => {
        Stack {
            name: $name,
            title: $title,
            paper: $paper,
            source: include_str!(concat!("../bpf/", $name, ".bpf.c")),
            object: include_bytes!(concat!("../objects/", $name, ".bpf.o")),
        }
    };
}

/// What every source includes.
pub const HEADER: &str = include_str!("../bpf/stack.h");

/// All of them. A new one is a C file below `bpf/`, `make stacks`, and a line here.
pub const STACKS: &[Stack] = &[
    stack!(
        "scalable",
        "grows by a fraction of the window per round trip, so that recovery from a loss takes the same time at any \
            rate",
        "T. Kelly, Scalable TCP, CCR 33(2), 2003"
    ),
    stack!(
        "highspeed",
        "grows faster and backs off less at larger windows; rules for destinations with `--cc-rules`",
        "S. Floyd, HighSpeed TCP, RFC 3649, 2003; Limited Slow-Start, RFC 3742"
    ),
    stack!(
        "fast",
        "keeps alpha segments in the queue, as measured by the delay, without waiting for a loss",
        "C. Jin, D. X. Wei, S. H. Low, FAST TCP, INFOCOM 2004"
    ),
    stack!(
        "htcp",
        "grows faster with the time since the last loss and backs off by what the queue held",
        "D. J. Leith, R. N. Shorten, H-TCP, PFLDnet 2004"
    ),
    stack!(
        "aimd",
        "adds a segments per round trip and removes the fraction b at a loss; a=1,b=0.5 is Reno; a template",
        "D.-M. Chiu, R. Jain, Analysis of the increase and decrease algorithms, 1989; RFC 5681"
    ),
];

/// The stack with this short name, or this name in the kernel.
#[must_use]
pub fn stack(name: &str) -> Option<&'static Stack> {
    STACKS.iter().find(|stack| stack.name == name.strip_prefix("bpf_").unwrap_or(name))
}

/// The error for a name that no stack has.
#[must_use]
pub fn unknown(name: &str) -> StackError {
    let known = STACKS.iter().map(|stack| stack.name).collect::<Vec<_>>().join(", ");
    StackError::Unknown { name: name.into(), known }
}

impl Stack {
    /// Its name in the kernel without parameters.
    #[must_use]
    pub fn kernel_name(&self) -> String {
        format!("bpf_{}", self.name)
    }

    /// Its facts and parameters, one a line.
    ///
    /// # Errors
    /// As [`parameters`](Self::parameters).
    pub fn about(&self) -> Result<String, StackError> {
        let facts = [
            (self.name, self.title.to_owned()),
            ("published", self.paper.to_owned()),
            ("in kernel", self.kernel_name()),
        ];
        let parameter = |one: &Parameter| {
            let [value, least, most] = [one.value, one.least, one.most].map(|value| one.shown(value));
            (one.name.clone(), format!("{value} (from {least} to {most})"))
        };
        let parameters: Vec<(String, String)> = self.parameters()?.iter().map(parameter).collect();
        let all = facts
            .iter()
            .map(|(name, fact)| (*name, fact))
            .chain(parameters.iter().map(|(name, fact)| (name.as_str(), fact)));
        Ok(all.map(|(name, fact)| format!("{name:<12} {fact}\n")).collect())
    }

    /// Its parameters, in the order of the source.
    ///
    /// # Errors
    /// [`StackError::Object`] for an object that a test would have found.
    pub fn parameters(&self) -> Result<Vec<Parameter>, StackError> {
        Ok(Object::read(self.name, self.object)?.parameters)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_fit_the_kernel_and_the_objects() {
        for known in STACKS {
            let object = Object::read(known.name, known.object).unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(object.name, known.kernel_name());
            assert!(object.name.len() <= 15);
            assert_eq!(stack(known.name), Some(known));
            assert_eq!(stack(&object.name), Some(known));
            assert_eq!(object.takes_rules, known.name == "highspeed");
            for parameter in &object.parameters {
                let Parameter { name, unit, value, least, most } = parameter;
                assert!(!name.is_empty() && *unit > 0 && least <= value && value <= most, "{}: {name}", known.name);
            }
        }
    }
}
