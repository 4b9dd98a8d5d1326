//! The flags that all measuring subcommands share, and the spec that they make.

mod login;
mod output;
mod precision;

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use model::{
    BitRate, ByteSize, CaptureSpec, Direction, EndOptions, Family, HostSettings, Io, Nanos, Observe, Spec, Strategy,
};

pub use self::login::{LoginFlags, UsersFlags};
pub use self::output::{Output, form};
pub use self::precision::{Precision, clock_seed};
use crate::registries;
use session::failure::Failure;
use session::values::{
    self, Congestion, Cores, PerEnd, Rules, SetFlag, Switch, above_zero, any, at_least, each, whole, within,
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
    pub host: Option<String>,

    /// Near end: the agent on this host instead of this machine. Two agents then measure between each other.
    #[arg(long, value_name = "HOST", value_parser = values::host, help_heading = HOSTS)]
    pub from: Option<String>,

    /// Address of the far end's data sockets [default: the control address].
    #[arg(long, value_name = "ADDR", value_parser = values::address, help_heading = HOSTS)]
    pub data: Option<IpAddr>,

    /// Address that the near end's data sockets bind to [default: the kernel's choice].
    #[arg(long, value_name = "ADDR", value_parser = values::address, help_heading = HOSTS)]
    pub data_from: Option<IpAddr>,

    /// Use IPv4 only.
    #[arg(short = '4', long, conflicts_with = "ipv6", help_heading = HOSTS)]
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
    /// What carries the bytes.
    #[arg(long, default_value = "tcp", value_parser = registries::transports())]
    pub transport: String,

    /// Short for --transport udp.
    #[arg(long, conflicts_with = "transport")]
    pub udp: bool,

    /// Number of connections; with --both, in each direction.
    #[arg(long, value_name = "N", default_value = "1", value_parser = whole(1..=Spec::MAX_FLOWS))]
    pub flows: u32,

    /// Measuring threads at each end. Flows that share a thread share an epoll set or an io_uring [default: one per flow, at
    /// most 64].
    #[arg(long, value_name = "N", help_heading = CALLS, value_parser = whole(1..=Spec::MAX_FLOWS))]
    pub threads: Option<u32>,

    /// Worker processes at each end; the flows are divided among them.
    #[arg(long, value_name = "N", help_heading = CALLS, default_value = "1", value_parser = whole(1..=Spec::MAX_FLOWS))]
    pub processes: u32,

    /// Return direction: the far host sends, this host receives.
    #[arg(long, conflicts_with = "both")]
    pub reverse: bool,

    /// Both directions at the same time.
    #[arg(long)]
    pub both: bool,

    /// Busy-wait instead of sleeping. Lowest latency; uses one core per thread at each end.
    #[arg(long, help_heading = CALLS)]
    pub spin: bool,

    /// How threads wait for sockets.
    #[arg(long, value_enum, default_value_t = WaitFlag::Auto, conflicts_with = "spin", help_heading = CALLS)]
    pub wait: WaitFlag,

    /// System calls that move the bytes of a stream.
    #[arg(long, value_enum, default_value_t = IoFlag::SendRecv, help_heading = CALLS)]
    pub io: IoFlag,

    /// Counters to read on both hosts during the run [default: series; for a curve: counters].
    #[arg(long, value_enum, help_heading = ACTIVITY)]
    pub observe: Option<ObserveFlag>,

    /// Interval between two readings of --observe series.
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = at_least(Nanos(Spec::MIN_OBSERVE_INTERVAL_NS)),
          help_heading = ACTIVITY)]
    pub observe_interval: Nanos,
}

/// Heading of the flags that take a value per end. A plan finds these flags by their heading.
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
    #[arg(long, value_name = "NAME[:P=V,...]", value_parser = each(any::<Congestion>))]
    pub cc: Option<PerEnd<Congestion>>,

    /// Congestion-control rules per destination: Web100's wad.conf as TOML. Needs --cc highspeed.
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, requires = "cc")]
    pub cc_rules: Option<Rules>,

    /// Maximum segment size in bytes, TCP_MAXSEG.
    #[arg(long, value_name = "BYTES", value_parser = each(whole(88..=32_767_u32)))]
    pub mss: Option<PerEnd<u32>>,

    /// Differentiated services code point (DSCP), 0 to 63.
    #[arg(long, value_name = "N", value_parser = each(whole(0..=63_u8)))]
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

    /// Bytes to keep of each packet.
    #[arg(long, value_name = "N", default_value_t = CaptureSpec::SNAPLEN, requires = "capture",
          value_parser = whole(CaptureSpec::SNAPLEN_MIN..=CaptureSpec::SNAPLEN_MAX))]
    pub snaplen: u32,

    /// Fetch at most this much of the far host's capture into DIR after each trial. The agent then deletes its copy; 0 leaves
    /// the file on the far host.
    #[arg(long, value_name = "SIZE", default_value = "64MiB", requires = "capture")]
    pub fetch: ByteSize,
}

impl Observing {
    /// The requested capture.
    pub fn capture(&self) -> Option<CaptureSpec> {
        let folder = self.capture.as_ref()?.display().to_string();
        let fetch_bytes = Some(self.fetch.0).filter(|most| *most > 0);
        Some(CaptureSpec { snaplen: self.snaplen, folder: Some(folder), fetch_bytes })
    }
}

/// How threads wait, as a flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum WaitFlag {
    /// Blocking calls with a thread per flow; io_uring or epoll where flows share a thread.
    Auto,
    /// Blocking calls only.
    Blocking,
    /// One epoll set per thread.
    Epoll,
    /// One io_uring per thread: one call submits the sends and receives of all its flows.
    Uring,
}

/// What observers read, as a flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ObserveFlag {
    /// CPU time per core only.
    Off,
    /// All counters before and after each pass.
    Counters,
    /// The same, and cheap counters at each --observe-interval.
    Series,
}

/// System calls, as a flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum IoFlag {
    /// send and recv.
    SendRecv,
    /// write and read.
    ReadWrite,
}

impl Peer {
    /// Whether data will go over IPv6.
    pub fn data_over_ipv6(&self) -> bool {
        match (self.data, &self.host) {
            (Some(address), _) => address.is_ipv6(),
            (None, Some(host)) => control::coordinator::leads_to_ipv6(host, self.family()),
            (None, None) => false,
        }
    }

    /// The hosts of a run.
    pub fn hosts(&self) -> session::Hosts {
        session::Hosts {
            host: self.host.clone(),
            from: self.from.clone(),
            family: self.family(),
            token_file: self.token_file.clone(),
            no_path: self.no_path,
        }
    }

    pub fn family(&self) -> Family {
        match (self.ipv4, self.ipv6) {
            (true, _) => Family::V4,
            (_, true) => Family::V6,
            _ => Family::Any,
        }
    }
}

impl Load {
    /// The transport's name.
    pub fn transport(&self) -> &str {
        if self.udp { "udp" } else { &self.transport }
    }

    /// The default block of a stream over the transport, bytes.
    ///
    /// # Errors
    /// The transport is unknown.
    pub fn default_block(&self, peer: &Peer) -> Result<u64, Failure> {
        Ok(engine::transport::transport(self.transport())?.default_block(peer.data_over_ipv6()))
    }

    fn direction(&self) -> Direction {
        match (self.reverse, self.both) {
            (true, _) => Direction::Reverse,
            (_, true) => Direction::Both,
            _ => Direction::Send,
        }
    }

    fn strategy(&self) -> Strategy {
        match (self.spin, self.wait) {
            (true, _) => Strategy::Spin,
            (_, WaitFlag::Auto) => Strategy::Auto,
            (_, WaitFlag::Blocking) => Strategy::Blocking,
            (_, WaitFlag::Epoll) => Strategy::Epoll,
            (_, WaitFlag::Uring) => Strategy::Uring,
        }
    }
}

/// The spec that the shared flags make for `pattern`. The subcommand adds block, stop rule and rate.
///
/// # Errors
/// Socket options that the transport does not have.
pub fn spec(
    pattern: &str,
    peer: &Peer,
    load: &Load,
    sockets: &Sockets,
    precision: &Precision,
) -> Result<Spec, Failure> {
    sockets.check(load.transport())?;
    let mut spec = Spec::over(engine::transport::transport(load.transport())?.named(), pattern);
    spec.flows = load.flows;
    spec.threads = load.threads;
    spec.processes = load.processes;
    spec.direction = load.direction();
    spec.strategy = load.strategy();
    spec.io = match load.io {
        IoFlag::SendRecv => Io::SendRecv,
        IoFlag::ReadWrite => Io::ReadWrite,
    };
    spec.family = peer.family();
    spec.stall_ns = precision.stall.0;
    spec.observe = match load.observe {
        Some(ObserveFlag::Off) => Observe::Off,
        Some(ObserveFlag::Counters) => Observe::Counters,
        Some(ObserveFlag::Series) | None => Observe::Series,
    };
    spec.observe_interval_ns = load.observe_interval.0;
    sockets.apply(&mut spec.near, &mut spec.far);
    spec.settings = settings(&sockets.set);
    spec.near.data_addr = peer.data_from;
    spec.far.data_addr = peer.data;
    Ok(spec)
}

/// The settings that --set flags name, for each end.
pub fn settings(flags: &[SetFlag]) -> HostSettings {
    let mut settings = HostSettings::default();
    for flag in flags {
        let SetFlag { near, far, setting } = flag.clone();
        if near {
            settings.near.push(setting.clone());
        }
        if far {
            settings.far.push(setting);
        }
    }
    settings
}

/// Whether a stream's sender limits itself to the free space of the receiver's socket: on transports that drop data at a slow
/// receiver, unless a rate or `--unpaced` is given.
///
/// # Errors
/// `--unpaced` on a transport with flow control.
pub fn to_receiver(spec: &Spec, unpaced: bool) -> Result<bool, Failure> {
    let overruns = engine::transport::transport(spec.transport.as_str())?.overruns();
    if unpaced && !overruns {
        return Err(Failure::usage(format!(
            "--unpaced has no effect on {}, which has flow control: omit it, or use {}",
            spec.transport,
            engine::transport::names(|other| other.overruns())
        )));
    }
    Ok(overruns && !unpaced && spec.rate_bps.is_none())
}

impl Sockets {
    /// Refuses TCP socket options on other transports.
    fn check(&self, transport: &str) -> Result<(), Failure> {
        let transport = engine::transport::transport(transport)?;
        let over_tcp = transport.facts().is_over_tcp();
        let without_effect = [
            ("--nodelay", self.nodelay.is_some() && !over_tcp),
            ("--cork", self.cork.is_some() && !over_tcp),
            ("--cc", self.cc.is_some() && !transport.has_congestion_controls()),
            ("--mss", self.mss.is_some() && !over_tcp),
            ("--notsent-lowat", self.notsent_lowat.is_some() && !over_tcp),
            ("--keepalive", self.keepalive.is_some() && !over_tcp),
            ("--user-timeout", self.user_timeout.is_some() && !over_tcp),
        ];
        match without_effect.iter().find(|(_, given)| *given) {
            Some((flag, _)) => Err(Failure::usage(format!(
                "{flag} has no effect on {}: omit it, or use {}",
                transport.name(),
                engine::transport::names(|other| other.facts().is_over_tcp())
            ))),
            None => Ok(()),
        }
    }

    fn apply(&self, near: &mut EndOptions, far: &mut EndOptions) {
        /// Sets one option at both ends, in the unit of the spec.
        fn each<T: Clone, U>(
            ends: Option<&PerEnd<T>>,
            near: &mut Option<U>,
            far: &mut Option<U>,
            unit: impl Fn(T) -> U,
        ) {
            if let Some(ends) = ends {
                *near = ends.near.clone().map(&unit);
                *far = ends.far.clone().map(&unit);
            }
        }
        each(self.sndbuf.as_ref(), &mut near.sndbuf, &mut far.sndbuf, |size| size.0);
        each(self.rcvbuf.as_ref(), &mut near.rcvbuf, &mut far.rcvbuf, |size| size.0);
        each(self.nodelay.as_ref(), &mut near.nodelay, &mut far.nodelay, |switch| switch.0);
        each(self.cork.as_ref(), &mut near.cork, &mut far.cork, |switch| switch.0);
        each(self.cc.as_ref(), &mut near.cc, &mut far.cc, |name| name.0);
        if let Some(rules) = &self.cc_rules {
            let takes = |end: &EndOptions| end.cc.as_deref().is_some_and(stacks::takes_rules);
            // If neither does, both get the rules and their agents report the error.
            let neither = !takes(near) && !takes(far);
            for end in [&mut *near, &mut *far].into_iter().filter(|end| end.cc.is_some() && (neither || takes(end))) {
                end.cc_rules = rules.0.clone();
            }
        }
        each(self.mss.as_ref(), &mut near.mss, &mut far.mss, |bytes| bytes);
        each(self.dscp.as_ref(), &mut near.dscp, &mut far.dscp, |dscp| dscp);
        each(self.device.as_ref(), &mut near.device, &mut far.device, |name| name);
        each(self.data_port.as_ref(), &mut near.port, &mut far.port, |port| port);
        each(self.pacing.as_ref(), &mut near.max_pacing_bps, &mut far.max_pacing_bps, |rate| rate.0);
        each(self.notsent_lowat.as_ref(), &mut near.notsent_lowat, &mut far.notsent_lowat, |size| to_u32(size.0));
        each(self.keepalive.as_ref(), &mut near.keepalive_s, &mut far.keepalive_s, |time| {
            to_u32(time.0.div_ceil(1_000_000_000))
        });
        each(self.user_timeout.as_ref(), &mut near.user_timeout_ms, &mut far.user_timeout_ms, |time| {
            to_u32(time.0.div_ceil(1_000_000))
        });
        each(self.busy_poll.as_ref(), &mut near.busy_poll_us, &mut far.busy_poll_us, |time| to_u32(time.0 / 1_000));
        if let Some(pin) = &self.pin {
            near.pin = pin.near.clone().map(|cores| cores.0).unwrap_or_default();
            far.pin = pin.far.clone().map(|cores| cores.0).unwrap_or_default();
        }
    }
}

fn to_u32(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}
