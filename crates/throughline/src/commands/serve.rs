//! `thru serve`: the agent.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use command::Failure;
use command::values::scoped_address;
use control::agent::{Captures, Limits, OPEN_FOR};
use control::proof::code::Code;
use model::{BitRate, Nanos, Spec};
use options::values::{above_zero, whole};
use serving::{ServeOptions, ServedOptions, ServedProgram};

use crate::flags::UsersFlags;
use crate::registries;

/// Flags of `thru serve`.
#[derive(Debug, Args)]
#[command(after_help = format!("Examples:
  thru serve --invite                              prints the line to run on the other host
  thru serve                                       loopback only, no token
  thru serve --listen :: --token-file FILE         all interfaces, for clients with the token
  thru serve --speak iperf3                        also serve iperf3 clients (port 5201)
  thru serve --speak iperf3 --speak-listen :: --speak-open
                                                   iperf3 for all, thru only from this host
  thru serve --listen 10.0.0.2:7000 --open --once  one measurement, for any client

Control and data use one port, 6280, over TCP and UDP. Measurements use separate ports for a
connection per transaction, for options that must be set before the handshake (buffers, MSS, device,
data address), and for {}.", registries::own_ports()))]
pub struct ServeArgs {
    /// Address to listen on, with :PORT if not 6280. May be repeated [default: loopback, IPv4 and IPv6; all addresses with --invite
    /// or --invited].
    #[arg(long, value_name = "ADDR[:PORT]")]
    listen: Vec<String>,

    /// Accept any client, without a token.
    #[arg(long, conflicts_with = "token_file")]
    open: bool,

    /// File with the token that clients must have (`thru token new`).
    #[arg(long, value_name = "FILE")]
    token_file: Option<PathBuf>,

    /// Invite one client: listen on all addresses unless --listen is given, and print the line to run on the other host. Its
    /// code works once, for ten minutes. Later that client needs no code; clients invited before are served as well.
    #[arg(long, conflicts_with = "open")]
    invite: bool,

    /// Serve the clients that were invited before, by their keys (`thru agent clients`), on all addresses unless --listen is
    /// given.
    #[arg(long, conflicts_with = "open")]
    invited: bool,

    /// File with the key that identifies this agent to clients; created if missing [default: throughline/agent.key in
    /// $XDG_DATA_HOME or ~/.local/share].
    #[arg(long, value_name = "FILE", env = "THRU_AGENT_KEY")]
    key_file: Option<PathBuf>,

    /// Connect to a NATS server, over which clients reach this agent by name if they cannot connect to it directly. The name is the
    /// host's, or NAME in nats://SERVER/NAME. THRU_BUS_CREDS and THRU_BUS_CA are files with credentials and certificates.
    #[arg(long, value_name = "URL", env = "THRU_BUS")]
    bus: Option<String>,

    /// Keep results in this folder until the client has stored them, so that a mesh or plan that was killed can be continued
    /// without measuring them again [default with --bus: throughline/agent in $XDG_DATA_HOME or ~/.local/share; as root
    /// /var/lib/throughline-agent].
    #[arg(long, value_name = "DIR", env = "THRU_KEEP_RESULTS")]
    keep_results: Option<PathBuf>,

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

    /// Largest number of flows in one measurement.
    #[arg(long, value_name = "N", default_value_t = Limits::default().flows, value_parser = whole(1..=Spec::MAX_FLOWS))]
    max_flows: u32,

    /// Largest rate of a stream; clients must then request a --rate [default: no limit].
    #[arg(long, value_name = "RATE", value_parser = above_zero::<BitRate>)]
    max_rate: Option<BitRate>,

    /// Load congestion controls of `thru stacks` that clients request with --cc, for the duration of their measurement. Needs root.
    #[arg(long)]
    allow_stacks: bool,

    /// Time without a reply after which a client is considered lost and the next one is served. Increase it on paths with
    /// seconds of queueing.
    #[arg(long, value_name = "TIME", default_value = "2s", value_parser = above_zero::<Nanos>)]
    client_timeout: Nanos,

    /// Let clients capture the packets of their measurements into pcapng files in DIR [default: the current folder]. Only
    /// headers are kept, unless `payload` follows: =payload or =DIR,payload.
    #[arg(long, value_name = "DIR[,payload]", num_args = 0..=1, default_missing_value = ".", require_equals = true, value_parser = serving::captures)]
    allow_capture: Option<Captures>,

    /// Let clients change network settings of this host (`thru tune`, --set); they are restored when the client's session ends.
    /// PATTERN also allows other sysctls, such as 'vm.dirty_*'. May be repeated.
    #[arg(long, value_name = "PATTERN", num_args = 0..=1, default_missing_value = "", require_equals = true)]
    allow_tuning: Vec<String>,

    /// Restore the settings that a lost client changed after this time.
    #[arg(long, value_name = "TIME", default_value = "5s")]
    grace: Nanos,

    /// Folder of the journal of changed settings [default: /run/throughline/tune; without root: below $XDG_RUNTIME_DIR].
    #[arg(long, value_name = "DIR", env = "THRU_JOURNAL")]
    journal: Option<PathBuf>,

    /// Serve the agent's state as OpenMetrics text (Prometheus) at http://ADDR:PORT/metrics, to anyone who reaches it: use a
    /// loopback address.
    #[arg(long, value_name = "ADDR:PORT")]
    metrics: Option<SocketAddr>,

    /// Run the agent and its workers as this user if root starts it; a helper process keeps the privileges that the other flags
    /// need. `root` keeps all privileges; --allow-tuning, --allow-stacks and --allow-capture need a user other than nobody
    /// [default: thru if that user exists, else nobody].
    #[arg(long, value_name = "NAME")]
    user: Option<String>,

    /// Socket of a `thru helper` that does the privileged work [default: an agent started by root starts its own].
    #[arg(long, value_name = "SOCKET")]
    helper: Option<PathBuf>,

    /// Print the addresses it listens on to standard output, one per line. For processes that `thru` starts itself.
    #[arg(long, hide = true)]
    announce: bool,

    #[arg(long, value_name = "PROGRAM[=PORT][:OPTIONS]", help = registries::served_help(), value_delimiter = ',')]
    pub speak: Vec<ServedProgram>,

    /// Address on which to serve clients of other programs, without a port. May be repeated [default: those of --listen].
    #[arg(long, value_name = "ADDR", requires = "speak", value_parser = scoped_address)]
    speak_listen: Vec<SocketAddr>,

    /// Accept any client of other programs, which have no token. Clients of thru still need one.
    #[arg(long, requires = "speak")]
    speak_open: bool,

    #[arg(long, help = registries::inetd_help(), conflicts_with_all = ["invite", "invited", "listen", "speak_listen", "token_file", "once", "concurrent", "metrics"], requires = "speak")]
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

    /// What other programs' clients get; their limits are those of coordinators.
    fn peer_options(&self) -> ServedOptions<'_> {
        ServedOptions {
            programs: &self.speak,
            users: self.users.files(),
            limits: peers::ServiceLimits {
                unauthenticated: self.max_clients,
                hold_ns: self.max_time.0,
                flows: self.max_flows,
                rate_bps: self.max_rate.map(|rate| rate.0),
                memory_bytes: Limits::default().memory_bytes,
            },
            listen: &self.speak_listen,
            open: self.open || self.speak_open,
            // Under inetd, standard error is the client's connection too.
            log: if self.quiet || self.inetd { |_| {} } else { |text| errln!("thru serve: {text}") },
        }
    }
}

/// Runs it. `lowered` is called after the agent's rights are lowered, and before it has threads.
pub fn run(args: &ServeArgs, lowered: fn()) -> Result<u8, Failure> {
    if args.inetd {
        return serving::serve_input(&args.peer_options());
    }
    serving::serve(ServeOptions {
        listen: &args.listen,
        token_file: args.token_file.as_deref(),
        key_file: args.key_file.as_deref(),
        once: args.once,
        concurrent: args.concurrent,
        limits: Limits {
            clients: args.max_clients,
            hold_ns: args.max_time.0,
            flows: args.max_flows,
            rate_bps: args.max_rate.map(|rate| rate.0),
            ..Limits::default()
        },
        user: args.user.as_deref(),
        helper: args.helper.as_deref(),
        allow_stacks: args.allow_stacks,
        captures: args.allow_capture.clone().unwrap_or_default(),
        tuning: &args.allow_tuning,
        grace: Duration::from_nanos(args.grace.0),
        journal: args.journal.clone(),
        vanished_after: Duration::from_nanos(args.client_timeout.0),
        keep_results: args.keep_results.as_deref(),
        bus: args.bus.as_deref(),
        metrics: args.metrics,
        open: args.open,
        invited: args.invited || args.invite,
        invitation: args.invite.then_some(invitation),
        peers: args.peer_options(),
        listening: if args.announce { Box::new(announce) } else { Box::new(|_| {}) },
        lowered,
    })?;
    Ok(0)
}

/// Prints the line for the other host.
fn invitation(code: &Code, addresses: &[String]) {
    let host = addresses.first().map_or("HOST", String::as_str);
    let minutes = OPEN_FOR.as_secs() / 60;
    out!("On the other host, within {minutes} minutes:\n\n    thru {host} --code {code}\n\nThe code works once.\n");
    if let Some(others) = addresses.get(1..).filter(|others| !others.is_empty()) {
        outln!("Other addresses of this host: {}", others.join(", "));
    }
}

fn announce(listening: &[SocketAddr]) {
    listening.iter().for_each(|address| outln!("{address}"));
}
