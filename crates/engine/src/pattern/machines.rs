//! The machines of the patterns.

use model::{Pattern, Spec};

use super::machine::{Machine, Part};
use super::{crr, pingpong, rr, stream, transfer};
use crate::transport::Channel;

/// The machine for one end of one connection in one leg.
pub(crate) fn machine<C: Channel>(spec: &Spec, part: &Part) -> Box<dyn Machine<C>> {
    match spec.pattern {
        Pattern::Crr => crr::machine(spec, part),
        Pattern::Pingpong => pingpong::machine(spec, part),
        Pattern::Rr => rr::machine(spec, part),
        Pattern::Stream => stream::machine(spec, part),
        Pattern::Transfer => transfer::machine(spec, part),
    }
}
