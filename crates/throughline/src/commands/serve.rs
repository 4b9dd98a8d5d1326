//! `thru serve`: the agent.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use control::agent::{self, Agent, Captures, Limits, Machine, Tuning, loopback};
use control::proto::DEFAULT_PORT;
use host::tune::{Allowance, Journal};
use model::{BitRate, Nanos, Spec};
use session::Failure;
use session::serving::{self, PeerOptions, PeerProgram, PeerServers};
use session::setup;
use session::signals::Signals;
use session::values::{above_zero, whole};

use crate::flags::UsersFlags;
use crate::registries;

/// Flags of `thru serve`.
#[derive(Debug, Args)]
#[command(after_help = format!("Examples:
  thru serve                                       loopback only, no token
  thru serve --listen 0.0.0.0 --token-file FILE    all interfaces, for clients with the token
  thru serve --speak iperf3                        also serve iperf3 clients (port 5201)
  thru serve --listen 10.0.0.2:7000 --open --once  one measurement, for any client

Control and data use one port, 6280, over TCP and UDP. Measurements use separate ports for a
connection per transaction, for options that must be set before the handshake (buffers, MSS, device,
data address), and for {}.", registries::own_ports()))]
pub struct ServeArgs {
    /// Address to listen on, with :PORT if not 6280. May be repeated [default: loopback, IPv4 and IPv6].
    #[arg(long, value_name = "ADDR[:PORT]")]
    listen: Vec<String>,

    /// Accept any client, without a token.
    #[arg(long, conflicts_with = "token_file")]
    open: bool,

    /// File with the token that clients must have (`thru token new`).
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,

    /// Exit after the first client that measured.
    #[arg(long)]
    once: bool,

    /// Number of measurements that may run at the same time; overlapping results are marked.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole(1..=Self::MOST))]
    concurrent: usize,

    /// Number of clients that may be connected at the same time.
    #[arg(long, value_name = "N", default_value_t = Limits::default().clients, value_parser = whole(1..=Self::MOST))]
    max_clients: usize,

    /// Longest time that one client may measure.
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = above_zero::<Nanos>)]
    max_time: Nanos,

    /// Largest number of flows of one measurement.
    #[arg(long, value_name = "N", default_value_t = Limits::default().flows, value_parser = whole(1..=Spec::MAX_FLOWS))]
    max_flows: u32,

    /// Largest rate of a stream; clients must then request a --rate [default: no limit].
    #[arg(long, value_name = "RATE", value_parser = above_zero::<BitRate>)]
    max_rate: Option<BitRate>,

    /// Load congestion controls of `thru stacks` that clients request with --cc, for the time of their measurement. Needs root.
    #[arg(long)]
    allow_stacks: bool,

    /// Time without a reply after which a client is considered lost and the next one is served. Increase it on paths with
    /// seconds of queueing.
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = above_zero::<Nanos>)]
    client_timeout: Nanos,

    /// Let clients capture the packets of their measurements into pcapng files in DIR [default: the current folder].
    #[arg(long, value_name = "DIR", num_args = 0..=1, default_missing_value = ".", require_equals = true)]
    allow_capture: Option<PathBuf>,

    /// Let clients change network settings of this host (`thru tune`, --set); they are restored when the client's session ends.
    /// PATTERN also allows other sysctls, such as 'vm.dirty_*'. May be repeated.
    #[arg(long, value_name = "PATTERN", num_args = 0..=1, default_missing_value = "", require_equals = true)]
    allow_tuning: Vec<String>,

    /// Time between the loss of a client and the restoration of the settings that it changed.
    #[arg(long, value_name = "TIME", default_value = "5s")]
    grace: Nanos,

    /// Folder of the journal of changed settings [default: /run/throughline/tune; not as root: below $XDG_RUNTIME_DIR].
    #[arg(long, value_name = "DIR", env = "THRU_JOURNAL")]
    journal: Option<PathBuf>,

    /// Print the addresses that it listens on to standard output, one per line. For processes that `thru` starts itself.
    #[arg(long, hide = true)]
    announce: bool,

    #[arg(long, value_name = "PROGRAM[=PORT][:OPTIONS]", help = registries::served_help(), value_delimiter = ',')]
    pub speak: Vec<PeerProgram>,

    #[arg(long, help = registries::inetd_help(), conflicts_with_all = ["listen", "token_file", "once", "concurrent"], requires = "speak")]
    inetd: bool,

    #[command(flatten)]
    pub users: UsersFlags,

    /// Print no log.
    #[arg(long, short)]
    quiet: bool,
}

impl ServeArgs {
    /// Largest values of --max-clients and --concurrent.
    const MOST: usize = 1_000_000;

    /// A flag that needs a token, with what it allows: any program on this host can reach the port.
    fn flag_needing_token(&self) -> Option<(&'static str, &'static str)> {
        let flags = [
            (!self.allow_tuning.is_empty(), "--allow-tuning", "change settings of this host"),
            (self.allow_capture.is_some(), "--allow-capture", "record packets of this host"),
            (self.allow_stacks, "--allow-stacks", "load code into this host's kernel"),
        ];
        flags.into_iter().find(|(given, ..)| *given).map(|(_, flag, what)| (flag, what))
    }

    /// What other programs' clients get; their limits are those of coordinators.
    fn peer_options(&self) -> PeerOptions<'_> {
        PeerOptions {
            programs: &self.speak,
            users: self.users.files(),
            limits: peers::Limits {
                unauthenticated: self.max_clients,
                hold_ns: self.max_time.0,
                flows: self.max_flows,
                rate_bps: self.max_rate.map(|rate| rate.0),
                memory_bytes: Limits::default().memory_bytes,
            },
            open: self.open,
            // Under inetd, standard error is the client's connection too.
            log: if self.quiet || self.inetd { |_| {} } else { |text| errln!("thru serve: {text}") },
        }
    }
}

/// Runs it.
pub fn run(args: &ServeArgs) -> Result<u8, Failure> {
    if args.inetd {
        return serving::serve_input(&args.peer_options());
    }
    let addresses = addresses(&args.listen)?;
    let allowance = allowance(&args.allow_tuning)?;
    if let (Some((flag, what)), None) = (args.flag_needing_token(), &args.token_file) {
        return Err(Failure::usage(format!(
            "{flag} lets clients {what} and needs a token, also on loopback: make one with `thru token new -o FILE` and give both sides --token-file FILE"
        )));
    }
    let token = setup::token(args.token_file.as_deref())?;
    let beyond = addresses.iter().find(|address| !address.ip().is_loopback());
    if let (Some(address), None, false) = (beyond, &token, args.open) {
        return Err(Failure::usage(format!(
            "{address} can be reached from other hosts: add --token-file FILE here and for clients, or --open to accept any client"
        )));
    }
    if let (Some(address), Some(peer), false) = (beyond, args.speak.first(), args.open) {
        return Err(Failure::usage(format!(
            "--speak {} on {address}: clients of other programs have no token; add --open to accept any client, or listen on loopback",
            peer.name()
        )));
    }
    if let Some(folder) = &args.allow_capture {
        check_captures(folder)?;
    }
    let mut signals = Signals::catch()?;
    let directory = setup::socket_directory()?;
    let (quiet, announce) = (args.quiet, args.announce);
    // Settings that a killed owner left are restored even if this agent changes none itself.
    match Journal::open(args.journal.as_deref()).and_then(|journal| agent::recover(&journal)) {
        Ok(lines) if !quiet => lines.iter().for_each(|line| errln!("thru serve: {line}")),
        Err(error) if !args.allow_tuning.is_empty() => return Err(Failure::host(error)),
        _ => {}
    }
    let machine = Machine::new(args.concurrent);
    let peer_servers = PeerServers::start(&args.peer_options(), &addresses, &machine)?;
    let options = control::agent::AgentOptions {
        version: session::VERSION.into(),
        token,
        machine,
        limits: Limits {
            clients: args.max_clients,
            hold_ns: args.max_time.0,
            flows: args.max_flows,
            rate_bps: args.max_rate.map(|rate| rate.0),
            ..Limits::default()
        },
        allow_stacks: args.allow_stacks,
        tuning: Tuning {
            allowed: !args.allow_tuning.is_empty(),
            allowance,
            journal: args.journal.clone(),
            grace: Duration::from_nanos(args.grace.0),
        },
        once: args.once,
        captures: args.allow_capture.clone().map_or(Captures::Refused, Captures::In),
        vanished_after: Duration::from_nanos(args.client_timeout.0),
        listening: Box::new(move |listening| {
            if announce {
                listening.iter().for_each(|address| outln!("{address}"));
            }
        }),
        log: Box::new(move |text| {
            if !quiet {
                errln!("thru serve: {text}");
            }
        }),
        ..setup::local_options(directory.path())?
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::other(format!("cannot start: {error}")))?;
    let served = runtime.block_on(async {
        tokio::select! {
            served = Agent::serve(options, &addresses) => served.map(|()| 0).map_err(|error| Failure::host(error.to_string())),
            _ = signals.next() => Ok(0),
        }
    });
    peer_servers.stop();
    served
}

/// Makes the folder of captures and checks that files can be written into it.
fn check_captures(folder: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(folder).and_then(|()| tempfile::tempfile_in(folder)).map(drop).map_err(|error| {
        Failure::usage(format!("--allow-capture={}: {error}; use a writable folder", folder.display()))
    })
}

/// The settings that clients may change: network settings, and those of the patterns.
fn allowance(patterns: &[String]) -> Result<Allowance, Failure> {
    let pattern = |text: &String| text.parse().map_err(|why| Failure::usage(format!("--allow-tuning='{text}': {why}")));
    // Without a value the flag adds nothing.
    patterns.iter().filter(|text| !text.is_empty()).map(pattern).collect::<Result<_, _>>().map(Allowance::Network)
}

/// The addresses to listen on.
fn addresses(texts: &[String]) -> Result<Vec<SocketAddr>, Failure> {
    if texts.is_empty() {
        return Ok(loopback_here());
    }
    texts
        .iter()
        .map(|text| {
            let bare = text.trim_start_matches('[').trim_end_matches(']');
            text.parse::<SocketAddr>()
                .or_else(|_| bare.parse::<IpAddr>().map(|ip| SocketAddr::new(ip, DEFAULT_PORT)))
                .map_err(|_| {
                    Failure::usage(format!(
                        "--listen {text}: write an IP address of this host, such as 0.0.0.0, 10.0.0.2:7000 or [::]:6280"
                    ))
                })
        })
        .collect()
}

/// The loopback addresses of the IP versions that this host has.
fn loopback_here() -> Vec<SocketAddr> {
    let has_v6 = std::net::UdpSocket::bind((std::net::Ipv6Addr::LOCALHOST, 0)).is_ok();
    loopback(DEFAULT_PORT).into_iter().filter(|address| address.is_ipv4() || has_v6).collect()
}
