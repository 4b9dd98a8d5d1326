//! netperf's codec with recordings of netperf and netserver and with invalid input.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use peer_wire::Turn;
use peer_wire::netperf::{
    BLOCK_BYTES, Block, Client, ClientAction, Counted, Cpu, Flags, NOT_SUPPORTED, OmniRequest, Ready, SendingEnd,
    Served, Server, ServerAction,
};
use proptest::prelude::*;

use crate::common::recording;

const RECORDED: [(&str, SendingEnd, bool); 6] = [
    ("netperf27_TCP_STREAM", SendingEnd::ServerReceives, false),
    ("netperf27_TCP_MAERTS", SendingEnd::ServerSends, false),
    ("netperf27_TCP_RR", SendingEnd::Both, false),
    ("netperf27_UDP_STREAM", SendingEnd::ServerReceives, true),
    ("netperf27_UDP_RR", SendingEnd::Both, true),
    ("netperf27_omni_selectors", SendingEnd::ServerReceives, false),
];

fn block(bytes: &[u8], number: usize) -> Block {
    Block(bytes[number * BLOCK_BYTES..(number + 1) * BLOCK_BYTES].try_into().unwrap())
}

/// The offsets of words in which two blocks differ.
fn differences(ours: &[u8], theirs: &[u8]) -> Vec<usize> {
    assert_eq!(ours.len(), theirs.len());
    (0..ours.len()).step_by(4).filter(|at| ours[*at..at + 4] != theirs[*at..at + 4]).collect()
}

#[test]
fn our_client_sends_what_netperf_sent() {
    for (name, direction, udp) in RECORDED {
        let recording = recording(name, 12_865);
        let control = &recording.connections[0];
        let request = OmniRequest::from_block(&block(&control.from_client, 0)).unwrap();
        assert_eq!((request.direction, request.udp, request.length), (direction, udp, 1), "{name}");
        let mut turn = Turn::default();
        let mut client = Client::open(&request, &mut turn);
        assert_eq!(turn.send, control.from_client, "{name}");
        for byte in &control.from_server {
            client.receive(&[*byte], &mut turn).unwrap();
        }
        client.ended().unwrap();
        let [ClientAction::Run(ready), ClientAction::Counted(counted)] = &turn.actions[..] else {
            panic!("{name}: {:?}", turn.actions)
        };
        assert!(ready.data_port > 1024 && ready.send_buffer >= 16_384, "{name}: {ready:?}");
        assert!((0.9..1.1).contains(&counted.elapsed_s), "{name}: {counted:?}");
        assert_eq!(counted.bytes_received > 0, direction != SendingEnd::ServerSends, "{name}");
        assert_eq!(counted.bytes_sent > 0, direction != SendingEnd::ServerReceives, "{name}");
        assert_eq!(counted.transactions > 0, direction == SendingEnd::Both, "{name}");
        assert_eq!(counted.retransmits, (!udp).then_some(0), "{name}");
        assert_eq!(counted.cpu.is_some(), request.flags.has(Flags::CPU), "{name}");
        // Only routed requests get the congestion control's name.
        assert_eq!(counted.congestion, if udp { "" } else { "cubic" }, "{name}");
        client.ask(&request, &mut turn).unwrap();
        assert!(client.ask(&request, &mut turn).is_err(), "one test at a time");
    }
}

#[test]
fn our_server_sends_what_netserver_sent() {
    for (name, ..) in RECORDED {
        let recording = recording(name, 12_865);
        let control = &recording.connections[0];
        let (first, second) = (block(&control.from_server, 0), block(&control.from_server, 1));
        let mut turn = Turn::default();
        let mut server = Server::default();
        for byte in &control.from_client {
            server.receive(&[*byte], &mut turn).unwrap();
        }
        let [ServerAction::Requested(request)] = &turn.actions[..] else { panic!("{name}: {:?}", turn.actions) };
        let flags = request.flags;
        assert!(server.counted(&Counted::from_block(&second, flags).unwrap(), &mut turn).is_err(), "{name}");
        server.ready(&Ready::from_block(&first).unwrap(), &mut turn).unwrap();
        server.counted(&Counted::from_block(&second, flags).unwrap(), &mut turn).unwrap();
        server.ended().unwrap();
        assert_eq!(differences(&turn.send[..BLOCK_BYTES], &first.0), [0_usize; 0], "{name}");
        // Byte-swapped leftovers of the first block, which netperf ignores.
        let expected: &[usize] = if flags.has(Flags::CPU) { &[76] } else { &[52, 72, 76] };
        assert_eq!(differences(&turn.send[BLOCK_BYTES..], &second.0), expected, "{name}");
    }
}

#[test]
fn netperf_26_is_told_of_the_system_before_its_test() {
    let (mut turn, mut server) = (Turn::default(), Server::default());
    let mut asked = vec![0; 656];
    asked[..4].copy_from_slice(&600_u32.to_be_bytes());
    server.receive(&asked, &mut turn).unwrap();
    assert_eq!(
        (turn.send.len(), &turn.send[..8], &turn.send[8..14]),
        (656, &[0, 0, 2, 89, 0, 0, 0, 0][..], &b"|thru|"[..])
    );
    // Then comes its test.
    server.receive(&recording("netperf27_TCP_SENDFILE", 12_865).connections[0].from_client, &mut turn).unwrap();
    assert!(matches!(&turn.actions[..], [ServerAction::Requested(_)]));
}

#[test]
fn the_rate_of_a_cpu_is_that_of_its_ticks() {
    // `netperf -t REM_CPU -v 2`: netserver 2.7.1 answers 100 and the number of CPUs.
    let (mut turn, mut server) = (Turn::default(), Server::default().with_cpus(3));
    let mut asked = vec![0; 656];
    asked[..4].copy_from_slice(&5_u32.to_be_bytes());
    server.receive(&asked, &mut turn).unwrap();
    let words: Vec<u32> = turn.send.chunks(4).map(|word| u32::from_be_bytes(word.try_into().unwrap())).collect();
    assert_eq!((words.len(), &words[..4]), (164, &[5, 0, 100_f32.to_bits(), 3][..]));
    server.ended().unwrap();
}

#[test]
fn tcp_sendfile_is_answered_in_its_own_blocks() {
    let recording = recording("netperf27_TCP_SENDFILE", 12_865);
    let control = &recording.connections[0];
    let (first, second) = (block(&control.from_server, 0), block(&control.from_server, 1));
    let (mut turn, mut server) = (Turn::default(), Server::default());
    server.receive(&control.from_client, &mut turn).unwrap();
    let [ServerAction::Requested(requested)] = &turn.actions[..] else { panic!("{:?}", turn.actions) };
    assert_eq!(
        (requested.served, requested.direction, requested.length),
        (Served::Classic, SendingEnd::ServerReceives, 1)
    );
    assert_eq!((requested.ip_version, requested.receive_size, requested.flags), (4, None, Flags::ROUTED));
    let word = |block: &Block, at: usize| u32::from_be_bytes(block.0[at..at + 4].try_into().unwrap());
    let ready = Ready {
        receive_buffer: word(&first, 8),
        receive_size: Some(word(&first, 12)),
        receive_width: 1,
        send_buffer: word(&first, 28),
        send_size: None,
        send_width: 1,
        data_port: word(&first, 32) as u16,
        tos: None,
        flags: requested.flags,
    };
    server.ready(&ready, &mut turn).unwrap();
    let bytes = f64::from_be_bytes(second.0[8..16].try_into().unwrap());
    let counted = Counted {
        bytes_received: bytes as u64,
        receives: word(&second, 16),
        receive_buffer: word(&second, 40),
        bytes_sent: 0,
        sends: 0,
        send_buffer: word(&second, 44),
        failed_sends: 0,
        transactions: 0,
        elapsed_s: f32::from_bits(word(&second, 20)),
        cpu: None,
        retransmits: None,
        congestion: String::new(),
    };
    assert!(bytes > 1e9 && (0.9..1.1).contains(&counted.elapsed_s), "{counted:?}");
    server.counted(&counted, &mut turn).unwrap();
    assert_eq!(differences(&turn.send[..BLOCK_BYTES], &first.0), [0_usize; 0]);
    // A leftover instead of the service demand, which netperf shows only if CPU time was requested.
    assert_eq!(differences(&turn.send[BLOCK_BYTES..], &second.0), [28]);
    server.ended().unwrap();
}

#[test]
fn later_requests_of_a_run_with_intervals_repeat_the_answer() {
    let recording = recording("netperf27_classic_table", 12_865);
    let control = &recording.connections[0];
    let (mut server, mut client) = (Server::default(), None::<Client>);
    let mut ports = Vec::new();
    for test in 0..3 {
        let requested = block(&control.from_client, test);
        let answers = [2 * test, 2 * test + 1].map(|at| block(&control.from_server, at));
        let mut turn = Turn::default();
        server.receive(&requested.0, &mut turn).unwrap();
        let [ServerAction::Requested(request)] = &turn.actions[..] else { panic!("{:?}", turn.actions) };
        let request = request.clone();
        assert!(request.flags.has(Flags::NODELAY) && request.flags.has(Flags::CPU), "{request:?}");
        let (ready, counted) =
            (Ready::from_block(&answers[0]).unwrap(), Counted::from_block(&answers[1], request.flags).unwrap());
        assert_eq!(ready.flags, Ready::FLAGS, "netperf goes by these in its next test");
        ports.push((request.data_port, ready.data_port));
        server.ready(&ready, &mut turn).unwrap();
        server.counted(&counted, &mut turn).unwrap();
        // From the second test on the answer contains leftovers of earlier results.
        let left: &[usize] = if test == 0 { &[] } else { &[80, 84, 92, 276, 280] };
        assert_eq!(differences(&turn.send[..BLOCK_BYTES], &answers[0].0), left, "test {test}");
        assert_eq!(differences(&turn.send[BLOCK_BYTES..], &answers[1].0), [76], "test {test}");
        let mut heard = Turn::default();
        if let Some(client) = &mut client {
            client.ask(&request, &mut heard).unwrap();
        } else {
            client = Some(Client::open(&request, &mut heard));
        }
        // The CPU rate, which the server reports and receives back; with /proc/stat it is unused.
        assert_eq!(differences(&heard.send, &requested.0), if test == 0 { vec![] } else { vec![60] }, "test {test}");
        let own = client.as_mut().unwrap();
        own.receive(&control.from_server[2 * test * BLOCK_BYTES..][..2 * BLOCK_BYTES], &mut heard).unwrap();
        assert_eq!(heard.actions, [ClientAction::Run(ready), ClientAction::Counted(counted)]);
    }
    assert!(ports[0].0 == 0 && ports[1..].iter().all(|(requested, _)| *requested == ports[0].1), "{ports:?}");
    server.ended().unwrap();
}

#[test]
fn a_connection_per_transaction_is_requested_and_answered_as_recorded() {
    // The recording ends while calls are made: netserver's counts are not in it.
    let recording = recording("netperf27_TCP_CRR", 12_865);
    let control = &recording.connections[0];
    assert_eq!((control.from_client.len(), control.from_server.len()), (BLOCK_BYTES, BLOCK_BYTES));
    let mut turn = Turn::default();
    let mut server = Server::default();
    for byte in &control.from_client {
        server.receive(&[*byte], &mut turn).unwrap();
    }
    let [ServerAction::Requested(request)] = &turn.actions[..] else { panic!("{:?}", turn.actions) };
    let request = request.clone();
    assert_eq!((request.direction, request.request_size, request.response_size), (SendingEnd::Both, Some(1), Some(1)));
    assert_eq!(request.flags, Flags(Flags::ROUTED.0 | Flags::CONNECT.0));
    let ready = Ready::from_block(&block(&control.from_server, 0)).unwrap();
    server.ready(&ready, &mut turn).unwrap();
    assert_eq!(turn.send, control.from_server);
    assert_eq!(server.ended().unwrap_err().step, "while data flowed");

    let mut turn = Turn::default();
    let mut client = Client::open(&request, &mut turn);
    assert_eq!(turn.send, control.from_client);
    for byte in &control.from_server {
        client.receive(&[*byte], &mut turn).unwrap();
    }
    assert_eq!(turn.actions, [ClientAction::Run(ready)]);
    assert_eq!(client.ended().unwrap_err().step, "while waiting for what the server counted");
}

fn request() -> OmniRequest {
    OmniRequest {
        served: Served::Omni,
        tos: Some(0x20),
        send_buffer: None,
        send_size: Some(1 << 14),
        send_width: 1,
        request_size: None,
        receive_buffer: Some(1 << 20),
        receive_size: None,
        receive_width: 0,
        response_size: None,
        flags: Flags(Flags::ROUTED.0 | Flags::NODELAY.0),
        length: -1000,
        data_port: 5000,
        ip_version: 6,
        udp: false,
        direction: SendingEnd::Neither,
        client_port: 0,
        congestion: "reno".into(),
    }
}

#[test]
fn a_classic_test_has_its_own_words_for_flags_and_cpu_time() {
    let recording = recording("netperf27_TCP_SENDFILE", 12_865);
    let mut requested = block(&recording.connections[0].from_client, 0);
    for at in [28, 32] {
        requested.0[at + 3] = 1;
    }
    let (mut turn, mut server) = (Turn::default(), Server::default());
    server.receive(&requested.0, &mut turn).unwrap();
    let [ServerAction::Requested(request)] = &turn.actions[..] else { panic!("{:?}", turn.actions) };
    let ready = Ready { flags: request.flags, ..Ready::from_block(&Block([0; BLOCK_BYTES])).unwrap() };
    let cpu = Cpu { percent: 12.5, cpus: 4, ..Cpu::default() };
    let counted = Counted::from_block(&Block([0; BLOCK_BYTES]), Flags::default()).unwrap();
    server.ready(&ready, &mut turn).unwrap();
    server.counted(&Counted { cpu: Some(cpu), ..counted }, &mut turn).unwrap();
    let word = |at: usize| u32::from_be_bytes(turn.send[at..at + 4].try_into().unwrap());
    assert_eq!((word(16), word(20), f32::from_bits(word(36))), (1, 1, 100.0));
    let results = BLOCK_BYTES;
    assert_eq!((f32::from_bits(word(results + 24)), word(results + 32), word(results + 36)), (12.5, 8, 4));
}

#[test]
fn requests_that_cannot_be_are_refused_with_a_number() {
    let cases: [(usize, u32, u32); 10] = [
        (0, 94, NOT_SUPPORTED),
        (0, 0, NOT_SUPPORTED),
        (12, 0x7fff_ffff, 22),
        (12, 0xffff_fffe, 22),
        (24, 0x7fff_ffff, 22),
        (88, 0x1_0000, 22),
        (92, 7, 22),
        (96, 3, 22),
        (100, 17, 22),
        (104, 8, 22),
    ];
    for (at, word, number) in cases {
        let mut block = request().to_block();
        block.0[at..at + 4].copy_from_slice(&word.to_be_bytes());
        let mut turn = Turn::default();
        let mut server = Server::default();
        let error = server.receive(&block.0, &mut turn).unwrap_err();
        assert_eq!((error.peer, error.step), ("netperf", "while reading a request"), "{error}");
        assert_eq!(turn.send[4..8], number.to_be_bytes(), "{at} {word}");
        assert!(server.receive(&request().to_block().0, &mut turn).is_err(), "nothing is taken after an error");
        // Our client reports it.
        let mut client = Client::open(&request(), &mut Turn::default());
        let reported = client.receive(&turn.send, &mut Turn::default()).unwrap_err();
        assert!(reported.what.to_string().contains(&number.to_string()), "{reported}");
    }
}

#[test]
fn debugging_is_answered_and_an_unasked_passphrase_is_not() {
    let mut turn = Turn::default();
    let mut server = Server::default();
    let of_kind = |kind: u8| {
        let mut block = [0; BLOCK_BYTES];
        block[3] = kind;
        block
    };
    server.receive(&of_kind(1), &mut turn).unwrap();
    assert_eq!(turn.send[..], of_kind(3));
    server.receive(&of_kind(6), &mut turn).unwrap();
    assert_eq!(turn.send.len(), BLOCK_BYTES);
    server.receive(&request().to_block().0, &mut turn).unwrap();
    assert_eq!(turn.actions, [ServerAction::Requested(request())]);
}

#[test]
fn every_cut_is_an_error_that_names_its_step() {
    let session = request().to_block().0;
    for cut in 1..=session.len() {
        let mut server = Server::default();
        server.receive(&session[..cut], &mut Turn::default()).unwrap();
        let error = server.ended().unwrap_err();
        assert!(error.peer == "netperf" && error.step.starts_with("while "), "{error}");
    }
    let mut client = Client::open(&request(), &mut Turn::default());
    assert_eq!(client.ended().unwrap_err().step, "while waiting for the server to be ready");
    client.receive(&[0; BLOCK_BYTES], &mut Turn::default()).unwrap();
    assert_eq!(client.ended().unwrap_err().step, "while waiting for what the server counted");
}

#[test]
fn a_name_that_is_none_fits_where_it_came_from() {
    let mut block = Block(request().to_block().0);
    block.0[160..176].copy_from_slice(&[0xff; 16]);
    let requested = OmniRequest::from_block(&block).unwrap();
    assert_eq!(requested.congestion, "?".repeat(15));
    assert_eq!(OmniRequest::from_block(&requested.to_block()), Ok(requested));
}

proptest! {
    #[test]
    fn any_bytes_end_or_name_their_step(
        words in prop::collection::vec((0_usize..50, any::<u32>()), 0..6), more in 0_usize..700,
    ) {
        let mut said = request().to_block().0.to_vec();
        for (at, word) in words {
            said[at * 4..at * 4 + 4].copy_from_slice(&word.to_be_bytes());
        }
        said.extend(vec![0x5a; more]);
        let mut turn = Turn::default();
        if let Err(error) = Server::default().receive(&said, &mut turn) {
            prop_assert_eq!(error.peer, "netperf");
            prop_assert!(!error.what.to_string().is_empty());
        }
        if let Some(ServerAction::Requested(requested)) = turn.actions.first() {
            prop_assert_eq!(OmniRequest::from_block(&requested.to_block()), Ok(requested.clone()));
        }
        let mut client = Client::open(&request(), &mut Turn::default());
        if let Err(error) = client.receive(&said, &mut Turn::default()) {
            prop_assert_eq!(error.peer, "netperf");
            prop_assert!(client.receive(b"x", &mut Turn::default()).is_err());
        }
    }
}
