//! Random, mutated and cut inputs for every codec in both roles. A simple driver carries out every action until
//! the input ends.

use model::SplitMix64;
use peer_wire::iperf3::datagram::{Header, is_reply};
use peer_wire::{Turn, WireError, iperf2, iperf3, netperf, netpipe, nttcp, nuttcp, stamp};

use super::recording;

/// A codec in one role.
pub(crate) struct Target {
    pub(crate) peer: &'static str,
    pub(crate) role: &'static str,
    /// The peer's bytes of a valid session, which are mutated.
    pub(crate) golden: Vec<Vec<u8>>,
    /// Takes an input in pieces; an error is one that the codec gave.
    drive: fn(&[&[u8]]) -> Result<(), WireError>,
}

/// Every codec in both roles, with the recorded sessions.
pub(crate) fn targets() -> Vec<Target> {
    let spoken = |names: &[&str], port, client: bool| -> Vec<Vec<u8>> {
        let all = names.iter().map(|name| recording(name, port).connections.swap_remove(0));
        all.map(|one| if client { one.from_client } else { one.from_server }).collect()
    };
    let target = |peer, role, golden, drive| Target { peer, role, golden, drive };
    let iperf3 = ["iperf312_tcp", "iperf312_udp"];
    let netperf = ["netperf27_TCP_STREAM", "netperf27_TCP_RR", "netperf27_UDP_STREAM", "netperf27_omni_selectors"];
    let netpipe = ["netpipe372_pingpong"];
    let nuttcp = ["nuttcp612_tcp", "nuttcp612_tcp_r", "nuttcp612_udp"];
    let mut parameters = spoken(&iperf3, 5201, true);
    for said in &mut parameters {
        // The cookie is a codec of its own.
        said.drain(..iperf3::COOKIE_BYTES);
    }
    let claim = iperf3::LoginClaim { name: "mario".into(), password: "rossi".into(), at_s: 1_700_000_000 };
    let claim = claim.to_text().into_bytes();
    let options = nttcp::Options { udp: true, verbose: true, ..nttcp::Options::default() }.to_line();
    let port = b"nttcp-1: hello\ndataport: 5038\n1  8388608    0.08    0.05    865.7309   1342.1773    2177  28084.16   43540.0\n";
    let stamp = {
        let mut request = vec![0; 60];
        let _ = stamp::StampRequest::read(&request).map(|requested| requested.write(&mut request));
        vec![request, vec![0; 41]]
    };
    let datagrams = |from: bool| -> Vec<Vec<u8>> {
        let all = recording("iperf218_udp", 5001).datagrams.into_iter();
        all.filter(|(from_client, _)| *from_client == from).map(|(_, datagram)| datagram).collect()
    };
    vec![
        target("iperf2", "client", datagrams(false), |said| iperf2::Report::read(&said.concat()).map(drop)),
        target("iperf2", "server", spoken(&["iperf218_tcp", "iperf218_tcp_r"], 5001, true), iperf2_server),
        target("iperf2", "datagrams", datagrams(true), iperf2_datagrams),
        target("iperf3", "client", spoken(&iperf3, 5201, false), iperf3_client),
        target("iperf3", "server", parameters, iperf3_server),
        target("iperf3", "datagrams", vec![iperf3::datagram::REPLY.to_vec(), vec![0; 16], claim], iperf3_datagrams),
        target("netperf", "client", spoken(&netperf, 12_865, false), netperf_client),
        target(
            "netperf",
            "server",
            spoken(&[&netperf[..], &["netperf27_TCP_SENDFILE"]].concat(), 12_865, true),
            netperf_server,
        ),
        target("netpipe", "transmitter", spoken(&netpipe, 5002, false), |said| {
            netpipe_end(netpipe::EndRole::Transmitter, said)
        }),
        target("netpipe", "receiver", spoken(&netpipe, 5002, true), |said| {
            netpipe_end(netpipe::EndRole::Receiver, said)
        }),
        target("nttcp", "local", vec![port.to_vec()], nttcp_local),
        target("nttcp", "remote", vec![[&options[..], b"dataport: 5038\n"].concat()], nttcp_remote),
        target("nuttcp", "client", spoken(&nuttcp, 5000, false), nuttcp_client),
        target("nuttcp", "server", spoken(&nuttcp, 5000, true), nuttcp_server),
        target("stamp", "sender", stamp.clone(), |said| stamp::Reply::read(&said.concat()).map(drop)),
        target("stamp", "reflector", stamp, |said| stamp::StampRequest::read(&said.concat()).map(drop)),
    ]
}

/// Inputs and refusals of one target.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Tally {
    pub(crate) inputs: u64,
    pub(crate) errors: u64,
}

/// Runs `inputs` inputs through each target in turn.
///
/// # Panics
/// If a codec does, or if its error does not name the peer and the step.
pub(crate) fn run(targets: &[Target], inputs: u64, random: &mut SplitMix64) -> Vec<Tally> {
    let mut tallies = vec![Tally::default(); targets.len()];
    for number in 0..inputs {
        let place = (number % targets.len() as u64) as usize;
        let (target, tally) = (&targets[place], &mut tallies[place]);
        let input = input(target, random);
        let pieces: Vec<&[u8]> = pieces(&input, random);
        tally.inputs += 1;
        tally.errors += u64::from(!target.withstand(&pieces));
    }
    tallies
}

impl Target {
    /// Runs an input, given in pieces; false if it is refused.
    ///
    /// # Panics
    /// If the codec does, or if its error does not name the peer and the step.
    pub(crate) fn withstand(&self, pieces: &[&[u8]]) -> bool {
        let Err(error) = (self.drive)(pieces) else { return true };
        assert_eq!(error.peer, self.peer, "{error}");
        assert!(!error.step.is_empty() && !error.what.to_string().is_empty(), "{error}");
        assert!(error.what.to_string().len() < 4096, "a message is no place for what came: {error}");
        false
    }
}

/// A third is random, the rest are recorded sessions truncated or with bytes changed, removed, repeated or
/// inserted.
fn input(target: &Target, random: &mut SplitMix64) -> Vec<u8> {
    if random.below(3) == 0 || target.golden.is_empty() {
        let length = random.below(96);
        return (0..length).map(|_| random.next_u64() as u8).collect();
    }
    let mut input = target.golden[random.below(target.golden.len())].clone();
    if random.below(2) == 0 {
        input.truncate(random.below(input.len() + 1));
    }
    for _ in 0..random.below(4) {
        if input.is_empty() {
            break;
        }
        let at = random.below(input.len());
        match random.below(5) {
            0 => input[at] ^= 1 << random.below(8),
            1 => input[at] = [0, 0xff, b'\n', b'9', b'-', b'@'][random.below(6)],
            2 => drop(input.remove(at)),
            3 => input.insert(at, random.next_u64() as u8),
            _ => {
                let end = (at + random.below(32)).min(input.len());
                let again = input[at..end].to_vec();
                input.splice(at..at, again);
            }
        }
    }
    input
}

/// The input whole, byte by byte, or in a few pieces.
fn pieces<'a>(input: &'a [u8], random: &mut SplitMix64) -> Vec<&'a [u8]> {
    match random.below(8) {
        0 => input.chunks(1).collect(),
        1..=3 => input.chunks(1 + random.below(64)).collect(),
        _ => vec![input],
    }
}

fn iperf2_server(said: &[&[u8]]) -> Result<(), WireError> {
    let (mut server, mut turn) = (iperf2::Server::default(), Turn::default());
    for piece in said {
        server.receive(piece, &mut turn)?;
        turn.actions.clear();
    }
    server.ended()
}

fn iperf2_datagrams(said: &[&[u8]]) -> Result<(), WireError> {
    let mut counts = iperf2::Counts::default();
    for datagram in said {
        if let Some(seen) = iperf2::Datagram::read(datagram) {
            counts.take(&seen, datagram.len(), 1);
        }
    }
    iperf2::Report::read(&counts.report().to_bytes()).map(drop)
}

fn iperf3_client(said: &[&[u8]]) -> Result<(), WireError> {
    use iperf3::{Client, ClientAction, Parameters, Protocol, Results, TestCookie};
    let mut turn = Turn::default();
    let mut client = Client::open(&TestCookie::of(&[7; 36]), Parameters::new(Protocol::Tcp, 1), &mut turn);
    let results = || {
        Results::from_json(
            br#"{"cpu_util_total":0,"cpu_util_user":0,"cpu_util_system":0,"sender_has_retransmits":-1,"streams":[]}"#,
            1,
        )
    };
    for piece in said {
        client.receive(piece, &mut turn)?;
        for action in std::mem::take(&mut turn.actions) {
            match action {
                ClientAction::Run => client.end(&mut turn)?,
                ClientAction::Results => results().map_or(Ok(()), |results| client.results(&results, &mut turn))?,
                ClientAction::OpenStreams | ClientAction::ProgramResults(_) | ClientAction::Done => {}
            }
        }
    }
    client.ended()
}

fn iperf3_server(said: &[&[u8]]) -> Result<(), WireError> {
    use iperf3::{Server, ServerAction};
    let mut turn = Turn::default();
    let mut server = Server::open(&mut turn);
    for piece in said {
        server.receive(piece, &mut turn)?;
        for action in std::mem::take(&mut turn.actions) {
            match action {
                ServerAction::Requested(_) => {
                    server.accept(&mut turn)?;
                    server.start(&mut turn)?;
                }
                ServerAction::End => server.exchange(&mut turn)?,
                ServerAction::ProgramResults(theirs) => server.results(&theirs, &mut turn)?,
                ServerAction::Terminated | ServerAction::Done => {}
            }
        }
    }
    server.ended()
}

fn iperf3_datagrams(said: &[&[u8]]) -> Result<(), WireError> {
    let all = said.concat();
    let _ = (is_reply(&all), Header::read(&all, true), Header::read(&all, false));
    // A decrypted login is untrusted input as well.
    let _ = iperf3::LoginClaim::from_text(&all);
    let mut hello = iperf3::StreamHello::default();
    let _ = hello.take(&mut &all[..]);
    Ok(())
}

fn netperf_client(said: &[&[u8]]) -> Result<(), WireError> {
    let mut turn = Turn::default();
    let mut client = netperf::Client::open(&known_request(), &mut turn);
    for piece in said {
        client.receive(piece, &mut turn)?;
    }
    client.ended()
}

/// The request of a recorded session.
fn known_request() -> netperf::OmniRequest {
    static KNOWN: std::sync::OnceLock<netperf::OmniRequest> = std::sync::OnceLock::new();
    let read = || {
        let said = recording("netperf27_TCP_STREAM", 12_865).connections.swap_remove(0).from_client;
        let block = said[..netperf::BLOCK_BYTES].try_into().expect("a whole block");
        netperf::OmniRequest::from_block(&netperf::Block(block)).expect("a recorded request")
    };
    KNOWN.get_or_init(read).clone()
}

fn netperf_server(said: &[&[u8]]) -> Result<(), WireError> {
    let (mut server, mut turn) = (netperf::Server::default(), Turn::default());
    for piece in said {
        server.receive(piece, &mut turn)?;
        for netperf::ServerAction::Requested(_) in std::mem::take(&mut turn.actions) {
            server.refuse(netperf::NOT_SUPPORTED, &mut turn);
        }
    }
    server.ended()
}

fn netpipe_end(role: netpipe::EndRole, said: &[&[u8]]) -> Result<(), WireError> {
    use netpipe::{Action, Mode, Netpipe, SizePlan};
    // That of the recorded session, `-l 1 -u 64 -n 3`.
    let sizes = vec![1, 2, 3, 4, 6, 8, 12, 13, 16, 19, 21, 24, 27, 29, 32, 35, 45, 48, 51, 61, 64, 67];
    let plan = SizePlan {
        first: 1,
        sizes,
        mode: Mode::PingPong,
        reset: false,
        integrity: false,
        count: Some(3),
        only: Vec::new(),
    };
    let mut turn = Turn::default();
    let mut end = Netpipe::open(role, plan, &mut turn);
    let mut skip = 0_usize;
    for piece in said {
        let mut rest = *piece;
        loop {
            let messages = skip.min(rest.len());
            (skip, rest) = (skip - messages, &rest[messages..]);
            end.receive(&mut rest, &mut turn)?;
            let actions = std::mem::take(&mut turn.actions);
            if actions.is_empty() {
                break;
            }
            for action in actions {
                match action {
                    Action::Exchange(exchange) => {
                        skip = (exchange.bytes as usize).saturating_mul(exchange.count as usize);
                        end.exchanged(1e-5 * f64::from(exchange.count), &mut turn)?;
                    }
                    Action::Pass(_) => {}
                    Action::Reset => end.reconnected(&mut turn)?,
                    Action::Point { .. } => {}
                    Action::Done => return Ok(()),
                }
            }
        }
    }
    end.ended()
}

fn nttcp_local(said: &[&[u8]]) -> Result<(), WireError> {
    let mut turn = Turn::default();
    let mut local = nttcp::Local::open(&nttcp::Options { transmits: false, ..nttcp::Options::default() }, &mut turn)?;
    for piece in said {
        local.receive(piece, &mut turn)?;
        turn.actions.clear();
    }
    local.ended(true)
}

fn nttcp_remote(said: &[&[u8]]) -> Result<(), WireError> {
    use nttcp::{Remote, RemoteAction, Statistics};
    let (mut remote, mut turn) = (Remote::default(), Turn::default());
    for piece in said {
        remote.receive(piece, &mut turn)?;
        for action in std::mem::take(&mut turn.actions) {
            match action {
                RemoteAction::Requested(requested) if !requested.transmits => {
                    remote.listening(5038, &mut turn)?;
                    remote.counted(&Statistics::default(), &mut turn)?;
                }
                RemoteAction::Requested(_) => {}
                RemoteAction::Transmit(_) => remote.counted(&Statistics::default(), &mut turn)?,
            }
        }
    }
    remote.ended()
}

fn nuttcp_client(said: &[&[u8]]) -> Result<(), WireError> {
    let mut turn = Turn::default();
    let mut client = nuttcp::Client::open(nuttcp::Options::default(), &mut turn);
    for piece in said {
        client.receive(piece, &mut turn)?;
    }
    client.ended().map(drop)
}

fn nuttcp_server(said: &[&[u8]]) -> Result<(), WireError> {
    let (mut server, mut turn) = (nuttcp::Server::default(), Turn::default());
    for piece in said {
        let _ = nuttcp::mark(piece);
        server.receive(piece, &mut turn)?;
        for nuttcp::ServerAction::Requested(_) in std::mem::take(&mut turn.actions) {
            server.accept(&mut turn)?;
            server.counted(&nuttcp::Report::default(), &mut turn)?;
        }
    }
    server.ended()
}
