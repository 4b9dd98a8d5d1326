//! A spec's rates as one flow keeps them.

use model::{Framing, Role, Spec};

use crate::pattern::{DRAIN_READ, Pace};

/// One flow's share of `bps` over all flows.
pub(super) fn pace(spec: &Spec, bps: u64) -> Pace {
    let own = bps.max(1) as f64 / f64::from(spec.flows.max(1));
    let gap_ns = spec.block as f64 * 8e9 / own;
    match spec.burst {
        Some(bytes) => {
            let burst_ns = bytes as f64 * 8e9 / own;
            Pace { gap_ns, catch_up_ns: burst_ns, blocked_ns: burst_ns, spread_ns: 0.0, burst_ns: 0.0 }
        }
        // A connection or a request that was due is not made up for.
        None if !spec.is_stream() => Pace { gap_ns, catch_up_ns: 0.0, blocked_ns: 0.0, spread_ns: 0.0, burst_ns: 0.0 },
        // The block that is due is never given up.
        None => {
            let flow_control = spec.transport_facts().is_none_or(|facts| facts.framing != Some(Framing::Udp));
            let blocked_ns = if flow_control { BLOCKED_NS } else { CATCH_UP_NS };
            let [catch_up_ns, blocked_ns] = [CATCH_UP_NS, blocked_ns].map(|ns| ns.max(gap_ns));
            Pace { gap_ns, catch_up_ns, blocked_ns, spread_ns: SPREAD_NS, burst_ns: 0.0 }
        }
    }
}

/// The same towards another program, whose own client makes up every delay: so does this one, without a burst of all that is due. A burst
/// that a client requests of a server is what leaves at once, time and again; the user's of this end is the most that is made up.
pub(super) fn pace_to_program(spec: &Spec, role: Role, bps: u64) -> Pace {
    let own = pace(spec, bps);
    let endless = Pace { catch_up_ns: f64::INFINITY, blocked_ns: f64::INFINITY, ..own };
    match (spec.burst, role) {
        (None, _) => endless,
        (Some(_), Role::Active) => own,
        (Some(_), Role::Passive) => Pace { spread_ns: SPREAD_NS, burst_ns: own.catch_up_ns, ..endless },
    }
}

/// One flow's share of the rate of a reader, all flows together.
pub(super) fn drain(spec: &Spec, bps: u64) -> Pace {
    let own = bps.max(1) as f64 / f64::from(spec.flows.max(1));
    let gap_ns = DRAIN_READ as f64 * 8e9 / own;
    Pace { gap_ns, catch_up_ns: READER_CATCH_UP_NS, blocked_ns: READER_CATCH_UP_NS, spread_ns: 0.0, burst_ns: 0.0 }
}

/// How much a reader makes up after a delay: its data waits for it, so the mean rate is kept.
const READER_CATCH_UP_NS: f64 = 100_000_000.0;

/// How much a paced sender makes up after a delay if the spec does not say: on a busy host a thread waits for its core
/// for tens of milliseconds. One that was off it for longer has missed its rate, and the outcome says so.
const CATCH_UP_NS: f64 = 100_000_000.0;
/// How much of a delay by the transport's flow control: a path that was slower than the rate, as TCP's slow start is, does
/// not get the rest on top of the rate later.
const BLOCKED_NS: f64 = 2_000_000.0;
/// Over which time: it sends faster by a tenth for each millisecond that it is behind. A wake-up that was late by 1 ms
/// does not disturb a queue that the rate would not, and a thread that has its core for a tenth of the time keeps its mean.
const SPREAD_NS: f64 = 10_000_000.0;

/// How long a paced flow over TCP takes until it keeps its rate, ns: slow start doubles the window in each round trip until
/// it holds what the rate has in flight, and then sends what has been waiting. 0 if the first window is enough.
pub(super) fn settling_ns(spec: &Spec, rtt_ns: u64, mss: u32) -> u64 {
    let Some(bps) = spec.rate_bps.filter(|_| spec.is_stream()) else { return 0 };
    let in_flight = bps as f64 / f64::from(spec.flows.max(1)) / 8e9 * rtt_ns as f64;
    let rounds = (in_flight / (FIRST_WINDOW * f64::from(mss.max(1)))).log2().ceil();
    if rounds > 0.0 { (((rounds + MARGIN) * rtt_ns as f64) as u64).min(MOST_SETTLING_NS) } else { 0 }
}

/// Segments of TCP's first window (RFC 6928).
const FIRST_WINDOW: f64 = 10.0;
/// Round trips beyond those of slow start: a receiver's window that grows a round trip later, and the backlog.
const MARGIN: f64 = 3.0;
/// A flow that has not reached its rate by then does not settle.
const MOST_SETTLING_NS: u64 = 10_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use model::Pattern;

    #[test]
    fn towards_another_program_every_delay_is_made_up_but_for_a_requested_burst() {
        let spec = Spec { block: 1_000, ..Spec::new("udp", Pattern::Stream) };
        let own = pace(&spec, 8_000_000);
        let to_program = pace_to_program(&spec, Role::Active, 8_000_000);
        assert_eq!((own.gap_ns, own.catch_up_ns, own.blocked_ns, own.spread_ns), (1e6, 100e6, 100e6, 10e6));
        let tcp = Spec { transport: "tcp".into(), ..spec.clone() };
        assert_eq!(pace(&tcp, 8_000_000), Pace { blocked_ns: 2e6, ..own }, "with flow control");
        assert_eq!(to_program, Pace { catch_up_ns: f64::INFINITY, blocked_ns: f64::INFINITY, ..own });
        let burst = Spec { burst: Some(4_000), ..spec };
        assert_eq!(
            pace(&burst, 8_000_000),
            Pace { gap_ns: 1e6, catch_up_ns: 4e6, blocked_ns: 4e6, spread_ns: 0.0, burst_ns: 0.0 }
        );
        assert_eq!(pace_to_program(&burst, Role::Active, 8_000_000), pace(&burst, 8_000_000));
        assert_eq!(pace_to_program(&burst, Role::Passive, 8_000_000), Pace { burst_ns: 4e6, ..to_program });
    }

    #[test]
    fn a_block_that_is_due_is_not_given_up_for_being_rare() {
        let spec = Spec { block: 1_000_000, ..Spec::new("tcp", Pattern::Stream) };
        let pace = pace(&spec, 8_000_000);
        assert_eq!((pace.gap_ns, pace.catch_up_ns), (1e9, 1e9));
    }

    #[test]
    fn a_rate_within_the_first_window_has_settled_and_others_take_the_doublings_of_slow_start() {
        let of = |bps, flows, rtt_ms: u64| {
            let spec = Spec { rate_bps: Some(bps), flows, ..Spec::new("tcp", Pattern::Stream) };
            settling_ns(&spec, rtt_ms * 1_000_000, 1_448) / 1_000_000
        };
        assert_eq!((of(1_000_000, 1, 80), of(100_000_000, 1, 0)), (0, 0));
        // 50 kB are in flight: four first windows, two doublings.
        assert_eq!((of(5_000_000, 1, 80), of(20_000_000, 4, 80)), (5 * 80, 5 * 80));
        assert_eq!(of(100_000_000, 1, 300), 12 * 300);
        assert_eq!(of(u64::MAX, 1, 900), 10_000, "bounded");
        assert_eq!(settling_ns(&Spec::new("tcp", Pattern::Stream), 80_000_000, 1_448), 0, "no rate");
    }
}
