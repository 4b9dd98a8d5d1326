//! Which end of a trial does what.

use model::{Direction, EndTally, Spec};

/// The end that sends requests and times them: the near one, unless the direction is reversed.
pub(crate) fn requester<'a>(near: &'a EndTally, far: &'a EndTally) -> &'a EndTally {
    if near.rtt.is_none() && far.rtt.is_some() { far } else { near }
}

/// The ends that receive payload. A transport with one end (memcpy) counts everything in the near tally.
pub(crate) fn receivers<'a>(spec: &Spec, near: &'a EndTally, far: &'a EndTally) -> Vec<&'a EndTally> {
    if one_ended(near, far) {
        return vec![near];
    }
    match spec.direction {
        Direction::Send => vec![far],
        Direction::Reverse => vec![near],
        Direction::Both => vec![near, far],
    }
}

/// The ends that send payload; see [`receivers`].
pub(crate) fn senders<'a>(spec: &Spec, near: &'a EndTally, far: &'a EndTally) -> Vec<&'a EndTally> {
    if one_ended(near, far) {
        return vec![near];
    }
    match spec.direction {
        Direction::Send => vec![near],
        Direction::Reverse => vec![far],
        Direction::Both => vec![near, far],
    }
}

/// Whether one end did everything, as with copies in memory.
pub(crate) fn one_ended(near: &EndTally, far: &EndTally) -> bool {
    near.bytes_received > 0 && near.bytes_sent > 0 && far.bytes_sent == 0 && far.bytes_received == 0
}
