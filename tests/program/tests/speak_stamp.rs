//! STAMP and TWAMP Light: our sender and our reflector, with each other over ways that differ, and with an independent program.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use std::fs;
use std::net::UdpSocket;
use std::process::Command;
use std::time::Duration;

use model::OneWay;
use program::process::{Process, within};
use program::{Agent, Doc, Sandbox, binary, eventually, skip};
use serde_json::{Value, json};

fn free_port() -> String {
    UdpSocket::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string()
}

fn one_way_of(doc: &Doc) -> &OneWay {
    doc.summary().one_way.as_ref().unwrap()
}

#[test]
fn delays_of_each_direction_are_measured_kept_and_shown() {
    let (sandbox, port) = (Sandbox::new(), free_port());
    let agent = Agent::with(&["--speak", &format!("stamp={port}:stateful")]);
    let host = format!("127.0.0.1:{port}");
    let flags =
        ["--speak", "stamp", "--time", "200ms", "--rate", "3000/s", "--trials", "3", "--quiet", "--name", "ways"];
    let doc = sandbox.measure(&[&["rr", &host][..], &flags].concat());
    for trial in doc.trials() {
        assert!(trial.ledger.balanced && (100..=601).contains(&trial.near.transactions), "{trial:?}");
        let one_way = trial.near.one_way.as_ref().unwrap();
        // Both ends have the same clock.
        assert!(
            one_way.outbound.min_ns >= 0 && one_way.return_trip.min_ns >= 0 && one_way.offset_ns.0 <= 0,
            "{one_way:?}"
        );
        let (rtt, both) = (trial.near.rtt.as_ref().unwrap(), one_way.outbound.mean_ns + one_way.return_trip.mean_ns);
        assert!((both - rtt.mean_ns).abs() < rtt.mean_ns * 0.05 + 20_000.0, "{both} {rtt:?}");
    }
    let all: u64 = doc.trials().iter().map(|trial| trial.near.transactions).sum();
    let one_way = one_way_of(&doc);
    assert_eq!(
        (one_way.outbound.count, one_way.lost_outbound, one_way.lost_return),
        (all, Some(0), Some(0)),
        "{one_way:?}"
    );
    assert!(all < 1000 || one_way.outbound.p99_ns.is_some(), "{one_way:?}");
    assert_eq!(
        doc.json["outcomes"][0]["summary"]["one_way"]["near_clock"],
        doc.json["outcomes"][0]["summary"]["one_way"]["far_clock"]
    );
    // A run like any other, out of the store and in a report.
    let shown = sandbox.run(&["show", "ways", "-v"]).ok().stdout;
    for words in [
        "The far end is a stateful reflector of STAMP",
        "\nOne-way delay\n- outbound: ",
        "\n- return: ",
        "\n- clocks: the near one ",
        "The median one-way delay is ",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    for file in ["report.html", "report.md"] {
        sandbox.run(&["report", "ways", "--output", file]).ok();
    }
    let [page, text] = ["report.html", "report.md"].map(|file| fs::read_to_string(sandbox.path(file)).unwrap());
    assert!(program::page::texts(&page).contains("\"outbound: ") && text.contains("## One-way delay"));
    eventually("the agent tells of its sender", || agent.log().contains("stamp counts"));
    for (flags, message) in [
        (&["--speak", "stamp", "--flows", "2"][..], "--flows with stamp"),
        (&["--speak", "stamp", "--block", "43"], "44 to 65507 bytes"),
        (&["--speak", "stamp", "--dscp", "46"], "--dscp at the far end with stamp"),
        (&["--speak", "stamp", "--connect"], "crr over udp with stamp"),
    ] {
        let wrong = sandbox.run(&[&["rr", &host][..], flags].concat()).ended_with(2).message();
        assert!(wrong.contains(message), "{wrong}");
    }
    let silent =
        sandbox.run(&["rr", &format!("127.0.0.1:{}", free_port()), "--speak", "stamp", "--time", "100ms", "--quiet"]);
    assert!(silent.ended_with(3).message().contains("cannot reach stamp at 127.0.0.1:"));
}

/// 10 ms and one in ten lost on the way there, 30 ms back.
const UNEVEN: &str = r#"
[[host]]
name = "a"
[[host]]
name = "b"
[[link]]
between = ["a", "b"]
delay = "10ms"
loss = "10%"
[link.reverse]
delay = "30ms"
loss = "0%"
"#;

#[test]
fn directions_that_differ_are_distinguished() {
    if let Err(error) = lab::available() {
        return skip::skip("directions_that_differ_are_distinguished", &error.to_string());
    }
    let (sandbox, name) = (Sandbox::new(), format!("stamp-{}", std::process::id()));
    let file = sandbox.path("uneven.toml");
    fs::write(&file, UNEVEN).unwrap();
    let script = "ip netns exec $THRU_LAB-b \"$0\" serve --open --listen 0.0.0.0:7000 --speak stamp:stateful 2> serve.log & \
                  while ! grep -q 'speaking stamp' serve.log; do sleep 0.05; kill -0 $! || exit 9; done; \
                  \"$0\" rr b --speak stamp --rate 400/s --time 1s --trials 2 --block 200 --no-path --quiet --json run.json; \
                  code=$?; kill $!; wait; exit $code";
    let thru = binary::thru().display().to_string();
    let args = ["lab", "run", &file.display().to_string(), "--name", &name, "--", "sh", "-c", script, &thru];
    let ended = sandbox.run(&args);
    let doc = Doc::try_parse(&fs::read_to_string(sandbox.path("run.json")).unwrap()).expect(&ended.stderr);
    let (one_way, ms) = (one_way_of(&doc), 1_000_000);
    // Where a busy machine held the emulator up, the outcome says so, and its delays have no upper end.
    let late = doc.has(model::Verdict::EmulatorLate);
    ended.ended_with(if late { 8 } else { 0 });
    for (delays, least) in [(&one_way.outbound, 10 * ms), (&one_way.return_trip, 30 * ms)] {
        assert!(delays.min_ns >= least && (late || delays.p50_ns < least + 15 * ms), "{one_way:?}");
    }
    // One in ten of 800 there, and none back.
    assert!(
        one_way.lost_outbound.is_some_and(|lost| (30..200).contains(&lost)) && one_way.lost_return == Some(0),
        "{one_way:?}"
    );
    assert!(doc.has(model::Verdict::Loss), "{:?}", doc.summary().verdicts);
    assert!(
        doc.run.findings.iter().any(|finding| finding
            .statement
            .plain()
            .contains(" datagrams were lost outbound and 0 on the return path."))
    );
}

/// Sends requests that scapy lays out to the reflector at a port and prints what scapy reads in the replies; then reflects as a stateful
/// reflector in scapy's layout, on a port that it prints: of ten replies it loses one, and its clock is 5 s ahead of UTC to within 1/16 s.
const JUDGE: &str = r#"
import json, socket, sys, time
from fractions import Fraction
from scapy.contrib.stamp import *
def now(ahead=0):
    return Fraction(time.time_ns(), 10**9) + 2208988800 + ahead
link = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
link.settimeout(5)
link.setsockopt(socket.IPPROTO_IP, socket.IP_TTL, 61)
link.connect(("127.0.0.1", int(sys.argv[1])))
read = []
error = ErrorEstimate(S=1, scale=20, multiplier=3)
for seq in (7, 8):
    asked = STAMPSessionSenderTestUnauthenticated(seq=seq, ts=now(), err_estimate=error, ssid=515,
        tlv_objects=[STAMPTestTLV(flags=128, type=1, len=4, value=b"abcd")])
    link.send(bytes(asked))
    answer = link.recv(2048)
    told = STAMPSessionReflectorTestUnauthenticated(answer)
    read.append({
        "bytes": [len(bytes(asked)), len(answer)], "seq": told.seq, "seq_sender": told.seq_sender, "ssid": told.ssid,
        "same_time": told.ts_sender == STAMPSessionSenderTestUnauthenticated(bytes(asked)).ts,
        "error": [told.err_estimate_sender.S, told.err_estimate_sender.scale, told.err_estimate_sender.multiplier],
        "z": told.err_estimate.Z, "multiplier": told.err_estimate.multiplier, "mbz": [told.mbz1, told.mbz2],
        "order": bool(told.ts_sender <= told.ts_rx <= told.ts), "ttl": told.ttl_sender,
        "tlv": [[int(tlv.flags), tlv.type, tlv.value.decode()] for tlv in told.tlv_objects],
    })
print(json.dumps(read), flush=True)
mirror = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
mirror.bind(("127.0.0.1", 0))
print(mirror.getsockname()[1], flush=True)
count = {}
while True:
    datagram, peer = mirror.recvfrom(2048)
    came = now(5)
    asked = STAMPSessionSenderTestUnauthenticated(datagram)
    own = count.get(peer, 0)
    count[peer] = own + 1
    tlv = [[int(tlv.flags), tlv.type, tlv.len] for tlv in asked.tlv_objects]
    assert (asked.mbz, asked.err_estimate.Z, tlv) == (0, 0, [[128, 1, len(datagram) - 48]]), asked
    if own % 10 != 4:
        mirror.sendto(bytes(STAMPSessionReflectorTestUnauthenticated(
            seq=own, ts=now(5), err_estimate=ErrorEstimate(S=1, scale=20, multiplier=256 // 16 - 1), ssid=asked.ssid, ts_rx=came,
            seq_sender=asked.seq, ts_sender=Fraction(asked.getfieldval("ts"), 2**32),
            err_estimate_sender=asked.err_estimate, ttl_sender=64, tlv_objects=asked.tlv_objects)), peer)
"#;

#[test]
fn scapy_reads_and_writes_what_we_do() {
    let (sandbox, port) = (Sandbox::new(), free_port());
    let _agent = Agent::with(&["--speak", &format!("stamp={port}:stateful")]);
    let mut python = Command::new("python3");
    python.env("PYTHONPATH", binary::workspace().join("target/python")).args(["-c", JUDGE, &port]);
    let mut judge = Process::spawn(python);
    let lines = |judge: &Process| judge.stdout().lines().map(String::from).collect::<Vec<_>>();
    within(Duration::from_secs(20), "scapy has read", || lines(&judge).len() == 2 || judge.ended().is_some());
    if judge.stderr().contains("ModuleNotFoundError") {
        return skip::skip("scapy as judge", "python3 with the module scapy is not there: scripts/setup.sh test");
    }
    let said = lines(&judge);
    assert_eq!(said.len(), 2, "{}", judge.stderr());
    let read: Value = serde_json::from_str(&said[0]).unwrap();
    for (own, sent) in [(0, 7), (1, 8)] {
        let reply = &read[own];
        let expected = json!({
            "bytes": [52, 52], "seq": own, "seq_sender": sent, "ssid": 515, "same_time": true, "error": [1, 20, 3], "z": 0,
            "mbz": [0, 0], "order": true, "ttl": 61, "tlv": [[128, 1, "abcd"]], "multiplier": reply["multiplier"],
        });
        assert_eq!(*reply, expected, "{}", judge.stderr());
        assert!(reply["multiplier"].as_u64().is_some_and(|multiplier| multiplier > 0), "{reply}");
    }

    let flags = ["--speak", "stamp", "--count", "100", "--rate", "500/s", "--trials", "1", "--block", "64", "--quiet"];
    let doc = sandbox.measure(&[&["rr", &format!("127.0.0.1:{}", said[1])][..], &flags].concat());
    let one_way = one_way_of(&doc);
    assert_eq!((one_way.lost_outbound, one_way.lost_return), (Some(0), Some(10)), "{} {one_way:?}", judge.stderr());
    // Its clock is ahead: the way there seems long, and the way back ends before it begins.
    let second = 1_000_000_000;
    assert!(one_way.outbound.min_ns >= 5 * second && one_way.return_trip.p50_ns < -4 * second, "{one_way:?}");
    assert!(one_way.offset_ns.0 <= 5 * second && one_way.offset_ns.1 >= 5 * second, "{one_way:?}");
    assert!(one_way.far_clock.follows_utc && one_way.far_clock.error_ns == Some(3_662_110), "{one_way:?}");
    assert!(
        doc.trials()[0].near.rtt.as_ref().is_some_and(|rtt| rtt.p50_ns < second as u64),
        "{:?}",
        doc.trials()[0].near.rtt
    );
}
