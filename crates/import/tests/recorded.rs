//! Recorded outputs of the tools and the listings of five published records, read and assembled.

use import::{Imported, Reading, Source, assemble, read};
use model::{Direction, Run, Stop, Trust, Verdict};

fn reading(name: &str) -> Reading {
    let path = format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"));
    read(&std::fs::read(path).unwrap(), None).unwrap()
}

fn run(imported: &Imported) -> Run {
    let source = Source { id: "20261121-203758-4f1a".into(), file: "listing.txt".into(), ..Source::default() };
    assemble(imported.clone(), &source, &[])
}

fn only(name: &str) -> Run {
    let reading = reading(name);
    assert_eq!(reading.refused, [], "{name}");
    assert_eq!(reading.imported.len(), 1, "{name}");
    run(&reading.imported[0])
}

fn close(a: Option<f64>, b: f64) {
    assert!(a.is_some_and(|a| (a / b - 1.0).abs() < 1e-6), "{a:?} is not {b}");
}

#[test]
fn both_tables_of_1998_with_their_anomalous_cells_kept_and_flagged() {
    let reading = reading("1998-netperf.txt");
    assert_eq!(reading.refused.len(), 1);
    assert!(reading.refused[0].reason.contains("no response received"), "{:?}", reading.refused);
    let [small, large] = reading.imported.as_slice() else { panic!("two tables") };
    assert_eq!([small.rows.len(), large.rows.len()], [12, 18]);
    assert_eq!(small.target.as_deref(), Some("brigit.gb"));
    let (small, large) = (run(small), run(large));
    assert_eq!([small.header.kind.as_str(), large.header.kind.as_str()], ["curve", "curve"]);
    // The best of the small sockets, and of the large ones the mean of two sound rows.
    let at = |run: &Run, block: u64| -> Vec<(f64, Trust)> {
        let of = |outcome: &&model::Outcome| outcome.spec.block == block;
        run.outcomes.iter().filter(of).map(|o| (o.summary.goodput_bps.unwrap() / 1e6, o.summary.trust)).collect()
    };
    assert_eq!(at(&small, 65534), [(391.84, Trust::Low)]);
    assert_eq!(at(&small, 2_097_152).len(), 2, "10 s and 60 s are two cells");
    assert_eq!(at(&large, 524_288), [(46.88, Trust::None), (516.24, Trust::Low)]);
    let anomalous: Vec<u64> = large
        .outcomes
        .iter()
        .filter(|o| o.summary.verdicts.contains(&Verdict::Stalled))
        .map(|o| o.spec.block)
        .collect();
    assert_eq!(anomalous, [524_288, 1_048_576, 2_097_152]);
    assert!(small.outcomes.iter().all(|o| !o.summary.verdicts.contains(&Verdict::Stalled)));
    let origin = large.header.origin.as_ref().unwrap();
    let row = origin.rows.iter().find(|row| row.text.ends_with("304.48 6.40")).unwrap();
    close(row.figures.get("throughput_bps").copied(), 6.4e6);
    assert!(row.remarks[0].contains("304.48 s"), "{:?}", row.remarks);
}

#[test]
fn the_log_of_2012_with_glued_columns_coarse_times_and_its_lone_slow_value() {
    let reading = reading("2012-nttcp.txt");
    assert_eq!(reading.refused, []);
    let [first, second] = reading.imported.as_slice() else { panic!("two far ends") };
    assert_eq!([first.rows.len(), second.rows.len()], [5, 6]);
    let glued = &first.rows[2];
    assert!(glued.remarks.iter().any(|remark| remark.contains("touches its 134217728 bytes")), "{:?}", glued.remarks);
    close(glued.trial.value, 5660.9261e6);
    assert_eq!(first.rows[4].trial.far.bytes_received, 1_073_741_824);
    let slow: Vec<u64> = second
        .rows
        .iter()
        .filter(|row| row.remarks.iter().any(|remark| remark.contains("lone slow")))
        .map(|row| row.spec.block)
        .collect();
    assert_eq!(slow, [8192]);
    assert!(second.notes.iter().any(|note| note.contains("20134.6727")), "{:?}", second.notes);
    let coarse = |row: &import::Row| row.trial.verdicts.contains(&Verdict::ResolutionLimited);
    assert!(second.rows.iter().all(coarse));
    assert_eq!(first.rows.iter().map(coarse).collect::<Vec<_>>(), [true, true, false, false, false]);
    // The sender's rate beside the receiver's.
    let run = run(second);
    close(run.outcomes[0].summary.sender_bps, 8_388_608.0 * 8e9 / (8_388_608.0 * 8.0 / 5753.0102e6 * 1e9_f64).round());
}

#[test]
fn the_page_of_2003_holds_listings_of_three_tools() {
    let reading = reading("2003-rapid-ping-traceroute.txt");
    assert_eq!(reading.refused, []);
    let tools: Vec<&str> = reading.imported.iter().map(|imported| imported.tool.as_str()).collect();
    assert_eq!(tools, ["rapid", "ping", "ping", "traceroute", "traceroute"]);
    let rapid = run(&reading.imported[0]);
    close(rapid.outcomes[0].summary.goodput_bps, 2185.476e6);
    assert_eq!(rapid.outcomes[0].spec.block, 16_388_608);
    assert_eq!(rapid.header.started_unix_ns / 1_000_000, 1_046_671_178_446);
    let ping = run(&reading.imported[1]);
    close(ping.outcomes[0].summary.rtt_p50_ns, 64.7e6);
    assert_eq!(ping.outcomes[0].summary.netpipe_bps, None);
    let path = ping.header.path_out.unwrap().ping.unwrap();
    assert_eq!((path.sent, path.received, path.packet_bytes, path.max_ns), (4, 4, 84, Some(65_100_000)));
    let hops = reading.imported[4].path.clone().unwrap().hops.unwrap();
    assert_eq!(hops.len(), 5);
    assert_eq!((hops[1].address.as_deref(), hops[1].rtt_ns), (Some("192.91.239.225"), Some(118_468_000)));
}

#[test]
fn settings_are_the_environment_and_a_mistyped_one_is_refused() {
    let environment = only("2003-sysctl.txt");
    assert_eq!(environment.header.kind, "environment");
    let sysctl = &environment.header.near.sysctl;
    assert_eq!(sysctl["net.core.wmem_max"], "67108864");
    assert_eq!(sysctl["net.ipv4.tcp_mem"], "8388608 8388608 67108864");
    assert!(environment.findings.iter().any(|finding| finding.statement.contains("net.core.wmem_max was 128388607")));
    let typo = reading("2003-typo.txt");
    assert_eq!((typo.refused[0].line, typo.imported.len()), (1, 1));
    assert!(typo.refused[0].reason.contains("'nnet.'"), "{:?}", typo.refused);
}

#[test]
fn netpipes_megabits_are_binary_and_its_time_is_half_a_round_trip() {
    let run = only("netpipe372_np.out");
    assert_eq!((run.outcomes.len(), run.header.kind.as_str()), (124, "curve"));
    let first = &run.outcomes[0];
    close(first.summary.netpipe_bps, 0.766073 * 1_048_576.0);
    assert!((first.estimate.as_ref().unwrap().value / 19_920.0 - 1.0).abs() < 1e-3);
    assert_eq!((first.estimate.as_ref().unwrap().low, first.summary.trust), (None, Trust::Low));
    assert_eq!(first.summary.goodput_bps, None);
    let screen = only("netpipe372-screen.txt");
    close(screen.outcomes[0].summary.rtt_p50_ns, 2.0 * 9960.0);
}

#[test]
fn netpipe_both_ways_is_one_block_each_way_and_the_screen_repeats_the_file() {
    let run = only("netpipe372_both.txt");
    assert_eq!(run.outcomes.len(), 22);
    let first = &run.outcomes[0];
    assert_eq!((first.spec.block, first.spec.direction), (1, Direction::Both));
    close(first.summary.netpipe_bps, 0.932039 * 1_048_576.0);
}

#[test]
fn the_screen_of_2005_shows_too_few_digits() {
    let run = only("2005-netpipe-screen.txt");
    assert_eq!(run.outcomes.len(), 7);
    assert!(run.outcomes[0].summary.verdicts.contains(&Verdict::ResolutionLimited));
    close(run.outcomes[0].summary.rtt_p50_ns, 66_000.0);
}

#[test]
fn netperfs_tables_by_their_titles() {
    let stream = only("netperf27_TCP_STREAM.txt");
    close(stream.outcomes[0].summary.goodput_bps, 29694.77e6);
    assert_eq!(stream.outcomes[0].spec.stop, Stop::TimeNs(1_000_000_000));
    assert_eq!(only("netperf27_TCP_MAERTS.txt").outcomes[0].spec.direction, Direction::Reverse);
    assert_eq!(only("netperf27_TCP_SENDFILE.txt").outcomes[0].spec.engine.send, model::SendBy::Sendfile);
    for (name, pattern, transport, rate) in [
        ("netperf27_TCP_RR.txt", "rr", "tcp", 48719.35),
        ("netperf27_TCP_CRR.txt", "crr", "tcp", 13093.62),
        ("netperf27_UDP_RR.txt", "rr", "udp", 52465.38),
    ] {
        let run = only(name);
        let outcome = &run.outcomes[0];
        assert!(outcome.spec.pattern == pattern && outcome.spec.transport == transport, "{name}: {:?}", outcome.spec);
        close(outcome.summary.transactions_per_s, rate);
    }
    let udp = only("netperf27_UDP_STREAM.txt");
    close(udp.outcomes[0].summary.goodput_bps, 59010.06e6);
    assert!(udp.outcomes[0].summary.verdicts.contains(&Verdict::Loss));
    let costly = only("netperf27_classic_table.txt");
    let figures = &costly.header.origin.as_ref().unwrap().rows[0].figures;
    assert_eq!(figures["send_us_per_kibibyte"], 0.864);
    let omni = only("netperf27_omni_selectors.txt");
    close(omni.outcomes[0].summary.goodput_bps, 38982.11e6);
    let unknown = &omni.header.origin.as_ref().unwrap().unknown;
    assert_eq!(unknown, &["LOCAL_CPU_UTIL", "LOCAL_SD", "LSS_SIZE_END", "RSR_SIZE_END"]);
}

#[test]
fn iperf3s_documents_both_ways_and_with_datagrams() {
    let run = only("iperf321_tcp.json");
    let summary = &run.outcomes[0].summary;
    close(summary.goodput_bps, 2_093_484.215_654_173_9);
    assert_eq!((summary.bytes_sent, summary.bytes_received), (262_144, 262_144));
    assert_eq!(run.header.origin.as_ref().unwrap().version.as_deref(), Some("3.21+"));
    assert_eq!(run.header.started_unix_ns, 1_795_292_634_000_000_000);
    assert!(run.header.origin.as_ref().unwrap().unknown.contains(&"start.cookie".to_owned()));
    assert_eq!(only("iperf321_tcp_R.json").outcomes[0].spec.direction, Direction::Reverse);
    let both = only("iperf321_tcp_bidir_P2.json");
    assert_eq!((both.outcomes[0].spec.direction, both.outcomes[0].spec.flows), (Direction::Both, 2));
    let udp = only("iperf312_udp.json");
    close(udp.outcomes[0].summary.goodput_bps, 999_862.019_041_372_35);
    assert_eq!(udp.outcomes[0].summary.packets_sent, Some(125));
}

#[test]
fn a_broken_part_is_refused_with_its_line_while_the_rest_is_there() {
    let text = "       1 0.766073   0.00000996\n       2 9.999999   0.00001035\n       3 2.413266   0.00000948\n\
                      4 2.970018   0.00001028\n       6 4.404658   0.00001039\n       8 5.962293   0.00001024\n";
    let reading = read(text.as_bytes(), None).unwrap();
    assert_eq!(reading.imported[0].rows.len(), 5);
    assert_eq!(reading.refused.len(), 1);
    assert_eq!(reading.refused[0].line, 2);
    let cut = std::fs::read(format!("{}/tests/data/iperf321_tcp.json", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let cut = read(&cut[..cut.len() / 2], None).unwrap();
    assert!(cut.imported.is_empty() && cut.refused[0].reason.contains("not JSON"), "{cut:?}");
    let none = read(b"Dear all,\nit was fast.\n", None).unwrap_err();
    assert!(none.reason.contains("netperf"), "{none:?}");
}
