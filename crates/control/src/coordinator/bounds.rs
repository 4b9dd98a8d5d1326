//! What an agent may send of a trial: as much as the trial can have. A hostile one could otherwise fill the memory and the store of this
//! host.

use std::time::Duration;

use model::{Direction, EndTally, Observe, Spec, Stop};

use crate::proto::message::{Done, FromAgent, Message, WireLeg};

/// Longest text of an agent, characters.
const TEXT: usize = 1_000;
/// The largest message outside a trial, bytes: a kept result.
pub(super) const ANSWER: usize = 5 << 20;
/// Bytes of a result beside its lists.
const BASE: usize = 2 << 20;
/// Bytes of an entry of the series, of a flow with its socket, of a reading of TCP_INFO, and of a leg.
const INTERVAL: usize = 200;
const FLOW: usize = 4 << 10;
const READING: usize = 600;
const LEG: usize = 2 << 10;
/// Bytes of a histogram with all its buckets.
const HISTOGRAM: usize = 1 << 20;
/// Bytes of what the observers read at one time, on the largest of hosts.
const OBSERVED: usize = 16 << 10;
/// Bytes of the time stamps of round trips, or of requests beside a load.
const SAMPLES: usize = 16 << 20;
/// Most readings over time, and readings of TCP_INFO of an end.
const READINGS: u64 = 600;
const ALL_READINGS: usize = 5_000;
/// Time that a trial may take beyond its own: the start-up of its connections, a stall, its end.
const BEYOND: Duration = Duration::from_secs(20);
/// Entries of the series beyond those of the elapsed time: the last one is short, and clocks differ.
const FEW: u64 = 8;

/// The largest message of an agent during this trial, bytes.
pub(super) fn frame(spec: &Spec, legs: &[WireLeg]) -> usize {
    let whole = FromAgent::MAX_FRAME;
    let mut time = BEYOND.saturating_add(Duration::from_nanos(spec.warmup_ns.saturating_add(spec.stall_ns)));
    for leg in legs {
        match leg.stop {
            Stop::TimeNs(ns) | Stop::AboutNs(ns) => time = time.saturating_add(Duration::from_nanos(ns)),
            // It takes as long as it takes.
            _ if legs.len() == 1 => return whole,
            _ => {}
        }
    }
    let links = links(spec);
    let points = match spec.observe {
        Observe::Series => in_time(time, spec.observe_interval_ns).min(READINGS),
        Observe::Off | Observe::Counters => 1,
    };
    let histograms = if spec.pattern == "stream" && spec.probe.is_none() { 1 } else { 2 * legs.len().min(32) };
    [
        BASE,
        series(spec, legs, time).saturating_mul(INTERVAL),
        links.saturating_mul(FLOW),
        ALL_READINGS * READING,
        legs.len().saturating_mul(LEG.saturating_add(links.saturating_mul(FLOW))),
        histograms * HISTOGRAM,
        points as usize * OBSERVED,
        if spec.anatomy || spec.responsiveness { SAMPLES } else { 0 },
    ]
    .into_iter()
    .fold(0, usize::saturating_add)
    .min(whole)
}

/// Connections of a trial.
fn links(spec: &Spec) -> usize {
    let directions = if spec.direction == Direction::Both { 2 } else { 1 };
    // And those of a probe.
    (spec.flows as usize).saturating_mul(directions).saturating_add(64)
}

/// Entries of the series of a trial that takes this time.
fn series(spec: &Spec, legs: &[WireLeg], time: Duration) -> usize {
    match (legs.len(), spec.interval_ns) {
        (1, 1..) => usize::try_from(in_time(time, spec.interval_ns)).unwrap_or(usize::MAX),
        _ => 0,
    }
}

fn in_time(time: Duration, interval_ns: u64) -> u64 {
    u64::try_from(time.as_nanos()).unwrap_or(u64::MAX) / interval_ns.max(1) + FEW
}

/// Checks a result of a trial that has taken `took` at most, and cuts its texts.
///
/// # Errors
/// It has more than the trial can have.
pub(super) fn check(done: &mut Done, spec: &Spec, legs: &[WireLeg], took: Duration) -> Result<(), String> {
    most("tallies", done.tallies.len(), legs.len())?;
    let entries = series(spec, legs, took);
    for tally in &mut done.tallies {
        most("entries of its series", tally.intervals.len(), entries)?;
        most("flows", tally.flows.len(), links(spec))?;
        most("sizes", tally.sizes.len(), sizes(spec))?;
        let readings = |tally: &EndTally| tally.flows.iter().map(|flow| flow.tcp.len()).sum();
        most("readings of TCP_INFO", readings(tally), ALL_READINGS + 16 * links(spec))?;
        for flow in &mut tally.flows {
            most("sizes of a flow", flow.sizes.len(), sizes(spec))?;
            let socket = &mut flow.socket;
            most("options of a socket", socket.negotiated.len(), 16)?;
            let texts = [&mut socket.local, &mut socket.peer, &mut socket.cc].into_iter().flatten();
            let ciphers = socket.encryption.iter_mut().flat_map(|used| [&mut used.version, &mut used.cipher]);
            texts.chain(&mut socket.negotiated).chain(ciphers).for_each(cut);
        }
    }
    done.failure.iter_mut().for_each(cut);
    if spec.capture.is_none() {
        done.host.capture = None;
    }
    if spec.observe == Observe::Off {
        done.host.observed = None;
    }
    Ok(())
}

/// Sizes of datagrams.
fn sizes(spec: &Spec) -> usize {
    spec.mix.len().max(64)
}

fn most(what: &str, count: usize, most: usize) -> Result<(), String> {
    if count <= most {
        return Ok(());
    }
    Err(format!("the agent sent {count} {what}, and this trial has {most} at most: it may not be your agent"))
}

fn cut(text: &mut String) {
    if text.len() > TEXT {
        *text = one_line(text);
    }
}

/// A text of an agent as a line that is not too long.
pub(super) fn one_line(text: &str) -> String {
    let line = model::plain(&text.chars().take(TEXT).collect::<String>()).into_owned();
    if text.chars().nth(TEXT).is_some() { line + " ..." } else { line }
}

#[cfg(test)]
mod tests {
    use model::{FlowTally, Interval};

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn spec() -> Spec {
        Spec { stop: Stop::TimeNs(SECOND), interval_ns: SECOND / 10, flows: 2, ..Spec::new("tcp", "stream") }
    }

    fn legs(spec: &Spec) -> Vec<WireLeg> {
        vec![WireLeg { block: 1, reply: 1, stop: spec.stop, expected_ns: 0 }]
    }

    fn refused(change: impl FnOnce(&mut Done)) -> String {
        let (spec, mut done) = (spec(), Done { tallies: vec![EndTally::default()], ..Done::default() });
        change(&mut done);
        check(&mut done, &spec, &legs(&spec), Duration::from_secs(1)).err().unwrap_or_default()
    }

    #[test]
    fn a_result_has_no_more_than_its_trial_can_have() {
        assert_eq!(refused(|done| done.tallies[0].intervals = vec![Interval::default(); 11]), "");
        assert!(refused(|done| done.tallies[0].intervals = vec![Interval::default(); 500]).contains("500 entries"));
        assert_eq!(refused(|done| done.tallies[0].flows = vec![FlowTally::default(); 2]), "");
        assert!(refused(|done| done.tallies[0].flows = vec![FlowTally::default(); 1_000]).contains("1000 flows"));
        assert!(refused(|done| done.tallies = vec![EndTally::default(); 2]).contains("2 tallies"));
    }

    #[test]
    fn texts_are_cut_to_a_line_and_what_was_not_asked_for_is_left_out() {
        let (spec, legs) = (Spec { observe: Observe::Off, ..spec() }, legs(&spec()));
        let mut done = Done { failure: Some("x".repeat(50 << 20)), ..Done::default() };
        done.host.capture = Some(model::Capture::default());
        check(&mut done, &spec, &legs, Duration::ZERO).unwrap();
        assert!(done.failure.unwrap().len() < 2 * TEXT && done.host.capture.is_none());
        assert_eq!(one_line("short"), "short");
        assert!(!one_line("two\nlines\u{1b}[2J").contains(['\n', '\u{1b}']));
    }

    #[test]
    fn a_message_is_as_long_as_its_trial_needs() {
        let short = spec();
        let [of_short, of_long] =
            [SECOND, 3_600 * SECOND].map(|ns| frame(&short, &legs(&Spec { stop: Stop::TimeNs(ns), ..short.clone() })));
        assert!(of_short < 12 << 20 && of_long > of_short, "{of_short}, {of_long}");
        let many = Spec { flows: 10_000, ..short.clone() };
        assert!(frame(&many, &legs(&many)) > 10_000 * FLOW);
        let bytes = Spec { stop: Stop::Bytes(1), ..short };
        assert_eq!(frame(&bytes, &legs(&bytes)), FromAgent::MAX_FRAME);
    }
}
