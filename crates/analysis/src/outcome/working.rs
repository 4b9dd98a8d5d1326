//! Responsiveness under working conditions: the algorithm of draft-ietf-ippm-responsiveness over the series of a trial.
//!
//! A trial has a fixed length, so the algorithm is applied to its series afterwards: the figures are those of the interval at which a
//! test that follows the draft would have ended, or of the last interval.

use model::{Confidence, EndTally, Interval, Spec, Stop, Trial, WorkingConditions, WorkingInterval};

use super::ends::{receivers, senders};

/// The draft's parameters: intervals of a moving average (MAD), tolerated standard deviation relative to the newest average (SDT), and the
/// share of the samples, fastest first, over which means are taken (TMP).
const MOVING: usize = 4;
const TOLERANCE: f64 = 0.05;
const TRIMMED: f64 = 0.95;

/// The times of the samples of a trial, each with the time at which it was complete, ns.
#[derive(Default)]
struct Samples {
    connect: Vec<(u64, f64)>,
    request: Vec<(u64, f64)>,
    rtt: Vec<(u64, f64)>,
}

/// The figures of some intervals.
struct Window {
    connect_ns: f64,
    request_ns: f64,
    rtt_ns: f64,
    probes: usize,
}

impl Window {
    /// Round trips per minute on connections of their own: the draft's formula without TLS.
    fn foreign_rpm(&self) -> f64 {
        60e9 / f64::midpoint(self.connect_ns, self.request_ns)
    }

    /// Round trips per minute on the loaded connections.
    fn loaded_rpm(&self) -> f64 {
        60e9 / self.rtt_ns
    }

    fn rpm(&self) -> f64 {
        f64::midpoint(self.foreign_rpm(), self.loaded_rpm())
    }
}

/// The working conditions of one trial; `None` unless its spec asks for them and it has probes.
pub(super) fn conditions(spec: &Spec, trial: &Trial) -> Option<WorkingConditions> {
    let Stop::TimeNs(length_ns) = spec.stop else { return None };
    if !spec.responsiveness {
        return None;
    }
    let samples = samples(spec, trial);
    let ends = receivers(spec, &trial.near, &trial.far);
    let goodput: Vec<f64> =
        (0..length_ns / Spec::RAMP_NS).map(|at| ends.iter().map(|end| rate_of(&end.intervals, at)).sum()).collect();
    let (mut averages, mut intervals) = (Vec::new(), Vec::new());
    let (mut rpms, mut saturated, mut stable) = (Vec::new(), false, false);
    for at in 0..goodput.len() {
        let first = (at + 1).saturating_sub(MOVING);
        averages.push(mean(&goodput[first..=at])?);
        // The draft measures from the interval after that in which the goodput is saturated.
        let measured = if saturated { window(&samples, first, at) } else { None };
        let rpm = measured.map(|window| window.rpm());
        rpms.extend(rpm);
        intervals.push(WorkingInterval { goodput_bps: goodput[at], average_bps: averages[at], rpm });
        stable = saturated && is_stable(&rpms);
        if stable {
            break;
        }
        saturated = saturated || is_stable(&averages);
    }
    let last = intervals.len().checked_sub(1)?;
    let first = (last + 1).saturating_sub(MOVING);
    let figures = window(&samples, first, last)?;
    let grade = |reached: bool, executed: usize| match reached {
        true => Confidence::High,
        false if executed >= MOVING => Confidence::Medium,
        false => Confidence::Low,
    };
    Some(WorkingConditions {
        rpm: figures.rpm(),
        foreign_rpm: figures.foreign_rpm(),
        loaded_rpm: figures.loaded_rpm(),
        confidence: grade(stable, rpms.len()),
        goodput_confidence: grade(saturated, averages.len()),
        goodput_bps: averages[last],
        flows: spec.flows.min(u32::try_from(last + 1).unwrap_or(u32::MAX)),
        from_ns: first as u64 * Spec::RAMP_NS,
        to_ns: (last as u64 + 1) * Spec::RAMP_NS,
        connect_ns: figures.connect_ns,
        request_ns: figures.request_ns,
        rtt_ns: figures.rtt_ns,
        probes: figures.probes as u64,
        intervals,
    })
}

/// Whether the last values vary by less than the tolerance of the newest.
fn is_stable(values: &[f64]) -> bool {
    let Some(last) = values.len().checked_sub(MOVING).map(|from| &values[from..]) else { return false };
    let Some(mean) = mean(last) else { return false };
    let variance = last.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (MOVING - 1) as f64;
    variance.sqrt() < TOLERANCE * last[MOVING - 1]
}

fn samples(spec: &Spec, trial: &Trial) -> Samples {
    let mut all = Samples::default();
    for probe in &trial.near.probes {
        let done = probe.at_ns + probe.connect_ns + probe.request_ns;
        all.connect.push((done, probe.connect_ns as f64));
        all.request.push((done, probe.request_ns as f64));
    }
    for flow in senders(spec, &trial.near, &trial.far).iter().flat_map(|end: &&EndTally| &end.flows) {
        // Before its first send a connection has the RTT of its handshake only.
        let Some([begun, _]) = flow.sending_ns else { continue };
        let under_way = flow.tcp.iter().filter(|reading| reading.at_ns > begun && reading.unacked > 0);
        all.rtt.extend(under_way.map(|reading| (reading.at_ns, reading.rtt_ns as f64)));
    }
    all
}

/// The figures of the samples of intervals `first` to `last`; `None` if a kind of samples is missing.
fn window(samples: &Samples, first: usize, last: usize) -> Option<Window> {
    let span = first as u64 * Spec::RAMP_NS..(last as u64 + 1) * Spec::RAMP_NS;
    let of = |kind: &[(u64, f64)]| -> Vec<f64> {
        kind.iter().filter(|(at, _)| span.contains(at)).map(|(_, ns)| *ns).collect()
    };
    let requests = of(&samples.request);
    let probes = requests.len();
    Some(Window {
        connect_ns: trimmed_mean(of(&samples.connect))?,
        request_ns: trimmed_mean(requests)?,
        rtt_ns: trimmed_mean(of(&samples.rtt))?,
        probes,
    })
}

/// The mean of the smallest 95 %.
fn trimmed_mean(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.truncate((values.len() as f64 * TRIMMED).ceil() as usize);
    mean(&values).filter(|mean| *mean > 0.0)
}

fn mean(values: &[f64]) -> Option<f64> {
    crate::stats::mean(values)
}

/// What one end received in interval `at`, bit/s, by the entries whose middle lies in it.
fn rate_of(series: &[Interval], at: u64) -> f64 {
    let span = at * Spec::RAMP_NS..(at + 1) * Spec::RAMP_NS;
    let inside = || series.iter().filter(|entry| span.contains(&u64::midpoint(entry.start_ns, entry.end_ns)));
    let ns: u64 = inside().map(|entry| entry.end_ns - entry.start_ns).sum();
    let bytes: u64 = inside().map(|entry| entry.bytes_received).sum();
    if ns == 0 { 0.0 } else { bytes as f64 * 8e9 / ns as f64 }
}

#[cfg(test)]
mod tests {
    use model::{FlowTally, Pattern, ProbeSample, TcpSample};

    use super::*;

    const MS: u64 = 1_000_000;

    /// A trial with these goodputs of its seconds in Mbit/s, and probes and TCP readings with these times in ms.
    fn trial(mbps: &[u64], probe_ms: impl Fn(u64) -> u64, rtt_ms: u64) -> (Spec, Trial) {
        let length = mbps.len() as u64;
        let spec = Spec {
            responsiveness: true,
            probe: Some(100),
            flows: 16,
            stop: Stop::TimeNs(length * Spec::RAMP_NS),
            ..Spec::new("tcp", Pattern::Stream)
        };
        let ticks = 0..length * 10;
        let interval = |tick: u64| Interval {
            start_ns: tick * 100 * MS,
            end_ns: (tick + 1) * 100 * MS,
            bytes_received: mbps[(tick / 10) as usize] * 12_500,
            ..Interval::default()
        };
        let probe = |tick: u64| ProbeSample {
            at_ns: tick * 100 * MS,
            connect_ns: probe_ms(tick / 10) * MS,
            request_ns: probe_ms(tick / 10) * MS,
        };
        let reading = |tick: u64| TcpSample {
            at_ns: tick * 100 * MS + 1,
            rtt_ns: rtt_ms * MS,
            unacked: 1,
            ..TcpSample::default()
        };
        let mut trial = crate::outcome::testing::stream_trial(&spec, 100);
        trial.far.intervals = ticks.clone().map(interval).collect();
        trial.near.probes = ticks.clone().map(probe).collect();
        let tcp = ticks.map(reading).collect();
        trial.near.flows = vec![FlowTally { sending_ns: Some([0, 1]), tcp, ..FlowTally::default() }];
        (spec, trial)
    }

    fn of(mbps: &[u64], probe_ms: impl Fn(u64) -> u64, rtt_ms: u64) -> WorkingConditions {
        let (spec, trial) = trial(mbps, probe_ms, rtt_ms);
        conditions(&spec, &trial).unwrap()
    }

    #[test]
    fn a_steady_path_is_measured_by_the_drafts_formula_in_eight_intervals() {
        let found = of(&[100; 20], |_| 100, 200);
        // Saturated after four averages; the next four values of the responsiveness are alike.
        assert_eq!((found.to_ns, found.from_ns, found.flows), (8_000 * MS, 4_000 * MS, 8));
        assert_eq!((found.confidence, found.goodput_confidence), (Confidence::High, Confidence::High));
        assert!((found.foreign_rpm - 600.0).abs() < 1e-9 && (found.loaded_rpm - 300.0).abs() < 1e-9);
        assert!((found.rpm - 450.0).abs() < 1e-9 && (found.goodput_bps - 100e6).abs() < 1.0);
        let rpms: Vec<bool> = found.intervals.iter().map(|interval| interval.rpm.is_some()).collect();
        assert_eq!(rpms, [false, false, false, false, true, true, true, true]);
    }

    #[test]
    fn the_grades_are_what_the_stages_reached() {
        let rising: Vec<u64> = (1..=20).map(|second| second * second * 10).collect();
        let never = of(&rising, |_| 100, 100);
        assert_eq!((never.goodput_confidence, never.confidence), (Confidence::Medium, Confidence::Low));
        let short = of(&rising[..3], |_| 100, 100);
        assert_eq!((short.goodput_confidence, short.confidence), (Confidence::Low, Confidence::Low));
        let wild = of(&[100; 20], |second| 200 - 9 * second, 10_000);
        assert_eq!((wild.goodput_confidence, wild.confidence), (Confidence::High, Confidence::Medium));
        assert_eq!(wild.to_ns, 20_000 * MS, "the last interval's value");
        let early = of(&[100; 6], |_| 100, 100);
        assert_eq!((early.goodput_confidence, early.confidence), (Confidence::High, Confidence::Low));
    }

    #[test]
    fn the_slowest_samples_and_idle_connections_do_not_count() {
        let (spec, mut trial) = trial(&[100; 8], |_| 100, 100);
        let before = conditions(&spec, &trial).unwrap();
        trial.near.probes[60].request_ns *= 100;
        trial.near.probes[60].at_ns = 5_000 * MS - 10_000 * MS / 2;
        // A connection that has not sent yet.
        let silent = FlowTally { tcp: trial.near.flows[0].tcp.clone(), ..FlowTally::default() };
        trial.near.flows.push(silent);
        assert_eq!(conditions(&spec, &trial).unwrap().loaded_rpm, before.loaded_rpm);
        trial.near.probes.clear();
        assert_eq!(conditions(&spec, &trial), None);
        let plain = Spec { responsiveness: false, ..spec };
        assert_eq!(conditions(&plain, &trial), None);
    }

    #[test]
    fn means_are_of_the_fastest_95_percent() {
        let mut values = vec![1.0; 19];
        values.push(1_000.0);
        assert_eq!(trimmed_mean(values), Some(1.0));
        assert_eq!((trimmed_mean(vec![3.0]), trimmed_mean(Vec::new())), (Some(3.0), None));
    }
}
