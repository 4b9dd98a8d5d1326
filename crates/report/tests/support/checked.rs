//! A generated check of a path.

use model::{Direction, Outcome, Pattern, Responsiveness, RttTally, Run, RunKind, Spec, Summary, Trust};

use super::parts::*;
use super::{stream, stream_at};

/// A check of a path whose queue is long on the way out.
pub(crate) fn check() -> Run {
    let mut run = empty_run("20261121-212500-c4ec", RunKind::Check);
    run.header.target = Some("beta".into());
    let stream_of = |id: u32, bps: f64, direction: Direction, added_ns: f64| {
        let mut outcome = stream_at(bps, u64::from(id) + 40).outcomes.remove(0);
        (outcome.cell, outcome.spec.direction) = (id, direction);
        let rtt = |ns: f64| RttTally {
            count: 100,
            min_ns: ns as u64,
            p50_ns: ns as u64,
            mean_ns: ns,
            p99_ns: None,
            max_ns: ns as u64,
            batch: 1,
            histogram: None,
        };
        let probe = Responsiveness {
            idle: Some(rtt(20e6)),
            loaded: rtt(20e6 + added_ns),
            bufferbloat_ns: Some(added_ns),
            rpm: 300.0,
            working: Vec::new(),
        };
        outcome.summary.probe = Some(probe.into());
        outcome
    };
    let datagrams_of = |id: u32, direction: Direction, lost: u64| {
        let spec = Spec { direction, block: 200, rate_bps: Some(500_000), ..Spec::new("udp", Pattern::Stream) };
        Outcome {
            cell: id,
            spec: spec.into(),
            summary: Summary {
                packets_sent: Some(625),
                packets_lost: Some(lost),
                jitter_ns: Some(80e3),
                trust: Some(Trust::High),
                ..Summary::default()
            },
            ..stream().outcomes.remove(0)
        }
    };
    run.outcomes = vec![
        stream_of(0, 9.41e7, Direction::Send, 123e6),
        stream_of(1, 4.7e7, Direction::Reverse, 2e6),
        datagrams_of(2, Direction::Send, 0),
        datagrams_of(3, Direction::Reverse, 13),
    ];
    run.outcomes[2].estimate = None;
    run.outcomes[3].estimate = None;
    plan(&mut run);
    run.findings = analysis::of_check(&run.header, &run.outcomes);
    run
}

/// A check with NPtcp at the far end, whose curve rises up to its largest block.
pub(crate) fn check_with_nptcp() -> Run {
    let mut run = empty_run("20261121-212500-c4ed", RunKind::Check);
    run.header.target = Some("beta".into());
    let point = |(id, block, rtt_ns): (u32, u64, f64)| Outcome {
        cell: id,
        spec: Spec { block, ..Spec::new("tcp", Pattern::Pingpong) }.into(),
        trials: vec![pingpong_trial(id, 0, block, rtt_ns)],
        summary: Summary {
            rtt_p50_ns: Some(rtt_ns),
            netpipe_bps: Some(block as f64 * 8.0 / (rtt_ns / 2e9)),
            trust: Some(Trust::Low),
            ..Summary::default()
        },
        ..stream().outcomes.remove(0)
    };
    run.outcomes = [(0, 1, 20e6), (1, 1 << 10, 21e6), (2, 1 << 16, 80e6)].map(point).into();
    plan(&mut run);
    run.findings = analysis::of_check(&run.header, &run.outcomes);
    run
}
