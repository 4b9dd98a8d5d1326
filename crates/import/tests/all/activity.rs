//! Listings of a host's activity, as sysstat 12.6 and iproute2 6.1 printed them.
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use import::{Imported, ListingSource, TextReading, assemble, read};
use model::{Observed, RunKind, SeriesLine};

fn reading(name: &str) -> TextReading {
    let path = format!("{}/tests/data/{name}", env!("CARGO_MANIFEST_DIR"));
    read(&std::fs::read(path).unwrap(), None).unwrap()
}

fn only(name: &str) -> Imported {
    let TextReading { imported, refused } = reading(name);
    assert_eq!(refused, [], "{name}");
    let [one] = <[Imported; 1]>::try_from(imported).unwrap();
    assert_eq!(one.kind, RunKind::Environment, "{name}");
    one
}

fn observed(imported: &Imported) -> &Observed {
    imported.passes[0].near.observed.as_ref().unwrap()
}

/// The values of a series.
fn series<'a>(imported: &'a Imported, name: &str) -> &'a SeriesLine {
    let lines = &observed(imported).series.as_ref().unwrap().lines;
    lines.iter().find(|line| line.name == name).unwrap_or_else(|| panic!("{name} is not in {lines:?}"))
}

fn is_near(line: &SeriesLine, expected: &[f64]) {
    let values: Vec<f64> = line.values.iter().map(|value| value.unwrap()).collect();
    let near = values.len() == expected.len() && values.iter().zip(expected).all(|(a, b)| (a - b).abs() <= b * 1e-9);
    assert!(near, "{line:?} is not {expected:?}");
}

#[test]
fn interfaces_processors_and_tcp_of_sar() {
    let interfaces = only("sar_dev.txt");
    assert_eq!((interfaces.tool.as_str(), interfaces.near.kernel.as_deref()), ("sysstat", Some("6.18.44")));
    assert_eq!((interfaces.near.hostname.as_deref(), interfaces.near.cores), (Some("host"), Some(2)));
    let seen = observed(&interfaces);
    assert_eq!(
        (seen.window_ns, &seen.series.as_ref().unwrap().at_ns[..]),
        (3_000_000_000, &[1, 2, 3].map(|s| s * 1_000_000_000)[..])
    );
    // kB are 1024 bytes.
    let bytes = series(&interfaces, "dev.lo.rx_bytes");
    assert_eq!(bytes.unit, "B/s");
    is_near(bytes, &[23_847.56 * 1024.0, 24_245.02 * 1024.0, 24_486.85 * 1024.0]);
    is_near(series(&interfaces, "dev.lo.tx_packets"), &[779.0, 767.33, 765.0]);
    assert!(
        interfaces.notes.iter().any(|note| note.starts_with("lo, means of 3 readings: received 198 Mbit/s")),
        "{:?}",
        interfaces.notes
    );
    assert!(!interfaces.notes.iter().any(|note| note.starts_with("eth0")), "an interface without traffic");

    let processors = only("sar_u.txt");
    is_near(series(&processors, "cpu.all.user"), &[0.5578, 0.5327, 0.4677]);
    assert!(processors.notes[0].contains("user 52 %, system 18 %"), "{:?}", processors.notes);
    let tcp = only("sar_tcp.txt");
    is_near(series(&tcp, "snmp.Tcp.RetransSegs"), &[0.0, 1.0, 0.0]);
    is_near(series(&tcp, "snmp.Tcp.OutSegs"), &[789.0, 774.0, 765.0]);
}

#[test]
fn several_tables_at_once_each_core_and_mpstat() {
    let several = only("sar_multi.txt");
    for name in ["cpu.all.softirq", "dev.eth0.rx_bytes", "dev.lo.rx_fifo_errors", "snmp.Tcp.InSegs"] {
        assert_eq!(series(&several, name).values.len(), 2, "{name}");
    }
    for (name, user) in [("sar_cores.txt", [0.2000, 0.8600]), ("mpstat.txt", [0.3333, 0.2353])] {
        let cores = only(name);
        for (core, expected) in (0..).zip(user) {
            assert_eq!(
                series(&cores, &format!("cpu.{core}.user")).values.last(),
                Some(&Some(expected * 0.01 / 0.01)),
                "{name}"
            );
        }
    }
    // Memory is no table that is imported, and its columns are named.
    let memory = only("sar_mem.txt");
    assert!(memory.unknown.contains(&"kbmemfree".to_owned()), "{:?}", memory.unknown);
    assert_eq!(series(&memory, "cpu.all.idle").values.len(), 2);
}

#[test]
fn mpstat_without_an_interval_is_one_reading() {
    for name in ["mpstat_once.txt", "mpstat_once.json"] {
        let once = only(name);
        is_near(series(&once, "cpu.all.user"), &[0.3257]);
        let seen = observed(&once);
        assert_eq!((seen.window_ns, &seen.series.as_ref().unwrap().at_ns[..]), (0, &[0][..]), "{name}");
        assert!(once.notes.iter().any(|note| note.contains("means since the host started")), "{:?}", once.notes);
        assert!(once.notes[0].contains("the only reading: user 33 %"), "{:?}", once.notes);
    }
}

#[test]
fn a_prompt_below_a_table_is_no_row() {
    let text = std::fs::read_to_string(format!("{}/tests/data/mpstat_once.txt", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let reading = read(format!("{text}user@host:~#\n").as_bytes(), None).unwrap();
    assert_eq!((reading.imported.len(), reading.refused.len()), (1, 0), "{:?}", reading.refused);
}

#[test]
fn mpstats_json_has_the_series_of_its_text() {
    let json = only("mpstat.json");
    assert_eq!((json.near.hostname.as_deref(), json.near.cores), (Some("host"), Some(2)));
    assert_eq!(observed(&json).series.as_ref().unwrap().at_ns, [1_000_000_000, 2_000_000_000]);
    let text = std::fs::read_to_string(format!("{}/tests/data/mpstat.json", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let document: serde_json::Value = serde_json::from_str(&text).unwrap();
    let readings = document["sysstat"]["hosts"][0]["statistics"].as_array().unwrap();
    let idle: Vec<f64> = readings.iter().map(|one| one["cpu-load"][2]["idle"].as_f64().unwrap() * 0.01).collect();
    is_near(series(&json, "cpu.1.idle"), &idle);
    let refused = |text: &str| read(text.as_bytes(), None).unwrap().refused.remove(0).to_string();
    let share = readings[0]["cpu-load"][0]["idle"].as_f64().unwrap();
    let printed = format!("\"idle\": {share:.2}}}");
    assert!(refused(&text.replacen(&printed, "\"idle\": 150.00}", 1)).contains("of all add up to"), "{printed}");
    assert!(refused(&text.replacen(&printed, "\"idle\": -1.00}", 1)).contains("idle of all is -1"));
    let at = |second: usize| readings[second]["timestamp"].as_str().unwrap();
    assert!(refused(&text.replace(at(1), at(0))).contains("is not later than the previous reading"));
}

#[test]
fn sadf_states_its_intervals_and_has_interfaces() {
    let text = r#"{"sysstat": {"hosts": [{"nodename": "host", "release": "6.1.0", "machine": "x86_64", "number-of-cpus": 2,
        "file-date": "2026-07-11", "statistics": [
        {"timestamp": {"date": "2026-07-11", "time": "10:00:01", "utc": 1, "interval": 60},
         "cpu-load": [{"cpu": "all", "user": 1.5, "nice": 0.0, "system": 0.5, "iowait": 0.0, "steal": 0.0, "idle": 98.0}],
         "memory": {"memfree": 1000},
         "network": {"net-dev": [{"iface": "eth0", "rxpck": 10.5, "txpck": 5.25, "rxkB": 2.0, "txkB": 1.0}]}},
        {"timestamp": {"date": "2026-07-11", "time": "10:01:01", "utc": 1, "interval": 60},
         "cpu-load": [{"cpu": "all", "user": 2.5, "nice": 0.0, "system": 0.7, "iowait": 0.0, "steal": 0.0, "idle": 96.8}],
         "network": {"net-dev": [{"iface": "eth0", "rxpck": 11.5, "txpck": 5.25, "rxkB": 3.0, "txkB": 1.0}]}}]}]}}"#;
    let reading = read(text.as_bytes(), None).unwrap();
    assert_eq!(reading.refused, []);
    let one = &reading.imported[0];
    assert_eq!(observed(one).series.as_ref().unwrap().at_ns, [60_000_000_000, 120_000_000_000]);
    is_near(series(one, "dev.eth0.rx_bytes"), &[2_048.0, 3_072.0]);
    is_near(series(one, "cpu.all.system"), &[0.005, 0.007]);
    assert_eq!(one.unknown, ["memory"]);
}

#[test]
fn clocks_of_twelve_hours_midnight_and_a_restart() {
    let head = "Linux 5.4.0 (host)  03/04/20  _x86_64_  (8 CPU)\n\n";
    let table = |rows: &str| {
        format!("{head}11:59:59 PM     CPU     %user     %nice   %system   %iowait    %steal     %idle\n{rows}")
    };
    let row = |clock: &str| format!("{clock}     all     10.00      0.00      5.00      0.00      0.00     85.00\n");
    let average = row("Average:");
    let night = table(&format!("{}{}{average}", row("12:00:00 AM"), row("12:00:01 AM")));
    let reading = read(night.as_bytes(), None).unwrap();
    assert_eq!(reading.refused, []);
    assert_eq!(observed(&reading.imported[0]).series.as_ref().unwrap().at_ns, [1_000_000_000, 2_000_000_000]);
    let again = "12:00:09 AM     CPU     %user     %nice   %system   %iowait    %steal     %idle\n";
    let restarted = table(&format!(
        "{}\n12:00:05 AM       LINUX RESTART\t(8 CPU)\n\n{again}{}{average}",
        row("12:00:00 AM"),
        row("12:00:10 AM")
    ));
    let reading = read(restarted.as_bytes(), None).unwrap();
    assert_eq!((reading.imported.len(), reading.refused.len()), (2, 0), "{:?}", reading.refused);
}

#[test]
fn rows_of_sar_that_are_cut_or_contradict_are_refused_with_their_line() {
    let text = std::fs::read_to_string(format!("{}/tests/data/sar_u.txt", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let refused = |text: &str| {
        let reading = read(text.as_bytes(), None).unwrap();
        (reading.refused.iter().map(|part| (part.line, part.to_string())).collect::<Vec<_>>(), reading.imported.len())
    };
    let (reasons, kept) = refused(&text.replace("     55.78     34.67", "     65.78     34.67"));
    assert!(
        kept == 1 && reasons.len() == 1 && reasons[0].0 == 4 && reasons[0].1.contains("add up to 110.00 %"),
        "{reasons:?}"
    );
    let (reasons, _) = refused(&text.replace("21:06:28", "21:06:26"));
    assert!(
        reasons.iter().any(|(line, reason)| *line == 5 && reason.contains("earlier than in the row above")),
        "{reasons:?}"
    );
    let (reasons, _) = refused(&text.replace("21:06:28", "21:06:27"));
    assert!(reasons.iter().any(|(_, reason)| reason.contains("a second value of cpu.all.user")), "{reasons:?}");
    // In the middle of the third row.
    let (reasons, kept) = refused(&text[..text.find("46.77").unwrap() + 5]);
    assert!(kept == 1 && reasons[0].0 == 6 && reasons[0].1.contains("1 numbers, but the table has 6"), "{reasons:?}");
    let (reasons, kept) = refused(&text[..text.find("21:06:29").unwrap()]);
    assert!(kept == 1 && reasons.len() == 1 && reasons[0].1.contains("ends without averages"), "{reasons:?}");
}

#[test]
fn counters_of_nstat_as_text_and_as_json() {
    let text = only("nstat.txt");
    let counters = &observed(&text).counters;
    assert_eq!((counters["snmp.Tcp.RetransSegs"], counters["snmp.Tcp.OutSegs"]), (1, 9_532));
    assert_eq!((counters["netstat.TcpExt.DelayedACKLost"], counters["snmp6.Ip6OutOctets"]), (24, 880));
    assert_eq!(observed(&text).grew("snmp.Udp.RcvbufErrors"), Some(0), "what is not listed did not change");
    let json = only("nstat_a.json");
    assert_eq!(observed(&json).counters["snmp.Ip.InReceives"], 14_758);
    let quiet = read(b"{\"kernel\":{}}\n\n", None).unwrap();
    assert_eq!((quiet.imported.len(), quiet.refused.len()), (1, 0));
    assert!(quiet.imported[0].notes[0].starts_with("0 counters changed"));
}

#[test]
fn lines_of_nstat_that_are_cut_or_contradict_are_refused() {
    let text = "#kernel\nIpInReceives                    14747              0.0\nTcpOutSegs                      9532               0.0\n";
    let refused = |text: &str| read(text.as_bytes(), None).unwrap().refused;
    let cut = refused(&text[..text.len() - 5]);
    assert!(cut[0].line == 3 && cut[0].to_string().contains("2 columns instead of 3"), "{cut:?}");
    let twice = refused(&format!("{text}TcpOutSegs    9533    0.0\n"));
    assert!(twice[0].line == 4 && twice[0].to_string().contains("9532 in an earlier line and 9533 here"), "{twice:?}");
    let unknown = refused(&text.replace("TcpOut", "TzpOut"));
    assert!(unknown[0].to_string().contains("'TzpOutSegs' is not a counter"), "{unknown:?}");
    let json = read(b"{\"kernel\":{\"TcpOutSegs\":1.5,\"TcpInSegs\":2}}", None).unwrap();
    assert!(
        json.imported.len() == 1 && json.refused[0].to_string().contains("TcpOutSegs: 1.5 is not an integer"),
        "{json:?}"
    );
}

#[test]
fn connections_of_ss_with_and_without_memory_in_one_line_and_in_two() {
    for (name, connections) in [("ss_ti.txt", 4), ("ss_tin.txt", 4), ("ss_tmi.txt", 4), ("ss_tOin.txt", 4)] {
        let listing = only(name);
        assert_eq!(listing.rows.len(), connections, "{name}");
        let row = &listing.rows[1];
        let flow = &row.trial.near.flows[0];
        let socket = &flow.socket;
        assert_eq!(
            (socket.local.as_deref(), socket.peer.as_deref()),
            (Some("127.0.0.1:48294"), Some("127.0.0.1:7301")),
            "{name}"
        );
        assert_eq!((socket.cc.as_deref(), socket.mss, socket.wscale), (Some("bbr"), Some(65_483), Some((10, 10))));
        assert_eq!(
            (socket.retransmits, socket.bytes_retransmitted, socket.min_rtt_ns),
            (Some(1), Some(106), Some(4_000))
        );
        // The first one is of a moment earlier.
        let (sent, rtt_ns) = if name == "ss_ti.txt" { (49_676_431, 282_000.0) } else { (49_807_503, 256_000.0) };
        assert_eq!((flow.bytes_sent, row.figures["busy_ns"], row.figures["rtt_ns"]), (sent, 16e6, rtt_ns));
        assert_eq!((flow.tcp[0].cwnd, flow.tcp[0].mss), (18, 65_483));
        // -n prints whole numbers, otherwise three digits.
        assert!((row.figures["delivery_bps"] / 104.77e9 - 1.0).abs() < 3e-3, "{:?}", row.figures);
        let remark = "127.0.0.1:48294 to 127.0.0.1:7301: RTT ";
        assert!(row.remarks[0].starts_with(remark) && row.remarks[0].ends_with(", 1 segment retransmitted"), "{row:?}");
        let memory = name == "ss_tmi.txt";
        assert_eq!(socket.sndbuf, memory.then_some(3_939_840), "{name}");
        assert_eq!(row.trial.value, None, "nothing was measured");
        let run = assemble(listing, &ListingSource::default(), &[]);
        assert_eq!((run.outcomes.len(), run.outcomes[0].summary.goodput_bps), (4, None));
    }
}

#[test]
fn connections_of_ss_that_are_cut_or_contradict_are_refused() {
    let text = std::fs::read_to_string(format!("{}/tests/data/ss_tin.txt", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let refused = |text: &str| {
        let reading = read(text.as_bytes(), None).unwrap();
        (reading.refused, reading.imported.iter().map(|one| one.rows.len()).sum::<usize>())
    };
    let last = text.rfind("\n\t").unwrap();
    let (cut, kept) = refused(&text[..last]);
    assert!(kept == 3 && cut[0].to_string().contains("has no details"), "{cut:?}");
    let (wrong, kept) = refused(&text.replace("bytes_acked:49807398", "bytes_acked:59807398"));
    assert!(
        kept == 3 && wrong[0].line == 4 && wrong[0].to_string().contains("bytes_acked 59807398 contradicts bytes_sent"),
        "{wrong:?}"
    );
    let (wrong, _) = refused(&text.replace("rtt:0.256/0.318", "rtt:0.256/"));
    assert!(wrong[0].to_string().contains("'rtt:0.256/' has no number"), "{wrong:?}");
    // Without its column of states, of a filter; a listener has no connection.
    let filtered = "Recv-Q Send-Q Local Address:Port Peer Address:Port Process\n0 0 192.0.2.1:22 192.0.2.2:50000\n\t ts sack cubic wscale:7,7 rto:204 \
                    rtt:3.5/1 mss:1448 cwnd:10 ssthresh:7 bytes_sent:10 bytes_acked:10\nLISTEN 0 128 0.0.0.0:22 0.0.0.0:*\n\t cubic cwnd:10\n";
    let reading = read(filtered.as_bytes(), None).unwrap();
    let socket = &reading.imported[0].rows[0].trial.near.flows[0].socket;
    assert_eq!(
        (&socket.negotiated[..], socket.cc.as_deref(), reading.refused.len()),
        (&["timestamps", "sack", "wscale"].map(str::to_owned)[..], Some("cubic"), 0)
    );
}

#[test]
fn prose_is_no_listing_of_activity() {
    for name in ["sar", "nstat", "ss"] {
        let text = "At 21:06:26 the CPU was busy.\n#kernel panic\nESTAB is a state, 0 0 a:1 b:2\nIFACE eth0\n";
        let reading = (import::format(name).unwrap().read)(text);
        assert!(reading.imported.is_empty(), "{name}: {reading:?}");
    }
}

#[test]
fn windows_counters_are_series_of_its_host() {
    let typeperf = only("windows-typeperf.csv");
    assert_eq!((typeperf.tool.as_str(), typeperf.near.hostname.as_deref()), ("typeperf", Some("W2K")));
    // Over midnight, in the zone of the host, which typeperf does not print.
    assert_eq!(typeperf.measured_unix_ns, None);
    let at_ns = &observed(&typeperf).series.as_ref().unwrap().at_ns;
    assert_eq!(at_ns[..], [1_000_000_000, 2_000_000_000, 3_016_000_000]);
    is_near(series(&typeperf, "cpu.all.idle"), &[0.96875, 0.1875, 0.203125]);
    is_near(series(&typeperf, "cpu.all.softirq"), &[0.0, 0.40625, 0.390625]);
    // Privileged time without interrupts and DPCs.
    is_near(series(&typeperf, "cpu.all.system"), &[0.015625, 0.2578125, 0.2734375]);
    is_near(series(&typeperf, "stat.intr"), &[1034.281, 18_240.12, 18_111.5]);
    is_near(series(&typeperf, "dev.3Com Gigabit Server NIC [3C996].tx_bytes"), &[980.5, 93_500_000.25, 93_100_000.5]);
    is_near(series(&typeperf, "snmp.Tcp.RetransSegs"), &[0.0, 0.0, 12.5]);
    assert_eq!(typeperf.unknown, ["Memory\\Pages/sec"]);
    assert!(typeperf.notes.iter().any(|note| note.contains("idle 45 %")), "{:?}", typeperf.notes);

    let log = only("windows-logman.csv");
    assert_eq!(log.measured_unix_ns, Some((1_799_662_391 - 15) * 1_000_000_000), "10:13:11 UTC less an interval");
    assert_eq!(series(&log, "cpu.0.idle").values, [None, Some(0.905), Some(0.105)]);
    assert_eq!(series(&log, "snmp.Tcp.OutSegs").values, [None, Some(107.5), Some(207.5)]);
}

#[test]
fn broken_windows_counters_are_refused_by_line() {
    let text = |rows: &str| format!("\"(PDH-CSV 4.0)\",\"\\\\A\\Processor(_Total)\\% Idle Time\"\r\n{rows}");
    let refused = |rows: &str| {
        let reading = read(text(rows).as_bytes(), None).unwrap();
        reading.refused.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    };
    let first = "\"06/14/2002 10:15:01.593\",\"3.1\"\r\n";
    assert_eq!(refused(first), "");
    assert!(refused("").contains("a head without rows"), "{}", refused(""));
    for (row, reason) in [
        ("\"06/14/2002 10:15:02.593\",\"3,1\"", "'3,1' is not a number"),
        ("\"06/14/2002 10:15:02.593\",\"3.1\",\"4\"", "3 columns, but the table has 2"),
        ("\"14/06/2002 10:15:02.593\",\"3.1\"", "is not a time"),
        ("\"06/14/2002 10:15:01.593\",\"3.1\"", "not later than the previous reading"),
        ("\"06/14/2002 10:15:02.593\",\"310\"", "add up to 310 %"),
    ] {
        let said = refused(&format!("{first}{row}\r\n"));
        assert!(said.contains(reason), "{row}: {said}");
    }
}
