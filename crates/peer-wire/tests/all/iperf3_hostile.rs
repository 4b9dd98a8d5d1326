//! iperf3's codecs with input that iperf3 never sends.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use peer_wire::iperf3::datagram::{HEADER_BYTES, Header};
use peer_wire::iperf3::{
    Client, ClientAction, Omitted, Parameters, Protocol, Results, Server, ServerAction, ServerFault, StreamHello,
    StreamResult, TestCookie, stream_ids,
};
use peer_wire::{Turn, WireError};
use proptest::prelude::*;

fn results(streams: u32) -> Results {
    let stream = |id| StreamResult {
        id,
        bytes: 1 << 40,
        retransmits: (id > 1).then_some(7),
        jitter_s: 1.5e-5,
        errors: -2,
        packets: 1000,
        omitted: Some(Omitted { errors: 1, packets: 10 }),
        end_time_s: Some(10.25),
    };
    Results {
        cpu_percent: [12.5, 2.25, 10.25],
        has_retransmits: Some(true),
        congestion: Some("cubic".into()),
        server_output_json: None,
        server_output_text: Some("what \"it\" said\n".into()),
        streams: stream_ids(streams).map(stream).collect(),
    }
}

fn framed(json: &[u8]) -> Vec<u8> {
    [&(json.len() as u32).to_be_bytes(), json].concat()
}

/// A client's bytes of a session after its cookie.
fn client_session(parameters: &Parameters) -> Vec<u8> {
    let mut said = framed(&parameters.to_json());
    said.push(4);
    said.extend(framed(&results(parameters.streams()).to_json()));
    said.push(16);
    said
}

/// A server's bytes of a session.
fn server_session(parameters: &Parameters) -> Vec<u8> {
    let mut said = vec![9, 10, 1, 2, 13];
    said.extend(framed(&results(parameters.streams()).to_json()));
    said.push(14);
    said
}

/// Our server with a simple driver, over the given pieces and then the end of the connection.
fn serve<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> (Result<(), WireError>, Turn<ServerAction>) {
    let mut turn = Turn::default();
    let mut server = Server::open(&mut turn);
    let mut streams = 0;
    for piece in pieces {
        // A driver acts after each byte: real ends wait for each other.
        for byte in piece {
            let seen = turn.actions.len();
            if let Err(error) = server.receive(&[*byte], &mut turn) {
                assert!(server.receive(b"\x04", &mut turn).is_err(), "nothing is taken after an error");
                return (Err(error), turn);
            }
            let asked_for = turn.actions[seen..].to_vec();
            for action in asked_for {
                match action {
                    ServerAction::Requested(requested) => {
                        streams = requested.streams();
                        server.accept(&mut turn).unwrap();
                        server.start(&mut turn).unwrap();
                    }
                    ServerAction::End => server.exchange(&mut turn).unwrap(),
                    ServerAction::ProgramResults(_) => server.results(&results(streams), &mut turn).unwrap(),
                    ServerAction::Terminated | ServerAction::Done => {}
                }
            }
        }
    }
    (server.ended(), turn)
}

/// Our client likewise.
fn ask(said: &[u8], parameters: &Parameters) -> (Result<(), WireError>, Turn<ClientAction>) {
    let mut turn = Turn::default();
    let mut client = Client::open(&TestCookie::of(&[7; 36]), parameters.clone(), &mut turn);
    for byte in said {
        let seen = turn.actions.len();
        if let Err(error) = client.receive(&[*byte], &mut turn) {
            assert!(client.receive(b"\x09", &mut turn).is_err(), "nothing is taken after an error");
            return (Err(error), turn);
        }
        let asked_for = turn.actions[seen..].to_vec();
        for action in asked_for {
            match action {
                ClientAction::Run => client.end(&mut turn).unwrap(),
                ClientAction::Results => client.results(&results(parameters.streams()), &mut turn).unwrap(),
                ClientAction::OpenStreams | ClientAction::ProgramResults(_) | ClientAction::Done => {}
            }
        }
    }
    (client.ended(), turn)
}

fn names_peer_and_step(error: &WireError) {
    assert_eq!(error.peer, "iperf3");
    assert!(error.step.starts_with("while ") || error.step.starts_with("after "), "{error}");
    assert!(!error.what.to_string().is_empty());
}

#[test]
fn lengths_beyond_the_limit_are_refused_before_their_bytes() {
    // CVE-2023-38403: a length that overflows with its NUL.
    for length in [8193, u32::MAX - 1, u32::MAX] {
        let (ended, turn) = serve([&length.to_be_bytes()[..]]);
        let error = ended.unwrap_err();
        assert_eq!(error.step, "while reading the parameters");
        assert!(error.what.to_string().contains(&length.to_string()), "{error}");
        assert_eq!(turn.send[1..], [0xfe, 0, 0, 0, 114, 0, 0, 0, 0], "the client learns it");
    }
    let mut said = vec![9, 10, 1, 2, 13];
    said.extend(u32::MAX.to_be_bytes());
    let error = ask(&said, &Parameters::new(Protocol::Tcp, 1)).0.unwrap_err();
    assert_eq!(error.step, "while reading the server's results");
}

#[test]
fn values_of_the_wrong_type_count_as_absent() {
    // CVE-2024-53580: a type that the reader did not expect.
    let wrong = [r#""x""#, "[]", "{}", "null", "[[[1]]]"];
    let keys = ["omit", "time", "num", "blockcount", "MSS", "parallel", "window", "len", "bandwidth", "burst", "TOS"];
    for key in keys {
        for value in wrong {
            let read = Parameters::from_json(format!(r#"{{"tcp":true,"{key}":{value}}}"#).as_bytes()).unwrap();
            assert_eq!(read, Parameters::new(Protocol::Tcp, 0), "{key} {value}");
        }
    }
    for key in ["title", "extra_data", "congestion", "authtoken", "client_version"] {
        let read = Parameters::from_json(format!(r#"{{"tcp":true,"{key}":5}}"#).as_bytes()).unwrap();
        assert_eq!(read, Parameters::new(Protocol::Tcp, 0), "{key}");
    }
    // CVE-2025-54351 used skip_rx_copy, which is ignored here.
    let read = Parameters::from_json(br#"{"tcp":true,"skip_rx_copy":1}"#).unwrap();
    assert_eq!(read, Parameters::new(Protocol::Tcp, 0));
}

#[test]
fn tokens_of_any_shape_are_carried_and_not_decoded_here() {
    // CVE-2025-54349 and -54350: tokens whose base64 or length the reader did not expect.
    for token in [String::new(), "=".into(), "====".into(), "A".repeat(8000), "\u{fffd}".into()] {
        let mut requested = Parameters::new(Protocol::Tcp, 1);
        requested.token = Some(token);
        assert_eq!(Parameters::from_json(&requested.to_json()).unwrap(), requested);
    }
}

#[test]
fn values_outside_their_range_get_iperf3s_number() {
    let cases = [
        (r#""tcp":true,"parallel":129"#, ServerFault::Streams),
        (r#""tcp":true,"parallel":0"#, ServerFault::Streams),
        (r#""tcp":true,"parallel":1e300"#, ServerFault::Streams),
        (r#""tcp":true,"time":-1"#, ServerFault::Duration),
        (r#""tcp":true,"time":86401"#, ServerFault::Duration),
        (r#""tcp":true,"omit":601"#, ServerFault::Omit),
        (r#""tcp":true,"len":0"#, ServerFault::BlockSize),
        (r#""tcp":true,"len":1048577"#, ServerFault::BlockSize),
        (r#""udp":true,"len":15"#, ServerFault::UdpBlockSize),
        (r#""udp":true,"len":65508"#, ServerFault::UdpBlockSize),
        (r#""tcp":true,"MSS":32768"#, ServerFault::Mss),
        (r#""tcp":true,"window":536870913"#, ServerFault::Buffer),
        (r#""tcp":true,"burst":1001"#, ServerFault::Burst),
        (r#""tcp":true,"num":-1"#, ServerFault::Parameters),
        (r#""tcp":true,"udp":true"#, ServerFault::Parameters),
        (r#""sctp":true"#, ServerFault::Parameters),
        (r#""time":1"#, ServerFault::Parameters),
    ];
    for (keys, fault) in cases {
        let (ended, turn) = serve([&framed(format!("{{{keys}}}").as_bytes())[..]]);
        assert!(ended.is_err(), "{keys}");
        let number = u32::from_be_bytes(turn.send[2..6].try_into().unwrap());
        assert_eq!((turn.send[1], ServerFault::of(number)), (0xfe, Some(fault)), "{keys}");
    }
}

#[test]
fn a_servers_refusals_are_reported_as_text() {
    let parameters = Parameters::new(Protocol::Tcp, 1);
    let said = |bytes: &[u8]| ask(bytes, &parameters).0.unwrap_err().to_string();
    assert!(said(&[0xff]).contains("busy with another client"));
    assert!(said(&[9, 11]).contains("stopped"));
    let refused = said(&[9, 0xfe, 0, 0, 0, 142, 0, 0, 0, 13]);
    assert!(refused.contains("142 (the login was refused: check") && refused.contains("os error 13"), "{refused}");
    assert!(said(&[9, 0xfe, 0, 0, 0, 142, 0xff, 0xff, 0xff, 0xb3]).ends_with(", errno -77"));
    // Before 3.14 a server closes instead.
    assert!(said(&[9]).contains("it may require a login"));
    // Version 3.12 closes after the first word.
    let refused = said(&[9, 0xfe, 0, 0, 0, 142]);
    assert!(refused.contains("142 (the login was refused: check") && !refused.contains("error 13"), "{refused}");
    assert!(said(&[9, 0xfe, 0]).contains("without a reason"));
}

#[test]
fn results_of_unknown_streams_are_refused() {
    let json = results(3).to_json();
    assert_eq!(Results::from_json(&json, 3).unwrap(), results(3));
    assert!(Results::from_json(&json, 2).unwrap_err().to_string().contains("stream 4"));
    let mut twice = results(2);
    twice.streams[1].id = 1;
    assert!(Results::from_json(&twice.to_json(), 2).unwrap_err().to_string().contains("twice"));
}

#[test]
fn the_client_may_stop_at_any_step() {
    let parameters = Parameters::new(Protocol::Tcp, 1);
    let (ended, turn) = serve([&framed(&parameters.to_json())[..], &[12]]);
    ended.unwrap();
    assert_eq!(turn.actions.last(), Some(&ServerAction::Terminated));
    let mut turn = Turn::default();
    let mut client = Client::open(&TestCookie::of(&[0; 36]), parameters, &mut turn);
    assert!(client.end(&mut turn).is_err(), "a test that does not run cannot end");
    client.terminate(&mut turn);
    assert_eq!(turn.send.last(), Some(&12));
    client.ended().unwrap();
}

#[test]
fn every_cut_of_a_session_is_an_error_that_names_its_step() {
    let parameters = Parameters { bidirectional: true, parallel: 2, ..Parameters::new(Protocol::Tcp, 1) };
    let whole = client_session(&parameters);
    for cut in 0..whole.len() - 1 {
        names_peer_and_step(&serve([&whole[..cut]]).0.unwrap_err());
    }
    serve([&whole[..]]).0.unwrap();
    let whole = server_session(&parameters);
    for cut in 0..whole.len() {
        names_peer_and_step(&ask(&whole[..cut], &parameters).0.unwrap_err());
    }
    ask(&whole, &parameters).0.unwrap();
    let mut hello = StreamHello::default();
    assert!(hello.take(&mut &b"short"[..]).is_none());
    names_peer_and_step(&hello.ended().unwrap_err());
}

proptest! {
    #[test]
    fn any_bytes_to_the_server_end_or_name_their_step(said in prop::collection::vec(any::<u8>(), 0..200)) {
        if let Err(error) = serve([&said[..]]).0 {
            names_peer_and_step(&error);
        }
        if let Err(error) = serve([&framed(&said)[..]]).0 {
            names_peer_and_step(&error);
        }
    }

    #[test]
    fn any_bytes_to_the_client_end_or_name_their_step(
        steps in 0_usize..6, said in prop::collection::vec(any::<u8>(), 0..200),
    ) {
        let mut all = vec![9, 10, 1, 2, 13];
        all.truncate(steps);
        all.extend(said);
        if let Err(error) = ask(&all, &Parameters::new(Protocol::Udp, 1)).0 {
            names_peer_and_step(&error);
        }
    }

    #[test]
    fn a_session_with_one_changed_byte_never_panics(at in any::<prop::sample::Index>(), byte in any::<u8>()) {
        let parameters = Parameters::new(Protocol::Tcp, 1);
        let mut said = client_session(&parameters);
        let place = at.index(said.len());
        said[place] = byte;
        if let Err(error) = serve([&said[..]]).0 {
            names_peer_and_step(&error);
        }
        let mut said = server_session(&parameters);
        let place = at.index(said.len());
        said[place] = byte;
        if let Err(error) = ask(&said, &parameters).0 {
            names_peer_and_step(&error);
        }
    }

    #[test]
    fn pieces_make_no_difference(cuts in prop::collection::vec(1_usize..60, 0..20)) {
        let said = framed(&Parameters::new(Protocol::Tcp, 1).to_json());
        let mut turn = Turn::default();
        let mut server = Server::open(&mut turn);
        let mut rest = &said[..];
        for cut in cuts {
            let (piece, after) = rest.split_at(cut.min(rest.len()));
            server.receive(piece, &mut turn).unwrap();
            rest = after;
        }
        server.receive(rest, &mut turn).unwrap();
        let requested = Box::new(Parameters::new(Protocol::Tcp, 1));
        prop_assert_eq!(turn.actions, vec![ServerAction::Requested(requested)]);
    }

    #[test]
    fn headers_read_as_written(seconds in any::<u32>(), micros in 0_u32..1_000_000, number in any::<u64>()) {
        let header = Header { sent_us: u64::from(seconds) * 1_000_000 + u64::from(micros), number };
        let mut block = [0xaa; HEADER_BYTES];
        header.write(&mut block, true);
        prop_assert_eq!(Header::read(&block, true), Some(header));
        header.write(&mut block, false);
        let narrow = Header { number: number & 0xffff_ffff, ..header };
        prop_assert_eq!(Header::read(&block, false), Some(narrow));
        prop_assert_eq!(Header::read(&block[..11], false), None);
    }
}
