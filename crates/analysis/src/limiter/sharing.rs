//! Traffic of others that shares the path: bytes on the interfaces of the two ends that are not the measurement's, and a queue that
//! stood before the measurement had sent anything.

use model::source::{DEV, column};
use model::units::amount;
use text::{Text, Time, say};

use super::bottleneck;
use super::observations::{Observations, SenderFlow, each, ramp, sender_flows};
use super::queues::grew;
use crate::direction::{DirectionView, Side};

/// Ethernet, IPv4 and TCP headers with time stamps, bytes: at least those of a datagram.
const HEADERS: u64 = 66;
/// Largest payload of a segment or a datagram that is not known, bytes.
const PAYLOAD: u64 = 1_448;
/// Share of an interface's bytes from which others count, and from which they count whole.
const SHARE: [f64; 2] = [0.1, 0.3];

/// Other traffic as one direction of one trial shows it.
pub(super) struct OtherTraffic {
    /// Weight of the evidence, 0 to 1.
    pub(super) weight: f64,
    /// The observation.
    pub(super) statement: Text,
}

/// Weight of the evidence for other traffic, which counts against the path itself.
pub(super) fn weight(observations: &Observations<'_>, direction: &DirectionView<'_>) -> f64 {
    other_traffic(observations, direction).map_or(0.0, |one| one.weight)
}

/// The stronger of the two kinds of evidence.
pub(super) fn other_traffic(observations: &Observations<'_>, direction: &DirectionView<'_>) -> Option<OtherTraffic> {
    // Tests of the same run that use the path at the same time are not other traffic.
    if !observations.bulk() || observations.spec.start_ns.is_some() {
        return None;
    }
    let early = early_queue(observations, direction);
    let contended = contended(observations, direction).max(early.as_ref().map_or(0.0, |one| one.weight));
    let ends = [(&direction.receiver, "receiver", column::RX_BYTES), (&direction.sender, "sender", column::TX_BYTES)];
    let beside = ends.into_iter().filter_map(|(side, end, column)| beside(direction, side, end, column));
    let beside = beside.map(|one| OtherTraffic { weight: one.weight * contended, ..one });
    beside.chain(early).max_by(|a, b| a.weight.total_cmp(&b.weight))
}

/// Whether something on the path was full, from 0 to 1. Where the path carries everything, others take nothing from it.
fn contended(observations: &Observations<'_>, direction: &DirectionView<'_>) -> f64 {
    let flows = sender_flows(direction);
    let lost = each(&flows, SenderFlow::limited_by_loss).unwrap_or(0.0);
    let queued = each(&flows, SenderFlow::queued).unwrap_or(0.0);
    bottleneck::weight(observations, direction).max(lost).max(queued)
}

/// Bytes of others on the interface of an end.
fn beside(direction: &DirectionView<'_>, side: &Side<'_>, end: &str, column: &str) -> Option<OtherTraffic> {
    let interface = side.interface().filter(|interface| interface.name != "lo")?;
    let all = grew(side, &DEV, column);
    let carried = side.tally.bytes_received.max(side.tally.bytes_sent);
    let flows = sender_flows(direction);
    let again: u64 = flows.iter().map(SenderFlow::retransmits).sum();
    let payload = flows.iter().find_map(SenderFlow::mss).map_or(PAYLOAD, |mss| mss as u64);
    let packets = match direction.sender.tally.datagrams {
        Some(tally) => tally.sent,
        None => carried.div_ceil(payload.max(1)),
    };
    let own = carried + HEADERS * packets + again * (payload + HEADERS);
    let others = all.checked_sub(own).filter(|_| carried > 0)?;
    let share = others as f64 / all as f64;
    let weight = 0.95 * ramp(share, SHARE[0], SHARE[1]);
    let statement = say!(
        "{} of other traffic passed {} of the {end}, besides {} of this measurement ({:.0} % is other traffic)",
        amount(others as f64),
        interface.name,
        amount(own as f64),
        100.0 * share
    );
    (weight > 0.0).then_some(OtherTraffic { weight, statement })
}

/// A shortest RTT far above that of another trial: the queue was there before the data.
fn early_queue(observations: &Observations<'_>, direction: &DirectionView<'_>) -> Option<OtherTraffic> {
    let shortest = |direction| each(&sender_flows(direction), SenderFlow::min_rtt_ns);
    let own = shortest(direction)?;
    let least = observations.directions.iter().filter_map(shortest).reduce(f64::min)?;
    let weight = 0.8 * ramp(own - least, 2e6, 6e6) * ramp(own / least, 1.1, 1.4);
    let statement = say!(
        "the shortest RTT was {} in one trial and {} in another: a queue that this measurement did not cause was already on the path",
        Time(own),
        Time(least)
    );
    (weight > 0.0).then_some(OtherTraffic { weight, statement })
}
