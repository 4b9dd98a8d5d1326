//! Simultaneous iperf3 tests at our server, and our client with servers that stop.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use model::{Direction, Live, Pattern, Program, Spec, Stop};
use peer_wire::iperf3::datagram::{Header, REPLY};
use peers::{ProgramError, ProgramServer, TrialObserver, protocol};

use crate::common::{LIMITS, Served, everyone, one_by_one};

/// A server's messages: open the streams, and start.
const CREATE_STREAMS: [u8; 1] = [10];
const STARTED: [u8; 2] = [1, 2];
const BUSY: [u8; 1] = [0xff];
/// A client's message that stops the test early.
const TERMINATE: [u8; 1] = [12];
const TCP: &str = r#"{"tcp":true,"time":1,"parallel":1}"#;
const UDP: &str = r#"{"udp":true,"time":1,"parallel":1,"len":1000,"bandwidth":1000000}"#;

fn start() -> Served {
    Served::of(Program::Iperf3, "", LIMITS, everyone())
}

impl Served {
    /// A connection with the cookie of this client.
    fn greets(&self, client: u32) -> TcpStream {
        self.dial(format!("{client:036}\0").as_bytes())
    }

    /// The control connection of this client, after its request.
    fn requests(&self, client: u32, json: &str) -> TcpStream {
        let mut socket = self.greets(client);
        assert_eq!(received(&mut socket), [9]);
        socket.write_all(&(json.len() as u32).to_be_bytes()).unwrap();
        socket.write_all(json.as_bytes()).unwrap();
        socket
    }
}

/// The next bytes.
fn received<const N: usize>(socket: &mut TcpStream) -> [u8; N] {
    let mut bytes = [0; N];
    socket.read_exact(&mut bytes).unwrap();
    bytes
}

/// Whether nothing arrives for a moment.
fn is_silent(socket: &TcpStream) -> bool {
    socket.set_read_timeout(Some(Duration::from_millis(200))).unwrap();
    let silent = socket.peek(&mut [0]).is_err();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    silent
}

/// A UDP stream that the server has answered.
fn datagrams(served: &Served) -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    socket.send_to(b"9876", served.address).unwrap();
    assert_eq!(socket.recv(&mut [0; 8]).unwrap(), 4);
    socket
}

#[test]
fn streams_that_a_test_does_not_want_are_turned_away() {
    let served = start();
    let mut client = served.greets(1);
    assert_eq!(received(&mut client), [9]);
    assert_eq!(received(&mut served.greets(1)), BUSY, "before it is told to open them");
    client.write_all(&(TCP.len() as u32).to_be_bytes()).unwrap();
    client.write_all(TCP.as_bytes()).unwrap();
    assert_eq!(received(&mut client), CREATE_STREAMS);
    let _stream = served.greets(1);
    assert_eq!(received(&mut client), STARTED);
    for _ in 0..3 {
        assert_eq!(received(&mut served.greets(1)), BUSY, "one too many");
    }
}

#[test]
fn datagrams_of_one_host_are_of_one_test_at_a_time() {
    let served = start();
    let mut first = served.requests(1, UDP);
    assert_eq!(received(&mut first), CREATE_STREAMS);
    let mut second = served.requests(2, UDP);
    let mut third = served.requests(3, UDP);
    assert!(is_silent(&second) && is_silent(&third), "the first one's stream has not come");
    // A waiting client is noticed.
    third.write_all(&TERMINATE).unwrap();
    assert_eq!(third.read(&mut [0]).unwrap(), 0);
    let _stream = datagrams(&served);
    assert_eq!(received(&mut first), STARTED);
    assert_eq!(received(&mut second), CREATE_STREAMS);
    let _stream = datagrams(&served);
    assert_eq!(received(&mut second), STARTED);
}

#[test]
fn a_client_gets_the_servers_output_with_its_intervals_and_losses() {
    let json = r#"{"udp":true,"time":9,"parallel":1,"len":1000,"bandwidth":1000000,"get_server_output":1}"#;
    let served = start();
    let mut client = served.requests(1, json);
    assert_eq!(received(&mut client), CREATE_STREAMS);
    let stream = datagrams(&served);
    stream.connect(served.address).unwrap();
    assert_eq!(received(&mut client), STARTED);
    let send = |number| {
        let mut block = [0; 1000];
        Header { sent_us: 0, number }.write(block.first_chunk_mut().unwrap(), false);
        stream.send(&block).unwrap();
    };
    (1..=9).filter(|number| *number != 5).for_each(send);
    // What is tested: an interval of a second, and a part of the next one.
    std::thread::sleep(Duration::from_millis(1_300));
    send(10);
    // The end of the test, on another connection, must not overtake it.
    std::thread::sleep(Duration::from_millis(100));
    client.write_all(&[4]).unwrap();
    assert_eq!(received(&mut client), [13]);
    let results = br#"{"cpu_util_total":0,"cpu_util_user":0,"cpu_util_system":0,"sender_has_retransmits":0,"streams":[{"id":1,"bytes":9000,"retransmits":-1,"jitter":0,"errors":0,"packets":10}]}"#;
    client.write_all(&(results.len() as u32).to_be_bytes()).unwrap();
    client.write_all(results).unwrap();
    let mut reported = vec![0; u32::from_be_bytes(received(&mut client)) as usize];
    client.read_exact(&mut reported).unwrap();
    let reported: serde_json::Value = serde_json::from_slice(&reported).unwrap();
    let text = reported["server_output_text"].as_str().unwrap();
    let lines: Vec<&str> = text.lines().filter(|line| line.contains(" sec ")).collect();
    let [first, second, whole] = lines[..] else { panic!("{text}") };
    assert!(
        first.starts_with("[  5]   0.00-1.0") && first.contains("  7.81 KBytes  ") && first.contains(" 1/9 (11%)"),
        "{text}"
    );
    assert!(
        second.starts_with("[  5]   1.0") && second.contains("  1000 Bytes  ") && second.contains(" 0/1 (0%)"),
        "{text}"
    );
    assert!(whole.contains("  8.79 KBytes  ") && whole.ends_with(" 1/10 (10%)  receiver"), "{text}");
    assert!(text.contains("\nAccepted connection from 127.0.0.1, port "), "{text}");
}

#[test]
fn what_one_test_sets_on_the_listener_is_not_for_others() {
    let served = start();
    let mss = |socket: &TcpStream| socket2::SockRef::from(socket).tcp_mss().unwrap();
    let mut small = served.requests(1, r#"{"tcp":true,"time":1,"parallel":1,"MSS":600}"#);
    assert_eq!(received(&mut small), CREATE_STREAMS);
    let mut usual = served.requests(2, TCP);
    assert!(is_silent(&usual), "the listener is the first one's");
    let stream = served.greets(1);
    assert_eq!(received(&mut small), STARTED);
    assert!(mss(&stream) <= 600);
    assert_eq!(received(&mut usual), CREATE_STREAMS);
    let stream = served.greets(2);
    assert_eq!(received(&mut usual), STARTED);
    assert!(mss(&stream) > 600, "{}", mss(&stream));
    // Tests without listener options do not wait for each other.
    let mut both = [served.requests(3, TCP), served.requests(4, TCP)];
    both.iter_mut().for_each(|client| assert_eq!(received(client), CREATE_STREAMS));
}

struct Ignored;

impl TrialObserver for Ignored {
    fn starting(&mut self, _: u64) {}
    fn live(&mut self, _: Live) {}
    fn stopped(&mut self) {}
}

/// A client's control connection after its request, which a server accepts.
fn requested(listener: &TcpListener) -> TcpStream {
    let (mut control, _) = listener.accept().unwrap();
    let _cookie: [u8; 37] = received(&mut control);
    control.write_all(&[9]).unwrap();
    let mut parameters = vec![0; u32::from_be_bytes(received(&mut control)) as usize];
    control.read_exact(&mut parameters).unwrap();
    control.write_all(&CREATE_STREAMS).unwrap();
    control
}

/// Our client's error for a server that continues like this after the request of the first UDP stream.
fn measured(cancel: &AtomicBool, goes_on: impl FnOnce(&mut TcpStream, &UdpSocket) + Send) -> ProgramError {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let udp = UdpSocket::bind(address).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            let mut control = requested(&listener);
            let (_, peer) = udp.recv_from(&mut [0; 8]).unwrap();
            udp.connect(peer).unwrap();
            goes_on(&mut control, &udp);
        });
        let stop = Stop::TimeNs(1_000_000_000);
        let spec = Spec { stop, block: 1000, rate_bps: Some(1_000_000), ..Spec::new("udp", Pattern::Stream) };
        let host = address.to_string();
        protocol(Program::Iperf3)
            .measure(&spec, &ProgramServer { host: &host, login: None }, &mut Ignored, cancel)
            .unwrap_err()
    })
}

#[test]
fn a_refusal_is_noticed_while_udp_streams_open() {
    let refusal = [0xfe, 0, 0, 0, 160, 0, 0, 0, 0];
    let error = measured(&AtomicBool::new(false), |control, _| {
        control.write_all(&refusal).unwrap();
        assert_eq!(control.read(&mut [0]).unwrap(), 0);
    });
    assert!(error.to_string().contains("refused with error 160"), "{error}");
    let error = measured(&AtomicBool::new(false), |_, _| {});
    assert!(error.to_string().contains("closed the connection"), "{error}");
    // Among more datagrams than are read.
    let error = measured(&AtomicBool::new(false), |control, udp| {
        control.write_all(&refusal).unwrap();
        control.set_nonblocking(true).unwrap();
        let gone = (0..3_000_000).any(|_| {
            let _ = udp.send(&[7; 1000]);
            control.read(&mut [0]).is_ok()
        });
        assert!(gone, "the client reads datagrams for ever");
    });
    assert!(error.to_string().contains("refused with error 160"), "{error}");
}

#[test]
fn a_cancelled_client_terminates_while_udp_streams_open() {
    let cancel = AtomicBool::new(false);
    let error = measured(&cancel, |control, _| {
        cancel.store(true, Ordering::SeqCst);
        assert_eq!(received(control), TERMINATE);
    });
    assert!(matches!(error, ProgramError::Interrupted), "{error}");
}

#[test]
fn a_server_that_starts_before_its_last_answer_is_seen_is_followed() {
    let error = measured(&AtomicBool::new(false), |control, udp| {
        control.write_all(&STARTED).unwrap();
        // What is tested: the answer comes some time after the start.
        std::thread::sleep(Duration::from_millis(200));
        udp.send(b"6789").unwrap();
        // The data, perhaps after more requests, and the end of the test.
        while udp.recv(&mut [0; 2000]).unwrap() <= 4 {}
        assert_eq!(received(control), [4]);
    });
    assert!(error.to_string().contains("closed the connection"), "{error}");
}

#[test]
fn a_connection_that_is_closed_before_any_byte_is_tried_again() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let host = listener.local_addr().unwrap().to_string();
    let server = std::thread::spawn(move || {
        // As a server that opens its listener anew: one is reset, one is closed, the third is heard.
        let (reset, _) = listener.accept().unwrap();
        socket2::SockRef::from(&reset).set_linger(Some(Duration::ZERO)).unwrap();
        drop(reset);
        let (mut closed, _) = listener.accept().unwrap();
        let _cookie: [u8; 37] = received(&mut closed);
        drop(closed);
        let (mut heard, _) = listener.accept().unwrap();
        let _cookie: [u8; 37] = received(&mut heard);
        heard.write_all(&BUSY).unwrap();
    });
    let spec = Spec { stop: Stop::TimeNs(1_000_000_000), ..Spec::new("tcp", Pattern::Stream) };
    let server_of = ProgramServer { host: &host, login: None };
    let error =
        protocol(Program::Iperf3).measure(&spec, &server_of, &mut Ignored, &AtomicBool::new(false)).unwrap_err();
    // A client that gives up leaves the server waiting.
    assert!(error.to_string().contains("busy with another client"), "{error}");
    server.join().unwrap();
}

#[test]
fn a_client_that_fails_at_its_streams_does_not_keep_the_next_one_out() {
    let served = Served::of(Program::Iperf3, "", LIMITS, one_by_one());
    let two = r#"{"tcp":true,"time":1,"parallel":2}"#;
    for client in 0..5 {
        let mut failing = served.requests(client, two);
        assert_eq!(received(&mut failing), CREATE_STREAMS);
        let stream = served.greets(client);
        drop((failing, stream));
    }
    let mut last = served.requests(9, TCP);
    assert_eq!(received(&mut last), CREATE_STREAMS);
    // One that stays is no reason to wait for long.
    assert_eq!(received(&mut served.greets(10)), BUSY);
}

#[test]
fn both_directions_with_a_server_of_one_are_refused_with_the_reason() {
    let json = br#"{"cpu_util_total":0,"cpu_util_user":0,"cpu_util_system":0,"sender_has_retransmits":-1,"streams":[{"id":1,"bytes":9,"retransmits":-1,"jitter":0,"errors":0,"packets":0}]}"#;
    // As iperf3 before 3.7, which does not know "bidirectional": before and after the client has opened its second stream.
    for (starts_late, reports) in [(false, true), (true, true), (true, false)] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let host = listener.local_addr().unwrap().to_string();
        let server = std::thread::spawn(move || {
            let mut control = requested(&listener);
            let (mut stream, _) = listener.accept().unwrap();
            let reader = std::thread::spawn(move || std::io::copy(&mut stream, &mut std::io::sink()));
            if !starts_late {
                control.write_all(&STARTED).unwrap();
            }
            let turned_away = std::thread::spawn(move || listener.accept().unwrap().0.write_all(&BUSY));
            if starts_late {
                turned_away.join().unwrap().unwrap();
                control.write_all(&STARTED).unwrap();
            }
            // A client that has seen the start before its second stream says no more.
            if control.read(&mut [0]).is_ok_and(|count| count == 1) {
                control.write_all(&[13]).unwrap();
                let mut results = vec![0; u32::from_be_bytes(received(&mut control)) as usize];
                control.read_exact(&mut results).unwrap();
                // One that does not know a stream of the client's results closes, as 3.1 and 3.6 do.
                if reports {
                    control.write_all(&(json.len() as u32).to_be_bytes()).unwrap();
                    control.write_all(json).unwrap();
                    control.write_all(&[14]).unwrap();
                    let _ = control.read(&mut [0]);
                }
            }
            drop(control);
            let _ = reader.join().unwrap();
        });
        let stop = Stop::TimeNs(100_000_000);
        let spec = Spec { direction: Direction::Both, stop, ..Spec::new("tcp", Pattern::Stream) };
        let server_of = ProgramServer { host: &host, login: None };
        let error =
            protocol(Program::Iperf3).measure(&spec, &server_of, &mut Ignored, &AtomicBool::new(false)).unwrap_err();
        assert!(
            matches!(error, ProgramError::Unsupported { .. }) && error.to_string().contains("before 3.7"),
            "{error}"
        );
        server.join().unwrap();
    }
}

#[test]
fn both_directions_of_datagrams_with_a_server_of_one_are_refused_with_the_reason() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = UdpSocket::bind(listener.local_addr().unwrap()).unwrap();
    let host = listener.local_addr().unwrap().to_string();
    let server = std::thread::spawn(move || {
        let mut control = requested(&listener);
        // As iperf3 3.6: it answers one stream, closes its port and starts.
        let (_, client) = port.recv_from(&mut [0; 64]).unwrap();
        port.send_to(&REPLY, client).unwrap();
        drop(port);
        control.write_all(&STARTED).unwrap();
        let _ = control.read(&mut [0]);
    });
    let spec = Spec {
        direction: Direction::Both,
        stop: Stop::TimeNs(100_000_000),
        rate_bps: Some(1_000_000),
        block: 1_000,
        ..Spec::new("udp", Pattern::Stream)
    };
    let server_of = ProgramServer { host: &host, login: None };
    let error =
        protocol(Program::Iperf3).measure(&spec, &server_of, &mut Ignored, &AtomicBool::new(false)).unwrap_err();
    assert!(matches!(error, ProgramError::Unsupported { .. }) && error.to_string().contains("before 3.7"), "{error}");
    server.join().unwrap();
}

#[test]
fn a_server_that_reports_nothing_is_a_failure() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let host = listener.local_addr().unwrap().to_string();
    let json =
        br#"{"cpu_util_total":0,"cpu_util_user":0,"cpu_util_system":0,"sender_has_retransmits":-1,"streams":[]}"#;
    let server = std::thread::spawn(move || {
        let mut control = requested(&listener);
        let (mut stream, _) = listener.accept().unwrap();
        control.write_all(&STARTED).unwrap();
        let reader = std::thread::spawn(move || std::io::copy(&mut stream, &mut std::io::sink()));
        assert_eq!(received(&mut control), [4], "the end of the test");
        control.write_all(&[13]).unwrap();
        let mut results = vec![0; u32::from_be_bytes(received(&mut control)) as usize];
        control.read_exact(&mut results).unwrap();
        control.write_all(&(json.len() as u32).to_be_bytes()).unwrap();
        control.write_all(json).unwrap();
        control.write_all(&[14]).unwrap();
        assert_eq!(received(&mut control), [16], "the client is done");
        drop(control);
        reader.join().unwrap().unwrap();
    });
    let spec = Spec { stop: Stop::TimeNs(100_000_000), ..Spec::new("tcp", Pattern::Stream) };
    let server_of = ProgramServer { host: &host, login: None };
    let sides = protocol(Program::Iperf3).measure(&spec, &server_of, &mut Ignored, &AtomicBool::new(false)).unwrap();
    server.join().unwrap();
    assert!(sides.failure.unwrap().plain().contains("reports that it received no data"));
}
