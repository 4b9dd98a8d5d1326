//! Trials for tests.

use model::{EndTally, Histogram, RttTally, Spec, Trial};

use super::{ledger, trial_value, trial_verdicts};

/// A trial of these tallies, as the coordinator makes it.
pub(crate) fn trial(spec: &Spec, near: EndTally, far: EndTally) -> Trial {
    let ledger = ledger(spec, &near, &far);
    let value = trial_value(spec, &near, &far);
    let verdicts = trial_verdicts(spec, &near, &far, &ledger);
    Trial { cell: 0, pass: 0, position: 0, near: near.into(), far: far.into(), ledger, value, verdicts }
}

/// One second from near to far at `mbit` Mbit/s.
pub(crate) fn stream_trial(spec: &Spec, mbit: u64) -> Trial {
    let bytes = mbit * 125_000;
    let near = EndTally { bytes_sent: bytes, calls_sent: 1000, sending_ns: 990_000_000, ..EndTally::default() };
    let far =
        EndTally { bytes_received: bytes, calls_received: 1000, receiving_ns: 1_000_000_000, ..EndTally::default() };
    trial(spec, near, far)
}

/// `count` round trips of `rtt_ns` each.
pub(crate) fn pingpong_trial(spec: &Spec, rtt_ns: u64, count: u64) -> Trial {
    let mut histogram = Histogram::new();
    histogram.record_n(rtt_ns, count);
    let bytes = spec.block * count;
    let end = EndTally {
        bytes_sent: bytes,
        bytes_received: bytes,
        calls_sent: count,
        calls_received: count,
        blocks_sent: count,
        sending_ns: rtt_ns * (count - 1),
        receiving_ns: rtt_ns * (count - 1),
        ..EndTally::default()
    };
    let near = EndTally { transactions: count, rtt: RttTally::from_histogram(histogram, 1), ..end.clone() };
    trial(spec, near, end)
}
