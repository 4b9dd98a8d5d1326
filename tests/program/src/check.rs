//! Checks of every document: the counts of the two ends agree exactly, series and flows add up to the totals, and the summary has
//! exactly the figures of its pattern.

use model::{Direction, EndTally, Interval, Outcome, Pattern, RunKind, TransportName, Trial, Trust, Verdict};
use serde_json::Value;

use crate::Doc;

/// The keys that every summary has.
const SUMMARY_KEYS: [&str; 7] =
    ["bytes_sent", "bytes_received", "trials", "calls_sent", "calls_received", "duration_ns", "verdicts"];

/// Checks everything below over a whole document.
///
/// # Panics
/// A check fails; `what` names the measurement.
pub fn document(doc: &Doc, what: &str) {
    assert!(!doc.run.outcomes.is_empty(), "{what}: nothing was measured");
    assert_eq!(doc.run.ending.as_ref().map(|ending| ending.how.as_str()), Some("finished"), "{what}");
    let written = doc.json["outcomes"].as_array().expect("a list");
    // A side of a comparison has the usual target: the tolerance is that of the difference.
    let paired = matches!(doc.run.header.kind, RunKind::Ab | RunKind::Advise);
    let target = doc.run.header.stopping.target.max(if paired { model::Stopping::default().target } else { 0.0 });
    for (outcome, json) in doc.run.outcomes.iter().zip(written) {
        let what = format!("{what}, {} blocks of {} B", outcome.spec.transport, outcome.spec.block);
        // A curve states no interval from fewer than ten legs.
        let least = if doc.run.header.kind == RunKind::Curve { 10 } else { 3 };
        summary(outcome, json, least, target, &what);
        for trial in &outcome.trials {
            counts(outcome, trial, &what);
        }
    }
}

/// The figures of the pattern exist, and no others.
fn summary(outcome: &Outcome, json: &Value, least: usize, target: f64, what: &str) {
    let flat = json["summary"].as_object().expect("a summary");
    for key in SUMMARY_KEYS {
        assert!(flat.contains_key(key), "{what}: summary without {key}");
    }
    let (spec, summary) = (&outcome.spec, &outcome.summary);
    let bulk = is_stream(outcome);
    let pingpong = spec.pattern == Pattern::Pingpong;
    let datagrams = spec.transport == TransportName::Udp || spec.transport == TransportName::UnixDgram;
    for (key, present) in [
        ("goodput_bps", bulk),
        ("sender_bps", bulk),
        ("rtt_p50_ns", !bulk),
        ("transactions_per_s", !bulk),
        ("packets_per_s", datagrams),
        ("packets_lost", datagrams),
        ("netpipe_bps", pingpong || (spec.is_point() && bulk)),
    ] {
        let figure = flat.get(key);
        assert_eq!(figure.is_some(), present, "{what}: {key} is {figure:?}; {:?}", outcome.trials);
        assert!(figure.is_none_or(|value| value.as_f64().is_some_and(|value| value >= 0.0)), "{what}: {key}");
    }
    let sums = outcome.trials.iter().fold([0; 4], |sum, trial| {
        let both = [&trial.near, &trial.far];
        let total = |figure: fn(&EndTally) -> u64| both.iter().map(|end| figure(end)).sum::<u64>();
        [
            sum[0] + total(|end| end.bytes_sent),
            sum[1] + total(|end| end.bytes_received),
            sum[2] + total(|end| end.calls_sent),
            sum[3] + total(|end| end.calls_received),
        ]
    });
    let stated = [summary.bytes_sent, summary.bytes_received, summary.calls_sent, summary.calls_received];
    // Trials that had not settled do not count beside those that had.
    let growing = outcome.trials.iter().any(|trial| trial.verdicts.contains(&Verdict::NotSettled));
    assert!(growing || stated == sums.map(Some), "{what}: summary of bytes and calls: {stated:?} of {sums:?}");
    assert!(summary.bytes_sent > Some(0) && summary.duration_ns > Some(0), "{what}: nothing moved");
    if datagrams {
        let sent = summary.packets_sent.expect("datagrams sent");
        let parts = [summary.packets_lost, summary.packets_reordered, summary.packets_duplicated];
        assert!(
            parts.iter().all(|part| part.is_some_and(|part| part <= sent)),
            "{what}: {parts:?} of {sent} datagrams"
        );
    }
    assert_eq!(summary.cost.is_none(), spec.is_point(), "{what}: what it cost");
    assert!(summary.ceiling.is_none() || bulk, "{what}: only goodput has a ceiling");
    estimate(outcome, json, least, what);
    let trust = outcome.estimate.as_ref().map(|estimate| {
        let by_width = match estimate.relative_half_width() {
            Some(width) if width > 0.1 => Trust::Low,
            Some(width) if width > target => Trust::Fair,
            Some(_) => Trust::High,
            None => Trust::Low,
        };
        trust_left_by(&summary.verdicts).max(by_width)
    });
    assert_eq!(summary.trust, trust, "{what}: {:?} {:?}", summary.verdicts, outcome.estimate);
    let values = values(outcome);
    assert!(growing || summary.trials as usize == values, "{what}: {} of {values} trials", summary.trials);
    let none = outcome.estimate.as_ref().is_some_and(|estimate| estimate.low.is_none());
    assert_eq!(summary.verdicts.contains(&Verdict::FewTrials), none, "{what}: {:?}", summary.verdicts);
}

/// The estimate is complete, its interval contains its value, and the summary repeats it.
fn estimate(outcome: &Outcome, json: &Value, least: usize, what: &str) {
    let flat = json["estimate"].as_object().unwrap_or_else(|| panic!("{what}: no estimate"));
    for key in ["statistic", "unit", "value", "confidence", "method", "n"] {
        assert!(flat.contains_key(key), "{what}: estimate without {key}");
    }
    assert_eq!(flat.contains_key("low"), flat.contains_key("high"), "{what}: half an interval");
    let estimate = outcome.estimate.as_ref().expect("read as it was written");
    let unit = match outcome.spec.pattern {
        Pattern::Pingpong => "ns",
        Pattern::Rr | Pattern::Crr => "1/s",
        Pattern::Stream | Pattern::Transfer => "bit/s",
    };
    assert_eq!(estimate.unit, unit, "{what}");
    assert!(estimate.value > 0.0 && !estimate.statistic.is_empty() && !estimate.method.is_empty(), "{what}");
    assert!((0.9..1.0).contains(&estimate.confidence) && estimate.n > 0, "{what}");
    // A single trial may have the interval of its samples.
    let counted = outcome.summary.trials as usize;
    assert!(estimate.low.is_some() || counted < least, "{what}: {least} values have an interval");
    if let (Some(low), Some(high)) = (estimate.low, estimate.high) {
        assert!(low <= estimate.value && estimate.value <= high, "{what}: {estimate:?}");
    }
    assert_eq!((outcome.summary.ci95_low, outcome.summary.ci95_high), (estimate.low, estimate.high), "{what}");
}

/// The number of trials with a value. A trial may have none only if its verdict is `resolution-limited`.
fn values(outcome: &Outcome) -> usize {
    let blank = |trial: &&Trial| trial.value.is_none();
    let excused = |trial: &Trial| trial.verdicts.contains(&Verdict::ResolutionLimited);
    assert!(outcome.trials.iter().filter(blank).all(excused), "a trial without a value: {:?}", outcome.spec);
    outcome.trials.iter().filter(|trial| trial.value.is_some()).count()
}

/// The trust that follows from the verdicts, as `model::Trust` defines it.
fn trust_left_by(verdicts: &[Verdict]) -> Trust {
    let any = |those: &[Verdict]| verdicts.iter().any(|verdict| those.contains(verdict));
    if any(&[Verdict::Stalled, Verdict::ByteCountMismatch, Verdict::NothingArrived, Verdict::EmulatorLate]) {
        Trust::None
    } else if any(&[
        Verdict::FewTrials,
        Verdict::NotSettled,
        Verdict::RateNotOffered,
        Verdict::ResolutionLimited,
        Verdict::AboveCeiling,
    ]) {
        Trust::Low
    } else if any(&[
        Verdict::TargetMissed,
        Verdict::Noisy,
        Verdict::Drifting,
        Verdict::Overlapped,
        Verdict::Loss,
        Verdict::SocketDrops,
        Verdict::EmulatorUnreported,
    ]) {
        Trust::Fair
    } else {
        Trust::High
    }
}

/// Both ends of a trial have the same counts, and the parts of each end add up to its total.
fn counts(outcome: &Outcome, trial: &Trial, what: &str) {
    let (near, far) = (&trial.near, &trial.far);
    assert!(trial.ledger.balanced && trial.ledger.in_flight == 0, "{what}: {:?}", trial.ledger);
    assert!(![near, far].iter().any(|end| end.stalled || end.cut_short), "{what}: stalled or cut short");
    if outcome.spec.transport == TransportName::Memcpy {
        assert!(near.bytes_sent > 0 && near.bytes_sent == near.bytes_received, "{what}: copies");
    } else {
        arrived(near, far, outcome, what);
        arrived(far, near, outcome, what);
        directions(outcome, near, far, what);
    }
    for (end, name) in [(near, "near"), (far, "far")] {
        parts(end, outcome, &format!("{what}, {name} end"));
    }
}

/// All that `from` sent arrived at `to`; datagrams are accounted for one by one.
fn arrived(from: &EndTally, to: &EndTally, outcome: &Outcome, what: &str) {
    let (Some(sent), Some(received)) = (from.datagrams, to.datagrams) else {
        assert_eq!(from.bytes_sent, to.bytes_received, "{what}: bytes sent and received");
        return;
    };
    assert!(sent.sent >= received.received, "{what}: {} of {} datagrams", received.received, sent.sent);
    assert_eq!(received.duplicates, 0, "{what}: nothing doubles datagrams here");
    // Every datagram of these tests is a full block: the amounts are multiples of the block.
    let lost = (sent.sent - received.received) * outcome.spec.block;
    assert_eq!(from.bytes_sent, to.bytes_received + lost, "{what}: bytes sent, and received or lost");
}

/// Payload goes in the direction of the spec.
fn directions(outcome: &Outcome, near: &EndTally, far: &EndTally, what: &str) {
    let sent = [near.bytes_sent > 0, far.bytes_sent > 0];
    let expected = match outcome.spec.direction {
        _ if !is_stream(outcome) => [true, true],
        Direction::Send => [true, false],
        Direction::Reverse => [false, true],
        Direction::Both => [true, true],
    };
    assert_eq!(sent, expected, "{what}: who sent (near, far)");
    if !is_stream(outcome) {
        let [client, server] = match outcome.spec.direction {
            Direction::Reverse => [far, near],
            _ => [near, far],
        };
        assert!(client.transactions > 0, "{what}: the client counts transactions");
        assert!(server.rtt.is_none(), "{what}: the server measures no round trips");
    }
}

/// The series over time and the flows' shares add up to the totals.
fn parts(end: &EndTally, outcome: &Outcome, what: &str) {
    if end.bytes_sent + end.bytes_received == 0 {
        return;
    }
    let spec = &outcome.spec;
    if spec.interval_ns > 0 {
        let sum = |figure: fn(&Interval) -> u64| end.intervals.iter().map(figure).sum::<u64>();
        let series = [sum(|i| i.bytes_sent), sum(|i| i.bytes_received), sum(|i| i.transactions)];
        assert_eq!(series, [end.bytes_sent, end.bytes_received, end.transactions], "{what}: series");
        let ordered = end.intervals.windows(2).all(|pair| pair[0].end_ns <= pair[1].start_ns);
        assert!(ordered && end.intervals.iter().all(|i| i.start_ns < i.end_ns), "{what}: {:?}", end.intervals);
        let links = spec.flows * if spec.direction == Direction::Both && is_stream(outcome) { 2 } else { 1 };
        assert_eq!(end.flows.len(), links as usize, "{what}: flows");
        let sum = |figure: fn(&model::FlowTally) -> u64| end.flows.iter().map(figure).sum::<u64>();
        assert_eq!(sum(|flow| flow.bytes_sent), end.bytes_sent, "{what}: bytes sent by flows");
        assert_eq!(sum(|flow| flow.bytes_received), end.bytes_received, "{what}: bytes received by flows");
    }
}

fn is_stream(outcome: &Outcome) -> bool {
    outcome.spec.pattern.is_bulk()
}
