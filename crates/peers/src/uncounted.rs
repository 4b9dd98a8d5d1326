//! Bytes that another program is known to send without counting them.

use model::EndTally;

/// Adds to the far end's sent bytes what arrived here beyond them, flow by flow, if it is at most `most` bytes. More
/// than that stays a mismatch.
pub(crate) fn add_sent(near: &EndTally, far: &mut EndTally, most: u64) {
    for flow in far.flows.iter_mut().filter(|flow| flow.bytes_sent > 0) {
        let own = near.flows.iter().filter(|own| (own.flow, own.direction) == (flow.flow, flow.direction));
        let arrived = own.map(|own| own.bytes_received).sum::<u64>();
        let beyond = arrived.saturating_sub(flow.bytes_sent);
        if beyond <= most {
            flow.bytes_sent += beyond;
            far.bytes_sent += beyond;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Direction, FlowTally};

    fn flows(counts: &[(u64, u64)]) -> EndTally {
        let flows = (0..).zip(counts).map(|(flow, (bytes_sent, bytes_received))| FlowTally {
            flow,
            bytes_sent: *bytes_sent,
            bytes_received: *bytes_received,
            ..FlowTally::default()
        });
        EndTally {
            bytes_sent: counts.iter().map(|(sent, _)| sent).sum(),
            bytes_received: counts.iter().map(|(_, received)| received).sum(),
            flows: flows.collect(),
            ..EndTally::default()
        }
    }

    #[test]
    fn what_is_within_the_tolerance_is_added_and_no_more() {
        let near = flows(&[(0, 1_100), (0, 2_101), (0, 300)]);
        let mut far = flows(&[(1_000, 0), (2_000, 0), (500, 0)]);
        add_sent(&near, &mut far, 100);
        assert_eq!(far.flows.iter().map(|flow| flow.bytes_sent).collect::<Vec<_>>(), [1_100, 2_000, 500]);
        assert_eq!(far.bytes_sent, 3_600);
        // Both directions of one flow, as the engine counts them.
        let mut near = flows(&[(0, 0), (0, 1_050)]);
        near.flows.iter_mut().for_each(|flow| flow.flow = 0);
        near.flows[1].direction = Direction::Reverse;
        let mut far = flows(&[(1_000, 0)]);
        far.flows[0].direction = Direction::Reverse;
        add_sent(&near, &mut far, 100);
        assert_eq!(far.bytes_sent, 1_050);
    }
}
