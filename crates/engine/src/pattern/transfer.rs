//! Exactly so many blocks of so many bytes, in so many flows or processes: what nttcp and rapid do.

use model::{Spec, Stop};
use text::say;

use super::machine::{Machine, Part};
use super::stream;
use crate::core::EngineError;
use crate::transport::{Capabilities, Channel};

pub(super) fn check(spec: &Spec, capabilities: &Capabilities) -> Result<(), EngineError> {
    if matches!(spec.stop, Stop::TimeNs(_)) {
        return Err(EngineError::unsupported(
            "a transfer without an amount",
            say!("give `--count` or `--bytes` (a stream runs for a time)"),
        ));
    }
    stream::check(spec, capabilities)
}

pub(crate) fn machine<C: Channel>(spec: &Spec, part: &Part) -> Box<dyn Machine<C>> {
    stream::machine(spec, part)
}
