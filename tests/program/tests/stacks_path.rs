//! The textbook behaviour of TCP stacks on an emulated path. As root.
//!
//! Nothing here is timed by this machine's clock: growth is counted in segments that were acknowledged, which a machine that is
//! late does not change.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use std::time::Duration;

use lab::{CrossoverSpec, Lab, LabError, OneWay, PathSpec};
use program::skip::skip;
use program::stacks::turn;
use program::{Agent, Desk, Running, binary};

/// A sender's state, as `ss -ti` shows it.
#[derive(Debug, Clone, Copy)]
struct Sample {
    cwnd: f64,
    /// 0 for none yet.
    ssthresh: f64,
    /// Segments that have been acknowledged.
    acked: f64,
    rtt_ms: f64,
    min_rtt_ms: f64,
    /// Whether it repairs a loss.
    repairs: bool,
}

/// A path of 20 ms there and back.
fn path(test: &str, rate_bps: u64, queue_bytes: u64) -> Option<Lab> {
    let way = OneWay { delay: Duration::from_millis(10), rate_bps: Some(rate_bps), queue_bytes, ..OneWay::default() };
    let back = OneWay { rate_bps: None, ..way.clone() };
    let spec = PathSpec { link: CrossoverSpec::default(), forward: way, back, seed: 1 };
    match lab::available().and_then(|()| Lab::path(&spec)) {
        Ok(lab) => Some(lab),
        Err(error @ (LabError::Privilege { .. } | LabError::NotAllowed { .. } | LabError::Emulator { .. })) => {
            skip(test, &error.to_string());
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// Streams from `a` to `b` under a congestion control and looks at the sender meanwhile.
fn watch(lab: &Lab, cc: &str, seconds: u32) -> Vec<Sample> {
    let (a, b) = (lab.host("a").unwrap(), lab.host("b").unwrap());
    let agent =
        Agent::spawn(b.command(binary::thru()), &["--open", "--allow-stacks", "--listen", &format!("{}:0", b.v4)]);
    let desk = Desk::new();
    let time = format!("{seconds}s");
    let flags = ["stream", "--time", &time, "--trials", "1", "--cc", &format!("{cc},"), "--no-store", agent.host()];
    let mut client = Running::of(desk.dress(a.command(binary::thru()), &flags));
    let mut samples = Vec::new();
    while client.runs() {
        let output = a.command("ss").args(["-tinHO", "state", "established"]).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        samples.extend(text.lines().filter(|line| line.contains(" bpf_")).filter_map(sample));
    }
    client.wait().ok();
    samples
}

fn sample(line: &str) -> Option<Sample> {
    let field = |name: &str| {
        let word = line.split_whitespace().find_map(|word| word.strip_prefix(name)?.strip_prefix(':'))?;
        word.split('/').next()?.parse::<f64>().ok()
    };
    Some(Sample {
        cwnd: field("cwnd")?,
        ssthresh: field("ssthresh").unwrap_or(0.0),
        acked: field("bytes_acked")? / field("mss")?,
        rtt_ms: field("rtt")?,
        min_rtt_ms: field("minrtt")?,
        repairs: line.contains(" lost:"),
    })
}

/// What happened from one loss to the next.
#[derive(Debug)]
struct Cycle {
    /// Window that the stack went on with after the first loss.
    start: f64,
    /// Window at the next.
    end: f64,
    /// Windows' worth of segments that were acknowledged between the two, outside of repairs: round trips.
    trips: f64,
    /// Segments that were acknowledged.
    acked: f64,
}

/// The cycles between losses after the first one, which ends slow start.
fn cycles(samples: &[Sample]) -> Vec<Cycle> {
    let mut cycles = Vec::new();
    let mut current: Option<Cycle> = None;
    for pair in samples.windows(2) {
        let [before, now] = pair else { continue };
        let acked = now.acked - before.acked;
        if now.ssthresh != before.ssthresh {
            cycles.extend(current.take());
            if now.ssthresh > 0.0 {
                current = Some(Cycle { start: now.ssthresh, end: now.ssthresh, trips: 0.0, acked: 0.0 });
            }
        } else if let Some(cycle) = &mut current
            && !now.repairs
        {
            cycle.trips += acked / before.cwnd.max(1.0);
            cycle.acked += acked;
            cycle.end = cycle.end.max(now.cwnd);
        }
    }
    // The one from the end of slow start to the first loss in congestion avoidance may have begun in a recovery.
    cycles.drain(..cycles.len().min(1));
    cycles
}

/// Those that are long enough to tell a growth: a late emulator drops bursts early.
fn long(cycles: &[Cycle]) -> impl Iterator<Item = &Cycle> {
    cycles.iter().filter(|cycle| cycle.trips >= 8.0)
}

fn median(mut values: Vec<f64>, what: &str) -> f64 {
    assert!(!values.is_empty(), "{what}: no cycle from one loss to the next");
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn between(what: &str, value: f64, least: f64, most: f64) {
    assert!((least..=most).contains(&value), "{what}: {value}, where {least} to {most} is expected");
}

#[test]
fn responses_to_loss_and_growth_are_those_of_the_papers() {
    let test = "responses_to_loss_and_growth_are_those_of_the_papers";
    let Some(_turn) = turn(test) else { return };
    // 60 Mbit/s and 20 ms: 98 segments fill the path, as many the queue.
    let Some(lab) = path(test, 60_000_000, 150_000) else { return };
    // What is left after a loss; how many segments the window grows by in a round trip.
    for (cc, seconds, left, growth) in [
        ("aimd:a=2,b=0.3", 8, 0.7, 2.0),
        ("highspeed", 12, 0.56, 2.0), // from 118 to 221: b = 0.44, a = 2
        ("aimd:a=10,b=0.2", 6, 0.8, 10.0),
    ] {
        let found = cycles(&watch(&lab, cc, seconds));
        let kept = median(found.windows(2).map(|two| two[1].start / two[0].end).collect(), cc);
        between(&format!("{cc}: what is left after a loss"), kept, left - 0.07, left + 0.07);
        let grown = median(long(&found).map(|cycle| (cycle.end - cycle.start) / cycle.trips).collect(), cc);
        // HighSpeed is as Reno below 118, where a burst that was lost may have put it.
        between(&format!("{cc}: growth in a round trip"), grown, growth * 0.45, growth * 1.4);
    }
}

#[test]
fn scalable_recovers_within_the_same_round_trips_at_any_window() {
    let test = "scalable_recovers_within_the_same_round_trips_at_any_window";
    let Some(_turn) = turn(test) else { return };
    let mut found = Vec::new();
    for rate in [40_000_000, 160_000_000] {
        let Some(lab) = path(test, rate, rate / 400) else { return };
        let cycles = cycles(&watch(&lab, "scalable", 12));
        let window = median(long(&cycles).map(|cycle| cycle.end).collect(), "window");
        let kept = median(cycles.windows(2).map(|two| two[1].start / two[0].end).collect(), "loss");
        between(&format!("at {window}: what is left after a loss"), kept, 0.82, 0.93);
        // The loss of an eighth is made up for at the pace of the cycle.
        let recovery = |cycle: &Cycle| cycle.trips * (1.0_f64 / 0.875).ln() / (cycle.end / cycle.start).ln();
        found.push((
            window,
            median(long(&cycles).filter(|cycle| cycle.end > cycle.start).map(recovery).collect(), "recovery"),
        ));
    }
    let [(small, first), (large, second)] = found[..] else { panic!("{found:?}") };
    assert!(large > 2.0 * small, "{found:?}");
    // log(1 / (1 - b)) / log(1 + a) = 13.4; Reno would take a sixteenth of the window.
    for trips in [first, second] {
        between(&format!("round trips to recover in, {found:?}"), trips, 10.0, 22.0);
    }
}

#[test]
fn fast_keeps_alpha_in_the_queue_without_a_loss() {
    let test = "fast_keeps_alpha_in_the_queue_without_a_loss";
    let Some(_turn) = turn(test) else { return };
    // 50 Mbit/s and 20 ms: 81 segments fill the path. A queue for 680 holds what slow start brings.
    let Some(lab) = path(test, 50_000_000, 1 << 20) else { return };
    let samples = watch(&lab, "fast:alpha=60", 8);
    let settled = &samples[samples.len() / 2..];
    let queue = settled.iter().map(|sample| sample.cwnd * (1.0 - sample.min_rtt_ms / sample.rtt_ms)).collect();
    between("segments in the queue", median(queue, "queue"), 40.0, 80.0);
    let lost: u64 = lab.emulator().unwrap().counts().iter().map(|way| way.dropped_queue + way.dropped_ring).sum();
    assert_eq!(lost, 0, "it does not wait for a loss");
}
