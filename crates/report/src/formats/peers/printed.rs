//! Tests: what is written as another program prints it is imported again, to the printed digits, and then written as before.

use model::{Direction, EndTally, FlowTally, Pattern, Run, SocketFacts, Spent};
use proptest::prelude::*;

use super::round_trip::rendered;
use crate::sample;

/// The figures of a stream of one trial.
#[derive(Debug, Clone)]
struct Figures {
    bytes: u64,
    ns: u64,
    block: u64,
    reverse: bool,
    /// Receive and send buffers of both ends, if the sockets report them.
    buffers: Option<[u64; 4]>,
    /// CPU time of both ends' processes, in thousandths of the trial's length, and of their hosts.
    cpu: [u64; 4],
    flows: u32,
}

fn figures() -> impl Strategy<Value = Figures> {
    let rate = 1e5..4e11_f64;
    let buffers = prop::option::of(prop::array::uniform4(1_024..100_000_000_u64));
    let cpu = prop::array::uniform4(500..2_000_u64);
    (1_000..10_000_000_000_u64, rate, 0..20_u32, any::<bool>(), buffers, cpu, 1..4_u32).prop_map(
        |(bytes, rate, power, reverse, buffers, cpu, flows)| {
            // Up to 1000 s, and shorter than 0.1 ms none of the programs measures.
            let bytes = bytes.min((rate * 125.0) as u64);
            let ns = ((bytes as f64 * 8e9 / rate) as u64).max(100_000);
            // nttcp's columns touch from a million calls a second on.
            let least = (bytes as f64 * 1e9 / ns as f64 / 4e5).ceil() as u64;
            Figures { bytes, ns, block: (1 << power).max(least).min(bytes), reverse, buffers, cpu, flows }
        },
    )
}

fn run(figures: &Figures) -> Run {
    let Figures { bytes, ns, block, reverse, buffers, cpu, flows } = figures.clone();
    let mut run = sample::stream();
    run.header.target = Some("192.0.2.1:6280".into());
    (run.header.near.cores, run.header.far.cores) = (Some(4), Some(8));
    let outcome = &mut run.outcomes[0];
    outcome.trials.truncate(1);
    outcome.spec = model::Spec { block, flows, ..model::Spec::new("tcp", Pattern::Stream) }.into();
    let trial = &mut outcome.trials[0];
    let end = |at: usize, sends: bool| {
        let sizes = buffers.map(|all| [all[at * 2], all[at * 2 + 1]]);
        let flow = |flow: u32| {
            let share = bytes / u64::from(flows) + if flow == 0 { bytes % u64::from(flows) } else { 0 };
            FlowTally {
                flow,
                bytes_sent: if sends { share } else { 0 },
                bytes_received: if sends { 0 } else { share },
                receiving_ns: (!sends).then_some([1_000_000, 1_000_000 + ns]),
                socket: SocketFacts {
                    rcvbuf: sizes.map(|sizes| sizes[0]),
                    sndbuf: sizes.map(|sizes| sizes[1]),
                    ..SocketFacts::default()
                },
                ..FlowTally::default()
            }
        };
        let spent =
            Spent { process_ns: ns * cpu[at] / 1_000, host_ns: Some(ns * cpu[at + 2] / 1_000), ..Spent::default() };
        let counts = if sends { [bytes, 0, ns, 0] } else { [0, bytes, 0, ns] };
        let [bytes_sent, bytes_received, sending_ns, receiving_ns] = counts;
        EndTally {
            bytes_sent,
            bytes_received,
            sending_ns,
            receiving_ns,
            calls_sent: bytes_sent.div_ceil(block),
            calls_received: bytes_received.div_ceil(block),
            flows: (0..flows).map(flow).collect(),
            spent: Some(spent),
            ..EndTally::default()
        }
    };
    (trial.near, trial.far) = (end(0, !reverse).into(), end(1, reverse).into());
    if reverse {
        outcome.spec.direction = Direction::Reverse;
    }
    let value = bytes as f64 * 8e9 / ns as f64;
    trial.value = Some(value);
    if let Some(estimate) = &mut outcome.estimate {
        estimate.value = value;
    }
    run
}

/// The imported measurements of a text, and the run that they make.
fn imported(form: &str, text: &str) -> (import::Row, Run) {
    let reading = import::read(text.as_bytes(), None).unwrap_or_else(|why| panic!("{form}: {why:?}\n{text}"));
    assert_eq!(reading.refused, [], "{form}:\n{text}");
    assert_eq!(reading.imported.len(), 1, "{form}:\n{text}");
    let one = reading.imported.into_iter().next().unwrap();
    assert_eq!(one.rows.len(), 1, "{form}:\n{text}");
    let row = one.rows[0].clone();
    (row, import::assemble(one, &import::ListingSource::default(), &[]))
}

/// Whether two texts have the same words, and numbers that agree in four digits or to a hundredth.
fn alike(a: &str, b: &str) -> bool {
    let near = |(a, b): (&str, &str)| match (a.parse::<f64>(), b.parse::<f64>()) {
        (Ok(a), Ok(b)) => (a - b).abs() <= 0.011 + a.abs() * 1e-4,
        _ => a == b,
    };
    let (a, b): (Vec<&str>, Vec<&str>) = (a.split_whitespace().collect(), b.split_whitespace().collect());
    a.len() == b.len() && a.into_iter().zip(b).all(near)
}

proptest! {
    #[test]
    fn a_streams_figures_survive_every_form(figures in figures()) {
        let run = run(&figures);
        let rate = figures.bytes as f64 * 8e9 / figures.ns as f64;
        // Half of the last digit, bit/s: iperf3's texts have three digits, the others decimals of Mbit/s.
        let rounding = [("iperf3", rate * 0.006), ("iperf3-json", rate * 1e-9), ("netperf", 5_001.0), ("netperf-k", 5_001.0), ("nttcp", 51.0), ("rapid", 501.0)];
        for (form, rounding) in rounding {
            let text = rendered(form, &run);
            let (row, again) = imported(form, &text);
            let value = row.trial.value.unwrap();
            prop_assert!((value - rate).abs() <= rounding, "{form}: {value} of {rate}\n{text}");
            let counted = [&row.trial.near, &row.trial.far].map(|end| end.bytes_received).into_iter().max().unwrap();
            // The other programs' texts have no exact bytes.
            if ["iperf3-json", "nttcp", "rapid"].contains(&form) {
                prop_assert_eq!(counted, figures.bytes, "{}\n{}", form, text);
            }
            let reversed = row.spec.direction == Direction::Reverse;
            if form != "rapid" {
                prop_assert_eq!(reversed, figures.reverse, "{}\n{}", form, text);
            }
            // What has all of a program's columns is written again as it was. nttcp's times are of the rounded rate, and a receiver
            // at the near end does not name the sender.
            match form {
                "netperf" => prop_assert_eq!(&text, &rendered(form, &again)),
                "nttcp" if !figures.reverse => prop_assert!(alike(&text, &rendered(form, &again)), "{}\n{}", text, rendered(form, &again)),
                _ => {}
            }
        }
    }

    #[test]
    fn a_curves_figures_survive_every_form(start in 1.0..1e5_f64, latency_ns in 20.0..1e7_f64) {
        let line = |power: u32| {
            let bytes = 1_u64 << power;
            let ns = latency_ns + bytes as f64 / start;
            format!("{bytes} {} {}\n", bytes as f64 * 8e9 / ns / 1_048_576.0, ns / 1e9)
        };
        let run = sample::netpipe_recorded(&(0..24).map(line).collect::<String>());
        for form in ["np", "np2", "np-screen"] {
            let text = rendered(form, &run);
            let reading = import::read(text.as_bytes(), None).unwrap_or_else(|why| panic!("{form}: {why:?}\n{text}"));
            assert_eq!(reading.refused, [], "{form}:\n{text}");
            let rows: Vec<import::Row> = reading.imported.into_iter().flat_map(|one| one.rows).collect();
            prop_assert_eq!(rows.len(), run.outcomes.len(), "{}\n{}", form, text);
            for (row, outcome) in rows.iter().zip(&run.outcomes) {
                prop_assert_eq!(row.spec.block, outcome.spec.block);
                let expected = outcome.summary.netpipe_bps.unwrap();
                let printed = row.spec.block as f64 * 16e9 / row.trial.value.unwrap();
                // Of the rate 6 decimals of Mbit/s are printed, on the screen 2; of the time 10 ns.
                let digits = if form == "np-screen" { 0.005_1 * 1_048_576.0 } else { 0.000_000_6 * 1_048_576.0 };
                prop_assert!((printed - expected).abs() <= digits + expected * 1e-6, "{form}: {printed} of {expected}\n{text}");
            }
        }
    }
}

#[test]
fn ten_mebibytes_in_four_milliseconds_are_imported_again() {
    let figures = Figures {
        bytes: 10 << 20,
        ns: 4_321_987,
        block: 131_072,
        reverse: false,
        buffers: None,
        cpu: [400, 700, 900, 900],
        flows: 1,
    };
    let run = run(&figures);
    let table = rendered("netperf", &run);
    assert!(table.contains("    -1     -1 131072    0.00     ") && table.contains("19409.15"), "{table}");
    let (row, _) = imported("netperf", &table);
    assert!(row.remarks[0].contains("printed as zero") && row.trial.near.flows.is_empty(), "{row:?}");
    let report = rendered("rapid", &run);
    assert!(report.contains("total elapsed time: 0.004 seconds\ntotal throughput: 19409.147 megabits/sec"), "{report}");
    assert_eq!(imported("rapid", &report).0.trial.far.receiving_ns / 1_000, 4_321);
}

#[test]
fn a_rate_may_have_fewer_digits_than_its_time() {
    let figures = Figures {
        bytes: 214_891_750,
        ns: 1_000_000_000_000,
        block: 65_536,
        reverse: false,
        buffers: None,
        cpu: [1_034, 1_701, 900, 900],
        flows: 1,
    };
    let table = rendered("nttcp", &run(&figures));
    // 214891750 bytes at 1.7191 Mbit/s are 1000.02 s.
    assert!(table.contains("l214891750 1000.00 1034.00      1.7191 "), "{table}");
    assert_eq!(imported("nttcp", &table).0.trial.far.receiving_ns, figures.ns);
}
