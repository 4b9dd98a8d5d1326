//! Forms of the programs' outputs that differ by an option or a version, as short texts.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use import::{Imported, TextReading, read};
use model::{Direction, RunKind, Verdict};

fn of(text: &str) -> TextReading {
    read(text.as_bytes(), None).unwrap_or_else(|refused| panic!("{refused:?}: {text}"))
}

fn only(text: &str) -> Imported {
    let TextReading { imported, refused } = of(text);
    assert_eq!(refused, [], "{text}");
    let [one] = <[Imported; 1]>::try_from(imported).unwrap();
    one
}

#[test]
fn netpipe_5_writes_rates_of_three_decimals_and_a_shortest_time_of_a_microsecond() {
    // The third line: its shortest time was 0.9 µs, so the highest rate is that of 1 µs.
    let file = "        1     0.000     0.000     0.000   22.81\n     1024     0.359     0.341     0.371   22.82\n       \
                      64     0.539     0.501     0.512    0.95\n";
    let reading = of(file);
    assert_eq!(reading.refused, []);
    let rows: Vec<_> = reading.imported.iter().flat_map(|imported| &imported.rows).collect();
    assert_eq!(reading.imported[0].version.as_deref(), Some("5.x"));
    assert_eq!(rows.iter().map(|row| row.spec.block).collect::<Vec<_>>(), [1, 1024, 64]);
    assert!((rows[0].trial.value.unwrap() - 2.0 * 22_810.0).abs() < 1.0, "{rows:?}");

    let screen = "  1:     \u{1b}[32m  1  B\u{1b}[0m     24999 times -->  \u{1b}[36m350.662 Kbps\u{1b}[0m  in  22.814 usecs\n  \
                  2:   1.027 KB     10000 times -->  359.972 Mbps  in   22.824 usecs\n";
    let read = only(screen);
    assert_eq!(read.rows.iter().map(|row| row.spec.block).collect::<Vec<_>>(), [1, 1027]);
    assert_eq!(read.version.as_deref(), Some("5.x"));
    // 2.x: seconds, Mbps, bits, bytes, variance.
    let old = only("0.000033 0.231 8 1 0.000001\n0.000034 0.449 16 2 0.000001\n");
    assert_eq!(old.version.as_deref(), Some("2.x"));
}

const CLIENT: [&str; 6] = [
    "Connecting to host 127.0.0.1, port 5201",
    "[  5] local 127.0.0.1 port 1 connected to 127.0.0.1 port 5201",
    "[ ID] Interval           Transfer     Bitrate         Retr  Cwnd",
    "[  5]   0.00-1.00   sec  1.00 GBytes  8.59 Gbits/sec    3   1.19 MBytes",
    "[  5]   0.00-1.00   sec  1.00 GBytes  8.59 Gbits/sec    3             sender",
    "[  5]   0.00-1.01   sec  1.00 GBytes  8.50 Gbits/sec                  receiver",
];

#[test]
fn iperf3s_lines_may_begin_with_a_title_or_a_time() {
    let titled: String = CLIENT.iter().map(|line| format!("my test:  {line}\n")).collect();
    let timed: String =
        (8..).zip(CLIENT).map(|(second, line)| format!("Tue Nov 24 13:42:{second:02} 2026 {line}\n")).collect();
    let days: String = (8..).zip(CLIENT).map(|(day, line)| format!("Tue Nov {day:2} 13:42:00 2026 {line}\n")).collect();
    for text in [titled, timed, days] {
        let read = only(&text);
        assert_eq!((read.rows[0].trial.value, read.target.as_deref()), (Some(8.5e9), Some("127.0.0.1")), "{text}");
        assert_eq!(read.rows[0].figures.get("retransmits"), Some(&3.0));
    }
}

#[test]
fn of_both_directions_the_sender_is_the_sum_as_the_goodput_is() {
    let text = "Connecting to host h, port 5201
[  5][TX-C]   0.00-1.00   sec  1.25 GBytes  10.7 Gbits/sec    0             sender
[  5][TX-C]   0.00-1.00   sec  1.16 GBytes  10.0 Gbits/sec                  receiver
[  7][RX-C]   0.00-1.00   sec  2.50 GBytes  21.5 Gbits/sec    0             sender
[  7][RX-C]   0.00-1.00   sec  2.33 GBytes  20.0 Gbits/sec                  receiver
";
    let row = &only(text).rows[0];
    assert_eq!((row.spec.direction, row.trial.value), (Direction::Both, Some(30e9)));
    assert_eq!([row.figures["sender_rate_bps"], row.figures["receiver_rate_bps"]], [32.2e9, 30e9]);
    assert_eq!(row.figures["outbound_sender_rate_bps"], 10.7e9);
}

/// A whole document of iperf3, with this rate.
fn document(bps: f64) -> serde_json::Value {
    let sum = serde_json::json!({ "start": 0, "end": 1, "seconds": 1.0, "bytes": 1_000_000, "bits_per_second": bps });
    serde_json::json!({
        "start": { "version": "iperf 3.17", "test_start": { "protocol": "TCP", "num_streams": 1, "blksize": 131_072, "duration": 1 } },
        "intervals": [{ "sum": sum }],
        "end": { "sum_sent": sum, "sum_received": sum },
    })
}

#[test]
fn iperf3s_events_make_a_document_and_a_contradicted_rate_is_refused() {
    let whole = document(8e6);
    let event =
        |name: &str, data: &serde_json::Value| format!("{}\n", serde_json::json!({ "event": name, "data": data }));
    let [start, interval, end] =
        [event("start", &whole["start"]), event("interval", &whole["intervals"][0]), event("end", &whole["end"])];
    let streamed = only(&format!("{start}{interval}{end}"));
    let plain = only(&whole.to_string());
    assert_eq!((streamed.rows.len(), &streamed.rows[0].figures), (1, &plain.rows[0].figures));
    assert_eq!(streamed.rows[0].trial.near.intervals, plain.rows[0].trial.near.intervals);
    let cut = of(&format!("{start}{interval}"));
    assert!(cut.imported.is_empty() && cut.refused[0].to_string().contains("before the end of the test"), "{cut:?}");
    let wrong = of(&document(9e6).to_string());
    assert!(wrong.imported.is_empty() && wrong.refused[0].to_string().contains("contradict"), "{wrong:?}");
}

#[test]
fn netperf_without_a_head_with_keys_and_with_columns() {
    let bare = only(" 87380  16384  16384    10.00    9415.51   \n");
    assert_eq!((bare.rows[0].trial.value, bare.rows[0].spec.block), (Some(9_415.51e6), 16_384));
    let trips = only("16384  87380  1        1       10.00    30000.25   \n16384  87380 \n");
    assert_eq!((trips.kind, trips.rows[0].trial.value), (RunKind::Rr, Some(30_000.25)));

    let title = "MIGRATED TCP STREAM TEST from 0.0.0.0 (0.0.0.0) port 0 AF_INET to 127.0.0.1 () port 0 AF_INET\n";
    let keys = only(&format!(
        "{title}THROUGHPUT=1000.50\nTHROUGHPUT_UNITS=10^6bits/s\nELAPSED_TIME=2.00\nLOCAL_SEND_SIZE=4096\n"
    ));
    assert_eq!((keys.rows[0].trial.value, keys.rows[0].spec.block), (Some(1_000.5e6), 4_096));

    let omni = title.replace("MIGRATED TCP STREAM", "OMNI Send");
    let commas = only(&format!(
        "{omni}Throughput,Throughput Units,Elapsed Time (sec),Local Send Size\n1000.50,10^6bits/s,2.00,4096\n"
    ));
    let columns = only(&format!(
        "{omni}Throughput Throughput Elapsed Local\n           Units      Time    Send\n                      (sec)   Size\n\n\
         1000.50    10^6bits/s 2.00    4096\n"
    ));
    for read in [commas, columns] {
        assert_eq!((read.rows[0].trial.value, read.rows[0].spec.block), (Some(1_000.5e6), 4_096), "{read:?}");
    }
}

#[test]
fn pings_without_a_reply_without_lines_and_without_an_end() {
    let head = "PING h (192.0.2.1) 56(84) bytes of data.\n";
    let lost = only(&format!(
        "{head}\n--- h ping statistics ---\n3 packets transmitted, 0 received, 100% packet loss, time 2042ms\n"
    ));
    assert_eq!((lost.rows[0].trial.value, &lost.rows[0].trial.verdicts[..]), (None, &[Verdict::Loss][..]));
    let quiet = only(&format!(
        "{head}\n--- h ping statistics ---\n3 packets transmitted, 3 received, 0% packet loss, time 2042ms\n\
         rtt min/avg/max/mdev = 0.020/0.030/0.040/0.008 ms\n"
    ));
    assert_eq!(quiet.rows[0].trial.value, Some(30_000.0));
    let cut = of(&format!("{head}64 bytes from h (192.0.2.1): icmp_seq=1 ttl=64 time=0.020 ms\n"));
    assert_eq!((cut.imported[0].rows.len(), cut.refused.len()), (1, 1));
    assert!(cut.refused[0].to_string().contains("the text is cut"), "{:?}", cut.refused);
}

#[test]
fn a_mark_of_the_encoding_is_no_text() {
    let text = CLIENT.map(|line| format!("{line}\n")).concat();
    let wide = |of: fn(u16) -> [u8; 2], mark: [u8; 2]| {
        [&mark[..], &text.encode_utf16().flat_map(of).collect::<Vec<u8>>()].concat()
    };
    let marked = [&[0xef, 0xbb, 0xbf], text.as_bytes()].concat();
    for bytes in [marked, wide(u16::to_le_bytes, [0xff, 0xfe]), wide(u16::to_be_bytes, [0xfe, 0xff])] {
        let reading = read(&bytes, None).unwrap();
        assert_eq!((reading.imported.len(), reading.imported[0].tool.as_str()), (1, "iperf3"));
    }
}

#[test]
fn iperf_2_from_the_server_in_both_directions_and_in_round_trips() {
    let head = "Client connecting to 127.0.0.1, TCP port 5001\n";
    let reverse = only(&format!(
        "{head}[  1] local 127.0.0.1 port 3 connected with 127.0.0.1 port 5001 (reverse) (icwnd/mss/irtt=319/32741/33)\n\
         [ ID] Interval       Transfer     Bandwidth\n[ *1] 0.0000-1.0034 sec  3.44 GBytes  29.5 Gbits/sec\n"
    ));
    let row = &reverse.rows[0];
    assert_eq!((row.spec.direction, row.figures["receiver_rate_bps"]), (Direction::Reverse, 29.5e9));
    assert!(row.remarks.is_empty(), "{:?}", row.remarks);
    let both = only(&format!(
        "{head}[  1] local 127.0.0.1 port 3 connected with 127.0.0.1 port 5001 (full-duplex) (icwnd/mss/irtt=319/32741/26)\n\
         [  1] 0.0000-1.0041 sec  1.30 GBytes  11.1 Gbits/sec\n[ *1] 0.0000-1.0008 sec  1.41 GBytes  12.1 Gbits/sec\n\
         [SUM] 0.0000-1.0008 sec  2.71 GBytes  23.3 Gbits/sec\n"
    ));
    let row = &both.rows[0];
    assert_eq!((row.spec.direction, row.spec.flows, row.trial.value), (Direction::Both, 1, Some(23.2e9)));
    let trips = only(&format!(
        "{head}Write buffer size:  100 Byte\n[  1] local 127.0.0.1%lo port 3 connected with 127.0.0.1 port 5001 (bb w/quickack len/hold=100/0)\n\
         [  1] 0.0000-1.0000 sec  1.95 KBytes  16.0 Kbits/sec    10=0.398/0.016/3.816/1.201 ms    0  576K/14 us    2514 rps\n\
         [  1] 0.0000-2.0074 sec  3.91 KBytes  15.9 Kbits/sec    20=0.211/0.014/3.816/0.849 ms    0  576K/910 us    4743 rps\n\
         [  1] 0.0000-2.0074 sec BB8(f)-PDF: bin(w=100us):cnt(20)=1:18,2:1,39:1 (5.00/95.00/99.7%=1/39/39,Outliers=1,obl/obu=0/0)\n"
    ));
    let row = &trips.rows[0];
    assert_eq!((trips.kind, row.spec.block, row.trial.value), (RunKind::Rr, 100, Some(4_743.0)));
    assert_eq!(row.figures["rtt_mean_ns"], 211_000.0);
}

#[test]
fn fping_and_mtr() {
    let text = "192.0.2.1 : xmt/rcv/%loss = 5/5/0%, min/avg/max = 0.03/0.05/0.07\n\
                192.0.2.9 : xmt/rcv/%loss = 5/0/100%\n";
    let reading = of(text);
    assert_eq!((reading.imported.len(), reading.refused.len()), (2, 0));
    let [answered, silent] = [&reading.imported[0], &reading.imported[1]];
    assert_eq!((answered.target.as_deref(), answered.rows[0].trial.value), (Some("192.0.2.1"), Some(50_000.0)));
    assert_eq!((silent.rows[0].trial.value, &silent.rows[0].trial.verdicts[..]), (None, &[Verdict::Loss][..]));

    let report = "Start: 2026-11-24T13:42:34+0000
HOST: vm                          Loss%   Snt   Last   Avg  Best  Wrst StDev
  1.|-- 192.0.2.1                  0.0%    10    0.3   0.4   0.3   0.6   0.1
  2.|-- ???                       100.0    10    0.0   0.0   0.0   0.0   0.0
  3.|-- far.example (192.0.2.7)   10.0%    10    9.9  12.5   9.8  20.1   3.0
";
    let path = only(report).path.unwrap();
    let hops = path.hops.unwrap();
    let seen: Vec<_> = hops.iter().map(|hop| (hop.hop, hop.address.as_deref(), hop.rtt_ns)).collect();
    let expected = [(1, Some("192.0.2.1"), Some(400_000)), (2, None, None), (3, Some("192.0.2.7"), Some(12_500_000))];
    assert_eq!((seen.as_slice(), path.peer.as_str()), (&expected[..], "192.0.2.7"));
}
