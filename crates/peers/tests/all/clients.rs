//! Our clients at servers that die in a test, or were never there.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, UdpSocket};
use std::sync::atomic::AtomicBool;

use model::{Live, Pattern, Program, Spec, Stop};
use peers::{ProgramError, ProgramServer, TrialObserver, protocol};

struct Ignored;

impl TrialObserver for Ignored {
    fn starting(&mut self, _: u64) {}
    fn live(&mut self, _: Live) {}
    fn stopped(&mut self) {}
}

fn measured(program: Program, spec: &Spec, host: &str) -> ProgramError {
    let server = ProgramServer { host, login: None };
    protocol(program).measure(spec, &server, &mut Ignored, &AtomicBool::new(false)).unwrap_err()
}

/// Datagrams at a low rate.
fn datagrams(stop: Stop) -> Spec {
    Spec { stop, block: 1000, rate_bps: Some(1_000_000), ..Spec::new("udp", Pattern::Stream) }
}

#[test]
fn a_nuttcp_server_that_dies_ends_a_udp_test_at_once() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let host = listener.local_addr().unwrap().to_string();
    let server = std::thread::spawn(move || {
        let (mut control, _) = listener.accept().unwrap();
        let mut lines = BufReader::new(control.try_clone().unwrap()).lines();
        assert!(lines.next().unwrap().unwrap().starts_with("HELO"));
        control.write_all(b"HELO nuttcp v6.1.2\n").unwrap();
        let options = lines.next().unwrap().unwrap();
        let port = options.split("port = ").nth(1).unwrap().split(',').next().unwrap().parse::<u16>().unwrap();
        let data = UdpSocket::bind(("127.0.0.1", port)).unwrap();
        control.write_all(b"OK v6.1.2\n").unwrap();
        // Its data flows: the marks before it are shorter.
        while data.recv(&mut [0; 2000]).unwrap() < 1000 {}
    });
    // Longer than any test may take.
    let error = measured(Program::Nuttcp, &datagrams(Stop::TimeNs(86_400_000_000_000)), &host);
    server.join().unwrap();
    assert!(error.to_string().contains("the server closed the connection"), "{error}");
}

#[test]
fn a_port_on_which_no_iperf_2_receives_datagrams_is_said_to_be_closed() {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let host = socket.local_addr().unwrap().to_string();
    drop(socket);
    let error = measured(Program::Iperf2, &datagrams(Stop::TimeNs(50_000_000)), &host);
    assert!(error.to_string().contains("it has ended, or was not started with -s -u"), "{error}");
}

#[test]
fn an_iperf_2_server_that_reads_a_part_of_each_datagram_is_refused() {
    use peer_wire::iperf2::{Datagram, Report};
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    let host = socket.local_addr().unwrap().to_string();
    let server = std::thread::spawn(move || {
        let (mut front, mut arrived) = ([0; 500], 0);
        loop {
            let (_, client) = socket.recv_from(&mut front).unwrap();
            arrived += 1;
            if Datagram::read(&front).unwrap().last {
                let report =
                    Report { bytes: 500 * arrived, datagrams: arrived as u32, elapsed_us: 50_000, ..Report::default() };
                return socket.send_to(&report.to_bytes(), client).unwrap();
            }
        }
    });
    let error = measured(Program::Iperf2, &datagrams(Stop::TimeNs(50_000_000)), &host);
    server.join().unwrap();
    assert!(error.to_string().contains("it reads 500 bytes of each datagram: start it with -l 1000"), "{error}");
}
