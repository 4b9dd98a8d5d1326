//! NetPIPE over real sockets: recordings of NPtcp against our other end, hostile and dying peers, and the end
//! of a run.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use std::io::{ErrorKind, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use model::tally::Count;
use model::{Direction, Live, NetpipeSizes, Pattern, Program, Spec, Stop};
use peers::{Curve, CurveLimits, ProgramError, ProgramServer, TrialObserver, protocol};

use crate::common::{LIMITS, Served, everyone};

const PORT: u16 = 5002;
/// Those of the recorded runs, `-l 1 -u 64`.
const SIZES: NetpipeSizes = NetpipeSizes { first: 1, last: 64, perturbation: 3 };

/// The shortest trial, ns.
const LITTLE_NS: u64 = 1_000_000;

/// The bytes of transmitter and receiver on each connection of a recorded run.
fn recorded(name: &str) -> Vec<[Vec<u8>; 2]> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../peer-wire/tests/data/netpipe372_{name}.pcap"));
    let file = std::fs::read(path).unwrap();
    let word = |at: usize| u32::from_le_bytes(file[at..at + 4].try_into().unwrap()) as usize;
    let (mut at, mut said) = (24, Vec::<(u16, [Vec<u8>; 2])>::new());
    while at < file.len() {
        let packet = &file[at + 16..at + 16 + word(at + 8)];
        at += 16 + packet.len();
        let ip = &packet[14..];
        let length = usize::from(u16::from_be_bytes([ip[2], ip[3]]));
        let segment = &ip[usize::from(ip[0] & 15) * 4..length.min(ip.len())];
        let [from, to] = [0, 2].map(|at| u16::from_be_bytes([segment[at], segment[at + 1]]));
        let payload = &segment[usize::from(segment[12] >> 4) * 4..];
        let client = if from == PORT { to } else { from };
        if said.iter().all(|(port, _)| *port != client) {
            said.push((client, Default::default()));
        }
        let (_, both) = said.iter_mut().find(|(port, _)| *port == client).unwrap();
        both[usize::from(from == PORT)].extend_from_slice(payload);
    }
    said.into_iter().map(|(_, both)| both).collect()
}

/// Ranges of the marks in an end's bytes of a run with `-n 3` without resets; between them are messages, which
/// are not compared.
fn marks(sizes: &[u64], trials: u64, transmits: bool) -> Vec<std::ops::Range<usize>> {
    let mut found = Vec::new();
    let mut at = 0;
    let mut mark = |length: usize, messages: u64| {
        found.push(at..at + length);
        at += length + messages as usize;
    };
    mark(6, 100 * sizes[0]);
    mark(6, 0);
    for size in sizes {
        mark(if transmits { 6 + 4 } else { 6 }, 0);
        (0..trials).for_each(|_| mark(6, 3 * size));
    }
    mark(5, 0);
    found
}

fn points(sizes: NetpipeSizes, change: fn(&mut Spec)) -> Vec<Spec> {
    let point = |block: u64| {
        let mut spec = Spec { block, stop: Stop::AboutNs(LITTLE_NS), ..Spec::new("tcp", Pattern::Pingpong) };
        change(&mut spec);
        spec
    };
    sizes.list().into_iter().map(point).collect()
}

fn as_they_are(_: &mut Spec) {}

fn both_directions(spec: &mut Spec) {
    spec.direction = Direction::Both;
}

fn one_direction(spec: &mut Spec) {
    spec.pattern = Pattern::Stream;
}

struct Ignored;

impl TrialObserver for Ignored {
    fn starting(&mut self, _: u64) {}
    fn live(&mut self, _: Live) {}
    fn stopped(&mut self) {}
}

fn measure(points: &[Spec], address: SocketAddr, cancel: &AtomicBool) -> Result<Curve, ProgramError> {
    let host = address.to_string();
    measure_within(points, &host, CurveLimits::default(), cancel)
}

fn measure_within(
    points: &[Spec],
    host: &str,
    limits: CurveLimits,
    cancel: &AtomicBool,
) -> Result<Curve, ProgramError> {
    let server = ProgramServer { host, login: None };
    protocol(Program::Netpipe).open_curve(points, &server, limits, cancel)?.measure(&mut Ignored, cancel)
}

/// A misbehaving receiver: `part` handles its connections.
fn play<T: Send + 'static>(part: impl FnOnce(TcpListener) -> T + Send + 'static) -> (SocketAddr, JoinHandle<T>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    (listener.local_addr().unwrap(), std::thread::spawn(move || part(listener)))
}

/// Accepts a connection, sends `bytes` without reading, and then reads to the end.
fn send_all(listener: &TcpListener, bytes: &[u8]) -> Vec<u8> {
    let (mut socket, _) = listener.accept().unwrap();
    socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    socket.write_all(bytes).unwrap();
    let mut came = Vec::new();
    socket.read_to_end(&mut came).unwrap();
    came
}

/// Plays up to `most` bytes of a receiver recorded with `-n 3`, so slowly that our transmitter chooses the same
/// count. Returns the transmitter's bytes.
fn recite(socket: &mut TcpStream, said: &[u8], sizes: &[u64], most: usize) -> std::io::Result<Vec<u8>> {
    socket.set_read_timeout(Some(Duration::from_secs(20)))?;
    // Of a step: the marks of both ends, the messages and their size, and the delay of the first answer, ms.
    let mut steps = vec![(6, 6, 100, sizes[0], 150), (6, 6, 0, 0, 0)];
    for size in sizes {
        steps.push((6, 10, 0, 0, 0));
        steps.extend([(6, 6, 3, *size, 8); 3]);
    }
    let (mut at, mut came) = (0, Vec::new());
    for (mark, theirs, messages, size, pause_ms) in steps {
        let size = size as usize;
        at = send(socket, said, at, mark, most)?;
        if at == most {
            return Ok(came);
        }
        receive(socket, theirs + size.min(messages * size), &mut came)?;
        // The recorded program measures this delay.
        std::thread::sleep(Duration::from_millis(pause_ms));
        at = send(socket, said, at, messages * size, most)?;
        if at == most {
            return Ok(came);
        }
        receive(socket, (messages * size).saturating_sub(size), &mut came)?;
    }
    send(socket, said, at, said.len() - at, most)?;
    Ok(came)
}

/// Sends `length` bytes from `at` on, up to `most`; returns the end.
fn send(socket: &mut TcpStream, said: &[u8], at: usize, length: usize, most: usize) -> std::io::Result<usize> {
    let end = (at + length).min(most);
    socket.write_all(&said[at..end])?;
    Ok(end)
}

fn receive(socket: &mut TcpStream, length: usize, came: &mut Vec<u8>) -> std::io::Result<()> {
    let old = came.len();
    came.resize(old + length, 0);
    socket.read_exact(&mut came[old..])
}

fn start(options: &str) -> Served {
    Served::of(Program::Netpipe, options, LIMITS, everyone())
}

impl Served {
    /// Its answer to a transmitter that sends only `bytes`, up to the connection's end.
    fn answers(&self, bytes: &[u8]) -> Vec<u8> {
        let mut socket = TcpStream::connect(self.address).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        // A receiver that closes early causes a reset if more data is in flight.
        let _ = socket.write_all(bytes);
        let _ = socket.shutdown(Shutdown::Write);
        let mut came = Vec::new();
        match socket.read_to_end(&mut came) {
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::ConnectionReset => {}
            Err(error) => panic!("{error}: {}", self.log()),
        }
        came
    }

    /// A valid transmitter measures.
    fn serves_netpipe(&self) {
        let points = points(SIZES, as_they_are);
        let curve = measure(&points, self.address, &AtomicBool::new(false)).unwrap();
        assert_eq!((curve.points.len(), curve.failure), (points.len(), None), "{}", self.log());
    }
}

#[test]
fn our_receiver_answers_nptcp_as_its_receiver_did() {
    let checked = NetpipeSizes { first: 5, perturbation: 0, ..SIZES };
    for (name, options, sizes, trials) in
        [("pingpong", "-u 64", SIZES, 3), ("both", "-2 -u 64", SIZES, 3), ("integrity", "-i -u 64", checked, 1)]
    {
        let served = start(options);
        let recorded = recorded(name);
        let [[transmitter, receiver]] = &recorded[..] else { panic!("{name} is one connection") };
        let ours = served.answers(transmitter);
        assert_eq!(ours.len(), receiver.len(), "{name}: {}", served.log());
        for mark in marks(&sizes.list(), trials, false) {
            assert_eq!(ours[mark.clone()], receiver[mark.clone()], "{name}: {mark:?}");
        }
        // The numbers after the first round trips, which are checked.
        assert!(trials > 1 || ours[6 + 500..] == receiver[6 + 500..]);
    }
}

#[test]
fn our_transmitter_sends_what_nptcp_sent() {
    for (name, change) in [("pingpong", as_they_are as fn(&mut Spec)), ("both", both_directions)] {
        let [theirs, answers] = recorded(name).remove(0);
        let (address, player) = play(move |listener| {
            let (mut socket, _) = listener.accept().unwrap();
            let mut came = recite(&mut socket, &answers, &SIZES.list(), usize::MAX).unwrap();
            socket.read_to_end(&mut came).unwrap();
            came
        });
        let curve = measure(&points(SIZES, change), address, &AtomicBool::new(false)).unwrap();
        let ours = player.join().unwrap();
        assert_eq!((curve.points.len(), curve.failure), (SIZES.list().len(), None), "{name}");
        assert!(curve.points.iter().all(|trials| trials.len() == 3), "{name}");
        assert_eq!(ours.len(), theirs.len(), "{name}");
        for mark in marks(&SIZES.list(), 3, true) {
            assert_eq!(ours[mark.clone()], theirs[mark.clone()], "{name}: {mark:?}");
        }
    }
}

/// Only the start of the stream is recorded: NPtcp's new connection reached the old port and hung.
#[test]
fn both_ends_of_a_stream_go_through_the_reset_at_which_nptcp_hung() {
    let recording = recorded("stream");
    let [[first, answers], [second, nothing]] = &recording[..] else { panic!("two connections") };
    assert_eq!((second.as_slice(), nothing.len()), (b"SyncMe".as_slice(), 0));
    let of_first = [0..6, 106..112, 112..117];

    let served = start("-s -u 64");
    let ours = served.answers(first);
    assert_eq!(ours.len(), answers.len(), "{}", served.log());
    for mark in of_first.clone() {
        assert_eq!(ours[mark.clone()], answers[mark], "{}", served.log());
    }
    // NPtcp answered with a reset here; ours continues.
    assert_eq!(served.answers(second), b"SyncMe", "{}", served.log());

    let answers = answers.clone();
    let (address, player) = play(move |listener| {
        let came = send_all(&listener, &answers);
        // As recorded: the connection that reached the old port is lost.
        drop(listener.accept().unwrap());
        // The first size: its sync and count, the sync of its first trial and its messages; then this end
        // disconnects.
        let (mut socket, _) = listener.accept().unwrap();
        socket.write_all(b"SyncMeSyncMe").unwrap();
        let mut start = [0; 6 + 4 + 6];
        socket.read_exact(&mut start).unwrap();
        let count = u32::from_be_bytes(start[6..10].try_into().unwrap());
        socket.read_exact(&mut vec![0; count as usize + 5]).unwrap();
        (came, start)
    });
    let error = measure(&points(SIZES, one_direction), address, &AtomicBool::new(false)).unwrap_err().to_string();
    assert!(error.contains("netpipe, while waiting for QUIT"), "{error}");
    let (ours, start) = player.join().unwrap();
    assert_eq!(ours.len(), first.len());
    for mark in of_first {
        assert_eq!(ours[mark.clone()], first[mark]);
    }
    assert_eq!((&start[..6], &start[10..]), (b"SyncMe".as_slice(), b"SyncMe".as_slice()));
}

#[test]
fn a_receiver_in_both_mode_at_its_buffer_limit_ends_the_curve() {
    let begun = [&b"SyncMe"[..], &[b'a'; 100], b"SyncMe"].concat();
    let size = |bytes: usize| {
        let trial = [b"SyncMe", &vec![b'a'; 3 * bytes][..]].concat();
        [&b"SyncMe"[..], &trial, &trial, &trial].concat()
    };
    // NPtcp then waits for QUIT, reads as much of the SyncMe instead, sends it back and closes with one byte
    // unread.
    let end = |change: fn(&mut Spec), echo: &'static [u8], sizes: usize| {
        let said = (1..=sizes).fold(begun.clone(), |said, bytes| [said, size(bytes)].concat());
        let (address, player) = play(move |listener| {
            let (mut socket, _) = listener.accept().unwrap();
            let list: Vec<u64> = (1..=sizes as u64).collect();
            recite(&mut socket, &said, if sizes == 0 { &[1] } else { &list }, said.len()).unwrap();
            if sizes > 0 {
                // The unread rest of the last messages and the next SyncMe.
                socket.read_exact(&mut vec![0; 2 * sizes + 5]).unwrap();
            }
            socket.write_all(echo).unwrap();
        });
        let curve = measure(&points(SIZES, change), address, &AtomicBool::new(false));
        player.join().unwrap();
        curve.map(|curve| (curve.points.len(), curve.failure))
    };
    assert_eq!(end(both_directions, b"SyncM", 2).unwrap(), (2, None));
    // A receiver that closes without it, before any size, or in another mode is an error.
    for (change, echo) in [(both_directions as fn(&mut Spec), b"".as_slice()), (as_they_are, b"SyncM")] {
        let (points, failure) = end(change, echo, 2).unwrap();
        assert_eq!(points, 2);
        assert!(failure.is_some_and(|failure| failure.plain().contains("while waiting for SyncMe")));
    }
    assert!(end(both_directions, b"SyncM", 0).is_err());
}

#[test]
fn an_interrupt_is_noticed_during_an_exchange() {
    let cancel = Arc::new(AtomicBool::new(false));
    let interrupt = cancel.clone();
    let (address, player) = play(move |listener| {
        let (mut socket, _) = listener.accept().unwrap();
        socket.write_all(b"SyncMe").unwrap();
        socket.write_all(&[b'a'; 40]).unwrap();
        // It stops answering during the first round trips.
        socket.read_exact(&mut [0; 6 + 41]).unwrap();
        interrupt.store(true, Ordering::SeqCst);
        let _ = socket.read_to_end(&mut Vec::new());
    });
    let error = measure(&points(SIZES, as_they_are), address, &cancel).unwrap_err();
    assert!(matches!(error, ProgramError::Interrupted), "{error}");
    player.join().unwrap();
}

#[test]
fn hostile_or_dying_transmitters_do_no_harm() {
    let served = start("-u 64");
    let begun = [&b"SyncMe"[..], &[b'a'; 100], b"SyncMe"].concat();
    let with = |more: &[u8]| [&begun[..], more].concat();
    let cases: [(&str, Vec<u8>); 8] = [
        ("no sync", b"syncme".to_vec()),
        ("a farewell for a greeting", b"QUIT\0".to_vec()),
        ("noise", vec![0xff; 8192]),
        ("another program", b"GET / HTTP/1.1\r\n\r\n".to_vec()),
        ("no repeats", with(b"SyncMe\0\0\0\0")),
        // The only number that a transmitter sends; both ends know the sizes from their options.
        ("repeats without end", with(b"SyncMe\xff\xff\xff\xffSyncMeaaaa")),
        ("messages where a sync is due", with(&[b'a'; 4096])),
        ("a farewell that is none", with(b"QUITE")),
    ];
    for (what, bytes) in cases {
        let before = served.log().len();
        served.answers(&bytes);
        let said = served.log().split_off(before);
        assert!(!said.contains("ended after"), "{what}: {said}");
    }
    served.serves_netpipe();
    // One that closes at each step, and one byte after it.
    let [[transmitter, _]] = &recorded("pingpong")[..] else { panic!("one connection") };
    for mark in marks(&SIZES.list(), 3, true) {
        for cut in [mark.start, mark.start + 1] {
            served.answers(&transmitter[..cut]);
        }
    }
    let log = served.log();
    let ended = log.lines().filter(|line| line.contains("ended after")).count();
    assert_eq!(ended, 1, "but the good one none: {log}");
    served.serves_netpipe();
}

#[test]
fn connections_without_a_mark_hold_nothing() {
    let served = start("-u 64");
    let silent: Vec<TcpStream> = (0..20).map(|_| TcpStream::connect(served.address).unwrap()).collect();
    silent.iter().step_by(2).for_each(|mut socket| socket.write_all(b"S").unwrap());
    // The machine is free, and a transmitter is served while they wait.
    served.serves_netpipe();
    let log = served.log();
    assert_eq!(log.lines().filter(|line| line.ends_with("netpipe measures")).count(), 1, "{log}");
    drop(silent);
}

#[test]
fn lengths_beyond_all_bounds_are_not_taken_from_a_user_either() {
    let netpipe = protocol(Program::Netpipe);
    for options in ["-u 1073741825", "-l 18446744073709551615", "-l -1", "-u 1e9", "-p 4294967296 -u 0"] {
        assert!(netpipe.check_options(options).is_err(), "{options}");
    }
}

#[test]
fn hostile_or_dying_receivers_are_reported() {
    let [[_, receiver]] = &recorded("pingpong")[..] else { panic!("one connection") };
    let points = points(SIZES, as_they_are);
    let begun = [&b"SyncMe"[..], &[b'a'; 100]].concat();
    let said = |bytes: Vec<u8>, what: &str| {
        let (address, player) = play(move |listener| {
            let (mut socket, _) = listener.accept().unwrap();
            // The transmitter may have closed already.
            if bytes.len() > 112 && bytes.starts_with(b"SyncMe") {
                let _ = recite(&mut socket, &bytes, &SIZES.list(), bytes.len());
            } else {
                let _ = socket.write_all(&bytes);
            }
            let _ = socket.shutdown(Shutdown::Write);
            let _ = socket.read_to_end(&mut Vec::new());
        });
        let reported = match measure(&points, address, &AtomicBool::new(false)) {
            Ok(curve) => curve.failure.unwrap_or_else(|| panic!("{what}: all went well")).plain(),
            Err(error) => error.to_string(),
        };
        player.join().unwrap();
        reported
    };
    for (what, bytes) in [
        ("no sync", b"SyncMx".to_vec()),
        ("a farewell for a greeting", b"QUIT\0Q".to_vec()),
        ("noise", vec![0xff; 8192]),
        ("messages where a sync is due", [&begun[..], b"aaaaaa"].concat()),
        ("another program", b"HTTP/1.1 400 Bad Request\r\n\r\n".to_vec()),
    ] {
        let reported = said(bytes, what);
        assert!(reported.contains("netpipe, while waiting for SyncMe"), "{what}: {reported}");
    }
    // One that closes at a step: all of the start, some of the rest.
    let marks = marks(&SIZES.list(), 3, false);
    for (number, mark) in marks.iter().enumerate().filter(|(number, _)| *number < 6 || number % 43 == 0) {
        for cut in [mark.start, mark.start + 1] {
            said(receiver[..cut].to_vec(), &format!("closed in mark {number}"));
        }
    }
    said(receiver[..receiver.len() - 5 - 67].to_vec(), "closed in the last message");
}

#[test]
fn a_stream_s_time_that_cannot_be_ends_the_curve_or_counts_as_the_least() {
    // A time of 42.9 s, the longest possible; or 0, after which a second size follows.
    for (time, sizes) in [(u32::MAX, 1), (0, 2)] {
        let (address, player) = play(move |listener| {
            send_all(&listener, &[&b"SyncMe"[..], &[b'a'; 100], b"SyncMeQUIT\0"].concat());
            for size in 0..sizes {
                let reported = if size > 0 { time.to_be_bytes().to_vec() } else { Vec::new() };
                send_all(&listener, &[&reported[..], b"SyncMeSyncMeQUIT\0"].concat());
                send_all(&listener, b"SyncMeQUIT\0");
                send_all(&listener, b"SyncMeQUIT\0");
            }
            send_all(&listener, &[&time.to_be_bytes()[..], b"QUIT\0"].concat());
        });
        let sizes_asked = NetpipeSizes { first: 1, last: if time == 0 { 2 } else { 64 }, perturbation: 0 };
        let curve = measure(&points(sizes_asked, one_direction), address, &AtomicBool::new(false)).unwrap();
        player.join().unwrap();
        assert_eq!((curve.points.len(), curve.failure), (sizes, None));
        let [_, far] = &curve.points[0][0];
        // 1 µs instead of 0 for each one-byte message.
        let ns = far.bytes_received * if time == 0 { 1_000 } else { 10 * u64::from(time) };
        assert!(far.reported(Count::ReceivingNs).is_some_and(|reported| reported.abs_diff(ns) <= ns / 1000), "{far:?}");
    }
}

/// Some of NPtcp's default sizes.
fn part(sizes: &[u64]) -> Vec<Spec> {
    let point =
        |block: &u64| Spec { block: *block, stop: Stop::AboutNs(LITTLE_NS), ..Spec::new("tcp", Pattern::Pingpong) };
    sizes.iter().map(point).collect()
}

#[test]
fn sizes_between_the_wanted_ones_are_passed() {
    let served = start("");
    let points = part(&[1, 1024, 65_536]);
    let curve = measure(&points, served.address, &AtomicBool::new(false)).unwrap();
    assert_eq!(curve.failure, None, "{}", served.log());
    assert_eq!(curve.points.iter().map(Vec::len).collect::<Vec<usize>>(), [3, 3, 3]);
    for (trials, point) in curve.points.iter().zip(&points) {
        for [near, _] in trials {
            assert_eq!(near.bytes_sent, near.transactions * point.block);
            assert_eq!(near.bytes_received, near.bytes_sent);
        }
    }
}

#[test]
fn a_server_that_says_nothing_is_given_up_at_the_limit() {
    let (address, player) = play(|listener| {
        let (mut socket, _) = listener.accept().unwrap();
        let mut came = Vec::new();
        socket.read_to_end(&mut came).unwrap();
        came
    });
    let limits = CurveLimits { answer: Duration::from_millis(200), ..CurveLimits::default() };
    let error = measure_within(&part(&[1, 1024]), &address.to_string(), limits, &AtomicBool::new(false)).unwrap_err();
    assert!(matches!(error, ProgramError::Silent { .. }), "{error}");
    assert_eq!(player.join().unwrap(), b"SyncMe");
}

#[test]
fn a_curve_without_a_size_within_its_time_is_an_error() {
    let served = start("");
    let limits = CurveLimits { whole: Some(Duration::from_nanos(1)), ..CurveLimits::default() };
    let points = part(&[1, 1024]);
    let cancel = AtomicBool::new(false);
    let error = measure_within(&points, &served.address.to_string(), limits, &cancel).unwrap_err();
    assert!(matches!(error, ProgramError::Silent { .. }), "the user did not interrupt it: {error}");
}

#[test]
fn a_receiver_that_sends_unasked_is_no_end_of_round_trips() {
    let (address, player) = play(|listener| {
        let (mut socket, _) = listener.accept().unwrap();
        // As with -2: the first round trips, the marks of a size and of its first trial, and a message of its own.
        let said = [b"SyncMe", &[b'a'; 100][..], b"SyncMeSyncMeSyncMea"].concat();
        socket.write_all(&said).unwrap();
        let mut came = Vec::new();
        let _ = socket.read_to_end(&mut came);
    });
    let error = measure(&part(&[1, 1024]), address, &AtomicBool::new(false)).unwrap_err().to_string();
    assert!(error.contains("started with -2"), "{error}");
    player.join().unwrap();
}
