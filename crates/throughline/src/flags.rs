//! The flags that all measuring subcommands share, and what they add to the draft of a measurement.

mod axes;
mod bulk;
mod fleet_hosts;
mod login;
mod output;
mod precision;

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use clap::Args;
use model::{BitRate, ByteSize, CaptureSpec, Family, Io, Nanos, Observe, Spec, Strategy};
use session::draft::SpecDraft;

pub use self::axes::AxisFlags;
pub use self::bulk::Bulk;
pub use self::fleet_hosts::{FleetHosts, FleetName, OverBus};
pub use self::login::{LOGIN, LoginFlags, UsersFlags};
pub use self::output::{Output, at_once, form};
pub use self::precision::Precision;
use crate::registries::{self, choice};
use session::values::{
    self, Congestion, Cores, PayloadFlag, PerEnd, Rules, SetFlag, Switch, above_zero, any, at_least, each, whole,
    within,
};

/// Heading of the flags that name hosts and addresses.
pub const HOSTS: &str = "Hosts and addresses";
/// Heading of the flags that say how bytes are moved.
pub const CALLS: &str = "System calls, threads and processes";
/// Heading of the flags for the hosts' counters.
const ACTIVITY: &str = "Host activity";
/// Heading of the flags that change host settings.
pub const SETTINGS: &str = "Host settings";
/// Heading of the flags for the stop rule.
pub const PRECISION: &str = "Precision and duration";

/// The hosts and addresses of a measurement.
#[derive(Debug, Clone, Args)]
pub struct Peer {
    #[arg(help = registries::host_help(), value_parser = values::host)]
    host: Option<String>,

    /// The far host, as other tools spell it: netperf and NetPIPE -H, iperf3 -c.
    #[arg(short = 'H', short_alias = 'c', id = "far_host", value_name = "HOST", value_parser = values::host,
          conflicts_with = "host", help_heading = HOSTS)]
    spelled: Option<String>,

    /// Near end: the agent on this host instead of this machine. Two agents then measure between each other.
    #[arg(long, value_name = "HOST", value_parser = values::host, help_heading = HOSTS)]
    pub from: Option<String>,

    /// Address of the far end's data sockets [default: the control address]; with a port, where a port of the agent is forwarded.
    #[arg(long, value_name = "ADDR[:PORT]", value_parser = values::data_address, help_heading = HOSTS)]
    pub data: Option<SocketAddr>,

    /// Address that the near end's data sockets bind to [default: the kernel's choice].
    #[arg(long, value_name = "ADDR", value_parser = values::address, help_heading = HOSTS)]
    pub data_from: Option<IpAddr>,

    /// Use IPv4 only.
    #[arg(short = '4', long, help_heading = HOSTS)]
    pub ipv4: bool,

    /// Use IPv6 only.
    #[arg(short = '6', long, help_heading = HOSTS)]
    pub ipv6: bool,

    /// File with the agent's token.
    #[arg(long, value_name = "FILE", env = "THRU_TOKEN_FILE", help_heading = HOSTS)]
    pub token_file: Option<PathBuf>,

    /// Skip the path probe before the run: no route, path MTU, ping, hops, foreign traffic or clock offset.
    #[arg(long, help_heading = HOSTS)]
    pub no_path: bool,
}

/// What is sent and how.
#[derive(Debug, Clone, Args)]
pub struct Load {
    /// What carries the bytes [default: tcp].
    #[arg(long, value_parser = registries::transports())]
    pub transport: Option<String>,

    /// Short for --transport udp.
    #[arg(short, long)]
    pub udp: bool,

    /// Number of connections; with --both, in each direction [default: 1].
    #[arg(short = 'P', long, value_name = "N", value_parser = whole(1..=Spec::MAX_FLOWS))]
    pub flows: Option<u32>,

    /// Measuring threads at each end. Flows that share a thread share an epoll set or an io_uring [default: one per flow, at
    /// most 64].
    #[arg(long, value_name = "N", help_heading = CALLS, value_parser = whole(1..=Spec::MAX_FLOWS))]
    pub threads: Option<u32>,

    /// Worker processes at each end; the flows are divided among them.
    #[arg(long, value_name = "N", help_heading = CALLS, default_value = "1", value_parser = whole(1..=Spec::MAX_FLOWS))]
    pub processes: u32,

    /// Return direction: the far host sends, this host receives.
    #[arg(short = 'R', long)]
    pub reverse: bool,

    /// Both directions at the same time.
    #[arg(long, alias = "bidir")]
    pub both: bool,

    /// Busy-wait instead of sleeping. Lowest latency; uses one core per thread at each end.
    #[arg(long, help_heading = CALLS)]
    pub spin: bool,

    /// How threads wait for sockets [default: auto].
    #[arg(long, value_parser = choice::<Strategy>(&WAITS), help_heading = CALLS)]
    pub wait: Option<Strategy>,

    /// System calls that move the bytes of a stream.
    #[arg(long, value_parser = choice::<Io>(&CALLS_OF_STREAMS), default_value = "send-recv", help_heading = CALLS)]
    pub io: Io,

    /// What the bytes are: random, zeros, pattern (0 to 255), or a file of at most 64 KiB, which is repeated [default: random, and
    /// different from block to block where the path may compress them].
    #[arg(long, value_name = "KIND|FILE")]
    pub payload: Option<PayloadFlag>,

    /// Counters to read on both hosts during the run [default: series; for a curve: counters].
    #[arg(long, value_parser = choice::<Observe>(&READINGS), help_heading = ACTIVITY)]
    pub observe: Option<Observe>,

    /// Interval between two readings of --observe series.
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = at_least(Nanos(Spec::MIN_OBSERVE_INTERVAL_NS)),
          help_heading = ACTIVITY)]
    pub observe_interval: Nanos,
}

/// Heading of the flags that take a value per end.
pub const PER_END: &str = "Socket options (one value for both ends, or LOCAL,REMOTE)";

/// Options of sockets and threads. Each takes one value for both ends, or LOCAL,REMOTE.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = PER_END)]
pub struct Sockets {
    /// Send buffer, SO_SNDBUF [default: the kernel's, which TCP autotunes].
    #[arg(long, value_name = "SIZE", value_parser = each(above_zero::<ByteSize>))]
    pub sndbuf: Option<PerEnd<ByteSize>>,

    /// Receive buffer, SO_RCVBUF [default: the kernel's, which TCP autotunes].
    #[arg(long, value_name = "SIZE", value_parser = each(above_zero::<ByteSize>))]
    pub rcvbuf: Option<PerEnd<ByteSize>>,

    /// Short for --sndbuf and --rcvbuf with the same value.
    #[arg(short = 'w', long, value_name = "SIZE", value_parser = each(above_zero::<ByteSize>),
          conflicts_with_all = ["sndbuf", "rcvbuf"])]
    pub window: Option<PerEnd<ByteSize>>,

    /// TCP_NODELAY [default: on for round trips and curves, off for streams].
    #[arg(long, value_name = "on|off", num_args = 0..=1, default_missing_value = "on", require_equals = true,
          value_parser = each(any::<Switch>))]
    pub nodelay: Option<PerEnd<Switch>>,

    /// TCP_CORK [default: off].
    #[arg(long, value_name = "on|off", num_args = 0..=1, default_missing_value = "on", require_equals = true,
          value_parser = each(any::<Switch>))]
    pub cork: Option<PerEnd<Switch>>,

    /// Congestion control: one of the kernel's, or one of `thru stacks list` with parameters, such as fast:alpha=400
    /// [default: the kernel's].
    #[arg(short = 'C', long, value_name = "NAME[:P=V,...]", value_parser = each(any::<Congestion>))]
    pub cc: Option<PerEnd<Congestion>>,

    /// Congestion-control rules per destination: a wad.conf of Net100, in its own form or as TOML. Needs --cc highspeed.
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath)]
    pub cc_rules: Option<Rules>,

    /// Maximum segment size in bytes, TCP_MAXSEG.
    #[arg(long, value_name = "BYTES", value_parser = each(whole(88..=32_767_u32)))]
    pub mss: Option<PerEnd<u32>>,

    /// Differentiated services code point (DSCP), 0 to 63 or a name such as ef, af41 or cs1.
    #[arg(long, value_name = "N", value_parser = each(values::dscp))]
    pub dscp: Option<PerEnd<u8>>,

    /// Network device to bind to, SO_BINDTODEVICE.
    #[arg(long, value_name = "NAME", value_parser = each(values::name))]
    pub device: Option<PerEnd<String>>,

    /// First local port of the data sockets [default: any free port].
    #[arg(long, value_name = "PORT", value_parser = each(whole(1..=u16::MAX)))]
    pub data_port: Option<PerEnd<u16>>,

    /// Kernel pacing rate of each socket, SO_MAX_PACING_RATE.
    #[arg(long, value_name = "RATE", value_parser = each(above_zero::<BitRate>))]
    pub pacing: Option<PerEnd<BitRate>>,

    /// Limit of unsent bytes above which a socket is not writable, TCP_NOTSENT_LOWAT.
    #[arg(long, value_name = "SIZE", value_parser = each(within(ByteSize(1)..=ByteSize(u32::MAX.into()))))]
    pub notsent_lowat: Option<PerEnd<ByteSize>>,

    /// Send keepalive probes after this idle time and at this interval, 3 retries; rounded up to whole seconds.
    #[arg(long, value_name = "TIME", value_parser = each(within(Nanos(1_000_000_000)..=Nanos(32_767_000_000_000))))]
    pub keepalive: Option<PerEnd<Nanos>>,

    /// Close a connection whose data is not acknowledged for this long, TCP_USER_TIMEOUT.
    #[arg(long, value_name = "TIME", value_parser = each(within(Nanos(1_000_000)..=Nanos(2_147_483_647_000_000))))]
    pub user_timeout: Option<PerEnd<Nanos>>,

    /// Busy-poll time of a blocking receive, SO_BUSY_POLL; kernel resolution 1 µs.
    #[arg(long, value_name = "TIME", value_parser = each(within(Nanos(0)..=Nanos(2_147_483_647_000))))]
    pub busy_poll: Option<PerEnd<Nanos>>,

    /// Change a host setting before the first trial and restore it after the last: KEY on both hosts, near:KEY or far:KEY on
    /// one. May be repeated; `thru tune --help` lists the keys. A far host needs `thru serve --allow-tuning`.
    #[arg(long, value_name = "[near:|far:]KEY=VALUE", help_heading = SETTINGS)]
    pub set: Vec<SetFlag>,

    /// Cores of the measuring threads, such as 2, 0+2 or 0-3 [default: the scheduler's choice].
    #[arg(long, value_name = "CORES", value_parser = each(any::<Cores>))]
    pub pin: Option<PerEnd<Cores>>,
}

/// Packet captures of a measurement.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Packet capture")]
pub struct Observing {
    /// Capture the packets of each trial into pcapng files in DIR [default: the current folder]. The far end captures too if
    /// its agent runs with --allow-capture.
    #[arg(long, value_name = "DIR", num_args = 0..=1, default_missing_value = ".", require_equals = true)]
    pub capture: Option<PathBuf>,

    /// Bytes to keep of each packet [default: 96].
    #[arg(long, value_name = "N", value_parser = whole(CaptureSpec::SNAPLEN_MIN..=CaptureSpec::SNAPLEN_MAX))]
    pub snaplen: Option<u32>,

    /// Fetch at most this much of the far host's capture into DIR after each trial. The agent then deletes its copy; 0 leaves
    /// the file on the far host [default: 64MiB].
    #[arg(long, value_name = "SIZE")]
    pub fetch: Option<ByteSize>,
}

/// How threads wait; `spin` is a flag of its own.
const WAITS: [(&str, &str); 4] = [
    ("auto", "Blocking calls with a thread per flow; io_uring or epoll where flows share a thread"),
    ("blocking", "Blocking calls only"),
    ("epoll", "One epoll set per thread"),
    ("uring", "One io_uring per thread: one call submits the sends and receives of all its flows"),
];

/// What observers read.
const READINGS: [(&str, &str); 3] = [
    ("off", "CPU time per core only"),
    ("counters", "All counters before and after each pass"),
    ("series", "The same, and cheap counters at each --observe-interval"),
];

/// System calls.
const CALLS_OF_STREAMS: [(&str, &str); 2] = [("send-recv", "send and recv"), ("read-write", "write and read")];

impl Peer {
    /// The hosts of a run.
    pub fn hosts(&self) -> session::Hosts {
        session::Hosts {
            host: self.host().cloned(),
            from: self.from.clone(),
            family: self.family(),
            token_file: self.token_file.clone(),
            no_path: self.no_path,
        }
    }

    pub(crate) fn host(&self) -> Option<&String> {
        self.host.as_ref().or(self.spelled.as_ref())
    }

    /// The IP version of the data and of the connections to agents.
    pub fn family(&self) -> Family {
        Family::requested(self.ipv4, self.ipv6)
    }

    /// Whether HOST leads to an IPv6 address.
    pub fn is_ipv6(&self) -> bool {
        self.host().is_some_and(|host| control::coordinator::leads_to_ipv6(host, self.family()))
    }

    /// Adds the addresses of the data.
    pub fn fill(&self, draft: &mut SpecDraft) {
        draft.data = self.data;
        draft.data_from = self.data_from;
        draft.ipv4 = self.ipv4;
        draft.ipv6 = self.ipv6;
    }
}

impl Load {
    /// Adds what is sent and how.
    pub fn fill(&self, draft: &mut SpecDraft) {
        draft.transport.clone_from(&self.transport);
        draft.udp = self.udp;
        draft.flows = self.flows;
        draft.threads = self.threads;
        draft.processes = Some(self.processes);
        draft.reverse = self.reverse;
        draft.both = self.both;
        draft.spin = self.spin;
        draft.wait = self.wait;
        draft.io = Some(self.io);
        draft.payload.clone_from(&self.payload);
        draft.observe = self.observe;
        draft.observe_interval = Some(self.observe_interval);
    }
}

impl Sockets {
    /// Adds the options of sockets and threads, and the host settings.
    pub fn fill(&self, draft: &mut SpecDraft) {
        let own = self.clone();
        *draft = SpecDraft {
            sndbuf: own.sndbuf.or(own.window.clone()),
            rcvbuf: own.rcvbuf.or(own.window),
            nodelay: own.nodelay,
            cork: own.cork,
            cc: own.cc,
            cc_rules: own.cc_rules,
            mss: own.mss,
            dscp: own.dscp,
            device: own.device,
            data_port: own.data_port,
            pacing: own.pacing,
            notsent_lowat: own.notsent_lowat,
            keepalive: own.keepalive,
            user_timeout: own.user_timeout,
            busy_poll: own.busy_poll,
            set: own.set,
            pin: own.pin,
            ..std::mem::take(draft)
        };
    }
}

impl Observing {
    /// Adds the capture.
    pub fn fill(&self, draft: &mut SpecDraft) {
        draft.capture.clone_from(&self.capture);
        draft.snaplen = self.snaplen;
        draft.fetch = self.fetch;
    }
}

#[cfg(test)]
mod tests;
