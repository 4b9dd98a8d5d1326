//! Several tests in one text: trials of one measurement, copies, directions, and what only looks like them.
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use import::{Imported, ListingSource, TextReading, assemble, read};
use model::{Direction, Run};

fn of(text: &str) -> TextReading {
    read(text.as_bytes(), None).unwrap()
}

fn recorded(name: &str) -> String {
    std::fs::read_to_string(format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

#[track_caller]
fn only(text: &str) -> Imported {
    let TextReading { imported, refused } = of(text);
    assert_eq!(refused, []);
    let [one] = <[Imported; 1]>::try_from(imported).unwrap();
    one
}

fn run(imported: Imported) -> Run {
    let source =
        ListingSource { id: "20261121-203758-4f1a".into(), file: "listing.txt".into(), ..ListingSource::default() };
    assemble(imported, &source, &[])
}

fn values(imported: &Imported) -> Vec<f64> {
    imported.rows.iter().filter_map(|row| row.trial.value).collect()
}

/// A client of iperf 2 on this port, with this rate in Mbit/s.
fn client((port, mbit): (u32, f64)) -> String {
    let megabytes = mbit * 1e6 * 2.0 / 8.0 / 1_048_576.0;
    format!(
        "Client connecting to 192.0.2.2, TCP port 5001\nTCP window size: 16.0 KByte (default)\n\
         [  1] local 192.0.2.1 port {port} connected with 192.0.2.2 port 5001\n\
         [ ID] Interval       Transfer     Bandwidth\n[  1] 0.0000-2.0000 sec  {megabytes:.2} MBytes  {mbit:.2} Mbits/sec\n"
    )
}

#[test]
fn tests_of_a_loop_are_trials_of_one_measurement() {
    let one = only(&[(50_000, 9.93), (50_002, 9.88), (50_004, 9.84)].map(client).concat());
    let [first, second, third] = values(&one)[..] else { panic!("{one:?}") };
    assert!([first - 9.93e6, second - 9.88e6, third - 9.84e6].iter().all(|off| off.abs() < 1.0), "{one:?}");
    let run = run(one);
    assert_eq!((run.outcomes.len(), run.outcomes[0].summary.trials), (1, 3));
    // iperf3 as JSON: another test by its cookie and its time.
    let text = recorded("iperf321_tcp.json");
    let later = text.replace("\"timesecs\": ", "\"timesecs\": 1").replace("\"cookie\": \"", "\"cookie\": \"b");
    let later = later.replace("\"timesecs\":\t", "\"timesecs\":\t1").replace("\"cookie\":\t\"", "\"cookie\":\t\"b");
    assert_eq!(values(&only(&format!("{text}\n{later}"))).len(), 2);
}

#[test]
fn tests_that_differ_in_what_the_text_has_stay_apart() {
    let runs = |text: &str| of(text).imported.len();
    let other_host = client((50_002, 9.88)).replace("192.0.2.2", "192.0.2.3");
    assert_eq!(runs(&(client((50_000, 9.93)) + &other_host)), 2, "another host");
    assert_eq!(runs(&[(50_000, 9.93), (50_002, 99.0)].map(client).concat()), 2, "rates of different options");
}

#[test]
fn a_copy_is_left_out_by_its_digits() {
    for name in ["traceroute_bsd.txt", "rrul.flent"] {
        let text = recorded(name);
        let once = of(&text);
        let twice = of(&format!("{text}\n{text}"));
        assert_eq!(twice.imported.len(), once.imported.len(), "{name}");
        assert!(twice.imported.iter().any(|one| !one.copies.is_empty()), "{name}");
    }
}

fn directions(run: &Run) -> Vec<(Direction, f64)> {
    run.outcomes[0].directions().map(|(direction, estimate)| (direction, estimate.value)).collect()
}

#[test]
fn each_direction_of_a_test_in_both_has_its_value() {
    let both = |out: f64, back: f64| vec![(Direction::Send, out), (Direction::Reverse, back)];
    for (name, expected) in [
        ("iperf2_dual.txt", both(13.9e6, 4.63e6)),
        ("iperf2-full-duplex.csv", both(922_837_735.0, 941_558_069.0)),
        ("iperf312_bidir.txt", both(10.711e6, 10.175e6)),
    ] {
        let run = run(only(&recorded(name)));
        assert_eq!(directions(&run), expected, "{name}");
        let sum: f64 = expected.iter().map(|(_, bps)| bps).sum();
        assert_eq!(run.outcomes[0].summary.goodput_bps, Some(sum), "{name}");
        let trust: Vec<_> = run.outcomes[0].summary.directions().map(|(_, one)| one.trust).collect();
        assert_eq!(trust, [run.outcomes[0].summary.trust; 2], "{name}");
    }
}

#[test]
fn datagrams_in_both_directions_have_the_rate_of_their_receivers() {
    let text = "Server listening on UDP port 5001\nClient connecting to 192.0.2.2, UDP port 5001\nSending 1470 byte datagrams\n\
                [  4] local 192.0.2.1 port 37755 connected with 192.0.2.2 port 5001\n\
                [  3] local 192.0.2.1 port 5001 connected with 192.0.2.2 port 48126\n\
                [  4]  0.0-10.0 sec  5.96 MBytes  5.00 Mbits/sec\n\
                [  3]  0.0-10.0 sec  5.96 MBytes  5.00 Mbits/sec   0.005 ms    0/ 4253 (0%)\n";
    let report = "[  4] Server Report:\n[  4]  0.0-10.0 sec  4.96 MBytes  4.16 Mbits/sec   0.013 ms  713/ 4253 (17%)\n";
    let run = run(only(&format!("{text}{report}")));
    assert_eq!(directions(&run), [(Direction::Send, 4.16e6), (Direction::Reverse, 5e6)]);
    assert_eq!(run.outcomes[0].summary.packets_lost, Some(713));
    assert_eq!(values(&only(text)), Vec::<f64>::new(), "what was sent is not what arrived");
}

const CLIENT: &str = "20261128090010,192.0.2.1,59714,192.0.2.2,5001,4,0.0-10.0,11796480,9437184\n";

#[test]
fn a_csv_of_iperf_2_tells_who_received_by_its_ports() {
    let back = "20261128090010,192.0.2.1,5001,192.0.2.2,43076,5,0.0-10.1,5767168,4568054\n";
    for text in [format!("{CLIENT}{back}"), format!("{back}{CLIENT}")] {
        assert_eq!(directions(&run(only(&text))), [(Direction::Send, 9_437_184.0), (Direction::Reverse, 4_568_054.0)]);
    }
    let later = back.replace("090010", "090021");
    let reading = of(&format!("{CLIENT}{later}")).imported;
    let of_each = |one: &Imported| (one.rows[0].spec.direction, values(one)[0]);
    let each: Vec<_> = reading.iter().map(of_each).collect();
    assert_eq!(each, [(Direction::Send, 9_437_184.0), (Direction::Reverse, 4_568_054.0)], "-r");
    let server = "20261128090010,192.0.2.2,6001,192.0.2.1,59714,4,0.0-10.0,11796480,9437184\n";
    let next = "20261128090030,192.0.2.2,6001,192.0.2.1,59716,4,0.0-10.0,11665408,9332326\n";
    let each: Vec<_> = of(&format!("{server}{next}")).imported.iter().map(of_each).collect();
    let both = [(Direction::Reverse, 9_437_184.0), (Direction::Reverse, 9_332_326.0)];
    assert_eq!(each, both, "a port that clients share");
}

#[test]
fn a_servers_report_in_a_clients_csv_is_no_direction_of_its_own() {
    let client = "20261128090010,192.0.2.1,59714,192.0.2.2,5001,3,0.0-10.0,1312710,1049996\n";
    let report = "20261128090010,192.0.2.2,5001,192.0.2.1,59714,3,0.0-10.0,1250970,1000776,0.015,42,893,4.703,0\n";
    let one = only(&format!("{client}{report}"));
    let row = &one.rows[0];
    assert_eq!(
        (row.spec.direction, row.spec.transport.as_str(), row.trial.value),
        (Direction::Send, "udp", Some(1_000_776.0))
    );
    assert_eq!([row.figures["sender_rate_bps"], row.figures["lost_packets"]], [1_049_996.0, 42.0]);
    // What the other end sent by itself counts other datagrams.
    let back = report.replace(",893,", ",1786,").replace("4.703", "2.352");
    let both = only(&format!("{client}{back}"));
    assert_eq!(both.rows[0].spec.direction, Direction::Both);
}

#[test]
fn figures_without_a_unit_are_refused_with_the_reason() {
    let reason = |text: &str| {
        read(text.as_bytes(), None).map_or_else(
            |refused| refused.to_string(),
            |reading| {
                assert!(reading.imported.is_empty(), "{reading:?}");
                reading.refused[0].to_string()
            },
        )
    };
    assert!(reason("  941.49\n").starts_with("only numbers"));
    let title = "MIGRATED TCP STREAM TEST from 0.0.0.0 () port 0 AF_INET to 192.0.2.2 () port 0 AF_INET\n";
    assert!(reason(&format!("{title}  941.49\n")).contains("without its unit (-v 0)"));
}

#[test]
fn netperfs_further_tables_without_heads_are_passed_over() {
    let row = |rate: &str| {
        format!(
            "131072  16384  16384    1.23       {rate}   \n\nAlignment      Offset         Bytes    Bytes       Sends   Bytes    Recvs\n\
             Local  Remote  Local  Remote  Xfered   Per                 Per\nSend   Recv    Send   Recv             Send (avg)          Recv (avg)\n    \
             8       8      0       0 2949120  16384.00       180   8751.10    337\n\nMaximum\nSegment\nSize (bytes)\n  1448\n"
        )
    };
    assert_eq!(values(&only(&(row("19.25") + &row("19.31")))), [19.25e6, 19.31e6]);
}

#[test]
fn averages_of_sar_alone_are_a_reading_and_wrong_ones_a_contradiction() {
    let text = recorded("sar_u.txt");
    let averages = "Average:        CPU     %user     %nice   %system   %iowait    %steal     %idle\n\
                    Average:        all     51.92     29.88     18.03      0.00      0.00      0.17\n";
    let one = only(averages);
    let series = one.passes[0].near.observed.as_ref().unwrap().series.clone().unwrap();
    assert!(
        series.lines.iter().any(|line| line.name == "cpu.all.user" && line.values == [Some(0.519_2)]),
        "{series:?}"
    );
    assert!(one.notes.iter().any(|note| note.starts_with("only averages")), "{:?}", one.notes);
    let wrong = of(&text.replace("51.92     29.88", "41.92     39.88"));
    assert_eq!((wrong.imported.len(), wrong.refused.len()), (0, 1), "{wrong:?}");
    assert!(wrong.refused[0].to_string().contains("is not between its values"), "{wrong:?}");
}

#[test]
fn a_line_behind_an_interrupt_is_read() {
    let text = client((50_000, 9.93)).replace("[  1] 0.0", "^C[  1] 0.0");
    assert_eq!(values(&only(&text)), [9.93e6]);
}

#[test]
fn a_document_that_contradicts_itself_is_refused_by_its_key() {
    let refused = |text: &str| of(text).refused.iter().map(ToString::to_string).collect::<Vec<_>>();
    let twice = "appears twice with different values";
    let nstat = "{\"kernel\":{\"TcpRetransSegs\":1,\"TcpRetransSegs\":9}}";
    assert_eq!(refused(nstat), [format!("kernel.TcpRetransSegs {twice}")]);
    let mtr = recorded("mtr.json").replacen("\"Avg\":", "\"Avg\": 77.7, \"Avg\":", 1);
    assert_eq!(refused(&mtr), [format!("report.hubs[].Avg {twice}")]);
    let iperf3 = recorded("iperf321_tcp.json");
    let at = iperf3.find("\"sum_received\"").unwrap();
    let doubled = format!("{}\"sum_received\": {{}}, {}", &iperf3[..at], &iperf3[at..]);
    assert_eq!(refused(&doubled), [format!("end.sum_received {twice}")], "it has one direction");
    assert_eq!(refused(&recorded("iperf37_bidir.json")), Vec::<String>::new());
}
