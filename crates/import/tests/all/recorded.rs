//! Recorded outputs of the tools and the listings of five published records, read and assembled.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use import::{Imported, ListingSource, TextReading, assemble, read};
use model::{Count, Direction, FindingKind, Pattern, Run, RunKind, Stop, Trust, Verdict};

fn reading(name: &str) -> TextReading {
    let path = format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"));
    read(&std::fs::read(path).unwrap(), None).unwrap()
}

fn run(imported: &Imported) -> Run {
    let source =
        ListingSource { id: "20261121-203758-4f1a".into(), file: "listing.txt".into(), ..ListingSource::default() };
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
fn both_tables_of_1998_with_their_stalled_rows_flagged() {
    let reading = reading("1998-netperf.txt");
    assert_eq!(reading.refused.len(), 1);
    assert!(reading.refused[0].to_string().contains("no response received"), "{:?}", reading.refused);
    let [small, large] = reading.imported.as_slice() else { panic!("two tables") };
    assert_eq!([small.rows.len(), large.rows.len()], [12, 18]);
    assert_eq!(small.target.as_deref(), Some("brigit.gb"));
    let (small, large) = (run(small), run(large));
    assert_eq!([small.header.kind, large.header.kind], [RunKind::Curve, RunKind::Curve]);
    // The best of the small sockets, and of the large ones the mean of two sound rows.
    let at = |run: &Run, block: u64| -> Vec<(f64, Option<Trust>)> {
        let of = |outcome: &&model::Outcome| outcome.spec.block == block;
        run.outcomes.iter().filter(of).map(|o| (o.summary.goodput_bps.unwrap() / 1e6, o.summary.trust)).collect()
    };
    assert_eq!(at(&small, 65534), [(391.84, Some(Trust::Low))]);
    assert_eq!(at(&small, 2_097_152).len(), 2, "10 s and 60 s are two cells");
    assert_eq!(at(&large, 524_288), [(46.88, Some(Trust::None)), (516.24, Some(Trust::Low))]);
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
fn the_log_of_2012_with_touching_columns_coarse_times_and_a_slow_value() {
    let reading = reading("2012-nttcp.txt");
    assert_eq!(reading.refused, []);
    let [first, second] = reading.imported.as_slice() else { panic!("two far ends") };
    assert_eq!([first.rows.len(), second.rows.len()], [5, 6]);
    let glued = &first.rows[2];
    assert!(glued.remarks.iter().any(|remark| remark.contains("runs into its 134217728 bytes")), "{:?}", glued.remarks);
    close(glued.trial.value, 5660.9261e6);
    assert_eq!(first.rows[4].trial.far.bytes_received, 1_073_741_824);
    let slow: Vec<u64> = second
        .rows
        .iter()
        .filter(|row| row.remarks.iter().any(|remark| remark.contains("the only slow value")))
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
fn what_nttcp_says_of_the_session_is_kept() {
    let reading = reading("2012-nttcp-verbose.txt");
    assert_eq!(reading.refused, []);
    let row = &reading.imported[0].rows[0];
    // Socket buffers, and CPU time by its finer rate.
    let socket = |end: &model::EndTally| (end.flows[0].socket.sndbuf, end.flows[0].socket.rcvbuf);
    assert_eq!([socket(&row.trial.near), socket(&row.trial.far)], [(Some(16_384), Some(87_380)); 2]);
    assert_eq!(row.figures["remote_receive_window_bytes"], 87_380.0);
    let spent = row.trial.near.spent.as_ref().unwrap().process_ns;
    assert_eq!(spent, (8_388_608.0 * 8.0 / 20_134.672_7e6 * 1e9_f64).round() as u64);
    assert_eq!(reading.imported[0].target.as_deref(), Some("10.0.0.229"));
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
    let path = ping.header.path_outbound.unwrap().ping.unwrap();
    assert_eq!((path.sent, path.received, path.packet_bytes, path.max_ns), (4, 4, 84, Some(65_100_000)));
    let hops = reading.imported[4].path.clone().unwrap().hops.unwrap();
    assert_eq!(hops.len(), 5);
    assert_eq!((hops[1].address.as_deref(), hops[1].rtt_ns), (Some("192.91.239.225"), Some(118_376_000)));
}

#[test]
fn settings_are_the_environment_and_a_mistyped_one_is_refused() {
    // The record has two sets, which stay apart.
    let sets = reading("2003-sysctl.txt").imported;
    let of = |set: usize, key: &str| sets[set].near.sysctl.get(key).map(String::as_str);
    assert_eq!((sets.len(), sets[0].kind), (2, RunKind::Environment));
    assert_eq!((of(0, "net.core.wmem_max"), of(1, "net.core.wmem_max")), (Some("128388607"), Some("67108864")));
    assert_eq!((of(0, "net.ipv4.tcp_mem"), of(1, "net.ipv4.tcp_mem")), (None, Some("8388608 8388608 67108864")));
    assert_eq!((of(0, "fs.file-max"), of(1, "fs.file-max")), (None, Some("32768")));
    assert_eq!(sets[0].notes, ["set 1 of 2: lines 1 to 4"]);
    let typo = reading("2003-typo.txt");
    assert_eq!((typo.refused[0].line, typo.imported.len()), (1, 1));
    assert!(typo.refused[0].to_string().contains("'nnet.'"), "{:?}", typo.refused);
}

#[test]
fn netpipes_megabits_are_binary_and_its_time_is_half_a_round_trip() {
    let run = only("netpipe372_np.out");
    assert_eq!((run.outcomes.len(), run.header.kind), (124, RunKind::Curve));
    let first = &run.outcomes[0];
    close(first.summary.netpipe_bps, 0.766073 * 1_048_576.0);
    assert!((first.estimate.as_ref().unwrap().value / 19_920.0 - 1.0).abs() < 1e-3);
    assert_eq!((first.estimate.as_ref().unwrap().low, first.summary.trust), (None, Some(Trust::Low)));
    assert_eq!(first.summary.goodput_bps, None);
    let found = |kind| run.findings.iter().any(|finding| finding.kind == kind);
    assert!(
        [FindingKind::Latency, FindingKind::Peak, FindingKind::Saturation].into_iter().all(found),
        "{:?}",
        run.findings
    );
    let screen = only("netpipe372-screen.txt");
    close(screen.outcomes[0].summary.rtt_p50_ns, 2.0 * 9960.0);
}

#[test]
fn netpipe_in_both_directions_and_on_screen() {
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
        ("netperf27_TCP_RR.txt", Pattern::Rr, "tcp", 48719.35),
        ("netperf27_TCP_CRR.txt", Pattern::Crr, "tcp", 13093.62),
        ("netperf27_UDP_RR.txt", Pattern::Rr, "udp", 52465.38),
    ] {
        let run = only(name);
        let outcome = &run.outcomes[0];
        assert!(
            outcome.spec.pattern == pattern && outcome.spec.transport.as_str() == transport,
            "{name}: {:?}",
            outcome.spec
        );
        close(outcome.summary.transactions_per_s, rate);
    }
    let udp = only("netperf27_UDP_STREAM.txt");
    close(udp.outcomes[0].summary.goodput_bps, 59010.06e6);
    assert!(udp.outcomes[0].summary.verdicts.contains(&Verdict::Loss));
    let costly = only("netperf27_classic_table.txt");
    let figures = &costly.header.origin.as_ref().unwrap().rows[0].figures;
    assert_eq!((figures["send_us_per_kibibyte"], figures["receive_cpu_percent"]), (0.864, 89.56));
    let trial = &costly.outcomes[0].trials[0];
    let buffers = (trial.near.flows[0].socket.sndbuf, trial.far.flows[0].socket.rcvbuf);
    assert_eq!(buffers, (Some(131_070), Some(131_070)));
    let omni = only("netperf27_omni_selectors.txt");
    close(omni.outcomes[0].summary.goodput_bps, 38982.11e6);
    let unknown = &omni.header.origin.as_ref().unwrap().unknown;
    assert_eq!(unknown, &["LOCAL_CPU_UTIL", "LOCAL_SD", "LSS_SIZE_END", "RSR_SIZE_END"]);
}

#[test]
fn iperf3s_documents_in_both_directions_and_with_datagrams() {
    let run = only("iperf321_tcp.json");
    let summary = &run.outcomes[0].summary;
    close(summary.goodput_bps, 2_093_484.215_654_174);
    assert_eq!((summary.bytes_sent, summary.bytes_received), (Some(262_144), Some(262_144)));
    assert_eq!(run.header.origin.as_ref().unwrap().version.as_deref(), Some("3.21+"));
    assert_eq!(run.header.started_unix_ns, 1_795_292_634_000_000_000);
    assert!(run.header.origin.as_ref().unwrap().unknown.contains(&"start.cookie".to_owned()));
    assert_eq!(only("iperf321_tcp_R.json").outcomes[0].spec.direction, Direction::Reverse);
    let both = only("iperf321_tcp_bidir_P2.json");
    assert_eq!((both.outcomes[0].spec.direction, both.outcomes[0].spec.flows), (Direction::Both, 2));
    let udp = only("iperf312_udp.json");
    close(udp.outcomes[0].summary.goodput_bps, 999_862.019_041_372);
    assert_eq!(udp.outcomes[0].summary.packets_sent, Some(125));
}

#[test]
fn a_broken_part_is_refused_with_its_line_and_the_rest_is_kept() {
    let text = "       1 0.766073   0.00000996\n       2 9.999999   0.00001035\n       3 2.413266   0.00000948\n\
                      4 2.970018   0.00001028\n       6 4.404658   0.00001039\n       8 5.962293   0.00001024\n";
    let reading = read(text.as_bytes(), None).unwrap();
    assert_eq!(reading.imported[0].rows.len(), 5);
    assert_eq!(reading.refused.len(), 1);
    assert_eq!(reading.refused[0].line, 2);
    let cut = std::fs::read(format!("{}/tests/data/iperf321_tcp.json", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let cut = read(&cut[..cut.len() / 2], None).unwrap();
    assert!(cut.imported.is_empty() && cut.refused[0].to_string().contains("not valid JSON"), "{cut:?}");
    let none = read(b"Dear all,\nit was fast.\n", None).unwrap_err();
    assert!(none.to_string().contains("netperf"), "{none:?}");
}

#[test]
fn iperf3s_text_of_both_ends() {
    let run = only("iperf312_tcp.txt");
    let outcome = &run.outcomes[0];
    close(outcome.summary.goodput_bps, 18.2e6);
    close(outcome.summary.sender_bps, 18.2e6);
    assert_eq!(
        (outcome.spec.flows, outcome.spec.direction, outcome.spec.stop),
        (1, Direction::Send, Stop::TimeNs(2_190_000_000))
    );
    // What three digits were rounded to is no count.
    assert_eq!((outcome.summary.bytes_sent, outcome.summary.duration_ns), (None, Some(2_190_000_000)));
    assert_eq!(outcome.trials[0].near.intervals.len(), 2);
    let reverse = only("iperf312_P2_R.txt");
    close(reverse.outcomes[0].summary.goodput_bps, 21.0e6);
    close(reverse.outcomes[0].summary.sender_bps, 19.8e6);
    assert_eq!((reverse.outcomes[0].spec.flows, reverse.outcomes[0].spec.direction), (2, Direction::Reverse));
    let both = only("iperf312_bidir.txt");
    close(both.outcomes[0].summary.goodput_bps, 10_711e3 + 10_175e3);
    let series = &both.outcomes[0].trials[0].near.intervals;
    assert_eq!((both.outcomes[0].spec.direction, series.len()), (Direction::Both, 2));
    assert!(series.iter().all(|one| one.bytes_sent > 0 && one.bytes_received > 0), "{series:?}");
    let udp = only("iperf312_udp.txt");
    let row = &udp.header.origin.as_ref().unwrap().rows[0];
    assert_eq!((row.figures["jitter_ns"], row.figures["packets"]), (407_000.0, 416.0));
    assert_eq!((udp.outcomes[0].summary.packets_sent, udp.outcomes[0].summary.packets_lost), (Some(416), Some(0)));
    let server = only("iperf312_server.txt");
    assert_eq!(server.outcomes[0].spec.direction, Direction::Both);
    let verbose = only("iperf312_V.txt");
    assert_eq!((verbose.outcomes[0].spec.block, verbose.header.near.kernel.as_deref()), (32_768, Some("6.18.44")));
    assert_eq!(verbose.header.origin.as_ref().unwrap().version.as_deref(), Some("3.12"));
    assert_eq!(only("iperf312_bidir.json").outcomes[0].spec.direction, Direction::Both);
}

#[test]
fn iperf_2_as_text_and_csv() {
    let run = only("iperf2_tcp.txt");
    close(run.outcomes[0].summary.goodput_bps, 20.4e6);
    assert_eq!(run.outcomes[0].trials[0].near.intervals.len(), 2);
    let row = &run.header.origin.as_ref().unwrap().rows[0];
    assert!(row.remarks[0].contains("a sender's rate"), "{row:?}");
    assert_eq!(only("iperf2_P2.txt").outcomes[0].spec.flows, 2);
    let enhanced = only("iperf2_enhanced.txt");
    assert_eq!(enhanced.header.origin.unwrap().unknown, ["Cwnd/RTT(var)", "NetPwr", "Rtry", "Write/Err"]);
    let udp = only("iperf2_udp.txt");
    assert_eq!((udp.outcomes[0].spec.block, udp.outcomes[0].summary.packets_sent), (1470, Some(341)));
    let server = reading("iperf2_server.txt");
    assert_eq!(server.imported.iter().map(|one| one.rows[0].spec.flows).collect::<Vec<_>>(), [1, 2, 1, 1]);
    assert!(server.imported.iter().all(|one| one.rows[0].spec.direction == Direction::Reverse));
    let csv = reading("iperf2.csv");
    let [one, two, last] = csv.imported.as_slice() else { panic!("three measurements") };
    assert_eq!([one, two, last].map(|one| one.rows[0].spec.flows), [1, 2, 1]);
    assert_eq!(one.rows[0].trial.near.reported(Count::BytesSent), Some(5_242_940));
    close(two.rows[0].trial.value, 10_247_604.0 + 9_506_239.0);
}

#[test]
fn nuttcps_lines_in_its_three_forms() {
    let run = only("nuttcp_tcp.txt");
    close(run.outcomes[0].summary.goodput_bps, 20.0461e6);
    assert_eq!(run.header.origin.as_ref().unwrap().rows[0].figures["connect_rtt_ns"], 110_000.0);
    assert_eq!(run.outcomes[0].trials[0].far.intervals.len(), 2);
    let udp = only("nuttcp_udp.txt");
    assert_eq!((udp.outcomes[0].spec.transport.as_str(), udp.outcomes[0].summary.packets_sent), ("udp", Some(417)));
    close(only("nuttcp_parse.txt").outcomes[0].summary.goodput_bps, 20.0338e6);
    let verbose = only("nuttcp_verbose.txt");
    close(verbose.outcomes[0].summary.goodput_bps, 20.0882e6);
    close(verbose.outcomes[0].summary.sender_bps, 19.9966e6);
    assert_eq!((verbose.outcomes[0].spec.block, verbose.outcomes[0].spec.rate_bps), (65_536, Some(20_000_000)));
}

#[test]
fn latencies_of_qperf_and_sockperf_are_half_a_round_trip() {
    let run = only("qperf_loop.txt");
    assert_eq!((run.header.kind, run.outcomes.len(), run.outcomes[3].spec.block), (RunKind::Curve, 4, 4096));
    close(run.outcomes[0].summary.rtt_p50_ns, 40_200.0);
    assert_eq!(reading("qperf_lat.txt").imported.len(), 2);
    close(only("qperf_udp.txt").outcomes[0].summary.goodput_bps, 81.5e6 * 8.0);
    close(only("qperf_udp.txt").outcomes[0].summary.sender_bps, 187e6 * 8.0);
    assert_eq!(only("qperf_conf.txt").header.near.hostname.as_deref(), Some("vm"));
    let sockperf = only("sockperf_pp.txt");
    close(sockperf.outcomes[0].summary.rtt_p50_ns, 2.0 * 4_819.0);
    let rtt = sockperf.outcomes[0].trials[0].near.rtt.clone().unwrap();
    assert_eq!((rtt.count, rtt.min_ns, rtt.p99_ns), (54_032, 7_514, Some(23_428)));
    assert_eq!(only("sockperf_ul.txt").outcomes[0].trials[0].near.rtt.as_ref().unwrap().p99_ns, None);
    let stream = only("sockperf_tp.txt");
    close(stream.outcomes[0].summary.goodput_bps, 45.786 * 1_048_576.0);
    let none = reading("sockperf_none.txt");
    assert!(none.imported.is_empty() && none.refused[0].to_string().contains("did not complete"), "{none:?}");
}

#[test]
fn vmstat_is_host_activity() {
    let run = only("vmstat.txt");
    let observed = run.passes[0].near.observed.as_ref().unwrap();
    let series = observed.series.as_ref().unwrap();
    let line = |name: &str| &series.lines.iter().find(|line| line.name == name).unwrap().values;
    assert_eq!(
        line("cpu.all.user").iter().map(|share| share.map(|s| (s * 100.0).round())).collect::<Vec<_>>(),
        [Some(83.0), Some(92.0)]
    );
    assert_eq!((line("stat.intr")[1], line("memory.free")[0]), (Some(620.0), Some(11_406_500.0 * 1024.0)));
    assert_eq!(only("vmstat_tw.txt").passes[0].near.observed.as_ref().unwrap().window_ns, 1_000_000_000);
}

#[test]
fn echoes_over_ip_6_and_a_summary_alone() {
    let run = only("ping6.txt");
    close(run.outcomes[0].summary.rtt_p50_ns, 48_000.0);
    assert_eq!(run.header.path_outbound.as_ref().unwrap().ping.as_ref().unwrap().packet_bytes, 104);
    let quiet = only("pingq.txt");
    let row = &quiet.header.origin.as_ref().unwrap().rows[0];
    close(quiet.outcomes[0].summary.rtt_p50_ns, row.figures["summary_mean_ns"]);
    assert!(row.remarks[0].contains("the mean, not the median"), "{:?}", row.remarks);
    assert_eq!(
        only("traceroute.txt").header.path_outbound.unwrap().hops.unwrap()[0].address.as_deref(),
        Some("127.0.0.1")
    );
}

#[test]
fn flents_series_are_cells_and_unknown_units_are_refused() {
    let reading = reading("rrul.flent");
    let reasons: Vec<String> = reading.refused.iter().map(ToString::to_string).collect();
    assert!(reasons.len() == 2 && reasons.iter().any(|reason| reason.contains("'share'")), "{reasons:?}");
    let run = run(&reading.imported[0]);
    let of = |name: &str| {
        let cell = run.header.cells.iter().find(|cell| cell.levels["series"] == name).unwrap().id;
        run.outcomes.iter().find(|outcome| outcome.cell == cell).unwrap()
    };
    close(of("TCP download BE").summary.goodput_bps, 93.5e6);
    assert_eq!(of("TCP download BE").spec.direction, Direction::Reverse);
    close(of("Ping (ms) ICMP").summary.rtt_p50_ns, 28.5e6);
    assert_eq!(run.header.started_unix_ns, 1_795_356_200_500_000_000);
    assert_eq!(run.header.target.as_deref(), Some("server"));
}

#[test]
fn the_matrices_of_2002_are_hosts_by_hosts() {
    let both = reading("2002-throughput.tsv");
    let [normal, jumbo] = both.imported.as_slice() else { panic!("two matrices") };
    assert_eq!([normal.rows.len(), jumbo.rows.len(), both.refused.len()], [10, 6, 0]);
    let run = run(normal);
    // Hosts have two or three partners there, and the pairs differ by factors: none stands out for certain.
    assert!(run.findings.iter().all(|finding| finding.kind != model::FindingKind::Outlier), "{:#?}", run.findings);
    let tables = analysis::plan::tables(&run.header, &run.outcomes);
    assert_eq!((tables.len(), tables[0].rows.len(), tables[0].row_factor.as_str()), (1, 4, "from"));
    let finland = &tables[0].cells[1];
    assert_eq!(finland[0].map(|middle| middle.value), Some(219e6));
    let rtt = only("2002-rtt.tsv");
    assert_eq!((rtt.outcomes.len(), rtt.header.origin.unwrap().unknown), (12, vec!["NIC".to_owned()]));
    let bare = read(b"\tA\tB\nA\t\t5\nB\t6\t\n", None).unwrap();
    assert!(bare.refused[0].to_string().contains("unit"), "{bare:?}");
}

#[test]
fn a_slow_host_of_a_matrix_is_its_first_finding() {
    let text = "Mbit/s,a,b,c,d,e\na,,941,93,938,940\nb,930,,95,942,935\nc,938,940,,936,941\nd,941,939,94,,938\ne,935,941,96,940,\n";
    let run = run(&read(text.as_bytes(), None).unwrap().imported[0]);
    let first = &run.findings[0];
    assert_eq!((first.kind, first.cells.len()), (model::FindingKind::Outlier, 4));
    assert!(
        first.statement.plain().starts_with("c is slow as a receiver: its goodput is 9.9"),
        "{:?}",
        first.statement
    );
}

#[test]
fn the_table_of_2002_has_two_named_factors() {
    let run = only("2002-systems.csv");
    let plan = run.header.plan.as_ref().unwrap();
    let factors: Vec<(&str, Vec<&str>)> =
        plan.factors.iter().map(|one| (one.name.as_str(), one.levels.iter().map(String::as_str).collect())).collect();
    assert_eq!(factors, [("mtu", vec!["1500", "9000"]), ("system", vec!["Linux", "NetBSD", "Windows"])]);
    let tables = analysis::plan::tables(&run.header, &run.outcomes);
    assert_eq!((tables.len(), tables[0].row_factor.as_str(), tables[0].column_factor.as_str()), (1, "mtu", "system"));
    assert_eq!(tables[0].cells[1][2].map(|mean| mean.value), Some(692e6));
    // Without names or a unit, with a semicolon, cut.
    let of = |text: &str| read(text.as_bytes(), None).unwrap();
    let bare = of("MTU;Linux;NetBSD\n1500;792;640\n9000;988;988\n");
    assert!(
        bare.imported.is_empty() && bare.refused[0].to_string().contains("such as 'mtu \\ system (Mbit/s)'"),
        "{bare:?}"
    );
    let unnamed = of("MTU (Mbit/s);Linux;NetBSD\n1500;792;640\n9000;988;988\n");
    assert!(unnamed.imported[0].notes[1].contains("does not name the columns"), "{unnamed:?}");
    let cut = of("MTU \\ system (Mbit/s);Linux;NetBSD\n1500;792;640\n9000;988\n");
    assert_eq!((cut.imported[0].rows.len(), cut.refused[0].line), (2, 3));
    assert!(cut.refused[0].to_string().contains("2 cells, but the first line has 3"), "{cut:?}");
    let wrong = of("MTU \\ system (Mbit/s);Linux;NetBSD\n1500;792;fast\n9000;988;988\n");
    assert!(wrong.refused[0].to_string().contains("'fast' at mtu 1500 and system NetBSD"), "{wrong:?}");
}

#[test]
fn a_run_of_this_program_is_kept_as_it_is() {
    let name = "throughline_run.json";
    let path = format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    let document: Run = serde_json::from_str(&text).unwrap();
    let run = only(name);
    assert_eq!((run.header.id.as_str(), run.header.name.as_deref()), ("20261121-203758-4f1a", None));
    assert_eq!(run.findings[0].statement, "imported from listing.txt (run 20261124-130424-a4e5 named kept)".into());
    assert_eq!(run.header.started_unix_ns, document.header.started_unix_ns);
    assert!(run.header.origin.is_none() && run.outcomes == document.outcomes && run.passes == document.passes);
    assert_eq!(run.findings[1..], document.findings);
    // Several runs are an array.
    let other = text.replace("20261124-130424-a4e5", "20261124-130425-a4e5");
    let several = read(format!("[{text},{other}]").as_bytes(), None).unwrap();
    assert_eq!((several.imported.len(), several.refused.len()), (2, 0));
}

#[test]
fn documents_of_another_schema_version_are_refused_with_the_remedy() {
    let path = format!("{}/tests/data/throughline_run.json", env!("CARGO_MANIFEST_DIR"));
    let document = std::fs::read_to_string(path).unwrap().replace("throughline-run/1", "throughline-run/2");
    let reading = read(document.as_bytes(), None).unwrap();
    assert_eq!((reading.imported.len(), reading.refused.len()), (0, 1));
    assert_eq!(
        reading.refused[0].to_string(),
        "a Throughline document of schema version 2; this version of thru reads 1: update thru"
    );
}

/// Goodput, direction and the number of bytes that were sent and received, of the only measurement of a file.
fn of_iperf3(name: &str) -> (Option<f64>, Direction, [Option<u64>; 2]) {
    let outcome = only(name).outcomes.remove(0);
    let summary = outcome.summary;
    (summary.goodput_bps, outcome.spec.direction, [summary.bytes_sent, summary.bytes_received])
}

#[test]
fn datagrams_before_310_have_the_receivers_rate() {
    for (name, bps, arrived) in [
        ("iperf31_udp.json", 563e3, Some(211_200)),
        ("iperf31_udp.txt", 558e3, None),
        ("iperf31_udp_R.txt", 579e3, None),
        ("iperf37_server_udp.json", 1.914e6, Some(730_800)),
        ("iperf37_udp.json", 1.917e6, Some(732_000)),
        ("iperf39_udp_R.json", 5.207e6, Some(1_302_000)),
    ] {
        let (found, _, [_, received]) = of_iperf3(name);
        assert!(found.is_some_and(|found| (found / bps - 1.0).abs() < 0.003), "{name}: {found:?} instead of {bps}");
        assert_eq!(received, arrived, "{name}");
    }
    assert_eq!(of_iperf3("iperf37_udp.json").2, [Some(1_500_000), Some(732_000)]);
}

#[test]
fn both_directions_under_one_name_are_added_up_from_the_streams() {
    let (bps, direction, bytes) = of_iperf3("iperf37_bidir.json");
    close(bps, 15_244_901.466_655_08 + 4_278_191.350_693_74);
    assert_eq!((direction, bytes), (Direction::Both, [Some(4_766_816 + 1_432_072), Some(3_947_248 + 1_107_720)]));
}

#[test]
fn results_that_were_not_fetched_are_no_goodput_of_zero() {
    for name in ["iperf321_interrupted.json", "iperf321_interrupted.txt"] {
        let reading = reading(name);
        let row = &reading.imported[0].rows[0];
        assert_eq!(row.trial.value, None, "{name}");
        assert!(row.trial.verdicts.contains(&Verdict::ByteCountMismatch), "{name}: {:?}", row.trial.verdicts);
        assert_eq!(row.trial.near.intervals.len(), 3, "{name}");
    }
}

#[test]
fn a_servers_document_is_that_of_the_end_that_receives() {
    let run = only("iperf316_server_tcp.json");
    assert_eq!(run.header.target.as_deref(), Some("192.0.2.1"));
    let (bps, direction, bytes) = of_iperf3("iperf316_server_tcp.json");
    close(bps, 18_812_446.831_254_926);
    assert_eq!((direction, bytes), (Direction::Reverse, [None, Some(4_718_592)]));
    // Its clients' counts are in their own files.
    let (bps, direction, _) = of_iperf3("iperf316_server_bidir.json");
    assert_eq!((bps, direction), (None, Direction::Both));
    let (bps, direction, bytes) = of_iperf3("iperf37_server_udp_R.json");
    assert_eq!((bps, direction, bytes), (None, Direction::Send, [Some(2_047_200), None]));
}

#[test]
fn a_day_at_ten_gigabits_is_a_test_like_any_other() {
    close(of_iperf3("iperf316_day.json").0, 9.4e9);
}

#[test]
fn iperf_2s_tests_in_both_directions_are_told_apart_by_the_servers_port() {
    let both = only("iperf2_dual.txt");
    assert_eq!(both.outcomes[0].spec.direction, Direction::Both);
    close(both.outcomes[0].summary.goodput_bps, 13.9e6 + 4.63e6);
    let found = |name: &str| -> Vec<(Direction, Option<f64>)> {
        reading(name).imported.iter().map(|one| (one.rows[0].spec.direction, one.rows[0].trial.value)).collect()
    };
    assert_eq!(found("iperf2_tradeoff.txt"), [(Direction::Send, Some(19.1e6)), (Direction::Reverse, Some(4.44e6))]);
    // The sum of the second test has the first one, too.
    assert_eq!(
        found("iperf2_server_dual.txt"),
        [(Direction::Both, Some(14.0e6 + 4.63e6)), (Direction::Reverse, Some(19.2e6))]
    );
}

#[test]
fn selectors_of_a_classic_netperf_test_are_read() {
    for (name, rate) in [("netperf27_TCP_RR_O.txt", 9_613.38), ("netperf27_TCP_RR_o.csv", 9_355.288)] {
        let run = only(name);
        let outcome = &run.outcomes[0];
        assert_eq!((outcome.spec.pattern, outcome.summary.transactions_per_s), (Pattern::Rr, Some(rate)), "{name}");
    }
    assert_eq!(
        reading("netperf27_TCP_RR_O.txt").imported[0].rows[0].figures["99TH_PERCENTILE_LATENCY_MICROSECONDS"],
        128.0
    );
}

#[test]
fn netperfs_warning_and_its_other_transports_are_not_passed_over() {
    let row = reading("netperf27_not_confident.txt").imported.remove(0).rows.remove(0);
    assert_eq!((row.trial.value, row.trial.verdicts), (Some(9_421.34), vec![Verdict::TargetMissed]));
    assert!(row.remarks[0].ends_with("is 20.217%"), "{:?}", row.remarks);
    let sctp = reading("netperf_sctp.txt");
    assert!(sctp.imported.is_empty() && sctp.refused[0].to_string().contains("transport SCTP"), "{sctp:?}");
}

#[test]
fn vmstats_columns_after_one_of_its_options_are_read() {
    let imported = reading("vmstat_a.txt").imported.remove(0);
    let means = imported.notes.last().unwrap();
    let said = "user 30 %, system 20 %, idle 50 %, 4100 interrupts/s, 8400 context switches/s";
    assert!(means.ends_with(said), "{means}");
    assert_eq!(imported.unknown, [] as [String; 0]);
}

#[test]
fn a_hop_may_have_several_addresses_in_lines_of_their_own() {
    let path = reading("traceroute_bsd.txt").imported.remove(0).path.unwrap();
    let hops = path.hops.unwrap();
    let addresses: Vec<usize> = hops.iter().map(|hop| usize::from(hop.address.is_some()) + hop.others.len()).collect();
    assert_eq!(addresses, [1, 1, 3, 1, 1]);
    assert_eq!((hops[2].others.clone(), hops[2].probes), (vec!["203.0.113.2".into(), "203.0.113.3".into()], Some(3)));
    assert_eq!(hops[2].rtts_ns, [24_100_000, 25_900_000, 26_200_000]);
}

#[test]
fn a_flent_series_without_a_unit_is_no_rate() {
    let reading = reading("socket_stats.flent");
    assert_eq!(reading.imported[0].rows.len(), 1);
    assert!(
        reading.refused.len() == 3
            && reading.refused.iter().all(|one| one.to_string().ends_with("the unit is missing"))
    );
}
