//! The patterns of this build.

use model::Spec;

use super::definition::Pattern;
use super::machine::{Machine, Part};
use super::{crr, pingpong, rr, stream, transfer};
use crate::core::EngineError;
use crate::transport::Channel;

macro_rules! registry {
    ($($module:ident),* $(,)?) => {
        /// Every pattern of this build.
        pub static PATTERNS: &[&Pattern] = &[$(&$module::PATTERN),*];

        /// The machine for one end of one connection in one leg.
        pub(crate) fn machine<C: Channel>(spec: &Spec, part: &Part) -> Result<Box<dyn Machine<C>>, EngineError> {
            $(if spec.pattern == $module::PATTERN.name {
                return Ok($module::machine(spec, part));
            })*
            pattern(spec.pattern.as_str()).map(|_| unreachable!("a listed pattern has a machine"))
        }
    };
}

registry!(pingpong, stream, rr, crr, transfer);

/// The pattern called `name`.
pub fn pattern(name: &str) -> Result<&'static Pattern, EngineError> {
    PATTERNS.iter().copied().find(|pattern| pattern.name == name).ok_or_else(|| EngineError::Unknown {
        kind: "pattern",
        name: name.into(),
        known: PATTERNS.iter().map(|pattern| pattern.name).collect::<Vec<_>>().join(", "),
    })
}
