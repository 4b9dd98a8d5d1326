//! How much an agent may send about a trial. A hostile agent could otherwise fill the memory and the store of this host.

use std::time::Duration;

use model::{Direction, EndPass, EndResult, EndTally, Leg, Observe, Observed, Pattern, Spec, Stop};
use text::Text;

use crate::line::Line;
use crate::message::{FromAgent, Message};

/// Longest text of an agent, characters.
const TEXT: usize = 1_000;
/// The largest message outside a trial, bytes: a kept result.
pub const ANSWER: usize = 5 << 20;
/// Bytes of a result without its lists.
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
/// Most bytes of the time stamps of round trips, or of requests under load, and the fewest bytes of one of them.
const SAMPLES: usize = 16 << 20;
const SAMPLE: usize = 16;
/// Bytes of the names of all counters and levels of a host, and of the shortest value over time.
const NAMES: usize = 1 << 20;
const VALUE: usize = 4;
/// Cores of the largest of hosts, and settings that a plan changes.
const CORES: usize = 8_192;
const SETTINGS: usize = 1_000;
/// Most readings over time, and readings of TCP_INFO of an end.
const READINGS: u64 = 600;
const ALL_READINGS: usize = 5_000;
/// Time that a trial may take beyond its own: the start-up of its connections, a stall, its end.
const BEYOND: Duration = Duration::from_secs(20);
/// Entries of the series beyond those of the elapsed time: the last one is short, and clocks differ.
const FEW: u64 = 8;

/// The largest message of an agent during this trial, bytes.
pub(super) fn frame(spec: &Spec, legs: &[Leg]) -> usize {
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
    let histograms = if spec.pattern == Pattern::Stream && spec.probe.is_none() { 1 } else { 2 * legs.len().min(32) };
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
fn series(spec: &Spec, legs: &[Leg], time: Duration) -> usize {
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
pub(super) fn check(done: &mut EndResult, spec: &Spec, legs: &[Leg], took: Duration) -> Result<(), Excess> {
    most("tallies", done.tallies.len(), legs.len())?;
    let entries = series(spec, legs, took);
    for tally in &mut done.tallies {
        most("intervals", tally.intervals.len(), entries)?;
        most("flows", tally.flows.len(), links(spec))?;
        most("sizes", tally.sizes.len(), sizes(spec))?;
        let readings = |tally: &EndTally| tally.flows.iter().map(|flow| flow.tcp.len()).sum();
        most("readings of TCP_INFO", readings(tally), ALL_READINGS + 16 * links(spec))?;
        if !spec.anatomy {
            (tally.stamps, tally.anatomy) = (None, None);
        }
        if let Some(stamps) = &mut tally.stamps {
            let samples = stamps.exchanges.len() + stamps.missing.len() + stamps.stepped.len();
            most("stamped exchanges", samples, SAMPLES / SAMPLE)?;
            stamps.refused.iter_mut().for_each(cut);
        }
        if let Some(refused) = tally.anatomy.as_mut().and_then(|anatomy| anatomy.refused.as_mut()) {
            cut(refused);
        }
        let requests = if spec.responsiveness { SAMPLES / SAMPLE } else { 0 };
        most("requests under load", tally.probes.len(), requests)?;
        let readings = |tally: &EndTally| tally.flows.iter().map(|flow| flow.readings.len()).sum();
        most("readings of flows", readings(tally), ALL_READINGS + 16 * links(spec))?;
        for flow in &mut tally.flows {
            most("sizes of a flow", flow.sizes.len(), sizes(spec))?;
            let socket = &mut flow.socket;
            most("options of a socket", socket.negotiated.len(), 16)?;
            let texts = [&mut socket.local, &mut socket.peer, &mut socket.cc].into_iter().flatten();
            let ciphers = socket.encryption.iter_mut().flat_map(|used| [&mut used.version, &mut used.cipher]);
            texts.chain(&mut socket.negotiated).chain(ciphers).for_each(cut);
        }
    }
    done.failure.iter_mut().for_each(|failure| *failure = one_line(failure));
    if spec.capture.is_none() {
        done.host.capture = None;
    }
    check_host(&mut done.host, spec, took)
}

/// Checks what an agent says of its host during a trial.
fn check_host(host: &mut EndPass, spec: &Spec, took: Duration) -> Result<(), Excess> {
    most("cores", host.cpu.as_ref().map_or(0, |cpu| cpu.cores.len()), CORES)?;
    most("settings", host.settings.len(), SETTINGS)?;
    for change in &mut host.settings {
        let texts = [&mut change.key, &mut change.before, &mut change.requested, &mut change.now];
        texts.into_iter().chain(&mut change.note).for_each(cut);
    }
    if spec.observe == Observe::Off {
        host.observed = None;
    }
    let Some(observed) = &mut host.observed else { return Ok(()) };
    if spec.observe == Observe::Counters {
        observed.series = None;
    }
    observed.missing.iter_mut().for_each(cut);
    most("bytes of counter names", names(observed), NAMES)?;
    let Some(series) = &observed.series else { return Ok(()) };
    let readings = usize::try_from(in_time(took, spec.observe_interval_ns).min(READINGS)).unwrap_or(usize::MAX);
    most("host readings", series.at_ns.len(), readings)?;
    most("host quantities over time", series.lines.len(), OBSERVED / VALUE)?;
    let longest = series.lines.iter().map(|line| line.values.len()).max().unwrap_or(0);
    most("values of a quantity over time", longest, series.at_ns.len())
}

/// The length of all names, bytes; each counts for its place in a list, too.
fn names(observed: &Observed) -> usize {
    let facts = observed.source_facts.iter();
    let facts = facts.flat_map(|(name, facts)| facts.losses.iter().chain([name]));
    let lines = observed.series.iter().flat_map(|series| &series.lines).flat_map(|line| [&line.name, &line.unit]);
    let lists = observed.sources.iter().chain(&observed.missing).chain(facts).chain(lines);
    let all = lists.chain(observed.counters.keys()).chain(observed.levels.keys());
    all.map(|name| name.len() + size_of::<String>()).sum()
}

/// Sizes of datagrams.
fn sizes(spec: &Spec) -> usize {
    spec.mix.len().max(64)
}

/// An agent sent more than its trial can have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the agent sent {count} {what}, but this trial has at most {most}: it may not be your agent")]
pub(super) struct Excess {
    /// How many.
    count: usize,
    /// What it is: "tallies", "flows" and others.
    what: &'static str,
    /// As many as there may be.
    most: usize,
}

fn most(what: &'static str, count: usize, most: usize) -> Result<(), Excess> {
    if count <= most { Ok(()) } else { Err(Excess { count, what, most }) }
}

fn cut(text: &mut String) {
    if text.len() > TEXT {
        *text = one_line(&text.as_str().into()).plain();
    }
}

/// A text of an agent as a line that is not too long.
pub fn one_line(text: &Text) -> Text {
    let Line { text, is_cut } = Line::of(text, TEXT);
    if is_cut { text + " ..." } else { text }
}

#[cfg(test)]
mod tests {
    use model::{
        AnatomyTally, Change, CoreUse, CpuUse, FlowCounts, FlowTally, Histogram, HostSeries, Interval, ProbeSample,
        SeriesLine, Stamps,
    };

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn spec() -> Spec {
        Spec { stop: Stop::TimeNs(SECOND), interval_ns: SECOND / 10, flows: 2, ..Spec::new("tcp", Pattern::Stream) }
    }

    fn legs(spec: &Spec) -> Vec<Leg> {
        vec![Leg { block: 1, reply: 1, stop: spec.stop, expected_ns: 0 }]
    }

    fn refused(change: impl FnOnce(&mut EndResult)) -> String {
        let (spec, mut done) = (spec(), EndResult { tallies: vec![EndTally::default()], ..EndResult::default() });
        change(&mut done);
        check(&mut done, &spec, &legs(&spec), Duration::from_secs(1))
            .err()
            .map(|excess| excess.to_string())
            .unwrap_or_default()
    }

    #[test]
    fn a_result_has_no_more_than_its_trial_can_have() {
        assert_eq!(refused(|done| done.tallies[0].intervals = vec![Interval::default(); 11]), "");
        assert!(refused(|done| done.tallies[0].intervals = vec![Interval::default(); 500]).contains("500 intervals"));
        assert_eq!(refused(|done| done.tallies[0].flows = vec![FlowTally::default(); 2]), "");
        assert!(refused(|done| done.tallies[0].flows = vec![FlowTally::default(); 1_000]).contains("1000 flows"));
        assert!(refused(|done| done.tallies = vec![EndTally::default(); 2]).contains("2 tallies"));
    }

    #[test]
    fn texts_are_cut_to_a_line_and_what_was_not_asked_for_is_left_out() {
        let (spec, legs) = (Spec { observe: Observe::Off, ..spec() }, legs(&spec()));
        let mut done = EndResult { failure: Some("x".repeat(50 << 20).into()), ..EndResult::default() };
        done.host.capture = Some(model::Capture::default());
        check(&mut done, &spec, &legs, Duration::ZERO).unwrap();
        assert!(done.failure.unwrap().plain().len() < 2 * TEXT && done.host.capture.is_none());
        assert_eq!(one_line(&"short".into()), "short".into());
        assert!(!one_line(&"two\nlines\u{1b}[2J".into()).plain().contains(['\n', '\u{1b}']));
    }

    #[test]
    fn a_host_has_no_more_counters_and_readings_than_one_can_have() {
        let line = |values: usize| SeriesLine { values: vec![Some(0.5); values], ..SeriesLine::default() };
        let series = |readings: usize, lines: Vec<SeriesLine>| {
            let series = HostSeries { at_ns: vec![0; readings], lines };
            let observed = Observed { series: Some(series), ..Observed::default() };
            refused(|done| done.host.observed = Some(observed))
        };
        assert_eq!(series(15, vec![line(15); 1_000]), "");
        assert!(series(500, Vec::new()).contains("500 host readings"));
        assert!(series(1, vec![line(1); 5_000]).contains("5000 host quantities"));
        assert!(series(2, vec![line(2), line(3)]).contains("3 values of a quantity"));
        let counters = |count: usize, name: &str| {
            let counters = (0..count).map(|number| (format!("dev.{name}{number}.rx_bytes"), 1)).collect();
            refused(|done| done.host.observed = Some(Observed { counters, ..Observed::default() }))
        };
        assert_eq!(counters(20_000, "eth"), "");
        assert!(counters(50_000, "eth").contains("bytes of counter names"));
        assert!(counters(2, &"x".repeat(1 << 20)).contains("bytes of counter names"));
        let missing = vec![String::new(); 100_000];
        let many = refused(|done| done.host.observed = Some(Observed { missing, ..Observed::default() }));
        assert!(many.contains("bytes of counter names"), "{many}");
        let cores = vec![CoreUse::default(); 10_000];
        let many = refused(|done| done.host.cpu = Some(CpuUse { cores, ..CpuUse::default() }));
        assert!(many.contains("10000 cores"), "{many}");
        let text = || "x".to_owned();
        let change =
            Change { key: text(), before: text(), requested: text(), now: text(), host_wide: false, note: None };
        assert!(refused(|done| done.host.settings = vec![change; 2_000]).contains("2000 settings"));
    }

    #[test]
    fn samples_of_what_was_not_asked_for_are_left_out_or_refused() {
        let mut done = EndResult { tallies: vec![EndTally::default()], ..EndResult::default() };
        (done.tallies[0].stamps, done.tallies[0].anatomy) = (Some(Stamps::default()), Some(AnatomyTally::default()));
        check(&mut done, &spec(), &legs(&spec()), Duration::from_secs(1)).unwrap();
        assert_eq!((&done.tallies[0].stamps, &done.tallies[0].anatomy), (&None, &None));
        let request = ProbeSample { at_ns: 1, connect_ns: 1, request_ns: 1 };
        assert!(refused(|done| done.tallies[0].probes = vec![request]).contains("1 requests under load"));
        let counts = FlowCounts { at_ns: 1, bytes_sent: 1, bytes_received: 0, datagrams: None };
        let flow = FlowTally { readings: vec![counts; 10_000], ..FlowTally::default() };
        assert!(refused(|done| done.tallies[0].flows = vec![flow]).contains("10000 readings of flows"));
    }

    #[test]
    fn a_histogram_is_no_larger_than_that_of_all_times() {
        // Every possible value of the first buckets, then many for each of the later ones.
        let times = (0..10_000u64).chain((0..2_000_000).map(|step| 10_000 + step * 2_000_000));
        let histogram = Histogram::from_buckets(times.map(|ns| (ns, 1)), 0);
        let text = serde_json::to_vec(&histogram).unwrap();
        assert!(text.len() < HISTOGRAM, "{}", text.len());
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
