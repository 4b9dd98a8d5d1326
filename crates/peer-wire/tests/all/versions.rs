//! The versions that the manual names, each with recorded sessions of its client and its server.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use std::collections::BTreeSet;

use peer_wire::iperf3::{COOKIE_BYTES, Parameters, Results, TestCookie};
use peer_wire::netperf::{BLOCK_BYTES, Block, OmniRequest};
use peer_wire::{Turn, iperf2, iperf3, netperf, nuttcp};

use crate::common::{Connection, recording};

/// The program, its version, and a session of it.
const RECORDED: &[(&str, &str, &str)] = &[
    ("iperf3", "3.1.3", "iperf3-3.1.3_tcp"),
    ("iperf3", "3.6", "iperf3-3.6_tcp"),
    ("iperf3", "3.7", "iperf3-3.7_tcp_bidir"),
    ("iperf3", "3.12", "iperf312_tcp"),
    ("iperf3", "3.21", "iperf3-3.21_tcp"),
    ("netperf", "2.6.0", "netperf-2.6.0_TCP_STREAM"),
    ("netperf", "2.7.0", "netperf-2.7.0_TCP_STREAM"),
    ("netperf", "2.7.1", "netperf27_TCP_STREAM"),
    ("netpipe", "3.7.2", "netpipe372_pingpong"),
    ("nuttcp", "6.1.2", "nuttcp612_tcp"),
    ("nuttcp", "8.2.2", "nuttcp-8.2.2_tcp"),
    ("iperf2", "2.1.8", "iperf218_tcp"),
    ("iperf2", "2.2.1", "iperf2-2.2.1_tcp"),
];

fn of(program: &str) -> impl Iterator<Item = (&'static str, Connection)> {
    use peer_wire::{iperf2, iperf3, netperf, netpipe, nuttcp};
    let recorded = [iperf2::PEER, iperf3::PEER, netperf::PEER, netpipe::PEER, nuttcp::PEER];
    let port = recorded.into_iter().find(|peer| peer.name == program).unwrap().port;
    let own: Vec<_> = RECORDED.iter().filter(|(name, ..)| *name == program).collect();
    own.into_iter().map(move |(_, version, name)| (*version, recording(name, port).connections.remove(0)))
}

/// The versions in a cell of a table.
fn versions(cell: &str) -> Vec<&str> {
    let words = cell.split([' ', ',', '(', ')']);
    words.filter(|word| word.contains('.') && word.split('.').all(|part| part.parse::<u32>().is_ok())).collect()
}

#[test]
fn the_manual_names_the_versions_that_are_recorded() {
    let manual = include_str!("../../../../docs/manual/speak.md");
    for program in ["iperf3", "netperf", "netpipe", "nuttcp", "iperf2"] {
        let row = manual.lines().find(|line| line.starts_with(&format!("| `{program}` |"))).unwrap();
        let cells: Vec<&str> = row.trim_matches('|').split('|').collect();
        let (spoken, tested) = (versions(cells[1]), versions(cells.last().unwrap()));
        let recorded: Vec<&str> = RECORDED.iter().filter(|(name, ..)| *name == program).map(|one| one.1).collect();
        assert_eq!(tested.iter().collect::<BTreeSet<_>>(), recorded.iter().collect(), "{row}");
        // Both ends of the range were tried: 3.1 is 3.1.3, but not 3.12.
        let is_of = |version: &str, claimed: &str| version == claimed || version.starts_with(&format!("{claimed}."));
        for (claimed, version) in [(spoken.first(), recorded.first()), (spoken.last(), recorded.last())] {
            assert!(is_of(version.unwrap(), claimed.unwrap()), "{row}: {claimed:?} and {version:?}");
        }
    }
}

#[test]
fn iperf3s_clients_and_servers_are_understood() {
    for (version, control) in of("iperf3") {
        let at = COOKIE_BYTES;
        let length = u32::from_be_bytes(control.from_client[at..at + 4].try_into().unwrap()) as usize;
        let requested = Parameters::from_json(&control.from_client[at + 4..at + 4 + length]).unwrap();
        assert_eq!(requested.bidirectional, version == "3.7");
        let own =
            br#"{"cpu_util_total":0,"cpu_util_user":0,"cpu_util_system":0,"sender_has_retransmits":-1,"streams":[]}"#;
        let own = Results::from_json(own, 1).unwrap();

        let mut turn = Turn::default();
        let cookie = TestCookie::from_wire(control.from_client[..COOKIE_BYTES].try_into().unwrap());
        let mut client = iperf3::Client::open(&cookie, requested.clone(), &mut turn);
        let mut reported = None;
        for byte in &control.from_server {
            client.receive(&[*byte], &mut turn).unwrap_or_else(|error| panic!("{version}: {error}"));
            for action in std::mem::take(&mut turn.actions) {
                match action {
                    iperf3::ClientAction::Run => client.end(&mut turn).unwrap(),
                    iperf3::ClientAction::Results => client.results(&own, &mut turn).unwrap(),
                    iperf3::ClientAction::ProgramResults(results) => reported = Some(results),
                    iperf3::ClientAction::OpenStreams | iperf3::ClientAction::Done => {}
                }
            }
        }
        client.ended().unwrap();
        let reported = reported.unwrap();
        assert_eq!(reported.streams.len() as u32, requested.streams(), "{version}");
        // What differs between versions.
        let stream = &reported.streams[0];
        let [since_3_2, since_3_14] = [stream.end_time_s.is_some(), stream.omitted.is_some()];
        assert_eq!((since_3_2, since_3_14), (version != "3.1.3", version == "3.21"), "{version}");

        let (mut turn, mut done) = (Turn::default(), false);
        let mut server = iperf3::Server::open(&mut turn);
        for byte in &control.from_client[COOKIE_BYTES..] {
            server.receive(&[*byte], &mut turn).unwrap_or_else(|error| panic!("{version}: {error}"));
            for action in std::mem::take(&mut turn.actions) {
                match action {
                    iperf3::ServerAction::Requested(read) => {
                        assert_eq!(*read, requested, "{version}");
                        server.accept(&mut turn).unwrap();
                        server.start(&mut turn).unwrap();
                    }
                    iperf3::ServerAction::End => server.exchange(&mut turn).unwrap(),
                    iperf3::ServerAction::ProgramResults(_) => server.results(&own, &mut turn).unwrap(),
                    iperf3::ServerAction::Terminated => panic!("{version}: nobody stopped it"),
                    iperf3::ServerAction::Done => done = true,
                }
            }
        }
        assert!(done, "{version}");
    }
}

#[test]
fn netperfs_clients_and_servers_are_understood() {
    for (version, control) in of("netperf") {
        let (mut turn, mut server) = (Turn::default(), netperf::Server::default());
        server.receive(&control.from_client, &mut turn).unwrap_or_else(|error| panic!("{version}: {error}"));
        let [netperf::ServerAction::Requested(requested)] = &turn.actions[..] else {
            panic!("{version}: {:?}", turn.actions)
        };
        assert_eq!(requested.direction, netperf::SendingEnd::ServerReceives, "{version}");
        // 2.6 first asks for the system.
        let asks = if version == "2.6.0" { 1 } else { 0 };
        assert_eq!(turn.send.len() / BLOCK_BYTES, asks, "{version}");
        let block =
            |at: usize| Block(control.from_client[at * BLOCK_BYTES..(at + 1) * BLOCK_BYTES].try_into().unwrap());
        let request = OmniRequest::from_block(&block(asks)).unwrap();
        let mut turn = Turn::default();
        let mut client = netperf::Client::open(&request, &mut turn);
        client
            .receive(&control.from_server[asks * BLOCK_BYTES..], &mut turn)
            .unwrap_or_else(|error| panic!("{version}: {error}"));
        let [netperf::ClientAction::Run(_), netperf::ClientAction::Counted(counted)] = &turn.actions[..] else {
            panic!("{version}: {:?}", turn.actions)
        };
        assert!(counted.bytes_received > 0, "{version}");
    }
}

#[test]
fn nuttcps_clients_and_servers_are_understood() {
    for (version, _) in of("nuttcp") {
        let name = RECORDED.iter().find(|(_, own, _)| *own == version).unwrap().2;
        let session = recording(name, 5000);
        let control = session.connections.iter().find(|one| one.from_client.starts_with(b"HELO")).unwrap();
        let (mut turn, mut server) = (Turn::default(), nuttcp::Server::default());
        server.receive(&control.from_client, &mut turn).unwrap_or_else(|error| panic!("{version}: {error}"));
        let [nuttcp::ServerAction::Requested(requested)] = &turn.actions[..] else {
            panic!("{version}: {:?}", turn.actions)
        };
        assert_eq!((requested.bytes, requested.count), (512, 8), "{version}");
        let mut turn = Turn::default();
        let mut client = nuttcp::Client::open((**requested).clone(), &mut turn);
        client.receive(&control.from_server, &mut turn).unwrap_or_else(|error| panic!("{version}: {error}"));
        let report = client.ended().unwrap();
        assert!((report.bytes - 4096.0).abs() < 60.0 && report.calls.is_some(), "{version}: {report:?}");
    }
}

#[test]
fn iperf_2s_clients_and_servers_are_understood() {
    for (version, control) in of("iperf2") {
        let (mut turn, mut server) = (Turn::default(), iperf2::Server::default());
        server.receive(&control.from_client, &mut turn).unwrap_or_else(|error| panic!("{version}: {error}"));
        server.ended().unwrap();
        let requested = turn.actions.iter().find_map(|action| match action {
            iperf2::ServerAction::Requested(header) => Some(*header),
            iperf2::ServerAction::Data(_) | iperf2::ServerAction::Bounce => None,
        });
        let requested = requested.unwrap_or_else(|| panic!("{version}: no header"));
        assert_eq!((requested.bytes, requested.amount), (1000, iperf2::Amount::Bytes(4000)), "{version}");
        // Its server's acknowledgement is what its version is read from.
        let said: Vec<u16> =
            control.from_server[12..20].chunks(2).map(|half| u16::from_be_bytes([half[0], half[1]])).collect();
        let numbers: Vec<u16> = version.split('.').map(|part| part.parse().unwrap()).collect();
        assert_eq!(said[..3], numbers, "{version}");
    }
}
