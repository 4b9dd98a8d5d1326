//! Recorded sessions with bytes changed, doubled, left out and put in, fed to each machine by a driver that does what it is asked.
//! Whatever comes, a machine goes on or ends with an error that names its peer and the step; it never panics.

use speak::iperf3::{self, Cookie, Parameters, Protocol, Results};
use speak::netperf::{self, BLOCK_BYTES, Block};
use speak::netpipe::{Action, Netpipe, Plan, Role, Way};
use speak::{SpeakError, Turn, stamp};

use super::common::recording;

/// The longest seed, in bytes: whole sessions but for NetPIPE's messages.
const LONGEST: usize = 4096;

/// A machine and sessions that it knows.
struct Target {
    name: &'static str,
    seeds: Vec<Vec<u8>>,
    feed: Feed,
}

/// Hands bytes to a machine.
type Feed = Box<dyn Fn(&[u8])>;

/// A sequence that looks random and is the same each time (splitmix64).
struct Random(u64);

impl Random {
    fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % bound.max(1) as u64) as usize
    }

    fn byte(&mut self) -> u8 {
        // The borders of ranges, more often than chance would have it.
        const BORDERS: [u8; 6] = [0, 1, 0x7f, 0x80, 0xfe, 0xff];
        let any = self.below(256) as u8;
        if any < 128 { BORDERS[self.below(6)] } else { any }
    }

    fn mutate(&mut self, bytes: &mut Vec<u8>) {
        for _ in 0..=self.below(6) {
            let at = self.below(bytes.len());
            match self.below(5) {
                0 | 1 if at < bytes.len() => bytes[at] = self.byte(),
                2 => bytes.insert(at, self.byte()),
                3 => bytes.truncate(at),
                _ => {
                    let piece: Vec<u8> = bytes[at..].iter().copied().take(self.below(64)).collect();
                    bytes.splice(at..at, piece);
                }
            }
        }
    }
}

fn tells(peer: &str, error: &SpeakError) {
    assert!(error.peer == peer && !error.step.is_empty() && !error.what.is_empty(), "{error:?}");
}

/// Feeds `inputs` changed sessions to all machines in turns.
pub(crate) fn run(inputs: u64) {
    let targets = targets();
    let mut random = Random(inputs);
    let mut bytes = Vec::with_capacity(2 * LONGEST);
    for number in 0..inputs {
        let target = &targets[number as usize % targets.len()];
        let seed = &target.seeds[random.below(target.seeds.len())];
        bytes.clear();
        bytes.extend_from_slice(seed);
        random.mutate(&mut bytes);
        let caught = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| (target.feed)(&bytes)));
        assert!(caught.is_ok(), "{} at input {number}: {}", target.name, bytes.escape_ascii());
    }
}

fn targets() -> Vec<Target> {
    let said = |names: &[&str], port: u16, client: bool, skip: usize| -> Vec<Vec<u8>> {
        let of = |name: &&str| {
            let control = recording(name, port).connections.swap_remove(0);
            let bytes = if client { control.from_client } else { control.from_server };
            bytes.into_iter().skip(skip).take(LONGEST).collect()
        };
        names.iter().map(of).collect()
    };
    let iperf3 = ["iperf312_tcp", "iperf312_udp", "iperf321_tcp", "iperf321_tcp_bidir_P2"];
    let netperf = ["netperf27_TCP_STREAM", "netperf27_UDP_RR", "netperf27_omni_selectors"];
    let netpipe = ["netpipe372_pingpong", "netpipe372_integrity"];
    let blocks = said(&netperf, 12_865, false, 0);
    let request = said(&netperf, 12_865, true, 0);
    let target = |name, seeds, feed: Feed| Target { name, seeds, feed };
    let block = |bytes: &[u8]| Block(bytes[..BLOCK_BYTES].try_into().unwrap());
    let asked = netperf::Request::from_block(&block(&request[0])).unwrap();
    let ready = netperf::Ready::from_block(&block(&blocks[0])).unwrap();
    let stamps = vec![vec![0; stamp::BASE_BYTES], vec![0x5a; 128]];
    vec![
        target("iperf3's server", said(&iperf3, 5201, true, iperf3::COOKIE_BYTES), Box::new(iperf3_server)),
        target("iperf3's client", said(&iperf3, 5201, false, 0), Box::new(iperf3_client)),
        target("netserver", request, Box::new(move |bytes| netserver(bytes, &ready))),
        target("netperf", blocks, Box::new(move |bytes| netperf_client(bytes, &asked))),
        target(
            "NetPIPE's receiver",
            said(&netpipe, 5002, true, 0),
            Box::new(|bytes| netpipe_end(Role::Receiver, bytes)),
        ),
        target(
            "NetPIPE's transmitter",
            said(&netpipe, 5002, false, 0),
            Box::new(|bytes| netpipe_end(Role::Transmitter, bytes)),
        ),
        target("datagrams", stamps, Box::new(datagrams)),
    ]
}

fn results() -> Results {
    Results {
        cpu_percent: [1.0; 3],
        has_retransmits: None,
        congestion: None,
        server_output_json: None,
        server_output_text: None,
        streams: Vec::new(),
    }
}

fn iperf3_server(bytes: &[u8]) {
    let mut turn = Turn::default();
    let mut server = iperf3::Server::open(&mut turn);
    for piece in bytes.chunks(7) {
        let heard = server.receive(piece, &mut turn);
        for action in std::mem::take(&mut turn.actions) {
            // A driver's word may come too late: the client has said too much already.
            let _ = match action {
                iperf3::ServerAction::Asked(_) => server.accept(&mut turn).and_then(|()| server.start(&mut turn)),
                iperf3::ServerAction::End => server.exchange(&mut turn),
                iperf3::ServerAction::Theirs(_) => server.results(&results(), &mut turn),
                iperf3::ServerAction::Terminated | iperf3::ServerAction::Done => Ok(()),
            };
        }
        if let Err(error) = heard {
            return tells("iperf3", &error);
        }
    }
    let _ = server.ended().map_err(|error| tells("iperf3", &error));
}

fn iperf3_client(bytes: &[u8]) {
    let mut turn = Turn::default();
    let asked = Parameters { bidirectional: true, parallel: 2, ..Parameters::new(Protocol::Tcp, 1) };
    let mut client = iperf3::Client::open(&Cookie::of(&[7; 36]), asked, &mut turn);
    for piece in bytes.chunks(3) {
        let heard = client.receive(piece, &mut turn);
        for action in std::mem::take(&mut turn.actions) {
            let _ = match action {
                iperf3::ClientAction::Run => client.end(&mut turn),
                iperf3::ClientAction::Results => client.results(&results(), &mut turn),
                _ => Ok(()),
            };
        }
        if let Err(error) = heard {
            return tells("iperf3", &error);
        }
    }
    let _ = client.ended().map_err(|error| tells("iperf3", &error));
}

fn netserver(bytes: &[u8], ready: &netperf::Ready) {
    let mut turn = Turn::default();
    let mut server = netperf::Server::default();
    for piece in bytes.chunks(61) {
        let heard = server.receive(piece, &mut turn);
        for netperf::ServerAction::Asked(_) in std::mem::take(&mut turn.actions) {
            let _ = server.ready(ready, &mut turn);
            server.refuse(netperf::NOT_SUPPORTED, &mut turn);
        }
        if let Err(error) = heard {
            return tells("netperf", &error);
        }
    }
    let _ = server.ended().map_err(|error| tells("netperf", &error));
}

fn netperf_client(bytes: &[u8], asked: &netperf::Request) {
    let mut turn = Turn::default();
    let mut client = netperf::Client::open(asked, &mut turn);
    for piece in bytes.chunks(61) {
        if let Err(error) = client.receive(piece, &mut turn) {
            return tells("netperf", &error);
        }
    }
    let _ = client.ended().map_err(|error| tells("netperf", &error));
}

fn netpipe_end(role: Role, mut bytes: &[u8]) {
    let plan = Plan {
        first: 1,
        sizes: vec![1, 2, 3, 4, 6],
        way: Way::PingPong,
        reset: false,
        integrity: false,
        count: Some(3),
    };
    let mut turn = Turn::default();
    let mut machine = Netpipe::open(role, plan, &mut turn);
    while !bytes.is_empty() {
        let before = bytes.len();
        let heard = machine.receive(&mut bytes, &mut turn);
        let mut moved = before != bytes.len();
        for action in std::mem::take(&mut turn.actions) {
            if let Action::Exchange(exchange) = action {
                let messages = exchange.bytes.saturating_mul(u64::from(exchange.count));
                bytes = &bytes[bytes.len().min(usize::try_from(messages).unwrap_or(usize::MAX))..];
                machine.exchanged(1e-3, &mut turn).unwrap();
                moved = true;
            }
        }
        match heard {
            Err(error) => return tells("netpipe", &error),
            Ok(()) if !moved => return,
            Ok(()) => {}
        }
    }
    let _ = machine.ended().map_err(|error| tells("netpipe", &error));
}

fn datagrams(bytes: &[u8]) {
    for wide in [false, true] {
        let _ = iperf3::datagram::Header::read(bytes, wide);
    }
    match stamp::Request::read(bytes) {
        Err(error) => tells("stamp", &error),
        Ok(request) => {
            let mut answer = bytes.to_vec();
            let reply = stamp::Reply {
                sequence: request.sequence,
                sent: request.sent,
                error: request.error,
                session: request.session,
                received: request.sent,
                request,
                ttl: 255,
            };
            reply.write(&mut answer);
            assert_eq!(answer.len(), bytes.len().max(stamp::BASE_BYTES), "no amplifier");
        }
    }
    if let Ok(reply) = stamp::Reply::read(bytes) {
        let _ = reply.trip(reply.sent);
    }
}
