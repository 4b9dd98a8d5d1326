//! Parts of the sample runs.

use std::collections::BTreeMap;

use model::{
    Cell, CoreUse, CpuUse, EndPass, EndTally, Ending, Estimate, Finding, FindingKind, FlowTally, HostSeries, Interface,
    Interval, Inventory, Ledger, Observed, Outcome, Pass, Run, RunHeader, RunKind, SeriesLine, SocketFacts, Spec,
    Stopping, Summary, Tool, Trial, Trust,
};

use super::{Noise, STARTED};

pub(crate) fn finding(kind: FindingKind, statement: &str, estimate: Option<Estimate>, block: Option<u64>) -> Finding {
    Finding { kind, statement: statement.into(), estimate, block, cells: Vec::new(), comparison: None }
}

pub(crate) fn pingpong_trial(cell: u32, pass: u32, block: u64, rtt: f64) -> Trial {
    let count = 500;
    let socket =
        SocketFacts { sndbuf: Some(16_384), rcvbuf: Some(131_072), nodelay: Some(true), ..SocketFacts::default() };
    let near = EndTally {
        bytes_sent: block * count,
        bytes_received: block * count,
        blocks_sent: count,
        transactions: count,
        flows: vec![FlowTally { socket, ..FlowTally::default() }],
        ..EndTally::default()
    };
    let far = EndTally { bytes_sent: block * count, bytes_received: block * count, ..EndTally::default() };
    trial(cell, pass, near, far, rtt)
}

pub(crate) fn stream_trial(cell: u32, pass: u32, spec: &Spec, bps: f64, seconds: f64, noise: &mut Noise) -> Trial {
    let series = intervals(bps, seconds, noise);
    let received: u64 = series.iter().map(|interval| interval.bytes_received).sum();
    let near = EndTally {
        bytes_sent: received,
        blocks_sent: received / spec.block,
        sending_ns: (seconds * 1e9) as u64,
        ..EndTally::default()
    };
    let far = EndTally {
        bytes_received: received,
        receiving_ns: (seconds * 1e9) as u64,
        intervals: series,
        ..EndTally::default()
    };
    trial(cell, pass, near, far, bps)
}

/// A slow start, then noise around the rate; the last interval is short.
pub(crate) fn intervals(bps: f64, seconds: f64, noise: &mut Noise) -> Vec<Interval> {
    let (step, end) = (100_000_000u64, (seconds * 1e9) as u64);
    (0..end.div_ceil(step))
        .map(|index| {
            let (start_ns, end_ns) = (index * step, ((index + 1) * step).min(end));
            let ramp = if index == 0 { 0.72 } else { 1.0 };
            let bits = bps * ramp * (1.0 + 0.02 * noise.normal()) * (end_ns - start_ns) as f64 / 1e9;
            Interval { start_ns, end_ns, bytes_received: (bits / 8.0) as u64, ..Interval::default() }
        })
        .collect()
}

pub(crate) fn goodput_outcome(cell: u32, spec: Spec, trials: Vec<Trial>, values: &[f64]) -> Outcome {
    let estimate = estimate("mean over trials of the goodput", "bit/s", values);
    let summary = Summary {
        goodput_bps: Some(estimate.value),
        sender_bps: Some(estimate.value * 1.001),
        netpipe_bps: Some(estimate.value),
        bytes_sent: Some(trials.iter().map(|trial| trial.near.bytes_sent).sum()),
        bytes_received: Some(trials.iter().map(|trial| trial.far.bytes_received).sum()),
        ci95_low: estimate.low,
        ci95_high: estimate.high,
        trials: values.len() as u32,
        duration_ns: Some(1_000_000_000 * values.len() as u64),
        trust: Some(Trust::High),
        ..Summary::default()
    };
    Outcome { cell, spec: spec.into(), summary, estimate: Some(estimate), histogram: None, trials }
}

pub(crate) fn trial(cell: u32, pass: u32, near: EndTally, far: EndTally, value: f64) -> Trial {
    let ledger = Ledger {
        sent: near.bytes_sent + far.bytes_sent,
        received: near.bytes_received + far.bytes_received,
        balanced: true,
        ..Ledger::default()
    };
    Trial {
        cell,
        pass,
        position: cell,
        near: near.into(),
        far: far.into(),
        ledger,
        value: Some(value),
        verdicts: Vec::new(),
    }
}

pub(crate) fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

pub(crate) fn blank() -> Estimate {
    Estimate {
        statistic: "sample".into(),
        unit: "ns".into(),
        value: 0.0,
        low: None,
        high: None,
        confidence: 0.95,
        method: "Student t".into(),
        n: 6,
    }
}

pub(crate) fn estimate(statistic: &str, unit: &str, values: &[f64]) -> Estimate {
    let value = mean(values);
    let variance = values.iter().map(|v| (v - value).powi(2)).sum::<f64>() / (values.len() as f64 - 1.0);
    let half = 2.571 * (variance / values.len() as f64).sqrt();
    Estimate {
        statistic: statistic.into(),
        unit: unit.into(),
        value,
        low: Some(value - half),
        high: Some(value + half),
        n: values.len() as u32,
        ..blank()
    }
}

/// Gives a run the plan and the passes that its outcomes came from.
pub(crate) fn plan(run: &mut Run) {
    run.header.cells = run.outcomes.iter().map(|o| Cell::new(o.cell, o.spec.clone())).collect();
    let passes = run.outcomes.iter().map(|outcome| outcome.trials.len()).max().unwrap_or(0);
    run.passes = (0..passes as u32)
        .map(|index| Pass {
            index,
            started_ns: u64::from(index) * 7_000_000_000,
            duration_ns: 6_500_000_000,
            near: EndPass { setup_ns: 1_400_000, ..EndPass::default() },
            far: EndPass { setup_ns: 1_300_000, ..EndPass::default() },
            overlapped_by: 0,
            ..Pass::default()
        })
        .collect();
}

pub(crate) fn empty_run(id: &str, kind: RunKind) -> Run {
    let command = ["thru", kind.name(), "beta", "--target", "2%"].map(str::to_owned).to_vec();
    let header = RunHeader {
        id: id.into(),
        name: None,
        kind,
        command,
        started_unix_ns: STARTED,
        tool: Tool {
            near_version: "0.1.0".into(),
            far_version: "0.1.0".into(),
            near_clock_ns: 21.4,
            far_clock_ns: 24.9,
        },
        target: Some("beta".into()),
        stopping: Stopping::default(),
        cells: Vec::new(),
        near: host("alpha", "6.1.0-18-amd64", "4096 16384 4194304"),
        far: host("beta", "6.1.0-20-amd64", "4096 16384 16777216"),
        ..RunHeader::default()
    };
    let ending = Some(Ending { how: "finished".into(), error: None, duration_ns: 41_700_000_000, ..Ending::default() });
    Run { ending, ..Run::new(header) }
}

pub(crate) fn host(name: &str, kernel: &str, wmem: &str) -> Inventory {
    let sysctl = [
        ("net.core.rmem_max", "212992"),
        ("net.core.wmem_max", "212992"),
        ("net.ipv4.tcp_congestion_control", "cubic"),
        ("net.ipv4.tcp_rmem", "4096\t131072\t6291456"),
        ("net.ipv4.tcp_sack", "1"),
        ("net.ipv4.tcp_wmem", wmem),
    ];
    Inventory {
        hostname: Some(name.into()),
        kernel: Some(kernel.into()),
        arch: Some("x86_64".into()),
        os: Some("Debian GNU/Linux 12 (bookworm)".into()),
        cpu_model: Some("Intel(R) Xeon(R) Gold 6338 CPU @ 2.00GHz".into()),
        cores: Some(64),
        numa_nodes: Some(2),
        memory_bytes: Some(256 << 30),
        memory_available_bytes: Some(249 << 30),
        load_average: Some([0.12, 0.3, 0.25]),
        governor: Some("performance".into()),
        clock_source: Some("tsc".into()),
        boot_id: Some(format!("boot-of-{name}")),
        congestion_controls: vec!["reno".into(), "cubic".into(), "bbr".into()],
        sysctl: sysctl.map(|(key, value)| (key.to_owned(), value.to_owned())).into_iter().collect::<BTreeMap<_, _>>(),
        interfaces: vec![Interface {
            name: "eth0".into(),
            mtu: Some(1500),
            state: Some("up".into()),
            speed_mbps: Some(100_000),
            duplex: Some("full".into()),
            driver: Some("mlx5_core".into()),
            txqueuelen: Some(1000),
            addresses: vec![format!("10.1.0.{}/24", name.len())],
            rx_queues: Some(63),
            tx_queues: Some(63),
            numa_node: Some(0),
            pci_slot: Some("0000:31:00.0".into()),
            ..Interface::default()
        }],
        ..Inventory::default()
    }
}

fn line(name: &str, unit: &str, values: [Option<f64>; 3]) -> SeriesLine {
    SeriesLine { name: name.into(), unit: unit.into(), values: values.to_vec() }
}

fn processors(cores: Vec<CoreUse>) -> Option<CpuUse> {
    Some(CpuUse { window_ns: 1_000_000_000, resolution_ns: 10_000_000, cores })
}

fn observations(counters: &[(&str, i64)], lines: Vec<SeriesLine>) -> Option<Observed> {
    Some(Observed {
        window_ns: 1_000_000_000,
        cost_ns: 2_000_000,
        sources: ["dev", "qdisc", "snmp", "softnet", "stat"].map(str::to_owned).to_vec(),
        missing: vec!["rapl: /sys/class/powercap: No such file or directory (os error 2)".into()],
        counters: counters.iter().map(|(name, by)| ((*name).to_owned(), *by)).collect(),
        series: Some(HostSeries { at_ns: vec![333_000_000, 667_000_000, 1_000_000_000], lines }),
        ..Observed::default()
    })
}

/// A host with a busy core and a dropping qdisc.
pub(crate) fn busy_host() -> EndPass {
    let (user_ns, softirq_ns) = (500_000_000, 450_000_000);
    let core = |core, user_ns, softirq_ns| CoreUse { core, user_ns, softirq_ns, ..CoreUse::default() };
    let some = |values: [f64; 3]| values.map(Some);
    EndPass {
        setup_ns: 1_400_000,
        cpu: processors(vec![core(0, 600_000_000, 0), core(1, user_ns, softirq_ns)]),
        observed: observations(
            &[
                ("snmp.Tcp.OutSegs", 1_000),
                ("snmp.Tcp.RetransSegs", 20),
                ("qdisc.eth0.drops", 6),
                ("qdisc.eth0.1:10.drops", 6),
                ("stat.ctxt", 9_000),
            ],
            vec![
                line("cpu.0.busy", "ratio", some([0.6, 0.6, 0.6])),
                line("cpu.1.busy", "ratio", some([0.95, 0.95, 0.95])),
                line("cpu.1.softirq", "ratio", some([0.45, 0.45, 0.45])),
                line("cpu.1.steal", "ratio", some([0.0, 0.0, 0.0])),
                line("dev.eth0.tx_bytes", "B/s", [Some(125e6), None, Some(100e6)]),
                line("snmp.Tcp.RetransSegs", "1/s", some([0.0, 60.0, 0.0])),
                line("stat.ctxt", "1/s", some([9e3, 9e3, 9e3])),
            ],
        ),
        ..EndPass::default()
    }
}

/// A host without losses.
pub(crate) fn idle_host() -> EndPass {
    let core = CoreUse { core: 0, system_ns: 300_000_000, idle_ns: 700_000_000, ..CoreUse::default() };
    let busy = line("cpu.0.busy", "ratio", [Some(0.3), Some(0.3), Some(0.3)]);
    EndPass {
        setup_ns: 1_300_000,
        cpu: processors(vec![core]),
        observed: observations(&[("stat.ctxt", 4_000)], vec![busy]),
        ..EndPass::default()
    }
}
