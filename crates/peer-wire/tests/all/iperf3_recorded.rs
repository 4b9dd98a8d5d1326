//! iperf3's codecs with recordings of the real iperf3.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use peer_wire::Turn;
use peer_wire::iperf3::datagram::{HEADER_BYTES, Header, REPLY, REQUEST, is_reply};
use peer_wire::iperf3::{
    COOKIE_BYTES, Client, ClientAction, Parameters, Protocol, Results, Server, ServerAction, StreamHello, TestCookie,
};

use crate::common::recording;

/// The control connection's two framed messages from one side: the first starts at `at`.
fn frame(bytes: &[u8], at: usize) -> &[u8] {
    let length = u32::from_be_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
    &bytes[at + 4..at + 4 + length]
}

/// Compares results whose doubles may be written differently.
fn same_results(ours: &[u8], theirs: &[u8], streams: u32) -> Results {
    let ours = Results::from_json(ours, streams).unwrap();
    assert_eq!(ours, Results::from_json(theirs, streams).unwrap());
    ours
}

#[test]
fn parameters_are_written_as_iperf3_writes_them() {
    for name in
        ["iperf312_tcp", "iperf312_udp", "iperf321_tcp", "iperf321_tcp_R", "iperf321_tcp_bidir_P2", "iperf321_udp_R"]
    {
        let recording = recording(name, 5201);
        let json = frame(&recording.connections[0].from_client, COOKIE_BYTES);
        let read = Parameters::from_json(json).unwrap();
        assert_eq!(String::from_utf8(read.to_json()).unwrap(), String::from_utf8(json.to_vec()).unwrap(), "{name}");
        assert_eq!(read.reverse, name.ends_with("_R"), "{name}");
        assert_eq!(read.bidirectional, name.contains("bidir"), "{name}");
        assert_eq!(read.protocol == Protocol::Udp, name.contains("udp"), "{name}");
        // Every TCP stream sent the cookie of the control connection and received nothing.
        let cookie = &recording.connections[0].from_client[..COOKIE_BYTES];
        let streams = &recording.connections[1..];
        let expected = if read.protocol == Protocol::Tcp { read.streams() } else { 0 };
        assert_eq!(streams.len() as u32, expected, "{name}");
        for stream in streams {
            let mut bytes = &stream.from_client[..];
            let shown = StreamHello::default().take(&mut bytes).unwrap();
            assert_eq!(shown.bytes(), cookie, "{name}");
        }
    }
}

#[test]
fn our_client_sends_what_the_real_client_sent() {
    for name in ["iperf312_tcp", "iperf312_udp"] {
        let recording = recording(name, 5201);
        let control = &recording.connections[0];
        let parameters = Parameters::from_json(frame(&control.from_client, COOKIE_BYTES)).unwrap();
        let after = COOKIE_BYTES + 4 + parameters.to_json().len();
        assert_eq!(control.from_client[after], 4, "TEST_END");
        let results = frame(&control.from_client, after + 1);
        let cookie = TestCookie::from_wire(control.from_client[..COOKIE_BYTES].try_into().unwrap());

        let mut turn = Turn::default();
        let mut client = Client::open(&cookie, parameters.clone(), &mut turn);
        let mut acted = Vec::new();
        for byte in &control.from_server {
            client.receive(&[*byte], &mut turn).unwrap();
            for action in std::mem::take(&mut turn.actions) {
                match &action {
                    ClientAction::Run => client.end(&mut turn).unwrap(),
                    ClientAction::Results => {
                        let ours = Results::from_json(results, parameters.streams()).unwrap();
                        client.results(&ours, &mut turn).unwrap();
                    }
                    _ => {}
                }
                acted.push(action);
            }
        }
        client.ended().unwrap();
        assert_eq!(turn.send[..=after], control.from_client[..=after], "{name}");
        let ours = same_results(frame(&turn.send, after + 1), results, 1);
        assert_eq!(ours.streams[0].id, 1);
        assert!(ours.streams[0].bytes > 0);
        assert_eq!(turn.send.last(), control.from_client.last(), "{name}: IPERF_DONE");
        let [
            ClientAction::OpenStreams,
            ClientAction::Run,
            ClientAction::Results,
            ClientAction::ProgramResults(theirs),
            ClientAction::Done,
        ] = &acted[..]
        else {
            panic!("{name}: {acted:?}")
        };
        assert_eq!(theirs.has_retransmits, None, "{name}: a receiver, which 3.12 writes as 2^64 - 1");
        assert_eq!(theirs.streams[0].retransmits, None);
        assert_eq!(theirs.streams[0].omitted, None, "{name}: 3.12 is before them");
    }
}

#[test]
fn our_server_sends_what_the_real_server_sent() {
    for name in ["iperf312_tcp", "iperf312_udp"] {
        let recording = recording(name, 5201);
        let control = &recording.connections[0];
        // 9, 10, 1, 2, 13, then the results and 14.
        let results = frame(&control.from_server, 5);
        let mut input = &control.from_client[..];
        StreamHello::default().take(&mut input).unwrap();
        let mut turn = Turn::default();
        let mut server = Server::open(&mut turn);
        let mut acted = 0;
        for byte in input {
            server.receive(&[*byte], &mut turn).unwrap();
            for action in std::mem::take(&mut turn.actions) {
                acted += 1;
                match action {
                    ServerAction::Requested(_) => {
                        server.accept(&mut turn).unwrap();
                        server.start(&mut turn).unwrap();
                    }
                    ServerAction::End => server.exchange(&mut turn).unwrap(),
                    ServerAction::ProgramResults(_) => {
                        server.results(&Results::from_json(results, 1).unwrap(), &mut turn).unwrap();
                    }
                    ServerAction::Terminated => panic!("{name}: nobody stopped it"),
                    ServerAction::Done => {}
                }
            }
        }
        assert_eq!(acted, 4, "{name}");
        server.ended().unwrap();
        assert_eq!(turn.send[..5], control.from_server[..5], "{name}");
        same_results(frame(&turn.send, 5), results, 1);
        assert_eq!(turn.send.last(), control.from_server.last(), "{name}: DISPLAY_RESULTS");
    }
}

#[test]
fn datagrams_are_those_of_the_real_program() {
    for (name, sender_is_client) in [("iperf312_udp", true), ("iperf321_udp_R", false)] {
        let recording = recording(name, 5201);
        let [(true, request), (false, reply), blocks @ ..] = &recording.datagrams[..] else {
            panic!("{name}: a stream opens with a request and its reply")
        };
        assert_eq!(request[..], REQUEST, "{name}");
        assert_eq!(reply[..], REPLY, "{name}");
        assert!(is_reply(reply) && !is_reply(request));
        let mut before = 0;
        for (number, (from_client, block)) in (1..).zip(blocks) {
            assert_eq!((*from_client, block.len()), (sender_is_client, 1000), "{name}");
            let header = Header::read(block, false).unwrap();
            assert_eq!(header.number, number, "{name}");
            assert!(header.sent_us > before, "{name}: {} after {before}", header.sent_us);
            before = header.sent_us;
            let mut front: [u8; HEADER_BYTES] = block[..HEADER_BYTES].try_into().unwrap();
            front[..12].fill(0);
            header.write(&mut front, false);
            assert_eq!(front, block[..HEADER_BYTES], "{name}");
        }
        assert!(before > 0, "{name} has blocks");
    }
}
