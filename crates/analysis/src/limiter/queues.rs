//! Counters of the queues and interfaces that the data passes.

use model::source::{self, Source, column};

use super::observations::{SenderFlow, each, ramp, sender_flows};
use crate::direction::{DirectionView, Side};

/// Whether a shaper of the sender limited it, from 0 to 1: over its rate for a large part of its packets (or GSO bursts).
pub(super) fn qdisc_limited(direction: &DirectionView<'_>) -> f64 {
    ramp(qdisc(&direction.sender, column::OVERLIMITS) as f64 / packets_sent(direction).max(1.0), 0.001, 0.01)
}

/// Whether TCP reduced its congestion window because the sender's own qdisc dropped packets, from 0 to 1: the window is full near the
/// threshold that the drops set. TCP learns of such a drop at once and counts no retransmission.
pub(super) fn reduced_the_window(direction: &DirectionView<'_>) -> f64 {
    let flows = sender_flows(direction);
    let again: u64 = flows.iter().map(SenderFlow::retransmits).sum();
    if qdisc(&direction.sender, column::DROPS) <= again {
        return 0.0;
    }
    each(&flows, SenderFlow::near_threshold).unwrap_or(0.0)
}

/// Growth of a counter of the qdiscs of the data's interface; of all interfaces if that one is unknown.
pub(super) fn qdisc(side: &Side<'_>, counter: &str) -> u64 {
    grew(side, &source::QDISC, counter)
}

/// Growth of `SOURCE.DEVICE.COUNTER` of the data's device; of all but loopback if that one is unknown. The classes of a qdisc are
/// included in its root's count, and an ingress qdisc belongs to the other direction.
pub(super) fn grew(side: &Side<'_>, source: &Source, column: &str) -> u64 {
    let Some(observed) = side.pass.and_then(|pass| pass.observed.as_ref()) else { return 0 };
    let device = side.interface().map(|interface| interface.name.as_str());
    let wanted = |name: &str| {
        let of = source.device(name).filter(|(_, of)| *of == column);
        let part = |of: &str| of.contains(':') || of.ends_with(".ingress") || of == "lo";
        of.is_some_and(|(of, _)| device.map_or(!part(of), |device| of == device))
    };
    let grown =
        observed.counters.iter().filter(|(name, _)| wanted(name)).map(|(_, by)| u64::try_from(*by).unwrap_or(0));
    grown.sum()
}

/// Lower bound of the packets sent, from the payload.
pub(super) fn packets_sent(direction: &DirectionView<'_>) -> f64 {
    match direction.sender.tally.datagrams {
        Some(tally) => tally.sent as f64,
        None => {
            let mss = sender_flows(direction).iter().find_map(SenderFlow::mss).unwrap_or(1_448.0);
            direction.sender.tally.bytes_sent as f64 / mss
        }
    }
}
