//! Curves of many sizes.

use model::{Estimate, FindingKind, NetpipeSizes, Outcome, Pattern, Run, RunKind, Spec, Stop, Summary, Trust, Verdict};

use super::parts::*;
use super::{Noise, named};

/// The shape of a curve: a block of n bytes takes `start_ns` + n bits at `bps`, and from `jump_at` bytes on `jump_ns` more.
pub(crate) struct Shape {
    pub(crate) start_ns: f64,
    pub(crate) bps: f64,
    pub(crate) jump_at: u64,
    pub(crate) jump_ns: f64,
    pub(crate) noise: f64,
    pub(crate) seed: u64,
}

impl Shape {
    fn one_way(&self, block: u64) -> f64 {
        let jump = if block >= self.jump_at { self.jump_ns } else { 0.0 };
        self.start_ns + block as f64 * 8e9 / self.bps + jump
    }
}

const PLAIN: Shape = Shape { start_ns: 9_300.0, bps: 46.4e9, jump_at: u64::MAX, jump_ns: 0.0, noise: 0.012, seed: 11 };

/// A whole NetPIPE curve over tcp: 124 sizes, 6 trials each.
pub(crate) fn curve() -> Run {
    curve_of("20261121-203758-4f1a", "tcp", &PLAIN, &NetpipeSizes::DEFAULT.list())
}

/// A curve with a protocol change at 64 KiB.
pub(crate) fn jumps() -> Run {
    let shape = Shape { start_ns: 14_000.0, bps: 39e9, jump_at: 65_536, jump_ns: 22_000.0, noise: 0.03, seed: 5 };
    named(curve_of("20261121-204511-77c2", "tcp", &shape, &NetpipeSizes::DEFAULT.list()), "beta, 9000 byte MTU")
}

/// Four paths and a memory ceiling in one figure.
pub(crate) fn overlaid() -> Vec<Run> {
    let sizes = NetpipeSizes::DEFAULT.list();
    let of = |start_ns, bps, noise, seed| Shape { start_ns, bps, jump_at: u64::MAX, jump_ns: 0.0, noise, seed };
    vec![
        curve(),
        named(curve_of("20261121-204800-0b2e", "tcp", &of(11_800.0, 31e9, 0.02, 3), &sizes), "tcp, 1500 byte MTU"),
        named(curve_of("20261121-205102-9d31", "unix", &of(5_200.0, 62e9, 0.02, 4), &sizes), "unix socket"),
        named(jumps(), "tcp through the old switch"),
        curve_of("20261121-205500-c3aa", "memcpy", &of(60.0, 110e9, 0.01, 6), &sizes),
    ]
}

/// A curve of one or two sizes.
pub(crate) fn tiny(sizes: usize) -> Run {
    curve_of("20261121-210000-aaaa", "tcp", &PLAIN, &[1_500, 65_536][..sizes.min(2)])
}

/// Times from nanoseconds to seconds.
pub(crate) fn decades() -> Run {
    let shape = Shape { start_ns: 90.0, bps: 8e6, jump_at: u64::MAX, jump_ns: 0.0, noise: 0.01, seed: 8 };
    curve_of("20261121-210500-dec6", "tcp", &shape, &NetpipeSizes { perturbation: 0, ..NetpipeSizes::DEFAULT }.list())
}

/// Names that are too long for a legend.
pub(crate) fn long_names() -> Vec<Run> {
    overlaid()
        .into_iter()
        .enumerate()
        .map(|(index, run)| {
            let long = "the second rack's upper pair of hosts with interrupt moderation off, segmentation offload on, \
                        both directions pinned to the device's own node";
            named(run, &format!("{} {long}", index + 1))
        })
        .collect()
}

fn curve_of(id: &str, transport: &str, shape: &Shape, sizes: &[u64]) -> Run {
    let mut run = empty_run(id, RunKind::Curve);
    let mut noise = Noise::new(shape.seed);
    for (cell, block) in (0..).zip(sizes) {
        let spec = Spec { block: *block, stop: Stop::AboutNs(50_000_000), ..Spec::new(transport, Pattern::Pingpong) };
        let values: Vec<f64> =
            (0..6).map(|_| 2.0 * shape.one_way(*block) * (1.0 + shape.noise * noise.normal())).collect();
        let trials = (0..).zip(&values).map(|(pass, rtt)| pingpong_trial(cell, pass, *block, *rtt)).collect();
        let estimate = estimate("mean over trials of the mean round trip", "ns", &values);
        let mut verdicts = Vec::new();
        let wide = estimate.relative_half_width().is_some_and(|width| width > 0.02);
        if wide {
            verdicts.push(Verdict::TargetMissed);
        }
        let summary = Summary {
            rtt_p50_ns: Some(estimate.value),
            netpipe_bps: Some(*block as f64 * 16e9 / estimate.value),
            ci95_low: estimate.low,
            ci95_high: estimate.high,
            trials: values.len() as u32,
            bytes_sent: Some(block * 500),
            bytes_received: Some(block * 500),
            duration_ns: Some((values.iter().sum::<f64>() * 500.0) as u64),
            verdicts,
            trust: Some(if wide { Trust::Fair } else { Trust::High }),
            ..Summary::default()
        };
        run.outcomes.push(Outcome {
            cell,
            spec: spec.into(),
            summary,
            estimate: Some(estimate),
            histogram: None,
            trials,
        });
    }
    curve_findings(&mut run);
    plan(&mut run);
    run
}

fn curve_findings(run: &mut Run) {
    let rate = |outcome: &&Outcome| outcome.summary.netpipe_bps.unwrap_or(0.0);
    let Some(first) = run.outcomes.first().cloned() else { return };
    let Some(best) = run.outcomes.iter().max_by(|a, b| rate(a).total_cmp(&rate(b))).cloned() else { return };
    let near = run.outcomes.iter().find(|outcome| rate(outcome) > 0.9 * rate(&&best)).cloned().unwrap_or(best.clone());
    let say = |outcome: &Outcome| outcome.estimate.as_ref().map_or(0.0, |estimate| estimate.value);
    let peak = Estimate { unit: "bit/s".into(), value: rate(&&best), low: None, high: None, ..blank() };
    run.findings = vec![
        finding(
            FindingKind::Latency,
            &format!("The smallest blocks take {} for a round trip.", model::units::seconds(say(&first))),
            first.estimate.clone(),
            Some(first.spec.block),
        ),
        finding(
            FindingKind::Peak,
            &format!(
                "The highest rate is {} with blocks of {}.",
                model::units::bits_per_second(rate(&&best)),
                model::ByteSize(best.spec.block)
            ),
            Some(peak),
            Some(best.spec.block),
        ),
        finding(
            FindingKind::Saturation,
            &format!(
                "From blocks of {} on the time grows in proportion to the size.",
                model::ByteSize(near.spec.block)
            ),
            None,
            Some(near.spec.block),
        ),
    ];
}
