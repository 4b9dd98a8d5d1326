//! nuttcp's codec with recordings of the real program and with invalid input.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use peer_wire::nuttcp::{Client, ClientAction, NO_RATE, Options, PathMark, Report, Server, ServerAction, mark};
use peer_wire::{Turn, WireError};
use proptest::prelude::*;

use crate::common::recording;

fn requested(name: &str) -> Options {
    let base = Options { bytes: 512, count: 8, seconds: 0.0, ..Options::default() };
    match name {
        "nuttcp612_tcp" => base,
        "nuttcp612_tcp_r" => Options { client_transmits: false, interval_s: 1.0, ..base },
        _ => Options { bytes: 400, count: 5, udp: true, rate_kbps: 1000, ..base },
    }
}

/// Our server with a simple driver.
fn serve<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (Result<(), WireError>, Vec<Options>, Vec<u8>) {
    let (mut server, mut turn, mut all) = (Server::default(), Turn::default(), Vec::new());
    for piece in pieces {
        if let Err(error) = server.receive(piece, &mut turn) {
            return (Err(error), all, turn.send);
        }
        for ServerAction::Requested(options) in std::mem::take(&mut turn.actions) {
            all.push(*options);
            server.accept(&mut turn).unwrap();
            server.counted(&Report { bps: 1e6, ..Report::default() }, &mut turn).unwrap();
        }
    }
    (server.ended(), all, turn.send)
}

/// Our client, over the given pieces and then the end of the connection.
fn ask<'a>(
    options: &Options,
    pieces: impl IntoIterator<Item = &'a [u8]>,
) -> (Result<Report, WireError>, Turn<ClientAction>) {
    let mut turn = Turn::default();
    let mut client = Client::open(options.clone(), &mut turn);
    for piece in pieces {
        if let Err(error) = client.receive(piece, &mut turn) {
            return (Err(error), turn);
        }
    }
    (client.ended(), turn)
}

#[test]
fn both_roles_send_what_the_real_ones_sent() {
    for name in ["nuttcp612_tcp", "nuttcp612_tcp_r", "nuttcp612_udp"] {
        let session = recording(name, 5000);
        let control = session.connections.iter().find(|one| one.from_client.starts_with(b"HELO")).unwrap();
        for piece in [1, 7, 4096] {
            let (report, turn) = ask(&requested(name), control.from_server.chunks(piece));
            let report = report.unwrap();
            assert_eq!(turn.send, control.from_client, "{name}");
            assert_eq!(turn.actions, [ClientAction::Run], "{name}");
            assert_eq!(report.transmitted, name.ends_with("_r"), "{name}");
            assert!(report.bps > 0.0 && report.calls.is_some() && report.cpu_s.is_some(), "{name}: {report:?}");

            let (served, options, said) = serve(control.from_client.chunks(piece));
            served.unwrap();
            assert_eq!(options, [requested(name)], "{name}");
            let theirs = control.from_server.split_inclusive(|byte| *byte == b'\n').take(2).flatten();
            assert!(said.starts_with(&theirs.copied().collect::<Vec<u8>>()), "{name}");
        }
    }
}

#[test]
fn marks_stand_around_the_datagrams() {
    let session = recording("nuttcp612_udp", 5000);
    let kinds: Vec<Option<PathMark>> = session.datagrams.iter().map(|(_, datagram)| mark(datagram)).collect();
    let begins: Vec<Option<PathMark>> = (0..PathMark::BEGINS).map(|number| Some(PathMark::Begin(number))).collect();
    assert_eq!(kinds[..2], begins);
    assert_eq!(kinds[2..7], [None; 5]);
    assert_eq!(kinds[7], Some(PathMark::End(0)));
    assert!(kinds[7..].iter().all(|kind| matches!(kind, Some(PathMark::End(number)) if *number < PathMark::ENDS)));
    for (_, datagram) in &session.datagrams {
        if let Some(mark) = mark(datagram) {
            assert_eq!(datagram, &mark.bytes());
        }
    }
}

#[test]
fn our_report_is_read_as_theirs() {
    let said = Report {
        transmitted: true,
        bytes: 1_048_576.0 * 12.5,
        real_s: 2.0,
        bps: 52_428_800.0,
        cpu_s: Some(0.25),
        system_s: None,
        calls: Some(200),
        retransmits: Some(3),
        windows: None,
    };
    let mut read = Report::default();
    said.to_text().lines().for_each(|line| read.read(line));
    assert_eq!(read, said);
    // The line from which nuttcp's client takes the other side's CPU share.
    let split = Report { system_s: Some(0.125), real_s: 62.0, cpu_s: Some(31.0), ..said };
    assert!(split.to_text().ends_with("nuttcp-t: 30.9user 0.1sys 1:02real 50%\n"), "{}", split.to_text());
    let pairs = split.to_pairs();
    assert!(pairs.ends_with("nuttcp-t: stats=cpu user=30.9 system=0.1 elapsed=1:02 cpu=50%\n"), "{pairs}");
}

#[test]
fn pairs_are_written_on_request() {
    let bytes = 5.0 * 1_048_576.0;
    let report =
        Report { transmitted: true, bytes, real_s: 2.0, bps: bytes * 4.0, retransmits: Some(3), ..Report::default() };
    let first = "nuttcp-t: megabytes=5.0000 real_seconds=2.00 rate_KBps=2560.00 rate_Mbps=20.9715";
    assert_eq!(report.to_pairs(), format!("{first}\nnuttcp-t: retrans=3\n"));
}

#[test]
fn what_cannot_be_is_refused_by_name() {
    let hello = "HELO nuttcp v8.1.4\n";
    for (line, named) in [
        ("buflen = 0, nbuf = 1, port = 5001, trans = 1", "buflen"),
        ("buflen = 99999999999, nbuf = 1, port = 5001, trans = 1", "buflen"),
        ("nbuf = 1, port = 5001, trans = 1", "buflen is missing"),
        ("buflen = 10, nbuf = 1, port = 70000, trans = 1", "port"),
        ("buflen = 10, nbuf = 1, port = 5001, trans = 1, nstream = 129", "nstream"),
        ("buflen = 10, nbuf = 0, port = 5001, trans = 1", "neither"),
        ("buflen = 10, nbuf = 0, port = 5001, trans = 1, timeout = inf", "timeout"),
        ("buflen = 10, nbuf = 1, port = 5001, trans = 1, multicast = 5 ", "multicast"),
        ("buflen = 10, nbuf = 1, port = 5001, trans = 1, thirdparty = evil ", "thirdparty"),
    ] {
        let (served, requested, said) = serve([format!("{hello}{line}\n").as_bytes()]);
        let error = served.unwrap_err();
        assert!(requested.is_empty() && error.what.to_string().contains(named), "{line}: {error}");
        assert!(
            said.ends_with(b"KO\n") && error.to_string().starts_with("nuttcp, while reading the options"),
            "{error}"
        );
    }
    let (requested, _) = ask(&Options::default(), [format!("{hello}KO\n").as_bytes()]);
    assert!(requested.unwrap_err().what.to_string().contains("refused: 'KO'"));
    let endless = vec![b'x'; 2000];
    assert!(serve([endless.as_slice()]).0.unwrap_err().what.to_string().contains("1023"));
}

proptest! {
    #[test]
    fn options_are_parsed_as_written(
        bytes in 1..1_u64 << 26, count in 1_u64.., window_bytes in 0..1_u64 << 31, streams in 1_u32..=128,
        rate_kbps in prop_oneof![Just(NO_RATE), 1..1_u64 << 40], port in 1_u16.., flags in any::<[bool; 5]>(), seconds in 0_u32..86_400, tos: u8,
    ) {
        let [client_transmits, udp, reverse, nodelay, parse] = flags;
        let options = Options {
            bytes, count, window_bytes, streams, rate_kbps, port, client_transmits, seconds: f64::from(seconds), udp, interval_s: 0.5,
            reverse, tos, nodelay, parse,
        };
        let line = String::from_utf8(options.to_line()).unwrap();
        prop_assert_eq!(Options::from_line(line.trim_end()), Ok(options));
    }

    #[test]
    fn any_bytes_end_in_an_error_that_names_the_peer_or_in_none(said in prop::collection::vec(any::<u8>(), 0..600), hello: bool) {
        let greeting: &[u8] = if hello { b"HELO nuttcp v6.1.2\n" } else { b"" };
        let said = [greeting, &said[..]].concat();
        for piece in [1, said.len().max(1)] {
            if let (Err(error), ..) = serve(said.chunks(piece)) {
                prop_assert_eq!(error.peer, "nuttcp");
                prop_assert!(!error.step.is_empty());
            }
            if let (Err(error), _) = ask(&Options::default(), said.chunks(piece)) {
                prop_assert_eq!(error.peer, "nuttcp");
            }
        }
    }

    #[test]
    fn a_session_cut_anywhere_is_an_error(cut in 0_usize..1000) {
        let session = recording("nuttcp612_tcp", 5000);
        let control = session.connections.iter().find(|one| one.from_client.starts_with(b"HELO")).unwrap();
        let cut = cut % control.from_client.len();
        prop_assert!(serve([&control.from_client[..cut]]).0.is_err());
        let until = control.from_server.windows(13).position(|window| window == b"real seconds ").unwrap();
        prop_assert!(ask(&requested("nuttcp612_tcp"), [&control.from_server[..cut % until]]).0.is_err());
    }
}
