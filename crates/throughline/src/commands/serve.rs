//! `thru serve`: the agent.

use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::Args;
use control::agent::{self, Agent, Captures, Limits, Machine, Tuning, loopback};
use control::proto::DEFAULT_PORT;
use host::tune::{Allowance, Journal};
use model::{BitRate, Nanos, Spec};

use crate::failure::Failure;
use crate::flags::UsersFlags;
use crate::measure;
use crate::signals::Signals;
use crate::speaking::{self, Speaking, Spoken};
use crate::values::{above_zero, whole};

/// Flags of `thru serve`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  thru serve                                         for measurements within this host
  thru serve --listen 0.0.0.0 --token-file FILE      for those who know the token
  thru serve --speak iperf3                          for clients of iperf3, too (port 5201)
  thru serve --listen 10.0.0.2:7000 --open --once    for one measurement, by anybody who reaches the port

Control and data use one port, TCP and UDP (6280). Connections per transaction, options that must be set before a
handshake (buffers, MSS, device, another data address), and mptcp, tls, quic and vsock get a port of their own.")]
pub struct ServeArgs {
    /// Address to listen on, with :PORT if not 6280; may be repeated [default: loopback].
    #[arg(long, value_name = "ADDR[:PORT]")]
    listen: Vec<String>,

    /// Let anybody in who reaches the port.
    #[arg(long, conflicts_with = "token_file")]
    open: bool,

    /// File with the secret that coordinators must know.
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,

    /// End after the first coordinator that measured.
    #[arg(long)]
    once: bool,

    /// Measurements at the same time; each result is then marked with what overlapped it.
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = whole(1..=Self::MOST))]
    concurrent: usize,

    /// Coordinators connected at once.
    #[arg(long, value_name = "N", default_value_t = Limits::default().clients, value_parser = whole(1..=Self::MOST))]
    max_clients: usize,

    /// Longest hold of the machine by one coordinator.
    #[arg(long, value_name = "TIME", default_value = "1h", value_parser = above_zero::<Nanos>)]
    max_time: Nanos,

    /// Flows of a measurement.
    #[arg(long, value_name = "N", default_value_t = Limits::default().flows, value_parser = whole(1..=Spec::MAX_FLOWS))]
    max_flows: u32,

    /// Rate of a stream; coordinators must then ask for at most that.
    #[arg(long, value_name = "RATE", value_parser = above_zero::<BitRate>)]
    max_rate: Option<BitRate>,

    /// Load the TCP stacks that coordinators ask for (`--cc fast`) while they measure; needs root.
    #[arg(long)]
    allow_stacks: bool,

    /// How long a coordinator may be unreachable before the next one gets its place; more on paths that queue for seconds.
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = above_zero::<Nanos>)]
    client_timeout: Nanos,

    /// Let coordinators capture the packets of their measurements, into pcapng files in this folder [default: the current one].
    #[arg(long, value_name = "DIR", num_args = 0..=1, default_missing_value = ".", require_equals = true)]
    allow_capture: Option<PathBuf>,

    /// Let coordinators change the network's settings of this host (`thru tune`, --set); they are put back when the session ends.
    /// PATTERN adds keys that are none of the network's, such as 'vm.dirty_*'; may be repeated.
    #[arg(long, value_name = "PATTERN", num_args = 0..=1, default_missing_value = "", require_equals = true)]
    allow_tuning: Vec<String>,

    /// How long after a coordinator was lost its settings are put back.
    #[arg(long, value_name = "TIME", default_value = "5s")]
    grace: Nanos,

    /// Directory of the journal of settings [default: /run/throughline/tune, or below $XDG_RUNTIME_DIR].
    #[arg(long, value_name = "DIR", env = "THRU_JOURNAL")]
    journal: Option<PathBuf>,

    /// Serve other programs' clients as well, under the same limits, on their usual port or the one given: iperf3, netperf,
    /// netpipe, nttcp, nuttcp, iperf2, stamp. NPtcp's two ends must know each other's options: 'netpipe:-2', 'netpipe=5003:-s -u 100000'.
    #[arg(long, value_name = "PROGRAM[=PORT][:OPTIONS]", value_delimiter = ',')]
    pub speak: Vec<Spoken>,

    /// Serve the one client whose connection is standard input, as inetd (stream tcp nowait) or systemd (Accept=yes) hand it over,
    /// and end: with --speak of one of netperf, nttcp and nuttcp.
    #[arg(long, conflicts_with_all = ["listen", "token_file", "once", "concurrent"], requires = "speak")]
    inetd: bool,

    #[command(flatten)]
    pub users: UsersFlags,

    /// Say nothing.
    #[arg(long, short)]
    quiet: bool,
}

impl ServeArgs {
    /// The most clients and measurements that can be asked for.
    const MOST: usize = 1_000_000;

    /// Whether nothing is to be said.
    pub fn is_quiet(&self) -> bool {
        // What inetd starts has the client's connection for standard error as well.
        self.quiet || self.inetd
    }

    /// A flag, and what it lets clients do, that nobody may have who only reaches the port: any program of this host can.
    fn given_away(&self) -> Option<(&'static str, &'static str)> {
        let flags = [
            (!self.allow_tuning.is_empty(), "--allow-tuning", "change settings of this host"),
            (self.allow_capture.is_some(), "--allow-capture", "record packets of this host"),
            (self.allow_stacks, "--allow-stacks", "load code into this host's kernel"),
        ];
        flags.into_iter().find(|(given, ..)| *given).map(|(_, flag, what)| (flag, what))
    }

    /// Whether anybody may come in.
    pub fn is_open(&self) -> bool {
        self.open
    }

    /// What other programs' clients may do: what coordinators may.
    pub fn spoken_limits(&self) -> interop::Limits {
        interop::Limits {
            unauthenticated: self.max_clients,
            hold_ns: self.max_time.0,
            flows: self.max_flows,
            rate_bps: self.max_rate.map(|rate| rate.0),
            memory_bytes: Limits::default().memory_bytes,
        }
    }
}

/// Runs it.
pub fn run(args: &ServeArgs) -> Result<u8, Failure> {
    if args.inetd {
        return speaking::serve_input(args);
    }
    let addresses = addresses(&args.listen)?;
    let allowance = allowance(&args.allow_tuning)?;
    if let (Some((flag, what)), None) = (args.given_away(), &args.token_file) {
        return Err(Failure::usage(format!(
            "{flag} lets clients {what}, so they have to show a token, on loopback too: make one with `thru token new -o FILE` and give both sides --token-file FILE"
        )));
    }
    let token = measure::token(args.token_file.as_deref())?;
    let beyond = addresses.iter().find(|address| !address.ip().is_loopback());
    if let (Some(address), None, false) = (beyond, &token, args.open) {
        return Err(Failure::usage(format!(
            "{address} can be reached from other hosts: give --token-file FILE (and the same to the others), or --open to let anybody in"
        )));
    }
    if let (Some(address), Some(spoken), false) = (beyond, args.speak.first(), args.open) {
        return Err(Failure::usage(format!(
            "--speak {} on {address}, which can be reached from other hosts: its clients know no token; give --open to let anybody in, or listen on loopback",
            spoken.name()
        )));
    }
    if let Some(folder) = &args.allow_capture {
        check_captures(folder)?;
    }
    let mut signals = Signals::catch()?;
    let directory = measure::socket_directory()?;
    let quiet = args.quiet;
    // What a killed owner left is put back even where this agent changes nothing itself.
    match Journal::open(args.journal.as_deref()).and_then(|journal| agent::recover(&journal)) {
        Ok(lines) if !quiet => lines.iter().for_each(|line| errln!("thru serve: {line}")),
        Err(error) if !args.allow_tuning.is_empty() => return Err(Failure::host(error)),
        _ => {}
    }
    let machine = Machine::new(args.concurrent);
    let speaking = Speaking::start(args, &addresses, &machine)?;
    let options = control::agent::AgentOptions {
        version: crate::VERSION.into(),
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
        log: Box::new(move |text| {
            if !quiet {
                errln!("thru serve: {text}");
            }
        }),
        ..measure::local_options(directory.path())?
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
    speaking.stop();
    served
}

/// Makes the folder of captures, and refuses one that no file can be written into.
fn check_captures(folder: &Path) -> Result<(), Failure> {
    std::fs::create_dir_all(folder).and_then(|()| tempfile::tempfile_in(folder)).map(drop).map_err(|error| {
        Failure::usage(format!("--allow-capture={}: {error}; name a folder that can be written", folder.display()))
    })
}

/// What clients may set: the network's settings, and what the patterns add.
fn allowance(patterns: &[String]) -> Result<Allowance, Failure> {
    let pattern = |text: &String| text.parse().map_err(|why| Failure::usage(format!("--allow-tuning='{text}': {why}")));
    // Without a value the flag adds nothing.
    patterns.iter().filter(|text| !text.is_empty()).map(pattern).collect::<Result<_, _>>().map(Allowance::Network)
}

/// What to listen on.
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
                        "--listen {text}: write an address of this host, such as 0.0.0.0, 10.0.0.2:7000 or [::]:6280"
                    ))
                })
        })
        .collect()
}

/// Loopback of the IP versions that this host has.
fn loopback_here() -> Vec<SocketAddr> {
    let has_v6 = std::net::UdpSocket::bind((std::net::Ipv6Addr::LOCALHOST, 0)).is_ok();
    loopback(DEFAULT_PORT).into_iter().filter(|address| address.is_ipv4() || has_v6).collect()
}
