//! Our iperf3 server under hostile clients: broken messages, wrong lengths, foreign streams, and the published
//! advisories against iperf3's server. The server keeps running and serves a valid client afterwards.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use model::{Live, Pattern, Program, Spec, SplitMix64, Stop};
use peers::{ProgramServer, TrialObserver, protocol};

use crate::common::{LIMITS, Served, one_by_one};

fn start() -> Served {
    Served::of(Program::Iperf3, "", LIMITS, one_by_one())
}

impl Served {
    /// A client whose cookie was accepted.
    fn client(&self) -> TcpStream {
        for _ in 0..500 {
            self.clients.set(self.clients.get() + 1);
            let mut socket = self.dial(&cookie(self.clients.get()));
            let mut answer = [0];
            socket.read_exact(&mut answer).unwrap();
            if answer[0] == 9 {
                return socket;
            }
            assert_eq!(answer[0], 0xff, "busy with the one before");
            std::thread::sleep(Duration::from_millis(10));
        }
        panic!("the machine's place was never given back: {}", self.log());
    }

    /// A stream of the last client.
    fn stream(&self) -> TcpStream {
        self.dial(&cookie(self.clients.get()))
    }

    /// A valid client measures after the server has noticed the end of the hostile one.
    fn serves_iperf3(&self) {
        let spec = Spec { stop: Stop::Bytes(1 << 20), ..Spec::new("tcp", Pattern::Stream) };
        let host = self.address.to_string();
        for _ in 0..500 {
            match protocol(Program::Iperf3).measure(
                &spec,
                &ProgramServer { host: &host, login: None },
                &mut Ignored,
                &AtomicBool::new(false),
            ) {
                Ok(sides) => {
                    assert_eq!((sides.near.bytes_sent, sides.far.bytes_received), (1 << 20, 1 << 20));
                    return;
                }
                Err(error) if error.to_string().contains("busy") => std::thread::sleep(Duration::from_millis(10)),
                Err(error) => panic!("{error}\n{}", self.log()),
            }
        }
        panic!("the machine's place was never given back: {}", self.log());
    }
}

struct Ignored;

impl TrialObserver for Ignored {
    fn starting(&mut self, _: u64) {}
    fn live(&mut self, _: Live) {}
    fn stopped(&mut self) {}
}

/// The cookie of client number `number`.
fn cookie(number: u32) -> Vec<u8> {
    format!("{number:036}\0").into_bytes()
}

fn framed(json: &str) -> Vec<u8> {
    [&(json.len() as u32).to_be_bytes(), json.as_bytes()].concat()
}

/// Everything that arrives until the server closes.
fn rest(mut socket: TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    let _ = socket.read_to_end(&mut bytes);
    bytes
}

#[test]
fn wrong_parameters_are_refused_and_the_server_keeps_running() {
    let served = start();
    let cases: [(&str, Vec<u8>); 9] = [
        // CVE-2023-38403: the allocation for a length near the end of its range overflowed.
        ("a length of all ones", vec![0xff; 4]),
        ("a length beyond the limit", 100_000_u32.to_be_bytes().to_vec()),
        // CVE-2024-53580: a value of an unexpected type.
        (
            "values of other types",
            framed(r#"{"tcp":true,"time":"x","parallel":{},"len":[],"num":null,"congestion":7,"omit":-1}"#),
        ),
        ("no object", framed("[1,2,3]")),
        ("no JSON", framed("{\"tcp\":tru")),
        ("no protocol", framed("{}")),
        ("streams beyond all bounds", framed(r#"{"tcp":true,"time":1,"parallel":1000000}"#)),
        ("blocks beyond all bounds", framed(r#"{"udp":true,"time":1,"parallel":1,"len":4294967295}"#)),
        ("depth", framed(&format!("{{\"tcp\":{}", "[".repeat(4000)))),
    ];
    for (what, bytes) in cases {
        let mut client = served.client();
        client.write_all(&bytes).unwrap();
        let answer = rest(client);
        assert_eq!(answer.first(), Some(&0xfe), "{what}: an error in iperf3's words");
    }
    served.serves_iperf3();
}

#[test]
fn a_login_that_cannot_be_is_no_harm() {
    let served = start();
    // CVE-2025-54349 and -54350: the decoded token overran a buffer or triggered an assertion.
    for token in ["", "AAAA", &"A".repeat(7000), "\u{0}\u{ff}", "===="] {
        let mut client = served.client();
        let json = serde_json::json!({"tcp": true, "time": 1, "parallel": 1, "authtoken": token});
        client.write_all(&framed(&json.to_string())).unwrap();
        let mut answer = [0];
        client.read_exact(&mut answer).unwrap();
        assert_eq!(answer[0], 10, "a server without keys ignores tokens");
        client.write_all(&[12]).unwrap();
        assert!(rest(client).is_empty());
    }
    served.serves_iperf3();
}

#[test]
fn stream_order_follows_connections_and_not_cookies() {
    let served = start();
    let mut client = served.client();
    client.write_all(&framed(r#"{"tcp":true,"time":1,"parallel":1,"bidirectional":true,"len":1000}"#)).unwrap();
    client.read_exact(&mut [0]).unwrap();
    let mut first = served.dial(b"");
    let mut second = served.stream();
    until_read(&second);
    first.write_all(&cookie(served.clients.get())).unwrap();
    let mut started = [0; 2];
    client.read_exact(&mut started).unwrap();
    assert_eq!(started, [1, 2]);
    // On the second one the server sends.
    second.read_exact(&mut [0; 5000]).unwrap();
    first.write_all(&[0; 5000]).unwrap();
    client.write_all(&[12]).unwrap();
    assert!(rest(first).is_empty());
    drop((second, client));
    served.serves_iperf3();
}

/// Waits until the server has read all that was sent to it: its socket's receive queue is empty (proc_net_tcp).
fn until_read(socket: &TcpStream) {
    let port = |address: std::net::SocketAddr| format!(":{:04X}", address.port());
    let (here, there) = (port(socket.local_addr().unwrap()), port(socket.peer_addr().unwrap()));
    let empty = |line: &str| {
        let mut columns = line.split_whitespace().skip(1);
        let (local, remote) = (columns.next()?, columns.next()?);
        let queues = columns.nth(1)?;
        (local.ends_with(&there) && remote.ends_with(&here)).then(|| queues.ends_with(":00000000"))
    };
    let read = || std::fs::read_to_string("/proc/net/tcp").unwrap().lines().find_map(empty) == Some(true);
    for _ in 0..2_000 {
        if read() {
            return;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    panic!("the server did not read the second cookie");
}

#[test]
fn messages_out_of_turn_end_only_the_test() {
    let served = start();
    let requested = framed(r#"{"tcp":true,"time":1,"parallel":2}"#);
    // Every byte while streams are expected, except the client's own terminate.
    for byte in (0..=255_u8).filter(|byte| *byte != 12).step_by(17) {
        let mut client = served.client();
        client.write_all(&requested).unwrap();
        client.read_exact(&mut [0]).unwrap();
        client.write_all(&[byte]).unwrap();
        assert!(rest(client).is_empty(), "byte {byte}");
    }
    // Foreign streams, one stream too many, and clients that disconnect at every step.
    let mut client = served.client();
    client.write_all(&requested).unwrap();
    client.read_exact(&mut [0]).unwrap();
    let unauthenticated = served.dial(b"this cookie belongs to nobody at all\0");
    assert_eq!(rest(unauthenticated), [0xff]);
    let _streams = [served.stream(), served.stream()];
    let mut started = [0; 2];
    client.read_exact(&mut started).unwrap();
    assert_eq!(started, [1, 2]);
    let _one_more = served.stream();
    // Results before the end of the test.
    client.write_all(&framed(r#"{"streams":[]}"#)).unwrap();
    rest(client);
    for cut in [0, 4, 10, requested.len()] {
        served.client().write_all(&requested[..cut]).unwrap();
    }
    // Half a cookie does not block other clients, nor does silence for long.
    let _halves: Vec<TcpStream> = (0..4).map(|_| served.dial(&cookie(0)[..20])).collect();
    served.serves_iperf3();
}

#[test]
fn wrong_results_are_refused() {
    let served = start();
    let good = r#""cpu_util_total":1,"cpu_util_user":1,"cpu_util_system":0,"sender_has_retransmits":0"#;
    let stream = r#""bytes":1,"retransmits":0,"jitter":0,"errors":0,"packets":0"#;
    for json in [
        "{}".to_owned(),
        format!("{{{good},\"streams\":[{{\"id\":99,{stream}}}]}}"),
        format!("{{{good},\"streams\":[{{\"id\":1,{stream}}},{{\"id\":1,{stream}}}]}}"),
        format!("{{{good},\"streams\":7}}"),
        "[".repeat(3000),
    ] {
        let mut client = served.client();
        client.write_all(&framed(r#"{"tcp":true,"time":1,"parallel":1}"#)).unwrap();
        client.read_exact(&mut [0]).unwrap();
        let mut stream = served.stream();
        client.read_exact(&mut [0; 2]).unwrap();
        stream.write_all(&[7; 1000]).unwrap();
        client.write_all(&[4]).unwrap();
        client.read_exact(&mut [0]).unwrap();
        client.write_all(&framed(&json)).unwrap();
        assert_eq!(rest(client).first(), Some(&0xfe), "{json}");
    }
    served.serves_iperf3();
}

/// Waits until both queues of a connection within this host are empty (proc(5), /proc/net/tcp: tx_queue:rx_queue): a test that ends
/// earlier ends without what a busy server has not read.
fn all_read(stream: &TcpStream) {
    let port = |address: SocketAddr| format!(":{:04X}", address.port());
    let ends = [port(stream.local_addr().unwrap()), port(stream.peer_addr().unwrap())];
    let deadline = Instant::now() + Duration::from_secs(20);
    loop {
        let table = std::fs::read_to_string("/proc/net/tcp").unwrap();
        let ours = table.lines().filter(|line| {
            let words: Vec<&str> = line.split_whitespace().take(3).collect();
            words.len() == 3 && ends.iter().all(|end| words[1..].iter().any(|word| word.ends_with(end.as_str())))
        });
        let queued = |line: &str| line.split_whitespace().nth(4).is_none_or(|queues| queues != "00000000:00000000");
        if !ours.into_iter().any(queued) {
            return;
        }
        assert!(Instant::now() < deadline, "the server does not read");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn more_bytes_than_a_block_are_counted_without_harm() {
    let served = start();
    // CVE-2025-54351: with --skip-rx-copy a receive could return more bytes than the buffer has.
    for (length, flag) in [(1, "1"), (1000, "true"), (131_072, "0")] {
        let mut client = served.client();
        let requested = format!(r#"{{"tcp":true,"time":1,"parallel":1,"len":{length},"skip_rx_copy":{flag}}}"#);
        client.write_all(&framed(&requested)).unwrap();
        client.read_exact(&mut [0]).unwrap();
        let mut stream = served.stream();
        client.read_exact(&mut [0; 2]).unwrap();
        stream.write_all(&vec![7; 1 << 20]).unwrap();
        all_read(&stream);
        drop(stream);
        client.write_all(&[4]).unwrap();
        client.read_exact(&mut [0]).unwrap();
        let counts = r#""bytes":1048576,"retransmits":0,"jitter":0,"errors":0,"packets":0"#;
        let totals = r#""cpu_util_total":1,"cpu_util_user":1,"cpu_util_system":0,"sender_has_retransmits":0"#;
        client.write_all(&framed(&format!(r#"{{{totals},"streams":[{{"id":1,{counts}}}]}}"#))).unwrap();
        let mut frame = [0; 4];
        client.read_exact(&mut frame).unwrap();
        let mut reported = vec![0; u32::from_be_bytes(frame) as usize];
        client.read_exact(&mut reported).unwrap();
        let reported: serde_json::Value = serde_json::from_slice(&reported).unwrap();
        assert_eq!(reported.pointer("/streams/0/bytes"), Some(&1_048_576.into()), "{reported}");
        client.write_all(&[16]).unwrap();
        rest(client);
    }
    served.serves_iperf3();
}

#[test]
fn datagrams_of_other_clients_open_no_stream() {
    let served = start();
    let mut client = served.client();
    client.write_all(&framed(r#"{"udp":true,"time":1,"parallel":1,"len":1000,"bandwidth":1000000}"#)).unwrap();
    client.read_exact(&mut [0]).unwrap();
    let unauthenticated = UdpSocket::bind("127.0.0.2:0").unwrap();
    unauthenticated.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    unauthenticated.send_to(b"9876", served.address).unwrap();
    assert!(unauthenticated.recv(&mut [0; 8]).is_err(), "an address that is not the client's is not answered");
    let stream = UdpSocket::bind("127.0.0.1:0").unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    stream.send_to(&[1; 900], served.address).unwrap();
    stream.send_to(b"9876", served.address).unwrap();
    let mut answer = [0; 8];
    assert_eq!((stream.recv(&mut answer).unwrap(), &answer[..4]), (4, b"6789".as_slice()));
    client.read_exact(&mut [0; 2]).unwrap();
    // Invalid headers of all lengths.
    for length in 0..40 {
        stream.send_to(&vec![0xff; length], served.address).unwrap();
        stream.send_to(&vec![0; length], served.address).unwrap();
    }
    client.write_all(&[4]).unwrap();
    client.read_exact(&mut [0]).unwrap();
    drop(client);
    served.serves_iperf3();
}

#[test]
fn mutated_sessions_do_no_harm() {
    let served = start();
    let json =
        r#"{"tcp":true,"omit":0,"time":1,"num":0,"blockcount":0,"parallel":1,"len":131072,"client_version":"3.12"}"#;
    let good = [framed(json), vec![4], framed(r#"{"streams":[]}"#), vec![16]].concat();
    let mut random = SplitMix64::new(7);
    for _ in 0..150 {
        let mut bytes = good.clone();
        for _ in 0..=random.next_u64() % 4 {
            let at = (random.next_u64() as usize) % bytes.len();
            match random.next_u64() % 3 {
                0 => bytes[at] = random.next_u64() as u8,
                1 => bytes.truncate(at.max(1)),
                _ => bytes.insert(at, random.next_u64() as u8),
            }
        }
        let mut client = served.client();
        // The server's reaction appears as an error of the next call, or not at all.
        let _ = client.write_all(&bytes);
        drop(served.stream());
    }
    served.serves_iperf3();
}
