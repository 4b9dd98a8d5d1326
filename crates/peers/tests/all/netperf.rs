//! netperf over real sockets: recordings of netperf and netserver against our other end, and our own pair.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use model::{Direction, EndOptions, Engine, Live, Pattern, Program, SendBy, Spec, Stop, TransportName};
use peers::{ProgramError, ProgramServer, Sides, TrialObserver, protocol};

use crate::common::{LIMITS, Served, everyone};

const BLOCK: usize = 656;
/// Offsets of the server's data port, of an error number and of the length.
const PORT_AT: usize = 52;
const ERROR_AT: usize = 4;
const LENGTH_AT: usize = 64;
/// The same for the classic test format.
const CLASSIC: u32 = 10;
const CLASSIC_LENGTH_AT: usize = 40;
const CLASSIC_REQUEST_PORT_AT: usize = 60;
const CLASSIC_PORT_AT: usize = 32;

/// The blocks of a recorded control connection of one test: the client's, and the server's two.
fn recorded(name: &str) -> (Vec<u8>, Vec<u8>) {
    let said = said(name);
    assert_eq!((said.0.len(), said.1.len()), (BLOCK, 2 * BLOCK), "{name}");
    said
}

/// The bytes of client and server on a recorded control connection.
fn said(name: &str) -> (Vec<u8>, Vec<u8>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../peer-wire/tests/data/netperf27_{name}.pcap"));
    let file = std::fs::read(path).unwrap();
    let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap()) as usize;
    let (mut at, mut said) = (24, (Vec::new(), Vec::new()));
    while at < file.len() {
        let packet = &file[at + 16..at + 16 + word(at + 8)];
        at += 16 + packet.len();
        let ip = &packet[14..];
        let length = usize::from(u16::from_be_bytes([ip[2], ip[3]]));
        let segment = &ip[usize::from(ip[0] & 15) * 4..length.min(ip.len())];
        let port = |at: usize| u16::from_be_bytes([segment[at], segment[at + 1]]);
        let payload = || &segment[usize::from(segment[12] >> 4) * 4..];
        match (ip[9], port(0), port(2)) {
            (6, 12_865, _) => said.1.extend_from_slice(payload()),
            (6, _, 12_865) => said.0.extend_from_slice(payload()),
            _ => {}
        }
    }
    said
}

fn word(block: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(block[at..at + 4].try_into().unwrap())
}

fn put(block: &mut [u8], at: usize, word: u32) {
    block[at..at + 4].copy_from_slice(&word.to_be_bytes());
}

/// Plays netserver's recorded answers with real data sockets. Returns the client's request and the number of
/// data bytes received.
fn play_netserver(name: &'static str, udp: bool, sends: bool) -> (SocketAddr, std::thread::JoinHandle<(Vec<u8>, u64)>) {
    let control = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = control.local_addr().unwrap();
    let (_, mut answers) = recorded(name);
    let player = std::thread::spawn(move || {
        let (mut line, _) = control.accept().unwrap();
        let mut request = vec![0; BLOCK];
        line.read_exact(&mut request).unwrap();
        let mut received = 0;
        let mut rest = vec![0; 1 << 16];
        if udp {
            let data = UdpSocket::bind("127.0.0.1:0").unwrap();
            data.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            put(&mut answers, PORT_AT, data.local_addr().unwrap().port().into());
            line.write_all(&answers[..BLOCK]).unwrap();
            let exchanges = word(&request, 104) == 6;
            while let Ok((count @ 1.., from)) = data.recv_from(&mut rest) {
                received += count as u64;
                if exchanges {
                    data.send_to(b"n", from).unwrap();
                }
            }
        } else {
            let data = TcpListener::bind("127.0.0.1:0").unwrap();
            put(&mut answers, PORT_AT, data.local_addr().unwrap().port().into());
            line.write_all(&answers[..BLOCK]).unwrap();
            let (mut data, _) = data.accept().unwrap();
            if sends {
                data.write_all(&vec![b'n'; 1 << 20]).unwrap();
                data.shutdown(Shutdown::Write).unwrap();
            }
            let exchanges = word(&request, 104) == 6;
            while let Ok(count @ 1..) = data.read(&mut rest) {
                received += count as u64;
                if exchanges {
                    data.write_all(&rest[..count]).unwrap();
                }
            }
        }
        line.write_all(&answers[BLOCK..]).unwrap();
        // The client half-closes, as netperf does.
        assert_eq!(line.read(&mut rest).unwrap(), 0);
        (request, received)
    });
    (address, player)
}

struct Recorder;

impl TrialObserver for Recorder {
    fn starting(&mut self, _: u64) {}
    fn live(&mut self, _: Live) {}
    fn stopped(&mut self) {}
}

fn measure(spec: &Spec, address: SocketAddr) -> Result<Sides, ProgramError> {
    protocol(Program::Netperf).measure(
        spec,
        &ProgramServer { host: &address.to_string(), login: None },
        &mut Recorder,
        &AtomicBool::new(false),
    )
}

fn brief(transport: &str, pattern: Pattern) -> Spec {
    let block = if pattern == Pattern::Stream { 1_000 } else { 1 };
    Spec { block, stop: Stop::TimeNs(50_000_000), ..Spec::new(transport, pattern) }
}

/// Words in which our request differs from netperf's: choices of the client, not of the protocol.
fn differing(ours: &[u8], theirs: &[u8]) -> Vec<usize> {
    (0..BLOCK).step_by(4).filter(|at| word(ours, *at) != word(theirs, *at)).collect()
}

#[test]
fn our_client_accepts_netservers_recording() {
    let reverse = Spec { direction: Direction::Reverse, stop: Stop::Bytes(1 << 20), ..brief("tcp", Pattern::Stream) };
    let cases = [
        ("TCP_STREAM", brief("tcp", Pattern::Stream), false),
        ("TCP_MAERTS", reverse, true),
        ("TCP_RR", Spec { stop: Stop::Transactions(100), ..brief("tcp", Pattern::Rr) }, false),
        ("UDP_STREAM", Spec { stop: Stop::Blocks(50), ..brief("udp", Pattern::Stream) }, false),
        ("UDP_RR", Spec { stop: Stop::Transactions(100), ..brief("udp", Pattern::Rr) }, false),
    ];
    for (name, spec, sends) in cases {
        let (theirs, answers) = recorded(name);
        let (address, player) = play_netserver(name, spec.transport == TransportName::Udp, sends);
        let sides = measure(&spec, address).unwrap_or_else(|error| panic!("{name}: {error}"));
        let (requested, received) = player.join().unwrap();
        // The kind of test: request type, protocol and direction.
        for at in [0, 96, 100, 104] {
            assert_eq!(word(&requested, at), word(&theirs, at), "{name}: word {at}");
        }
        let choices = [12, 16, 20, 24, 28, 36, 48, 52, 56, 60, 64, 88, 108, 120, 136];
        let odd: Vec<usize> = differing(&requested, &theirs).into_iter().filter(|at| !choices.contains(at)).collect();
        assert_eq!(odd, [0_usize; 0], "{name}");
        assert_eq!(sides.failure, None, "{name}");
        let near = &sides.near;
        assert_eq!(near.bytes_sent, received, "{name}");
        let bytes = u64::from(word(&answers, BLOCK + 8)) << 32 | u64::from(word(&answers, BLOCK + 12));
        assert_eq!(sides.far.bytes_received, bytes, "{name}: as netserver told");
        assert!(near.bytes_sent + near.bytes_received > 0, "{name}");
        if spec.pattern == Pattern::Rr {
            assert!(near.transactions == 100 && near.rtt.as_ref().is_some_and(|rtt| rtt.count > 0), "{name}: {near:?}");
        }
    }
}

#[test]
fn a_refusal_and_a_silence_are_reported() {
    let control = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = control.local_addr().unwrap();
    let player = std::thread::spawn(move || {
        let (mut line, _) = control.accept().unwrap();
        let mut block = [0; BLOCK];
        line.read_exact(&mut block).unwrap();
        put(&mut block, ERROR_AT, 998);
        line.write_all(&block).unwrap();
    });
    let error = measure(&brief("tcp", Pattern::Stream), address).unwrap_err().to_string();
    assert!(error.contains("998"), "{error}");
    player.join().unwrap();
}

fn start() -> Served {
    Served::of(Program::Netperf, "", LIMITS, everyone())
}

/// Plays netperf's recorded requests. Returns the server's answers before and after the data, and the number of
/// data bytes received.
fn play_netperf(served: &Served, name: &str, length: i32) -> (Vec<u8>, Vec<u8>, u64) {
    let (mut request, _) = recorded(name);
    // The recorded test took a second; a count ends at once.
    let classic = word(&request, 0) == CLASSIC;
    put(&mut request, if classic { CLASSIC_LENGTH_AT } else { LENGTH_AT }, length as u32);
    put(&mut request, if classic { CLASSIC_REQUEST_PORT_AT } else { 88 }, 0);
    let mut line = TcpStream::connect(served.address).unwrap();
    line.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    line.write_all(&request).unwrap();
    let (mut ready, mut counted) = (vec![0; BLOCK], vec![0; BLOCK]);
    line.read_exact(&mut ready).unwrap_or_else(|error| panic!("{name}: {error}: {}", served.log()));
    assert_eq!(word(&ready, ERROR_AT), 0, "{name}: {}", served.log());
    let mut place = served.address;
    place.set_port(word(&ready, if classic { CLASSIC_PORT_AT } else { PORT_AT }) as u16);
    let mut rest = vec![0; 1 << 16];
    let mut received = 0;
    let exchanges = word(&request, 104) == 6;
    if word(&request, 96) == 2 {
        let data = UdpSocket::bind("127.0.0.1:0").unwrap();
        data.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        for _ in 0..50 {
            data.send_to(if exchanges { b"n" } else { b"netperf\0" }, place).unwrap();
            if exchanges {
                received += data.recv_from(&mut rest).unwrap().0 as u64;
            }
        }
        for _ in 0..3 {
            data.send_to(&[], place).unwrap();
        }
    } else {
        let mut data = TcpStream::connect(place).unwrap();
        data.set_nodelay(true).unwrap();
        if classic || word(&request, 104) == 4 {
            data.write_all(&vec![b'n'; 1 << 20]).unwrap();
        }
        for _ in 0..if exchanges { 50 } else { 0 } {
            data.write_all(b"n").unwrap();
            data.read_exact(&mut rest[..1]).unwrap();
            received += 1;
        }
        if word(&request, 104) != 2 {
            data.shutdown(Shutdown::Write).unwrap();
        }
        while let Ok(count @ 1..) = data.read(&mut rest) {
            received += count as u64;
        }
    }
    line.read_exact(&mut counted).unwrap_or_else(|error| panic!("{name}: {error}: {}", served.log()));
    (ready, counted, received)
}

#[test]
fn our_server_accepts_netperfs_recording() {
    let served = start();
    for (name, length) in [("TCP_STREAM", 1), ("TCP_MAERTS", -500_000), ("TCP_RR", 1), ("UDP_STREAM", 1), ("UDP_RR", 1)]
    {
        let (ready, counted, came) = play_netperf(&served, name, length);
        let (_, theirs) = recorded(name);
        for (at, what) in [(12, "receives"), (24, "sends")] {
            assert_eq!(word(&ready, at) == u32::MAX, word(&theirs, at) == u32::MAX, "{name}: {what}");
        }
        let [received, sent] =
            [8, 24].map(|at| u64::from(word(&counted, at)) << 32 | u64::from(word(&counted, at + 4)));
        assert_eq!(sent, came, "{name}");
        let wanted = match name {
            "TCP_STREAM" => 1 << 20,
            "TCP_MAERTS" => 0,
            "UDP_STREAM" => 400,
            _ => 50,
        };
        assert_eq!(received, wanted, "{name}: {}", served.log());
        if name.ends_with("RR") {
            assert_eq!(word(&counted, 44), 50, "{name}: transactions");
        }
        if name == "TCP_MAERTS" {
            assert!(sent >= 500_000);
        }
        let elapsed = f32::from_bits(word(&counted, 48));
        assert!((0.0..2.0).contains(&elapsed), "{name}: {elapsed} s");
    }
}

#[test]
fn our_server_accepts_netperfs_tcp_sendfile() {
    let served = start();
    let (ready, counted, _) = play_netperf(&served, "TCP_SENDFILE", 1);
    let (_, theirs) = recorded("TCP_SENDFILE");
    assert_eq!(word(&ready, 0), word(&theirs, 0));
    // The words that netperf prints: bytes, calls and seconds.
    let bytes = f64::from_bits(u64::from(word(&counted, 8)) << 32 | u64::from(word(&counted, 12)));
    assert_eq!((bytes, word(&counted, 0)), (1_048_576.0, word(&theirs, BLOCK)));
    assert!(word(&counted, 16) > 0 && (0.0..2.0).contains(&f32::from_bits(word(&counted, 20))));
    assert!(word(&counted, 40) > 0 && word(&ready, 8) > 0);
}

#[test]
fn later_tests_of_a_connection_keep_nodelay_and_cpu_time() {
    let served = start();
    let (requests, theirs) = said("classic_table");
    let mut line = TcpStream::connect(served.address).unwrap();
    line.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut port = 0;
    for (test, request) in requests.chunks(BLOCK).enumerate() {
        let (mut request, theirs) = (request.to_vec(), &theirs[2 * test * BLOCK..]);
        // netperf copies the port and the flags from the previous answer.
        put(&mut request, 88, port);
        line.write_all(&request).unwrap();
        let (mut ready, mut counted) = (vec![0; BLOCK], vec![0; BLOCK]);
        line.read_exact(&mut ready).unwrap_or_else(|error| panic!("{test}: {error}: {}", served.log()));
        assert_eq!(word(&ready, ERROR_AT), 0, "{test}: {}", served.log());
        for (at, what) in [(32, "flags"), (36, "rate of a CPU")] {
            assert_eq!(word(&ready, at), word(theirs, at), "{test}: {what}");
        }
        assert!(port == 0 || port == word(&ready, PORT_AT), "{test}");
        port = word(&ready, PORT_AT);
        let mut place = served.address;
        place.set_port(port as u16);
        let mut data = TcpStream::connect(place).unwrap();
        data.write_all(&vec![b'n'; 1 << 20]).unwrap();
        data.shutdown(Shutdown::Write).unwrap();
        data.read_to_end(&mut Vec::new()).unwrap();
        line.read_exact(&mut counted).unwrap_or_else(|error| panic!("{test}: {error}: {}", served.log()));
        assert_eq!(word(&counted, 80), word(&theirs[BLOCK..], 80), "{test}: how CPU time was measured");
        assert!(word(&counted, 84) > 0, "{test}: CPUs");
        for at in [52, 56, 60, 64, 68, 72, 92] {
            let share = f32::from_bits(word(&counted, at));
            assert!((0.0..100.5).contains(&share), "{test}: {share} % at {at}");
        }
    }
}

#[test]
fn our_server_accepts_a_connection_per_transaction() {
    let served = start();
    let (mut request, _) = said("TCP_CRR");
    put(&mut request, LENGTH_AT, -20_i32 as u32);
    let mut line = TcpStream::connect(served.address).unwrap();
    line.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    line.write_all(&request).unwrap();
    let mut answer = vec![0; BLOCK];
    line.read_exact(&mut answer).unwrap();
    let (_, theirs) = said("TCP_CRR");
    for at in [0, ERROR_AT, 12, 16, 24, 28, 32, 36, 72, 76] {
        assert_eq!(word(&answer, at), word(&theirs, at), "word {at}");
    }
    let mut place = served.address;
    place.set_port(word(&answer, PORT_AT) as u16);
    for _ in 0..20 {
        let mut call = TcpStream::connect(place).unwrap();
        call.write_all(b"n").unwrap();
        let mut rest = Vec::new();
        // The server closes first.
        call.read_to_end(&mut rest).unwrap();
        assert_eq!(rest.len(), 1);
    }
    line.read_exact(&mut answer).unwrap_or_else(|error| panic!("{error}: {}", served.log()));
    assert_eq!((word(&answer, 12), word(&answer, 28), word(&answer, 44)), (20, 20, 20), "{}", served.log());
}

#[test]
fn our_client_opens_a_connection_per_transaction() {
    let control = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = control.local_addr().unwrap();
    let player = std::thread::spawn(move || {
        let (mut line, _) = control.accept().unwrap();
        let (mut request, mut answer) = (vec![0; BLOCK], said("TCP_CRR").1);
        line.read_exact(&mut request).unwrap();
        let data = TcpListener::bind("127.0.0.1:0").unwrap();
        put(&mut answer, PORT_AT, data.local_addr().unwrap().port().into());
        line.write_all(&answer).unwrap();
        for _ in 0..20 {
            let (mut call, _) = data.accept().unwrap();
            call.read_exact(&mut [0]).unwrap();
            call.write_all(b"n").unwrap();
        }
        // The recording ends before the counts: those of a test that differs in its connections alone.
        line.write_all(&recorded("TCP_RR").1[BLOCK..]).unwrap();
        assert_eq!(line.read(&mut [0]).unwrap(), 0);
        request
    });
    let sides = measure(&Spec { stop: Stop::Transactions(20), ..brief("tcp", Pattern::Crr) }, address).unwrap();
    let (requested, (theirs, _)) = (player.join().unwrap(), said("TCP_CRR"));
    assert_eq!((sides.failure, sides.near.transactions), (None, 20));
    for at in [0, 96, 100, 104] {
        assert_eq!(word(&requested, at), word(&theirs, at), "word {at}");
    }
    assert_eq!(word(&requested, 56), word(&theirs, 56) | 1, "ours asks for TCP_NODELAY as well");
}

#[test]
fn our_own_pair_agrees() {
    let served = start();
    let far = EndOptions { sndbuf: Some(1 << 18), rcvbuf: Some(1 << 18), ..EndOptions::default() };
    let reverse = Spec { direction: Direction::Reverse, stop: Stop::Bytes(1 << 21), ..brief("tcp", Pattern::Stream) };
    let cases = [
        Spec { block: 64 << 10, far, ..brief("tcp", Pattern::Stream) },
        Spec { stop: Stop::Bytes(100_000), ..brief("tcp", Pattern::Stream) },
        Spec { flows: 3, ..brief("tcp", Pattern::Stream) },
        Spec { engine: Engine { send: SendBy::Sendfile, ..Engine::default() }, ..brief("tcp", Pattern::Stream) },
        Spec { flows: 2, ..brief("tcp", Pattern::Rr) },
        Spec { warmup_ns: 20_000_000, ..brief("tcp", Pattern::Rr) },
        reverse,
        brief("tcp", Pattern::Rr),
        Spec { block: 100, reply: Some(3000), ..brief("tcp", Pattern::Rr) },
        Spec { stop: Stop::Transactions(20), ..brief("tcp", Pattern::Crr) },
        Spec { rate_bps: Some(50_000_000), ..brief("udp", Pattern::Stream) },
        Spec { block: 64, ..brief("udp", Pattern::Rr) },
    ];
    for spec in cases {
        let label = format!("{} {} {:?} {:?}", spec.transport, spec.pattern, spec.direction, spec.stop);
        let sides = measure(&spec, served.address).unwrap_or_else(|error| panic!("{label}: {error}: {}", served.log()));
        let (near, far) = (&sides.near, &sides.far);
        assert_eq!(sides.failure, None, "{label}");
        if spec.transport == TransportName::Tcp {
            assert_eq!((near.bytes_sent, near.bytes_received), (far.bytes_received, far.bytes_sent), "{label}");
        } else {
            assert!(far.bytes_received > 0 && far.bytes_received <= near.bytes_sent, "{label}: {far:?}");
        }
        if spec.pattern != Pattern::Stream {
            assert!(near.transactions > 0 && near.rtt.is_some(), "{label}: {near:?}");
        }
        if let Some(requested) = spec.far.rcvbuf {
            assert!(far.flows[0].socket.rcvbuf.is_some_and(|got| got >= requested), "{label}: {far:?}");
        }
    }
    // A bad client does not keep it from the next.
    let mut bad = TcpStream::connect(served.address).unwrap();
    bad.write_all(&[0x5a; BLOCK]).unwrap();
    let mut answer = [0; BLOCK];
    bad.read_exact(&mut answer).unwrap();
    assert_eq!(word(&answer, ERROR_AT), 998);
    measure(&brief("tcp", Pattern::Rr), served.address).unwrap();
}
