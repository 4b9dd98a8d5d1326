//! Outputs that contradict themselves, lack what a value needs, or have a measurement twice: nothing of them becomes a wrong value.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use import::{Imported, TextReading, read};
use model::{Direction, Pattern, RunKind, Verdict};
use serde_json::{Value, json};

fn of(text: &str) -> TextReading {
    read(text.as_bytes(), None).unwrap_or_else(|refused| panic!("{refused:?}: {text}"))
}

fn only(text: &str) -> Imported {
    let TextReading { imported, refused } = of(text);
    assert_eq!(refused, [], "{text}");
    let [one] = <[Imported; 1]>::try_from(imported).unwrap();
    one
}

/// The only reason, of a text from which nothing is imported.
#[track_caller]
fn refused(text: &str) -> String {
    let TextReading { imported, mut refused } = of(text);
    assert!(imported.is_empty() && !refused.is_empty(), "{imported:?} {refused:?}: {text}");
    refused.remove(0).to_string()
}

fn recorded(name: &str) -> String {
    std::fs::read_to_string(format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

/// The values without what the arithmetic adds to their digits.
fn values(imported: &Imported) -> Vec<Option<f64>> {
    imported.rows.iter().map(|row| row.trial.value.map(f64::round)).collect()
}

fn remarks(imported: &Imported) -> String {
    imported.rows.iter().flat_map(|row| row.remarks.clone()).collect::<Vec<_>>().join("; ")
}

#[test]
fn a_document_of_iperf3_and_its_events_are_one_measurement() {
    let whole: Value = serde_json::from_str(&recorded("iperf321_tcp.json")).unwrap();
    let event = |name: &str, data: &Value| format!("{}\n", json!({ "event": name, "data": data }));
    let mut streamed = event("start", &whole["start"]);
    whole["intervals"].as_array().unwrap().iter().for_each(|one| streamed.push_str(&event("interval", one)));
    streamed.push_str(&event("end", &whole["end"]));
    let full = only(&format!("{streamed}{whole:#}\n"));
    assert!(full.copies.iter().any(|note| note.contains("repeats the test")), "{:?}", full.copies);
    let other = recorded("iperf321_tcp_R.json");
    assert_eq!(of(&format!("{whole}\n{other}\n{whole}\n")).imported.len(), 2);
}

#[test]
fn each_connection_of_iperf3_has_its_counts_at_the_end_of_each_interval_but_the_last() {
    let mut document: Value = serde_json::from_str(&recorded("iperf321_tcp.json")).unwrap();
    let first = document["intervals"][0].clone();
    let later = |second: u32| {
        let mut interval = first.clone();
        for part in ["/sum", "/streams/0"] {
            let part = interval.pointer_mut(part).unwrap();
            (part["start"], part["end"]) = (json!(second), json!(second + 1));
        }
        interval
    };
    document["intervals"] = json!([later(0), later(1), later(2)]);
    let bytes = first["streams"][0]["bytes"].as_u64().unwrap();
    let counts = |document: &Value| -> Vec<(u64, u64)> {
        let flow = only(&document.to_string()).rows[0].trial.near.flows[0].clone();
        flow.readings.iter().map(|counts| (counts.at_ns, counts.bytes_sent)).collect()
    };
    assert_eq!(counts(&document), [(1_000_000_000, bytes), (2_000_000_000, 2 * bytes)]);
    // Without its share of an interval a connection has none.
    document["intervals"][1]["streams"] = json!([]);
    assert_eq!(counts(&document), []);
}

#[test]
fn both_ends_documents_of_a_test_are_the_clients_measurement() {
    let client: Value = serde_json::from_str(&recorded("iperf321_tcp.json")).unwrap();
    let mut server = client.clone();
    let start = server["start"].as_object_mut().unwrap();
    start.remove("connecting_to").unwrap();
    start.insert("accepted_connection".into(), json!({ "host": "192.0.2.1", "port": 40_000 }));
    for text in [format!("{client}\n{server}"), format!("{server}\n{client}")] {
        let one = only(&text);
        assert_eq!((one.rows[0].spec.direction, one.target.as_deref()), (Direction::Send, Some("127.0.0.1")));
        assert!(one.copies.iter().any(|note| note.contains("the server's document")), "{:?}", one.copies);
    }
    // The same cookie with different figures is not a copy.
    let mut other = client.clone();
    for part in ["sum_sent", "sum_received"] {
        other["end"][part]["bytes"] = json!(524_288);
        other["end"][part]["bits_per_second"] =
            json!(524_288.0 * 8.0 / other["end"][part]["seconds"].as_f64().unwrap());
    }
    for side in ["sender", "receiver"] {
        other["end"]["streams"][0][side]["bytes"] = json!(524_288);
    }
    let both = of(&format!("{client}\n{other}"));
    assert!(both.imported.len() == 1 && both.refused[0].to_string().contains("with different figures"), "{both:?}");
}

#[test]
fn documents_stand_among_other_lines_and_broken_ones() {
    let whole = recorded("iperf321_tcp.json");
    let cut = &whole[..whole.len() / 2];
    let error = "iperf3: error - unable to connect to server: Connection refused";
    let reading = of(&format!("host$ iperf3 -J\n{cut}\n{whole}\n{error}\n"));
    assert_eq!(reading.imported.len(), 1);
    let reasons: Vec<String> = reading.refused.iter().map(ToString::to_string).collect();
    assert!(reasons.len() == 2 && reasons[0].contains("not valid JSON"), "{reasons:?}");
    assert!(reasons[1].contains("own error"), "{reasons:?}");
}

/// A document of iperf3 with a change in its `end`.
fn ended(name: &str, change: impl Fn(&mut Value)) -> String {
    let mut document: Value = serde_json::from_str(&recorded(name)).unwrap();
    change(&mut document["end"]);
    document.to_string()
}

#[test]
fn sums_of_iperf3_that_cannot_be_are_refused() {
    let sum = |bytes: f64| {
        ended("iperf321_tcp.json", |end| {
            let seconds = end["sum_received"]["seconds"].as_f64().unwrap();
            end["sum_received"]["bytes"] = json!(bytes);
            end["sum_received"]["bits_per_second"] = json!(bytes * 8.0 / seconds);
        })
    };
    assert!(refused(&sum(524_288.0)).contains("524288 bytes contradict the 262144 of its streams"));
    assert!(refused(&sum(-1.0)).contains("end.sum_received has no valid bytes"));
    let more = ended("iperf321_tcp.json", |end| {
        for sum in ["sum_received", "streams"] {
            let part = if sum == "streams" { &mut end[sum][0]["receiver"] } else { &mut end[sum] };
            let seconds = part["seconds"].as_f64().unwrap();
            part["bytes"] = json!(524_288);
            part["bits_per_second"] = json!(524_288.0 * 8.0 / seconds);
        }
    });
    assert!(refused(&more).contains("524288 bytes received of 262144 sent"));
    // A client that was interrupted in reverse has no results of its server.
    let unfetched = ended("iperf321_tcp_R.json", |end| {
        for part in ["bytes", "bits_per_second"] {
            end["sum_sent"][part] = json!(0);
            end["streams"][0]["sender"][part] = json!(0);
        }
    });
    let one = only(&unfetched);
    assert_eq!((one.rows[0].figures.get("sum_sent_bytes"), remarks(&one).contains("reports none")), (None, true));
    assert!(one.rows[0].trial.value.is_some());
    let backwards = ended("iperf321_tcp.json", |end| end["sum_received"]["seconds"] = json!(-1.0));
    assert!(refused(&backwards).contains("no valid bytes, seconds and rate"));
    let lost = ended("iperf312_udp.json", |end| end["sum_received"]["lost_packets"] = json!(1_250));
    assert!(refused(&lost).contains("1250 of 125 datagrams lost"));
}

#[test]
fn counts_of_iperf3_below_zero_are_left_out() {
    let text = ended("iperf321_tcp.json", |end| {
        end["sum_sent"]["retransmits"] = json!(4_294_967_294_u32);
        end["streams"][0]["sender"]["retransmits"] = json!(4_294_967_294_u32);
    });
    let one = only(&text);
    assert_eq!(one.rows[0].figures.get("retransmits"), None);
    assert_eq!(one.rows[0].trial.near.flows[0].socket.retransmits, None);
    assert!(remarks(&one).contains("4294967294 retransmits is"), "{}", remarks(&one));
    let text = ended("iperf312_udp.json", |end| {
        end["sum_received"]["lost_packets"] = json!(-3);
        end["sum_received"]["jitter_ms"] = json!(4.1e10);
    });
    let one = only(&text);
    assert_eq!((one.rows[0].figures.get("lost_packets"), one.rows[0].trial.near.datagrams), (None, None));
    assert!(remarks(&one).contains("-3 lost datagrams is not a count"), "{}", remarks(&one));
    assert!(remarks(&one).contains("longer than the test"), "{}", remarks(&one));
}

#[test]
fn connections_of_iperf3_have_their_sockets_and_retransmits() {
    let one = only(&recorded("iperf316_day.json"));
    let (spec, trial) = (&one.rows[0].spec, &one.rows[0].trial);
    assert_eq!((spec.near.cc.as_deref(), spec.far.cc.as_deref()), (Some("bbr"), Some("bbr")));
    let socket = &trial.near.flows[0].socket;
    assert_eq!((socket.retransmits, socket.sndbuf, socket.rcvbuf), (Some(548), Some(16_384), Some(131_072)));
    assert_eq!((socket.cc.as_deref(), trial.far.flows[0].bytes_received), (Some("bbr"), 101_520_001_175_000));
    assert!(one.unknown.iter().all(|key| !key.contains("congestion") && !key.contains("buf")), "{:?}", one.unknown);
    let both = only(&recorded("iperf321_tcp_bidir_P2.json"));
    let flows = |end: &model::EndTally| -> Vec<(u32, Direction, [u64; 2])> {
        end.flows.iter().map(|flow| (flow.flow, flow.direction, [flow.bytes_sent, flow.bytes_received])).collect()
    };
    let (send, reverse) = (Direction::Send, Direction::Reverse);
    let expected = [(0, send, [262_144, 0]), (1, send, [0, 0]), (0, reverse, [0, 196_608]), (1, reverse, [0, 81_920])];
    assert_eq!(flows(&both.rows[0].trial.near), expected);
    // Its rate is that of each stream.
    let text = recorded("iperf312_udp.json").replace("\"num_streams\":\t1", "\"num_streams\":\t2");
    let rate = only(&text).rows[0].spec.rate_bps;
    assert_eq!(rate, Some(2_000_000));
}

const HEAD: &str = "Connecting to host 192.0.2.2, port 5201\n";

#[test]
fn the_servers_output_is_no_second_test() {
    let one = only(&recorded("iperf312_server_output.txt"));
    assert_eq!((values(&one), one.unknown.clone()), (vec![Some(4.19e6)], vec!["Server output".to_owned()]));
    assert_eq!(one.rows[0].trial.near.intervals.len(), 2);
    let socket = &one.rows[0].trial.near.flows[0].socket;
    assert_eq!((socket.local.as_deref(), socket.retransmits), (Some("127.0.0.1:44698"), Some(0)));
    // The ports tell a copy from another test with the same figures.
    let text = recorded("iperf312_server_output.txt");
    let twice = only(&format!("{text}\n{text}"));
    assert!(twice.copies[0].contains("this measurement in line"), "{:?}", twice.copies);
    let other = of(&format!("{text}\n{}", text.replace("44698", "44700"))).imported;
    assert_eq!((other.len(), other[0].rows.len(), other[0].copies.len()), (1, 2, 0), "another trial");
}

#[test]
fn connections_of_iperf3_without_their_sum_are_added_up() {
    let lines = "[  5]   0.00-1.00   sec  1.25 MBytes  10.5 Mbits/sec    0             sender
[  5]   0.00-1.00   sec  1.12 MBytes  9.42 Mbits/sec                  receiver
[  7]   0.00-1.00   sec  2.50 MBytes  21.0 Mbits/sec    3             sender
[  7]   0.00-1.00   sec  2.38 MBytes  19.9 Mbits/sec                  receiver
";
    let one = only(&format!("{HEAD}{lines}"));
    assert_eq!((values(&one), one.rows[0].spec.flows), (vec![Some(29.32e6)], 2));
    assert_eq!(one.rows[0].figures["retransmits"], 3.0);
    let interval = "[  7]   0.00-1.00   sec  2.50 MBytes  21.0 Mbits/sec    3   1.19 MBytes\n";
    let cut = format!("{HEAD}{interval}{}", lines.lines().take(2).map(|line| format!("{line}\n")).collect::<String>());
    assert!(refused(&cut).contains("lacks lines for some connections"));
    let more =
        lines.replace("1.12 MBytes  9.42", "3.38 MBytes  28.3").replace("2.38 MBytes  19.9", "3.38 MBytes  28.3");
    assert!(refused(&format!("{HEAD}{more}")).contains("bytes received of"));
    let sum = "[SUM]   0.00-1.00   sec  9.38 MBytes  78.7 Mbits/sec                  receiver\n";
    assert!(refused(&format!("{HEAD}{lines}{sum}")).contains("contradicts its connections'"));
}

#[test]
fn digits_of_iperf_that_do_not_suffice_are_flagged_or_no_value() {
    let line = |figures: &str| format!("{HEAD}[  5]   0.00-2.00   sec  {figures}                  receiver\n");
    let one = only(&line("0.02 GBytes  0.08 Gbits/sec"));
    assert_eq!((values(&one), &one.rows[0].trial.verdicts[..]), (vec![Some(80e6)], &[Verdict::ResolutionLimited][..]));
    let none = only(&line("0.00 GBytes  0.00 Gbits/sec"));
    assert_eq!((values(&none), &none.rows[0].trial.verdicts[..]), (vec![None], &[Verdict::ResolutionLimited][..]));
    assert_eq!(only(&line("20.0 MBytes  84.0 Mbits/sec")).rows[0].trial.verdicts, []);
}

#[test]
fn datagrams_of_iperf_that_cannot_be_have_no_count() {
    let line = |counts: &str| {
        format!(
            "{HEAD}[ ID] Interval           Transfer     Bitrate         Jitter    Lost/Total Datagrams\n\
                 [  5]   0.00-2.00   sec  2.50 MBytes  10.5 Mbits/sec  0.100 ms  {counts}  receiver\n"
        )
    };
    assert!(refused(&line("200/100 (200%)")).contains("200 of 100 datagrams lost"));
    let none = only(&line("0/0 (-nan%)"));
    assert_eq!((values(&none), none.rows[0].figures.get("packets")), (vec![Some(10.5e6)], None));
    assert!(remarks(&none).contains("in 0 datagrams"), "{}", remarks(&none));
    assert!(remarks(&only(&line("-5/100 (-5%)"))).contains("negative"));
}

#[test]
fn a_server_that_was_ended_has_what_its_intervals_received() {
    let reading = of(&recorded("iperf3-server-terminated.txt"));
    let [one] = reading.imported.as_slice() else { panic!("{reading:?}") };
    // 46.05 MiB in 5 s, and the datagrams until then.
    let bps = one.rows[0].trial.value.unwrap();
    assert!((bps / (46.05 * 1_048_576.0 * 8.0 / 5.0) - 1.0).abs() < 0.001, "{bps}");
    assert_eq!((one.rows[0].figures["packets"], one.rows[0].figures["lost_packets"]), (5_907.0, 14.0));
    assert!(one.rows[0].trial.verdicts.contains(&Verdict::CutShort), "{:?}", one.rows[0].trial.verdicts);
    assert!(remarks(one).contains("counts 6999 datagrams, the intervals 5907"), "{}", remarks(one));
    assert!(reading.refused.len() == 1 && reading.refused[0].to_string().contains("the client has terminated"));
}

const IPERF2: &str = "Client connecting to 192.0.2.2, TCP port 5001\n\
                      [  1] local 192.0.2.1 port 40000 connected with 192.0.2.2 port 5001\n";

#[test]
fn a_test_of_iperf_2_without_its_total_is_none() {
    let intervals =
        "[  1] 0.0000-1.0000 sec  2.50 MBytes  21.0 Mbits/sec\n[  1] 1.0000-2.0000 sec  2.38 MBytes  19.9 Mbits/sec\n";
    assert!(refused(&format!("{IPERF2}{intervals}")).contains("connection 1 has no line for the whole test"));
    let whole = "[  1] 0.0000-2.0600 sec  5.00 MBytes  20.4 Mbits/sec\n";
    assert_eq!(values(&only(&format!("{IPERF2}{intervals}{whole}"))), [Some(20.4e6)]);
    let second = "[  2] local 192.0.2.1 port 40002 connected with 192.0.2.2 port 5001\n";
    assert!(refused(&format!("{IPERF2}{second}{whole}")).contains("only 1 of 2 connections have a total"));
    let sum =
        "[  2] 0.0000-2.0600 sec  5.00 MBytes  20.4 Mbits/sec\n[SUM] 0.0000-2.0600 sec  20.0 MBytes  81.4 Mbits/sec\n";
    let reading = of(&format!("{IPERF2}{second}{whole}{sum}"));
    assert_eq!(values(&reading.imported[0]), [Some(40.8e6)]);
    assert!(reading.refused[0].to_string().contains("contradicts its connections'"), "{:?}", reading.refused);
    // 2.0.5 adds the first interval to its sum.
    let first =
        "[  1] 0.0- 1.0 sec  232124 KBytes  1901558 Kbits/sec\n[  1] 0.0- 4.0 sec  825856 KBytes  1690728 Kbits/sec\n";
    let twice = only(&format!("{IPERF2}{first}[SUM] 0.0- 4.0 sec  1057980 KBytes  2165942 Kbits/sec\n"));
    assert_eq!(values(&twice), [Some(1_690_728_000.0)]);
    assert!(remarks(&twice).contains("the first interval twice"), "{}", remarks(&twice));
    let csv = recorded("iperf2.csv");
    let cut: String = csv.lines().take(2).map(|line| format!("{line}\n")).collect();
    assert!(refused(&cut).contains("no line for the whole test"));
}

#[test]
fn round_trips_of_iperf_2_2_are_round_trips() {
    let text = "Client connecting to 192.0.2.2, TCP port 5001 with pid 63480 (1/0 flows/load)
Bounceback test (req/reply size =1000 Byte/ 500 Byte) (server hold req=0 usecs & tcp_quickack)
[  1] local 192.0.2.1%lo port 47210 connected with 192.0.2.2 port 5001 (bb w/quickack req/reply/hold=1000/500/0) (icwnd/mss/irtt=162/16640/32)
[ ID] Interval        Transfer    Bandwidth         BB cnt=avg/min/max/stdev         Rtry  Cwnd(pkts)/RTT(var)   Tx/Rx bytes  RPS(avg)
[  1] 0.00-1.00 sec  15.0 KBytes   123 Kbits/sec    10=0.105/0.080/0.190/0.030 ms    0   14K/(1)/95(5) us  Tx=9.77 KBytes Rx=4.88 KBytes  RPS=9556
[  1] 0.00-1.00 sec  OWD Delays (ms) Cnt=10 To=0.050/0.040/0.090/0.010 From=0.050/0.040/0.090/0.010 Asymmetry=0.001/0.001/0.001/0.001    9556 rps
[  1] 0.00-2.00 sec  30.0 KBytes   123 Kbits/sec    20=0.105/0.080/0.190/0.030 ms    0   -(-)/-(-)    Tx=19.5 KBytes Rx=9.77 KBytes  RPS=9524
";
    let one = only(text);
    let row = &one.rows[0];
    assert_eq!((one.kind, row.spec.pattern, row.trial.value), (RunKind::Rr, Pattern::Rr, Some(9_524.0)));
    assert_eq!((row.spec.block, row.spec.reply, row.figures["rtt_mean_ns"]), (1_000, Some(500), 105_000.0));
    let broken = text.replace("20=0.105/0.080/0.190/0.030 ms", "20=nan/0.080/0.190/0.030 ms");
    assert!(refused(&broken).contains("round trips without round trips"));
}

#[test]
fn several_results_of_sockperf_are_one_run() {
    let tp = recorded("sockperf_tp.txt");
    let reading = of(&format!("{tp}\n{tp}\n{}", tp.replace("45.786 Mbps", "45.700 Mbps")));
    let [one] = reading.imported.as_slice() else { panic!("{reading:?}") };
    assert_eq!((one.rows.len(), reading.refused.len()), (3, 0));
    assert!(one.rows.iter().all(|row| row.spec == one.rows[0].spec && row.levels.is_empty()));
    // The sizes of messages are not printed with latencies.
    let pp = recorded("sockperf_pp.txt");
    let twice = only(&format!("{pp}\n{pp}"));
    assert_eq!((twice.rows.len(), twice.rows[0].levels == twice.rows[1].levels), (2, false));
    assert!(twice.notes.iter().any(|note| note.contains("the sizes may differ")), "{:?}", twice.notes);
    // Without the line of its version the next test begins with its server.
    let unversioned: String =
        pp.lines().filter(|line| !line.contains("version")).map(|line| format!("{line}\n")).collect();
    assert_eq!(only(&format!("{unversioned}{unversioned}")).rows.len(), 2);
    let bare = "sockperf: Summary: Message Rate is 75439 [msg/sec]\nsockperf: Summary: BandWidth is 105.902 MBps (847.215 Mbps)\n";
    let both = only(&bare.repeat(2));
    assert_eq!((both.rows.len(), both.rows[0].spec.block), (2, 1_472));
    let logged: String = pp.lines().map(|line| format!("[STDOUT] {line}\n")).collect();
    assert_eq!(values(&only(&format!("starting\n{logged}ERROR: unrelated\n"))), values(&only(&pp)));
}

#[test]
fn results_of_sockperf_that_contradict_themselves_are_refused() {
    let pp = recorded("sockperf_pp.txt");
    assert!(
        refused(&pp.replace("percentile 50.000 =    4.819", "percentile 50.000 =   48.190")).contains("out of order")
    );
    assert!(refused(&pp.replace("Latency is 5.047", "Latency is 6.047")).contains("a mean of 5.047 us contradicts"));
    let tp = recorded("sockperf_tp.txt");
    assert!(refused(&tp.replace("Message Rate is 5001", "Message Rate is 6001")).contains("contradict"));
    // The size follows from both rates.
    let quiet: String = tp.lines().filter(|line| !line.contains("NOTE")).map(|line| format!("{line}\n")).collect();
    assert_eq!(only(&quiet).rows[0].spec.block, 1_200);
}

#[test]
fn results_of_qperf_without_their_sizes_are_no_trials_of_one_size() {
    let loop_of = |values: [f64; 3]| values.map(|us| format!("tcp_lat:\n    latency  =  {us} us\n")).concat();
    let one = only(&loop_of([20.1, 29.5, 45.1]));
    assert_eq!(values(&one), [Some(40_200.0), Some(59_000.0), Some(90_200.0)]);
    let levels: std::collections::BTreeSet<_> = one.rows.iter().map(|row| row.levels.clone()).collect();
    assert_eq!((levels.len(), one.assumed.clone()), (3, vec!["block"]));
    let sized = "tcp_lat:\n    latency  =  20.1 us\n    msg_size  =  1 bytes\n";
    assert!(only(&sized.repeat(3)).rows.iter().all(|row| row.levels.is_empty() && row.spec.block == 1));
    let with = |value: &str| format!("tcp_bw:\n    bw  =  {value} MB/sec\n");
    assert_eq!(values(&only(&with("1,024"))), [Some(8_192e6)]);
    assert!(refused(&with("20,5")).contains("no bandwidth"));
    assert!(refused(&format!("{}    bw  =  3 MB/sec\n", with("2"))).contains("two values of bw"));
}

const PING: &str = "PING h (192.0.2.1) 56(84) bytes of data.\n";

fn ping(replies: &[&str], counts: &str, summary: &str) -> String {
    let reply = |(at, ms): (usize, &&str)| format!("64 bytes from 192.0.2.1: icmp_seq={} ttl=64 time={ms}\n", at + 1);
    let replies: String = replies.iter().enumerate().map(reply).collect();
    format!("{PING}{replies}\n--- h ping statistics ---\n{counts}\nrtt min/avg/max/mdev = {summary} ms\n")
}

#[test]
fn further_replies_to_an_echo_are_no_echoes() {
    let counts = "2 packets transmitted, 2 received, +1 duplicates, 0% packet loss, time 1001ms";
    let text = ping(&["0.020 ms", "0.030 ms"], counts, "0.020/0.350/1.000/0.008");
    for again in ["icmp_seq=2 ttl=64 time=1.00 ms (DUP!)", "icmp_seq=2 ttl=64 time=1.00 ms"] {
        let one = only(&text.replace("\n---", &format!("64 bytes from 192.0.2.9: {again}\n\n---")));
        assert_eq!((values(&one), one.rows[0].figures["duplicates"]), (vec![Some(25_000.0)], 1.0), "{again}");
        assert_eq!(one.path.unwrap().ping.unwrap().max_ns, Some(30_000));
    }
}

#[test]
fn pings_that_contradict_their_summary_are_refused() {
    let counts = "2 packets transmitted, 2 received, 0% packet loss, time 1001ms";
    let sound = ping(&["0.020 ms", "0.030 ms"], counts, "0.020/0.025/0.030/0.005");
    assert_eq!(values(&only(&sound)), [Some(25_000.0)]);
    assert!(refused(&sound.replace("/0.025/", "/0.028/")).contains("contradicts the replies, whose mean is 0.025 ms"));
    assert!(refused(&sound.replace("/0.025/", "/0.250/")).contains("is not between 0.02 and 0.03 ms"));
    assert!(refused(&sound.replace("2 received", "3 received")).contains("3 answers to 2 echo requests"));
    assert!(refused(&sound.replace("2 received", "1 received")).contains("2 replies contradict the 1"));
    assert!(refused(&sound.replace("time=0.020", "time=0,020")).contains("LC_ALL=C"));
    let quiet =
        format!("{PING}\n--- h ping statistics ---\n{counts}\nrtt min/avg/max/mdev = 0,020/0,025/0,030/0,005 ms\n");
    assert!(refused(&quiet).contains("is not a number"));
    // Words of another program's log are no round trips.
    assert_eq!(values(&only(&sound.replace("\n---", "level=info time=99\n\n---"))), [Some(25_000.0)]);
    assert!(refused("192.0.2.1 : xmt/rcv/%loss = 5/6/0%, min/avg/max = 0.03/0.05/0.07\n").contains("6 answers to 5"));
    assert!(refused("192.0.2.1 : xmt/rcv/%loss = 5/5/0%, min/avg/max = 0.06/0.05/0.07\n").contains("is not between"));
}

#[test]
fn hops_after_a_foreign_line_or_a_gap_are_kept() {
    let trace = "traceroute to h (192.0.2.9), 30 hops max, 60 byte packets\n 1  a (192.0.2.1)  0.3 ms\ntraceroute: a warning\n 2  * * *\n \
                 3  192.0.2.9  0.9 ms\n64 bytes from 192.0.2.9: icmp_seq=1 ttl=64 time=0.020 ms\n";
    let hops = |imported: &Imported| -> Vec<u8> {
        imported.path.as_ref().unwrap().hops.iter().flatten().map(|hop| hop.hop).collect()
    };
    assert_eq!(hops(&only(trace)), [1, 2, 3]);
    let gap = of(&trace.replace(" 2  * * *\n", ""));
    assert!(
        hops(&gap.imported[0]) == [1, 3] && gap.refused[0].to_string().contains("the hops in between are missing"),
        "{gap:?}"
    );
    let broken = of(&trace.replace("0.9 ms", "0,9 ms"));
    assert!(hops(&broken.imported[0]) == [1, 2] && broken.refused[0].to_string().contains("not a hop"), "{broken:?}");
    let numbered = trace.replace(" 1  a (192.0.2.1)", " 1  [AS64500] a (192.0.2.1)");
    let path = only(&numbered).path.unwrap();
    assert_eq!(path.hops.unwrap()[0].address.as_deref(), Some("192.0.2.1"));
    let later = trace.replace(" 1  a (192.0.2.1)  0.3 ms\n", "").replace(" 2  * * *\n", " 2  b (192.0.2.2)  0.4 ms\n");
    assert_eq!(hops(&only(&later)), [2, 3]);
    let mtr = recorded("mtr.csv");
    let impossible = of(&mtr.replacen("0.00,", "120.00,", 1));
    assert!(
        impossible.refused.iter().any(|one| one.to_string().contains("not a share of lost echoes")),
        "{impossible:?}"
    );
}

#[test]
fn two_runs_of_vmstat_are_two() {
    let text = recorded("vmstat.txt");
    let twice = of(&format!("{text}{text}"));
    assert_eq!((twice.imported.len(), twice.refused.len()), (2, 0));
    let readings =
        |imported: &Imported| imported.passes[0].near.observed.as_ref().unwrap().series.as_ref().unwrap().at_ns.len();
    assert_eq!(twice.imported.iter().map(readings).collect::<Vec<_>>(), [2, 2]);
    // A screen of 21 lines, then its head again.
    let lines: Vec<&str> = text.lines().collect();
    let screen = format!("{}\n{}\n{}", lines[0], lines[1], format!("{}\n", lines[3]).repeat(21));
    let short = format!("{}\n{}\n{}", lines[0], lines[1], format!("{}\n", lines[3]).repeat(5));
    assert_eq!(readings(&only(&format!("{screen}{screen}{short}"))), 46);
    let wrong = of(&text.replace(" 83  4  0  0 13", " 83 40  0  0 13"));
    assert!(wrong.refused[0].to_string().contains("add up to 136 %"), "{wrong:?}");
    let back = recorded("vmstat_tw.txt").replace("13:57:34", "13:57:33");
    let back = format!("{back}{}", back.lines().last().unwrap().replace("13:57:33", "13:57:32"));
    assert!(of(&back).refused.iter().any(|one| one.to_string().contains("go back")), "{back}");
}

#[test]
fn values_of_flent_that_cannot_be_are_refused() {
    let file = |values: &str, times: &str| {
        format!(
            "{{\"metadata\":{{\"SERIES_META\":{{\"TCP upload\":{{\"UNITS\":\"Mbits/s\"}}}}}},\"x_values\":{times},\"results\":{{\"TCP upload\":{values}}}}}\n"
        )
    };
    assert_eq!(values(&only(&format!("a line\n{}another\n", file("[1,null,3]", "[0,1,2]")))), [Some(2e6)]);
    assert!(refused(&file("[1,-2,3]", "[0,1,2]")).contains("has the value -2"));
    assert!(refused(&file("[1,\"2\",3]", "[0,1,2]")).contains("has the value \"2\""));
    assert!(refused(&file("[1,2,3]", "[0,2,1]")).contains("go back"));
    let unitless = file("[1,2,3]", "[0,1,2]").replace("TCP upload", "Ping loss").replace("\"UNITS\":\"Mbits/s\"", "");
    assert!(refused(&unitless).contains("the unit is missing"));
}

#[test]
fn rows_of_netperf_that_contradict_themselves_are_refused() {
    let udp = recorded("netperf27_UDP_STREAM.txt");
    assert!(refused(&udp.replace("112609 ", "122609 ")).contains("122609 messages received of 112831"));
    assert!(refused(&udp.replace("59010.06", "69010.06")).contains("of 65507 bytes in 1 s contradict"));
    let stream = recorded("netperf27_TCP_STREAM.txt");
    let unknown = stream.replace("29694.77", "-1.00");
    assert!(refused(&unknown).contains("its rate is unknown"));
    let title = "OMNI Send TEST from 0.0.0.0 (0.0.0.0) port 0 AF_INET to 127.0.0.1 () port 0 AF_INET\n";
    let keys = |rate: &str| format!("THROUGHPUT={rate}\nTHROUGHPUT_UNITS=10^6bits/s\n");
    let twice = of(&format!("{title}{}{}", keys("1000.50"), keys("2000.50")));
    let found: Vec<_> = twice.imported.iter().flat_map(values).collect();
    assert_eq!(found, [Some(1_000.5e6), Some(2_000.5e6)]);
    assert!(refused(&format!("{title}{}", keys("nan"))).contains("'nan', which is not a valid figure"));
}

#[test]
fn sums_of_nuttcp_that_contradict_themselves_are_refused() {
    let line = |counts: &str| format!("    2.3750 MB /   1.00 sec =   19.9223 Mbps 84 %TX 0 %RX {counts}\n");
    assert!(refused(&line("5 / 2 drop/pkt 250.00 %loss")).contains("5 of 2 datagrams lost"));
    let interval = "    4.0000 MB /   1.00 sec =   33.5544 Mbps\n";
    assert!(refused(&format!("{interval}{}", line("0 retrans"))).contains("intervals of 4.0000 MB contradict"));
    let one = only(&line("0 retrans"));
    assert!(one.assumed.contains(&"direction"), "{:?}", one.assumed);
    let verbose = recorded("nuttcp_verbose.txt");
    let cut: String = verbose
        .lines()
        .filter(|line| !(line.contains("nuttcp-r") && line.contains("real seconds")))
        .map(|line| format!("{line}\n"))
        .collect();
    let one = only(&cut);
    assert!(remarks(&one).contains("the receiver's line is missing"), "{}", remarks(&one));
}

#[test]
fn runs_of_this_program_stand_among_other_lines_once() {
    let text = recorded("throughline_run.json");
    let reading = of(&format!("host$ thru show --json\n{text}\ndone\n{text}\n"));
    assert_eq!(reading.imported.len(), 1);
    assert!(reading.refused.len() == 1 && reading.refused[0].to_string().contains("imported once"), "{reading:?}");
}

#[test]
fn interfaces_beyond_the_limit_are_named() {
    let head =
        "Kernel Interface table\nIface      MTU    RX-OK RX-ERR RX-DRP RX-OVR    TX-OK TX-ERR TX-DRP TX-OVR Flg\n";
    let rows: String = (0..10_001).map(|at| format!("if{at} 1500 1 0 0 0 1 0 0 0 BMRU\n")).collect();
    let reading = of(&format!("{head}{rows}"));
    assert_eq!(reading.imported[0].near.interfaces.len(), 10_000);
    assert!(reading.refused[0].to_string().contains("more than 10000 interfaces"), "{:?}", reading.refused);
}
