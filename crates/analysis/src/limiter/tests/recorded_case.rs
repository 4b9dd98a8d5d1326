//! A base outcome that tests modify for each rule.

use model::{DatagramTally, EndTally, FlowTally, Interface, Interval, Observed, Pattern, SocketFacts, TcpSample};

use super::super::*;
use super::{MS, SECOND};
use crate::curve::testing::made;

/// An outcome of three trials of a second with one connection from a to b, and their passes.
pub(super) struct RecordedCase {
    pub(super) outcome: Outcome,
    pub(super) passes: Vec<Pass>,
    pub(super) hosts: [Inventory; 2],
    pub(super) path_mtu: [Option<u32>; 2],
}

/// Two hosts and nothing else.
pub(super) fn around<'a>(hosts: [&'a Inventory; 2]) -> Recorded<'a> {
    Recorded { passes: &[], hosts, path_mtu: [None; 2] }
}

impl RecordedCase {
    /// At `mbit` Mbit/s, round trips of `rtt_ns`, TCP busy all the time.
    pub(super) fn tcp(mbit: u64, rtt_ns: u64) -> Self {
        let bytes = mbit * 125_000;
        let sample = |i: u64| TcpSample {
            at_ns: i * 100 * MS,
            rtt_ns,
            min_rtt_ns: Some(rtt_ns),
            cwnd: 1_000,
            mss: 1_448,
            unacked: 100,
            busy_ns: Some(i * 100 * MS),
            rwnd_limited_ns: Some(0),
            sndbuf_limited_ns: Some(0),
            delivered: Some(bytes / 1_448 * i / 10),
            peer_window_bytes: Some(4 << 20),
            bytes_acked: Some(bytes * i / 10),
            ..TcpSample::default()
        };
        let interval = |i: u64| Interval {
            start_ns: i * 100 * MS,
            end_ns: (i + 1) * 100 * MS,
            bytes_received: bytes / 10,
            ..Interval::default()
        };
        let flow = |sent, received, tcp| FlowTally {
            bytes_sent: sent,
            bytes_received: received,
            socket: SocketFacts { local: Some("10.0.0.1:5000".into()), ..SocketFacts::default() },
            tcp,
            ..FlowTally::default()
        };
        let mut outcome = made(Pattern::Stream, 0, 131_072, &[mbit as f64 * 1e6; 3]);
        for (index, trial) in outcome.trials.iter_mut().enumerate() {
            trial.pass = index as u32;
            trial.near = EndTally {
                bytes_sent: bytes,
                sending_ns: SECOND,
                flows: vec![flow(bytes, 0, (0..=10).map(sample).collect())],
                ..EndTally::default()
            }
            .into();
            trial.far = EndTally {
                bytes_received: bytes,
                receiving_ns: SECOND,
                intervals: (0..10).map(interval).collect(),
                flows: vec![flow(0, bytes, Vec::new())],
                ..EndTally::default()
            }
            .into();
        }
        let interface =
            Interface { name: "eth0".into(), addresses: vec!["10.0.0.1/24".into()], ..Interface::default() };
        let host = |boot: &str| Inventory {
            boot_id: Some(boot.into()),
            interfaces: vec![interface.clone()],
            ..Inventory::default()
        };
        let passes = (0..3).map(|index| Pass { index, ..Pass::default() }).collect();
        Self { outcome, passes, hosts: [host("a"), host("b")], path_mtu: [None; 2] }
    }

    /// The same over datagrams, `sent` and `received` of them in each trial.
    pub(super) fn udp(sent: u64, received: u64) -> Self {
        let mut case = Self::tcp(100, MS);
        case.outcome.spec.transport = "udp".into();
        case.trials(|trial| {
            trial.near.flows[0].tcp.clear();
            trial.near.datagrams = Some(DatagramTally { sent, ..DatagramTally::default() });
            trial.far.datagrams = Some(DatagramTally { received, ..DatagramTally::default() });
        });
        case
    }

    pub(super) fn trials(&mut self, change: impl Fn(&mut model::Trial)) {
        self.outcome.trials.iter_mut().for_each(change);
    }

    pub(super) fn samples(&mut self, change: impl Fn(u64, &mut TcpSample)) {
        self.trials(|trial| {
            trial.near.flows[0].tcp.iter_mut().enumerate().for_each(|(i, one)| change(i as u64, one));
        });
    }

    pub(super) fn counters(&mut self, far: bool, counters: &[(&str, i64)]) {
        let sources = ["snmp", "snmp6", "netstat", "softnet", "dev", "qdisc"].map(str::to_owned).to_vec();
        let counters = counters.iter().map(|(name, by)| ((*name).to_owned(), *by)).collect();
        let observed = Observed { sources, counters, ..Observed::default() };
        for pass in &mut self.passes {
            let end = if far { &mut pass.far } else { &mut pass.near };
            end.observed = Some(observed.clone());
        }
    }

    pub(super) fn why(&self) -> Why {
        why(&self.outcome, &self.recorded()).expect("something to say")
    }

    pub(super) fn recorded(&self) -> Recorded<'_> {
        Recorded { passes: &self.passes, hosts: [&self.hosts[0], &self.hosts[1]], path_mtu: self.path_mtu }
    }

    /// The limiter.
    pub(super) fn limiter(&self) -> LimiterKind {
        self.why().limiter
    }
}

pub(super) fn part(why: &Why, of: LimiterKind) -> f64 {
    why.parts.iter().find(|part| part.of == of).map_or(0.0, |part| part.share)
}

pub(super) fn adds_up(why: &Why) {
    let sum: f64 = why.parts.iter().map(|part| part.share).sum();
    assert!((sum - 1.0).abs() < 1e-9, "{sum}: {why:#?}");
}
