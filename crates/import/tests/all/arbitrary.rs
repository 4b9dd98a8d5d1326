//! Any bytes end in an import or in an error.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use import::{FORMATS, ListingSource, assemble, read};
use proptest::prelude::*;

/// Pieces that readers look for, so that arbitrary text gets past their first line.
const PIECES: [&str; 46] = [
    "TCP STREAM TEST to a\n",
    "OMNI Send TEST from a to b\nTHROUGHPUT=",
    " 10^6bits/sec\n",
    "UDP STREAM TEST to a\n",
    "     Bytes  Real s   CPU s Real-MBit/s  CPU-MBit/s\n",
    "\nl134217728 0.19 0.03 5706.0205 ",
    "\nnttcp-l: buflen=4, bufcnt=5, dataport=1/tcp\n",
    " 0: 1 bytes 3 times --> ",
    " Mbps in 9.96 usec\n",
    "PING a (b) 56(84) bytes of data.\n64 bytes: time=",
    "traceroute to a (b), 30 hops max\n 1 c 1 ms\n",
    "total amount transferred: 1\ntotal throughput: ",
    "net.ipv4.a = 5\n",
    "{\"start\":{\"test_start\":{\"protocol\":\"TCP\",\"blksize\":1e300,\"duration\":1}},\"end\":{\"sum_received\":",
    "Connecting to host a, port 1\n[  5]   0.00-1.00   sec  ",
    " MBytes  21.0 Mbits/sec    0             sender\n",
    "Client connecting to a, UDP port 1\n[  1] 0.0000-2.0000 sec  1.00 MBytes  ",
    " Mbits/sec  0.1 ms 1/2 (50%)  receiver\n[  1] Server Report:\n",
    "20261122142029,a,1,b,2,3,0.0-",
    ",262150,2097200,0.1,1,2,50,0\n",
    "2.3750 MB /   1.00 sec =   19.9223 Mbps 84 %TX 0 %RX 1 / 2 drop/pkt\n",
    "megabytes=1 real_seconds=1 rate_Mbps=8.388608 drop=1 pkt=",
    "nuttcp-r: 1.0000 MB in 1.00 real seconds = 1024.00 KB/sec = 8.3886 Mbps\n",
    "tcp_lat:\n    latency = ",
    " us\n    msg_size = 1 KiB (1,024)\n",
    "sockperf: \u{1b}[2;35m====> avg-latency=5.0 (std-dev=1)\nsockperf: ---> percentile 50.000 = ",
    " r  b   swpd   free   buff  cache   si   so    bi    bo   in   cs us sy id wa st\n 5 0 0 1 1 1 0 0 1 1 1 1 60 11 21 0 7 ",
    "{\"metadata\":{\"SERIES_META\":{}},\"x_values\":[0,1],\"results\":{\"TCP upload\":[",
    "Mbit/s\tA\tB\nA\t\t5\nB\t6\t",
    "\"MTU \\ system, Mbit/s\",A,B\n1500,5,6\n9000,",
    "Linux 6.1.0 (a) \t11/25/26 \t_x86_64_\t(2 CPU)\n\n",
    "21:06:26        CPU     %user   %system     %idle\n21:06:27        all     50.00     ",
    "21:06:26     IFACE   rxpck/s    rxkB/s\n11:06:27 PM   lo  1.00  ",
    "Average:        all  ",
    "#kernel\nTcpOutSegs  5  0.0\nTcpExtTW ",
    "{\"kernel\":{\"TcpOutSegs\":",
    "ESTAB 0 0 127.0.0.1:1 127.0.0.1:2\n\t ts cubic wscale:7,7 rto:204 rtt:1/2 mss:1448 cwnd:10 ",
    "bytes_acked:5 pacing_rate 1.5Gbps skmem:(r0,rb5,",
    "nttcp-1: send window size = 16384\nnttcp-l: received 20 bytes\n",
    "{\"sysstat\":{\"hosts\":[{\"statistics\":[{\"timestamp\":\"21:36:09\",\"cpu-load\":[{\"cpu\":\"all\",\"idle\":",
    "{\"report\":{\"hubs\":[{\"count\":1,\"host\":\"a\",\"Loss%\":0,\"Avg\":",
    "\n{\n",
    "sockperf: ====> avg-latency=5.0\nsockperf: Summary: Latency is 5.0 usec\n",
    "Server output:\n",
    "99999999999999999999 ",
    "0.00 ",
];

fn try_all(bytes: &[u8]) {
    for only in FORMATS.iter().map(Some).chain([None]) {
        if let Ok(reading) = read(bytes, only) {
            for imported in reading.imported {
                let rows = imported.run.is_none().then_some(imported.rows.len());
                let run = assemble(imported, &ListingSource::default(), &reading.refused);
                let trials: usize = run.outcomes.iter().map(|outcome| outcome.trials.len()).sum();
                assert!(rows.is_none_or(|rows| rows == trials), "every row is a trial");
            }
        }
    }
}

proptest! {
    #[test]
    fn bytes(bytes in prop::collection::vec(any::<u8>(), 0..600)) {
        try_all(&bytes);
    }

    #[test]
    fn pieces(parts in prop::collection::vec((0..PIECES.len(), "[ 0-9.:=\\na-f\"{}]{0,12}"), 0..12)) {
        let text: String = parts.iter().flat_map(|(piece, rest)| [PIECES[*piece], rest.as_str()]).collect();
        try_all(text.as_bytes());
    }

    #[test]
    fn cut_and_changed_records(name in 0..24usize, cut in any::<prop::sample::Index>(), place in any::<prop::sample::Index>(), byte: u8) {
        let names = ["1998-netperf.txt", "2012-nttcp.txt", "netpipe372_both.txt", "iperf312_udp.json",
            "2003-rapid-ping-traceroute.txt", "netperf27_UDP_STREAM.txt", "iperf312_bidir.txt", "iperf2_server.txt",
            "iperf2.csv", "nuttcp_verbose.txt", "qperf_loop.txt", "sockperf_pp.txt", "vmstat_tw.txt", "rrul.flent", "throughline_run.json", "sar_multi.txt",
            "mpstat.txt", "nstat.txt", "ss_tmi.txt", "2002-systems.csv", "mpstat.json", "mtr.json", "iperf312_server_output.txt", "windows-typeperf.csv"];
        let path = format!("{}/tests/data/{}", env!("CARGO_MANIFEST_DIR"), names[name]);
        let mut bytes = std::fs::read(path).unwrap();
        let place = place.index(bytes.len());
        bytes[place] = byte;
        bytes.truncate(cut.index(bytes.len()) + 1);
        try_all(&bytes);
    }
}
