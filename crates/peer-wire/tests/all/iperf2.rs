//! iperf 2's codec with recordings of version 2.1.8 and with invalid input.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use peer_wire::Turn;
use peer_wire::iperf2::{Amount, Counts, DATAGRAM_BYTES, Datagram, HEADER_BYTES, Header, Report, Server, ServerAction};
use proptest::prelude::*;

use crate::common::recording;

fn requested(reverse: bool) -> Header {
    let (full_duplex, rate_bps) = (false, 0);
    Header { threads: 1, port: 5001, bytes: 1000, amount: Amount::Bytes(4000), reverse, full_duplex, rate_bps }
}

/// A stream in pieces: the headers, and the number of data bytes.
fn serve(said: &[u8], piece: usize) -> (Vec<Header>, usize, Vec<u8>) {
    let (mut server, mut turn) = (Server::default(), Turn::default());
    for piece in said.chunks(piece) {
        server.receive(piece, &mut turn).unwrap();
    }
    server.ended().unwrap();
    let headers = turn.actions.iter().filter_map(|action| match action {
        ServerAction::Requested(header) => Some(*header),
        ServerAction::Data(_) | ServerAction::Bounce => None,
    });
    let data = turn.actions.iter().map(|action| if let ServerAction::Data(bytes) = action { *bytes } else { 0 });
    (headers.collect(), data.sum(), turn.send)
}

#[test]
fn a_header_is_separated_from_the_data() {
    for (name, reverse) in [("iperf218_tcp", false), ("iperf218_tcp_r", true)] {
        let session = recording(name, 5001);
        let control = &session.connections[0];
        assert_eq!(requested(reverse).to_bytes(), control.from_client[..HEADER_BYTES], "{name}");
        for piece in [1, 3, 4, 59, 60, 61, 4096] {
            let (headers, data, answer) = serve(&control.from_client, piece);
            assert_eq!((headers, data), (vec![requested(reverse)], control.from_client.len() - HEADER_BYTES), "{name}");
            let theirs: &[u8] = if reverse { &[] } else { &control.from_server };
            assert_eq!(answer, theirs, "{name}");
        }
    }
    // A client without -l names no size.
    let unsized_writes = Header { bytes: 0, ..requested(false) }.to_bytes();
    let (headers, ..) = serve(&unsized_writes, 60);
    assert_eq!(headers, [Header { bytes: 128 << 10, ..requested(false) }]);
    // Older clients send data only.
    for plain in [&b"0123456789"[..], &[0; 100], b"012"] {
        let (headers, data, answer) = serve(plain, 2);
        assert!(headers.is_empty() && answer.is_empty());
        assert_eq!(data, if plain.len() < 4 { 0 } else { plain.len() });
    }
}

#[test]
fn numbers_and_report_are_those_of_the_real_ones() {
    let session = recording("iperf218_udp", 5001);
    let mut counts = Counts::default();
    let mut reports = Vec::new();
    for (number, (from_client, datagram)) in (1..).zip(&session.datagrams) {
        if !from_client {
            reports.push(Report::read(datagram).unwrap());
            continue;
        }
        let seen = Datagram::read(datagram).unwrap();
        assert_eq!((seen.number, seen.last), (number, number == 6));
        let mut front = [0; DATAGRAM_BYTES];
        seen.write(&mut front);
        assert_eq!(front[..16], datagram[..16]);
        let header = Header { bytes: 300, amount: Amount::Bytes(1500), ..requested(false) };
        assert_eq!(header.to_datagram()[..44], datagram[16..60]);
        assert_eq!(Datagram::read(&front), Some(seen));
        let due = counts.take(&seen, datagram.len(), seen.sent_us + 7);
        assert_eq!(due, seen.last);
    }
    let theirs = reports[0];
    assert_eq!((theirs.bytes, theirs.elapsed_us, theirs.datagrams, theirs.jitter_us), (1800, 8009, 6, 362));
    let ours = counts.report();
    assert_eq!((ours.bytes, ours.datagrams, ours.lost, ours.out_of_order), (1800, 6, 0, 0));
    assert_eq!(ours.jitter_us, 0, "each took as long as the one before");
    assert_eq!(Report::read(&ours.to_bytes()).unwrap(), ours);
}

#[test]
fn losses_and_order_are_counted_by_number() {
    let mut counts = Counts::default();
    for (number, at) in [(1, 0), (2, 1000), (5, 2000), (4, 3016)] {
        assert!(!counts.take(&Datagram { number, last: false, sent_us: 0 }, 100, at));
    }
    let last = Datagram { number: 7, last: true, sent_us: 0 };
    assert!(counts.take(&last, 100, 4016));
    let report = counts.report();
    assert_eq!((report.lost, report.out_of_order, report.datagrams, report.bytes), (2, 1, 7, 500));
    assert_eq!(report.elapsed_us, 4016);
    assert!(report.jitter_us > 0);
    assert!(counts.take(&last, 100, 9999), "it is answered again");
    assert_eq!(counts.report(), report);
}

#[test]
fn round_trips_are_known_by_their_first_word() {
    let mut turn = Turn::default();
    Server::default().receive(&[0, 0x80, 0, 0, 0, 0, 0, 100, 0, 0, 0, 1], &mut turn).unwrap();
    assert_eq!(turn.actions, [ServerAction::Bounce]);
}

/// Words as they stand on the wire.
fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_be_bytes()).collect()
}

#[test]
fn both_directions_are_in_the_header() {
    // What `iperf -c HOST -p 7483 --full-duplex -t 1` of 2.1.8 sends before its data.
    let said = bytes(&[
        0x4401_0078,
        1,
        0x1d3b,
        0,
        0,
        0xffff_ff9c,
        0,
        0,
        0x0800_0000,
        0x0002_0001,
        0x0008_0003,
        0,
        0,
        0,
        0,
        0x4401_0078,
    ]);
    let (headers, data, answer) = serve(&said, 7);
    assert_eq!((headers[0].reverse, headers[0].full_duplex, headers[0].amount), (false, true, Amount::Hundredths(100)));
    assert!(data == 4 && answer.is_empty(), "its server acknowledges nothing");
    assert_eq!(Header { bytes: 0, ..headers[0] }.to_bytes(), said[..HEADER_BYTES]);
    // The front of the only datagram of `iperf -c HOST -p 7481 -u -R -b 1m -t 1`.
    let front = [1, 0x6b07_5406, 0x0c8e, 0, 0x6c01_0098, 1, 0x1d39, 0, 0, 0xffff_ff9c, 0, 0, 0x0400_0000, 0x0002_0001];
    let said = bytes(&[&front[..], &[0x0008_0003, 0, 0x000f_4240, 0, 0]].concat());
    let header = Header::from_datagram(&said).unwrap();
    assert_eq!((header.reverse, header.full_duplex, header.rate_bps), (true, false, 1_000_000));
    assert_eq!(Header::from_datagram(&said[..75]), None);
    assert_eq!(Header::from_datagram(&[0; 100]), None, "versions before 2.1 have none");
}

#[test]
fn unsupported_tests_are_refused_by_name() {
    let mut said = requested(false).to_bytes();
    said[0] |= 0x80;
    let mut turn = Turn::default();
    let error = Server::default().receive(&said, &mut turn).unwrap_err();
    assert_eq!(
        error.to_string(),
        "iperf2, while reading the header: tests in both directions (-d, -r) are not supported"
    );
    assert!(Report::read(&[0; 40]).unwrap_err().what.to_string().contains("40 bytes"));
    assert!(Report::read(&[0; 128]).unwrap_err().what.to_string().contains("not a report"));
}

proptest! {
    #[test]
    fn what_is_written_is_read(
        threads in 1_u32..=1024, port: u16, bytes in 1_u32..=1 << 30, count in 0_u32..1 << 31, time in 1_u32..1 << 31, timed: bool,
        direction in 0..3, rate_bps: u64, number in 1_u64..1 << 62, last: bool, sent_us in 0_u64..(1 << 32) * 1_000_000,
    ) {
        let amount = if timed { Amount::Hundredths(time) } else { Amount::Bytes(count) };
        let (reverse, full_duplex) = (direction == 1, direction == 2);
        let header = Header { threads, port, bytes, amount, reverse, full_duplex, rate_bps };
        prop_assert_eq!(Header::from_bytes(&header.to_bytes()), Ok(header));
        let datagram = Datagram { number, last, sent_us };
        let mut front = [0; DATAGRAM_BYTES];
        datagram.write(&mut front);
        prop_assert_eq!(Datagram::read(&front), Some(datagram));
    }

    #[test]
    fn any_bytes_are_data_a_header_or_an_error(said in prop::collection::vec(any::<u8>(), 0..400), piece in 1_usize..80) {
        let (mut server, mut turn) = (Server::default(), Turn::default());
        for piece in said.chunks(piece) {
            if let Err(error) = server.receive(piece, &mut turn) {
                prop_assert_eq!(error.peer, "iperf2");
                prop_assert!(server.receive(piece, &mut turn).is_err());
                return Ok(());
            }
        }
        let mut counts = Counts::default();
        for datagram in said.chunks(piece) {
            let _ = Report::read(datagram);
            if let Some(seen) = Datagram::read(datagram) {
                counts.take(&seen, datagram.len(), u64::MAX);
            }
        }
        prop_assert!(counts.report().bytes <= said.len() as u64);
    }
}
