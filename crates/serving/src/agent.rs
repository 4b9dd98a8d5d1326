//! The agent of `thru serve`: what its options allow, and the servers beside it.

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::path::{Path, PathBuf};
use std::time::Duration;

use command::known_clients::InvitedClients;
use command::signals::CaughtSignals;
use command::values::scoped_endpoint;
use command::{Failure, agent_keys, citation, setup};
use control::ControlError;
use control::agent::{
    Agent, AgentOptions, BusOptions, Captures, Guests, HAS_METRICS, Limits, Machine, OnListening, Tuning, loopback,
};
use control::helper::{PacketRights, Powers, recover};
use control::proof::code::Code;
use engine::transport::{at_port, lacks_scope, scoped};
use host::tune::{Allowance, AllowanceError, Journal};
use protocol::DEFAULT_PORT;
use rustix::system::uname;
use text::say;
use tokio::sync::mpsc::channel;

use crate::own_addresses::reachable;
use crate::programs::{ProgramServers, ServedOptions};
use crate::results::Folder;
use crate::rights::{self, Wanted};

/// Where an agent's clients may capture packets: `DIR`, `DIR,payload`, or `payload` for the current folder.
///
/// # Errors
/// None: every other text is a folder.
pub fn captures(text: &str) -> Result<Captures, Infallible> {
    let (folder, payload) = match text.strip_suffix("payload") {
        Some("") => (".", true),
        Some(folder) if folder.ends_with(',') => (folder.trim_end_matches(','), true),
        _ => (text, false),
    };
    Ok(Captures::In { folder: folder.into(), payload })
}

/// What an agent serves, and to whom.
pub struct ServeOptions<'a> {
    /// Addresses to listen on, with or without a port; none for loopback.
    pub listen: &'a [String],
    /// File with the token that clients must have.
    pub token_file: Option<&'a Path>,
    /// File with the agent's key, made if there is none; `None` is the user's.
    pub key_file: Option<&'a Path>,
    /// Whether it ends after the first client that measured.
    pub once: bool,
    /// Number of measurements that may run at the same time.
    pub concurrent: usize,
    /// Limits for clients.
    pub limits: Limits,
    /// The user that it becomes if it is root.
    pub user: Option<&'a str>,
    /// The socket of a helper that does what needs more rights; `None` starts one if it is needed.
    pub helper: Option<&'a Path>,
    /// Whether clients may load congestion controls.
    pub allow_stacks: bool,
    /// Where clients may capture packets.
    pub captures: Captures,
    /// Clients may change network settings, and those that match these patterns, if there is one; an empty one adds nothing.
    pub tuning: &'a [String],
    /// Time between the loss of a client and the restoration of its settings.
    pub grace: Duration,
    /// Folder of the journal of changed settings.
    pub journal: Option<PathBuf>,
    /// How long a client may be unreachable before its session ends.
    pub vanished_after: Duration,
    /// Folder in which results are kept until their coordinators have stored them; an agent that joins a bus has a default.
    pub keep_results: Option<&'a Path>,
    /// The bus that it joins, perhaps with a name there; that of the host is the default.
    pub bus: Option<&'a str>,
    /// Where the agent's state is served to those who scrape it.
    pub metrics: Option<SocketAddr>,
    /// Whether any client is accepted, without a token.
    pub open: bool,
    /// Whether clients are served that were invited, now or before.
    pub invited: bool,
    /// Invites a client; this receives the code and the addresses of this host, the likeliest first.
    pub invitation: Option<fn(&Code, &[String])>,
    /// The clients of other programs. The log is the agent's, too.
    pub peers: ServedOptions<'a>,
    /// Receives the addresses once the agent listens.
    pub listening: OnListening,
    /// Called after the rights are lowered, and before the process has other threads.
    pub lowered: fn(),
}

/// Serves until one client has measured (with `once`) or a signal comes.
///
/// # Errors
/// Options that cannot be used together or let others in without a token; an address that cannot be listened on.
pub fn serve(options: ServeOptions<'_>) -> Result<(), Failure> {
    let addresses = match options.listen {
        [] if options.invited => of_both_versions(&[(Ipv6Addr::UNSPECIFIED, DEFAULT_PORT).into()], has_v6()),
        listen => addresses(listen)?,
    };
    let allowance = allowance(options.tuning)?;
    options.check_token()?;
    if options.metrics.is_some() && !HAS_METRICS {
        return Err(Failure::usage(say!("`--metrics`: this thru was built without the feature `metrics`")));
    }
    let token = setup::token(options.token_file)?;
    let bus = options.bus.map(bus_options).transpose()?;
    let peer_addresses = match options.peers.listen {
        [] => addresses.clone(),
        listen => of_both_versions(&listen.iter().copied().map(with_scope).collect::<Vec<_>>(), has_v6()),
    };
    options.check_open(&addresses, &peer_addresses)?;
    options.recover()?;
    // All that only this user can read, before it becomes another one.
    let key = agent_keys::of_agent(options.key_file, options.peers.log)?;
    let users = options.peers.read_users()?;
    let code = options.invitation.map(|_| Code::fresh()).transpose();
    let code = code.map_err(|error| Failure::host(say!("cannot draw a code: {error}")))?;
    let guests = match options.invited {
        true => Some(Guests::new(Box::new(InvitedClients::of_user()?), code.clone())),
        false => None,
    };
    let selftest = citation::of_last();
    let results = Folder::of(options.keep_results, options.bus.is_some());
    let lowered = rights::lower(&options.rights(allowance, &addresses, results.as_ref()), options.peers.log)?;
    (options.lowered)();
    lowered.helper.assist_here();
    let results = results.map_or(Ok(None), |folder| folder.open(options.peers.log))?;
    let mut signals = CaughtSignals::catch()?;
    let machine = Machine::new(options.concurrent);
    let (told, mut measured) = channel(1);
    let told = options.once.then_some(told);
    let peer_servers = ProgramServers::start(&options.peers, users.as_ref(), &peer_addresses, &machine, told.as_ref())?;
    let log = options.peers.log;
    let listening = options.listening;
    let invitation = options.invitation.zip(code);
    let options = AgentOptions {
        token,
        guests,
        machine,
        workers: lowered.workers(&options.limits)?,
        helper: lowered.helper.clone(),
        selftest,
        limits: options.limits,
        allow_stacks: options.allow_stacks,
        tuning: Tuning { allowed: !options.tuning.is_empty(), grace: options.grace },
        results,
        bus,
        metrics: options.metrics,
        once: options.once,
        captures: options.captures,
        vanished_after: options.vanished_after,
        listening: Box::new(move |addresses| {
            listening(addresses);
            if let Some((invite, code)) = &invitation {
                invite(code, &reachable(addresses));
            }
        }),
        log: Box::new(log),
        ..setup::local_options(lowered.folder.path())?
    };
    let runtime = setup::runtime()?;
    let served = runtime.block_on(async {
        let ended = async {
            tokio::select! {
                _ = signals.next() => {}
                // A client of another program.
                Some(()) = measured.recv() => {}
            }
        };
        Agent::serve(options, key, &addresses, ended).await.map_err(|error| match error {
            ControlError::Bus(_) => Failure::from(error),
            _ => Failure::host(error),
        })
    });
    // Sessions end with the runtime, and the helper that was started here after them.
    drop(runtime);
    peer_servers.stop();
    drop(lowered);
    served
}

/// The bus of that URL. Without a name in it the agent has that of the host.
fn bus_options(url: &str) -> Result<BusOptions, Failure> {
    let place = bus::place(url).map_err(ControlError::from)?;
    let host = uname().nodename().to_string_lossy().to_ascii_lowercase();
    let named = match &place.name {
        Some(_) => Ok(place),
        None => bus::place(&place.of(&host)).map_err(|_| {
            let bus = &place.bus;
            Failure::usage(say!(
                "`--bus`: the name of this host, '{host}', is not a valid name on a bus: write {bus}/NAME"
            ))
        }),
    };
    Ok(BusOptions { place: named?, access: setup::bus_access()? })
}

impl ServeOptions<'_> {
    /// Refuses what needs a token if there is none: any program on this host can reach the port.
    fn check_token(&self) -> Result<(), Failure> {
        let needing = [
            (!self.tuning.is_empty(), say!("`--allow-tuning`"), "change settings of this host"),
            (self.captures != Captures::Refused, say!("`--allow-capture`"), "record packets of this host"),
            (self.allow_stacks, say!("`--allow-stacks`"), "load code into this host's kernel"),
            (self.bus.is_some() && !self.open, say!("`--bus`"), "measure from wherever the bus can be reached"),
        ];
        let is_closed = self.token_file.is_some() || (self.invited && self.bus.is_none());
        match needing.into_iter().find(|(given, ..)| *given) {
            Some((_, option, what)) if !is_closed => Err(Failure::usage(say!(
                "{option} lets clients {what} and needs a token, even on loopback: make one with `thru token new -o FILE` and give both sides `--token-file FILE`"
            ))),
            _ => Ok(()),
        }
    }

    /// Refuses addresses that other hosts reach, unless clients have a token or any client is welcome. Clients of other programs have
    /// no token.
    fn check_open(&self, own: &[SocketAddr], of_peers: &[SocketAddr]) -> Result<(), Failure> {
        let reached = own.iter().find(|address| !address.ip().is_loopback());
        if let (Some(address), None, false) = (reached, self.token_file, self.open || self.invited) {
            return Err(Failure::usage(say!(
                "{address} can be reached from other hosts: add `--invite` to let one client in, `--token-file FILE` here and for clients, or `--open` to accept any client"
            )));
        }
        match (self.peers.programs.first(), of_peers.iter().map(SocketAddr::ip).find(|ip| !ip.is_loopback())) {
            (Some(peer), Some(address)) if !self.peers.open => Err(Failure::usage(say!(
                "`--speak {}` on {address}: clients of other programs have no token; add `--speak-open` to accept any client of theirs, or `--speak-listen 127.0.0.1`",
                peer.name()
            ))),
            _ => Ok(()),
        }
    }

    /// What its flags say about its rights.
    fn rights<'a>(&'a self, allowance: Allowance, addresses: &[SocketAddr], results: Option<&'a Folder>) -> Wanted<'a> {
        let packets = match self.captures {
            Captures::In { payload: true, .. } => PacketRights::Whole,
            Captures::In { payload: false, .. } => PacketRights::Headers,
            Captures::Refused | Captures::AsRequested => PacketRights::None,
        };
        Wanted {
            user: self.user,
            helper: self.helper,
            powers: Powers {
                tuning: !self.tuning.is_empty(),
                allowance,
                journal: self.journal.clone(),
                stacks: self.allow_stacks,
                stacks_for_any_user: false,
                packets,
                congestion: true,
                buffers: self.token_file.is_some() || self.invited,
            },
            tuning: self.tuning,
            low_ports: addresses.iter().chain(&self.metrics).any(|address| is_low(address.port()))
                || self.peers.programs.iter().any(|peer| is_low(peer.port)),
            captures: &self.captures,
            results: results.map(|folder| folder.path.as_path()),
        }
    }

    /// Restores settings that a killed owner left, even if this agent changes none itself.
    fn recover(&self) -> Result<(), Failure> {
        // A helper of its own has the journal.
        if self.helper.is_some() {
            return Ok(());
        }
        match Journal::open(self.journal.as_deref()).and_then(|journal| recover(&journal)) {
            Ok(lines) => lines.into_iter().for_each(|line| (self.peers.log)(&line.into())),
            Err(error) if !self.tuning.is_empty() => return Err(Failure::host(error)),
            Err(_) => {}
        }
        Ok(())
    }
}

/// Whether a port needs CAP_NET_BIND_SERVICE, unless the host's administrator has changed that.
fn is_low(port: u16) -> bool {
    (1..1024).contains(&port)
}

/// The settings that clients may change: network settings, and those of the patterns.
pub(crate) fn allowance(patterns: &[String]) -> Result<Allowance, Failure> {
    let pattern = |text: &String| {
        text.parse().map_err(|why: AllowanceError| Failure::usage(say!("`--allow-tuning='{text}'`: {why}")))
    };
    patterns.iter().filter(|text| !text.is_empty()).map(pattern).collect::<Result<_, _>>().map(Allowance::Network)
}

/// The addresses to listen on.
fn addresses(texts: &[String]) -> Result<Vec<SocketAddr>, Failure> {
    if texts.is_empty() {
        return Ok(loopback_here());
    }
    let read = texts
        .iter()
        .map(|text| {
            let bare = text.trim_start_matches('[').trim_end_matches(']');
            text.parse::<SocketAddr>()
                .or_else(|_| bare.parse::<IpAddr>().map(|ip| SocketAddr::new(ip, DEFAULT_PORT)))
                .or_else(|_| match text.strip_suffix("]:0") {
                    Some(scoped) => scoped_endpoint(scoped.trim_start_matches('[')),
                    None => scoped_endpoint(text).map(|at| if at.port() == 0 { at_port(at, DEFAULT_PORT) } else { at }),
                })
                .map(with_scope)
                .map_err(|_| {
                    Failure::usage(say!(
                        "`--listen {text}`: write an IP address of this host, such as 10.0.0.2:7000, or :: for all"
                    ))
                })
        })
        .collect::<Result<Vec<_>, _>>()?;
    Ok(of_both_versions(&read, has_v6()))
}

/// A link-local address is on the link of the interface that has it.
fn with_scope(at: SocketAddr) -> SocketAddr {
    if lacks_scope(&at) { scoped(at.ip(), at.port(), 0) } else { at }
}

/// The addresses, with both wildcards for each: all addresses of a host are those of both IP versions.
fn of_both_versions(addresses: &[SocketAddr], has_v6: bool) -> Vec<SocketAddr> {
    let mut all: Vec<SocketAddr> = Vec::new();
    for address in addresses {
        let any = [IpAddr::from(Ipv4Addr::UNSPECIFIED), IpAddr::from(Ipv6Addr::UNSPECIFIED)];
        let wanted = match address.ip().is_unspecified() {
            true => any.map(|ip| SocketAddr::new(ip, address.port())).to_vec(),
            false => vec![*address],
        };
        let usable = |one: &SocketAddr| one.is_ipv4() || has_v6 || !one.ip().is_unspecified();
        for one in wanted.into_iter().filter(usable) {
            if !all.contains(&one) {
                all.push(one);
            }
        }
    }
    all
}

/// The loopback addresses of the IP versions that this host has.
fn loopback_here() -> Vec<SocketAddr> {
    let has_v6 = has_v6();
    loopback(DEFAULT_PORT).into_iter().filter(|address| address.is_ipv4() || has_v6).collect()
}

fn has_v6() -> bool {
    UdpSocket::bind((Ipv6Addr::LOCALHOST, 0)).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_captures_may_allow_payload() {
        for (text, folder, payload) in
            [(".", ".", false), ("payload", ".", true), ("a/payload", "a/payload", false), ("a b,payload", "a b", true)]
        {
            assert_eq!(captures(text), Ok(Captures::In { folder: folder.into(), payload }), "{text}");
        }
    }

    #[test]
    fn a_wildcard_of_one_ip_version_listens_on_both() {
        let of = |texts: &[&str], has_v6| {
            let addresses: Vec<SocketAddr> = texts.iter().map(|text| text.parse().unwrap()).collect();
            of_both_versions(&addresses, has_v6).iter().map(ToString::to_string).collect::<Vec<_>>()
        };
        assert_eq!(of(&["[::]:7"], true), ["0.0.0.0:7", "[::]:7"]);
        assert_eq!(of(&["0.0.0.0:7", "[::]:7"], true), ["0.0.0.0:7", "[::]:7"]);
        assert_eq!(of(&["[::]:7", "192.0.2.1:8"], false), ["0.0.0.0:7", "192.0.2.1:8"]);
    }

    #[test]
    fn an_address_has_the_usual_port_unless_it_names_one() {
        let read = |text: &str| addresses(&[text.to_owned()]).map_err(|failure| failure.to_string());
        assert_eq!(read("10.0.0.2"), Ok(vec![SocketAddr::from(([10, 0, 0, 2], DEFAULT_PORT))]));
        assert_eq!(read("10.0.0.2:7000"), Ok(vec![SocketAddr::from(([10, 0, 0, 2], 7000))]));
        assert_eq!(read("[::1]"), Ok(vec![SocketAddr::new(Ipv6Addr::LOCALHOST.into(), DEFAULT_PORT)]));
        assert_eq!(read("[fe80::1%lo]:7000"), Ok(vec!["[fe80::1%1]:7000".parse().unwrap()]));
        assert_eq!(read("[fe80::1%lo]:0"), Ok(vec!["[fe80::1%1]:0".parse().unwrap()]));
        assert_eq!(read("[fe80::1%lo]"), Ok(vec![scoped([0xfe80, 0, 0, 0, 0, 0, 0, 1].into(), DEFAULT_PORT, 1)]));
        assert!(read("b").unwrap_err().starts_with("`--listen b`: write an IP address"));
    }
}
