//! Our servers for clients of nttcp, nuttcp and iperf 2 over sockets: requests that `thru` never makes, and
//! invalid input.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream, UdpSocket};
use std::time::Duration;

use model::Program;
use peer_wire::iperf2::{Amount, DATAGRAM_BYTES, Datagram, Header, Report};
use peer_wire::nttcp::{Options, PayloadPattern, Statistics};
use peers::ServiceLimits;

use crate::common::{LIMITS, Served, one_by_one};

fn start(program: Program) -> Served {
    Served::of(program, "", ServiceLimits { flows: 4, ..LIMITS }, one_by_one())
}

impl Served {
    /// A client that has sent `line`.
    fn client_with(&self, line: &[u8]) -> BufReader<TcpStream> {
        BufReader::new(self.dial(line))
    }
}

/// The remote side's verbose output and data port.
fn data_port(client: &mut BufReader<TcpStream>) -> (String, u16) {
    let mut verbose_line = String::new();
    loop {
        let mut line = String::new();
        assert!(client.read_line(&mut line).unwrap() > 0, "no data port");
        if let Some(port) = line.strip_prefix("dataport: ") {
            return (verbose_line, port.trim().parse().unwrap());
        }
        verbose_line += &line;
    }
}

/// Everything that arrives until the remote side closes.
fn rest(mut client: BufReader<TcpStream>) -> String {
    let mut said = String::new();
    client.read_to_string(&mut said).unwrap();
    said
}

fn statistics(said: &str) -> Statistics {
    said.lines().find_map(Statistics::from_line).unwrap_or_else(|| panic!("no statistics: {said}")).1
}

#[test]
fn nttcps_content_is_compared_in_both_directions() {
    let served = start(Program::Nttcp);
    let requested =
        Options { transmits: false, bytes: 1000, count: 50, compare: true, verbose: true, ..Options::default() };
    for wrong in [0, 3] {
        let mut client = served.client_with(&requested.to_line());
        let (verbose_line, port) = data_port(&mut client);
        let mut data = TcpStream::connect((served.address.ip(), port)).unwrap();
        let mut bytes = vec![0; 50_000];
        PayloadPattern::new(&requested.seed).fill(&mut bytes);
        bytes[..wrong].iter_mut().for_each(|byte| *byte ^= 1);
        data.write_all(&bytes).unwrap();
        drop(data);
        let said = rest(client);
        assert_eq!(statistics(&said).bytes, 50_000, "{said}");
        assert_eq!(said.contains("3 bytes differ"), wrong == 3, "{said}");
        let lines = [
            "Pid=",
            "InetPeer= 127.0.0.1",
            "Optionline=\"nttcp@-r",
            "accept from 127.0.0.1",
            "send window size = ",
            "receive window size = ",
        ];
        let all = format!("{verbose_line}{said}");
        assert!(lines.iter().all(|line| all.contains(line)), "{all}");
        assert!(said.contains("nttcp-1: received 50000 bytes") && said.contains("nttcp-1: exiting"), "{said}");
    }

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let said = [Options { transmits: true, ..requested.clone() }.to_line(), format!("dataport: {port}\n").into_bytes()];
    let client = served.client_with(&said.concat());
    let (mut data, mut bytes) = (listener.accept().unwrap().0, Vec::new());
    data.read_to_end(&mut bytes).unwrap();
    assert_eq!((bytes.len(), PayloadPattern::new(&requested.seed).mismatches(&bytes)), (50_000, 0));
    assert_eq!(statistics(&rest(client)).bytes, 50_000);
}

#[test]
fn nttcps_datagrams_are_compared_in_both_directions() {
    const MARK: &[u8] = &[0; 4];
    let served = start(Program::Nttcp);
    let requested = Options { transmits: false, udp: true, bytes: 1000, count: 5, compare: true, ..Options::default() };
    let requested = Options { verbose: true, ..requested };
    for (stream, lost) in [(false, true), (true, false), (true, true)] {
        let mut client = served.client_with(&Options { stream, ..requested.clone() }.to_line());
        let data = UdpSocket::bind("127.0.0.1:0").unwrap();
        data.connect((served.address.ip(), data_port(&mut client).1)).unwrap();
        data.send(MARK).unwrap();
        let mut pattern = PayloadPattern::new(&requested.seed);
        for number in 0..5 {
            let mut datagram = [0; 1000];
            pattern.fill(&mut datagram);
            pattern = if stream { pattern } else { PayloadPattern::new(&requested.seed) };
            if !(lost && number == 1) {
                data.send(&datagram).unwrap();
            }
        }
        data.send(MARK).unwrap();
        let said = rest(client);
        let counted = statistics(&said);
        let arrived = if lost { 4 } else { 5 };
        assert_eq!((counted.bytes, counted.calls), (1000 * arrived, arrived + 1), "{said}");
        // After a loss a continuous pattern differs; a repeated one does not.
        assert_eq!(said.contains("bytes differ"), stream && lost, "{said}");
    }

    let data = UdpSocket::bind("127.0.0.1:0").unwrap();
    let port = data.local_addr().unwrap().port();
    let said = [Options { transmits: true, ..requested.clone() }.to_line(), format!("dataport: {port}\n").into_bytes()];
    let client = served.client_with(&said.concat());
    data.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut datagram = [0; 2000];
    let sizes: Vec<usize> = (0..7)
        .map(|_| {
            let count = data.recv(&mut datagram).unwrap();
            assert!(count <= 4 || PayloadPattern::new(&requested.seed).mismatches(&datagram[..count]) == 0);
            count
        })
        .collect();
    assert_eq!(sizes, [4, 1000, 1000, 1000, 1000, 1000, 4]);
    let counted = statistics(&rest(client));
    assert_eq!((counted.bytes, counted.calls), (5000, 8));
}

/// Drops the service while clients send all the time; dropping waits for its threads.
#[test]
fn clients_that_never_stop_end_with_the_service() {
    let served = start(Program::Nttcp);
    let requested = Options { transmits: false, compare: true, ..Options::default() };
    let mut client = served.client_with(&requested.to_line());
    let mut data = TcpStream::connect((served.address.ip(), data_port(&mut client).1)).unwrap();
    let feeding = std::thread::spawn(move || while data.write_all(&[7; 4096]).is_ok() {});
    // One that sends other lines instead of a port.
    let mut other = TcpStream::connect(served.address).unwrap();
    other.write_all(b"nttcp@-t@-l10@-n1\n").unwrap();
    let chattering = std::thread::spawn(move || while other.write_all(b"no data port\n").is_ok() {});
    drop(served);
    feeding.join().unwrap();
    chattering.join().unwrap();
}

#[test]
fn invalid_nttcp_input_is_refused_and_the_server_keeps_running() {
    let served = start(Program::Nttcp);
    let cases: [(&[u8], &str); 5] = [
        (b"nttcp@-t@-l0@-n1\n", "-l"),
        (b"nttcp@-r@-l99999999@-n1\n", "buffers of 99999999 bytes"),
        (b"nttcp@-m1.2.3.4:5\n", "multicast"),
        (b"GET@/@HTTP\n", "is not an option"),
        (b"nttcp@-t@-f%q\n", "no value after %"),
    ];
    for (line, why) in cases {
        let said = rest(served.client_with(line));
        assert!(said.starts_with("nttcp-1: ") && said.contains(why), "{said}");
    }
    // Unterminated lines, invalid data ports, and clients that disconnect at every step.
    let _endless = served.client_with(&[b'x'; 5000]);
    let said = rest(served.client_with(b"nttcp@-t@-l10@-n1\ndataport: -1\n"));
    assert!(said.contains("the other end has no data socket"), "{said}");
    for cut in [0, 5, 12] {
        drop(served.client_with(&b"nttcp@-r@-l10@-n1\n"[..cut]));
    }
    drop(served.client_with(b"nttcp@-r@-l10@-n1\n"));
    // One that is being measured while another one connects.
    let mut first = loop {
        let mut client = served.client_with(b"nttcp@-r@-v@-l10@-n1\n");
        let mut line = String::new();
        client.read_line(&mut line).unwrap();
        if !line.contains("another measurement") {
            break client;
        }
        std::thread::sleep(Duration::from_millis(10));
    };
    let port = data_port(&mut first);
    assert!(rest(served.client_with(b"nttcp@-r\n")).contains("another measurement is running"));
    TcpStream::connect((served.address.ip(), port.1)).unwrap().write_all(&[7; 10]).unwrap();
    assert_eq!(statistics(&rest(first)).bytes, 10);
}

#[test]
fn invalid_nuttcp_input_is_refused_and_the_server_keeps_running() {
    let served = start(Program::Nuttcp);
    let hello = "HELO nuttcp v6.1.2\n";
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let requested = |port: u16, more: &str| format!("{hello}buflen = 100, nbuf = 10, port = {port}, trans = 1{more}\n");
    for said in [
        "GET / HTTP/1.0\n".to_owned(),
        format!("{hello}\n"),
        requested(0, ""),
        requested(5001, ", nstream = 5"),
        requested(5001, ", timeout = 80000"),
        requested(5001, ", thirdparty = somebody"),
        requested(port, ""),
    ] {
        let answer = rest(served.client_with(said.as_bytes()));
        assert!(answer.ends_with("KO\n"), "{said}: {answer}");
    }
    let _endless = served.client_with(&[b'x'; 5000]);
    drop(taken);
    for cut in [0, 10, hello.len(), hello.len() + 20] {
        drop(served.client_with(&requested(port, "").as_bytes()[..cut]));
    }
    // One that leaves before its data releases the machine.
    drop(served.client_with(requested(port, "").as_bytes()));
    for _ in 0..500 {
        let mut client = served.client_with(requested(port, "").as_bytes());
        let mut line = String::new();
        client.read_line(&mut line).unwrap();
        assert_eq!(line, hello);
        line.clear();
        client.read_line(&mut line).unwrap();
        if line.starts_with("OK") {
            TcpStream::connect((served.address.ip(), port)).unwrap().write_all(&[7; 1000]).unwrap();
            let report = rest(client);
            assert!(report.contains("\nnuttcp-r: 0.0010 MB in"), "{report}");
            return;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    panic!("the machine's place was never given back");
}

#[test]
fn invalid_iperf2_input_does_no_harm() {
    let served = start(Program::Iperf2);
    let requested = Header {
        threads: 1,
        port: 5001,
        bytes: 100,
        amount: Amount::Bytes(1000),
        reverse: true,
        rate_bps: 0,
        full_duplex: false,
    };
    let header = requested.to_bytes();
    let mut back = header;
    back[0] |= 0x80;
    let many = Header { threads: 5000, ..requested }.to_bytes();
    for broken in [back, many] {
        assert_eq!(rest(served.client_with(&broken)), "", "a test back, and connections beyond all bounds");
    }
    for cut in [0, 3, 4, 30] {
        drop(served.client_with(&header[..cut]));
    }

    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_read_timeout(Some(Duration::from_millis(250))).unwrap();
    socket.connect(served.address).unwrap();
    for length in 0..40 {
        socket.send(&vec![0xff; length]).unwrap();
        socket.send(&vec![0; length]).unwrap();
    }
    let datagram = |number, last| {
        let mut bytes = [0; DATAGRAM_BYTES];
        Datagram { number, last, sent_us: 7 }.write(&mut bytes);
        bytes
    };
    socket.send(&datagram(1 << 60, false)).unwrap();
    let mut answer = [0; 256];
    let mut tries = (0..80).filter_map(|_| {
        socket.send(&datagram(3, true)).unwrap();
        socket.recv(&mut answer).ok()
    });
    let count = tries.next().expect("a report");
    let report = Report::read(&answer[..count]).unwrap();
    assert!(report.datagrams < 1000 && report.lost < 1000, "{report:?}");

    let mut data = Vec::new();
    served.client_with(&header).read_to_end(&mut data).unwrap();
    assert_eq!(data.len(), 1000);
}
