//! The flags that all measuring subcommands share, and the spec they make.

mod enough;
mod login;
mod output;

use std::net::IpAddr;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use model::{
    BitRate, ByteSize, CaptureSpec, Direction, EndOptions, Family, HostSettings, Io, Nanos, Observe, Spec, Strategy,
};

pub use self::enough::{Enough, clock_seed};
pub use self::login::{LoginFlags, UsersFlags};
pub use self::output::{Output, form};
use crate::failure::Failure;
use crate::values::{
    self, Congestion, Cores, PerEnd, Rules, SetFlag, Switch, above_zero, any, at_least, each, whole, within,
};

/// Where the far end is.
#[derive(Debug, Clone, Args)]
pub struct Peer {
    /// The far host, running `thru serve`: a name or address, with :PORT if not 6280. Left out for memcpy, shm, unix and
    /// unix-dgram, whose both ends then run here, and for mpi and pvm.
    #[arg(value_parser = values::host)]
    pub host: Option<String>,

    /// Let this host's agent be the near end instead of this machine: two agents measure each other.
    #[arg(long, value_name = "HOST", value_parser = values::host, help_heading = "Path")]
    pub from: Option<String>,

    /// Address that the far end's data sockets listen on, where it is not the control address.
    #[arg(long, value_name = "ADDR", value_parser = values::address, help_heading = "Path")]
    pub data: Option<IpAddr>,

    /// Address that the near end's data sockets bind.
    #[arg(long, value_name = "ADDR", value_parser = values::address, help_heading = "Path")]
    pub data_from: Option<IpAddr>,

    /// Use IPv4 only.
    #[arg(short = '4', long, conflicts_with = "ipv6", help_heading = "Path")]
    pub ipv4: bool,

    /// Use IPv6 only.
    #[arg(short = '6', long, help_heading = "Path")]
    pub ipv6: bool,

    /// File with the secret that the agent was started with.
    #[arg(long, value_name = "FILE", env = "THRU_TOKEN_FILE", help_heading = "Path")]
    pub token_file: Option<PathBuf>,

    /// Do not look at the path first: no route, path MTU, ping, hops, foreign traffic or clock offset.
    #[arg(long, help_heading = "Path")]
    pub no_path: bool,
}

/// What is sent and how.
#[derive(Debug, Clone, Args)]
pub struct Load {
    /// What carries the bytes: tcp, mptcp, tls, udp, quic, unix, unix-dgram, vsock, memcpy, shm, pvm, or mpi (under
    /// `mpirun -n 2`).
    #[arg(long, default_value = "tcp", value_parser = transport_name)]
    pub transport: String,

    /// The same as --transport udp.
    #[arg(long, conflicts_with = "transport")]
    pub udp: bool,

    /// Connections (with --both: in each direction).
    #[arg(long, value_name = "N", default_value = "1", value_parser = whole(1..=Spec::MAX_FLOWS))]
    pub flows: u32,

    /// Measuring threads at each end; several flows to a thread share an epoll set or a ring [default: one to a flow, at most 64].
    #[arg(long, value_name = "N", value_parser = whole(1..=Spec::MAX_FLOWS))]
    pub threads: Option<u32>,

    /// Worker processes at each end that share the flows.
    #[arg(long, value_name = "N", default_value = "1", value_parser = whole(1..=Spec::MAX_FLOWS))]
    pub processes: u32,

    /// From the far host to this one.
    #[arg(long, conflicts_with = "both")]
    pub reverse: bool,

    /// In both directions at once.
    #[arg(long)]
    pub both: bool,

    /// Spin instead of sleeping: the lowest latency, at the price of a core at each end.
    #[arg(long)]
    pub spin: bool,

    /// How threads wait.
    #[arg(long, value_enum, default_value_t = Wait::Auto, conflicts_with = "spin", help_heading = "Sockets")]
    pub wait: Wait,

    /// System calls that move stream bytes.
    #[arg(long, value_enum, default_value_t = Calls::SendRecv, help_heading = "Sockets")]
    pub io: Calls,

    /// What is read of both hosts meanwhile: counters before and after each pass, and a series of the cheap ones in between
    /// [default: series; in a curve counters].
    #[arg(long, value_enum, help_heading = "Hosts meanwhile")]
    pub observe: Option<Watching>,

    /// Distance of the readings of the series.
    #[arg(long, value_name = "TIME", default_value = "100ms", value_parser = at_least(Nanos(Spec::MIN_OBSERVE_INTERVAL_NS)),
          help_heading = "Hosts meanwhile")]
    pub observe_interval: Nanos,
}

/// The heading of the flags that each end may have a value of its own for; a plan tells by it which ones these are.
pub const PER_END: &str = "Sockets (V for both ends, or LOCAL,REMOTE)";

/// Options of sockets and threads. Each takes V for both ends or LOCAL,REMOTE.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = PER_END)]
pub struct Sockets {
    /// Send buffer (SO_SNDBUF).
    #[arg(long, value_name = "SIZE", value_parser = each(above_zero::<ByteSize>))]
    pub sndbuf: Option<PerEnd<ByteSize>>,

    /// Receive buffer (SO_RCVBUF).
    #[arg(long, value_name = "SIZE", value_parser = each(above_zero::<ByteSize>))]
    pub rcvbuf: Option<PerEnd<ByteSize>>,

    /// TCP_NODELAY [default: on for round trips, off for streams].
    #[arg(long, value_name = "on|off", num_args = 0..=1, default_missing_value = "on", require_equals = true,
          value_parser = each(any::<Switch>))]
    pub nodelay: Option<PerEnd<Switch>>,

    /// TCP_CORK.
    #[arg(long, value_name = "on|off", num_args = 0..=1, default_missing_value = "on", require_equals = true,
          value_parser = each(any::<Switch>))]
    pub cork: Option<PerEnd<Switch>>,

    /// Congestion control: one of the kernel's, or a stack of `thru stacks list` with its parameters, as in fast:alpha=400.
    #[arg(long, value_name = "NAME[:P=V,...]", value_parser = each(any::<Congestion>))]
    pub cc: Option<PerEnd<Congestion>>,

    /// Rules of HighSpeed TCP for destinations (the wad.conf of 2003 as TOML); with --cc highspeed.
    #[arg(long, value_name = "FILE", value_hint = clap::ValueHint::FilePath, requires = "cc")]
    pub cc_rules: Option<Rules>,

    /// Maximum segment size (TCP_MAXSEG).
    #[arg(long, value_name = "BYTES", value_parser = each(whole(88..=32_767_u32)))]
    pub mss: Option<PerEnd<u32>>,

    /// Differentiated services code point, 0 to 63.
    #[arg(long, value_name = "N", value_parser = each(whole(0..=63_u8)))]
    pub dscp: Option<PerEnd<u8>>,

    /// Device to bind to (SO_BINDTODEVICE).
    #[arg(long, value_name = "NAME", value_parser = each(values::name))]
    pub device: Option<PerEnd<String>>,

    /// First local port of the data sockets.
    #[arg(long, value_name = "PORT", value_parser = each(whole(1..=u16::MAX)))]
    pub data_port: Option<PerEnd<u16>>,

    /// The kernel's pacing of each socket (SO_MAX_PACING_RATE).
    #[arg(long, value_name = "RATE", value_parser = each(above_zero::<BitRate>))]
    pub pacing: Option<PerEnd<BitRate>>,

    /// Unsent bytes above which a socket is not writable (TCP_NOTSENT_LOWAT).
    #[arg(long, value_name = "SIZE", value_parser = each(within(ByteSize(1)..=ByteSize(u32::MAX.into()))))]
    pub notsent_lowat: Option<PerEnd<ByteSize>>,

    /// Keepalive probes after this idle time, in whole seconds.
    #[arg(long, value_name = "TIME", value_parser = each(within(Nanos(1_000_000_000)..=Nanos(32_767_000_000_000))))]
    pub keepalive: Option<PerEnd<Nanos>>,

    /// Unacknowledged data for this long ends a connection (TCP_USER_TIMEOUT).
    #[arg(long, value_name = "TIME", value_parser = each(within(Nanos(1_000_000)..=Nanos(2_147_483_647_000_000))))]
    pub user_timeout: Option<PerEnd<Nanos>>,

    /// Busy polling in the kernel (SO_BUSY_POLL).
    #[arg(long, value_name = "TIME", value_parser = each(within(Nanos(0)..=Nanos(2_147_483_647_000))))]
    pub busy_poll: Option<PerEnd<Nanos>>,

    /// Set KEY on both hosts, or near:KEY or far:KEY on one, before the first trial, and put it back after the last; may be
    /// repeated (`thru tune --help` has the keys). Far hosts need `thru serve --allow-tuning`.
    #[arg(long, value_name = "[near:|far:]KEY=VALUE", help_heading = "Settings of the hosts")]
    pub set: Vec<SetFlag>,

    /// Cores for the measuring threads: 2, 0+2 or 0-3.
    #[arg(long, value_name = "CORES", value_parser = each(any::<Cores>))]
    pub pin: Option<PerEnd<Cores>>,
}

/// What is watched beside a measurement.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Observing")]
pub struct Observing {
    /// Capture the packets of each trial: at this end into pcapng files in DIR [default: the current folder], at the far end
    /// where its agent was started with --allow-capture, from where they are fetched.
    #[arg(long, value_name = "DIR", num_args = 0..=1, default_missing_value = ".", require_equals = true)]
    pub capture: Option<PathBuf>,

    /// Bytes that a capture keeps of each packet.
    #[arg(long, value_name = "N", default_value_t = CaptureSpec::SNAPLEN, requires = "capture",
          value_parser = whole(CaptureSpec::SNAPLEN_MIN..=CaptureSpec::SNAPLEN_MAX))]
    pub snaplen: u32,

    /// Most bytes of another host's capture that are fetched into DIR after each trial; the agent there then keeps none. 0 leaves
    /// its file where it is.
    #[arg(long, value_name = "SIZE", default_value = "64MiB", requires = "capture")]
    pub fetch: ByteSize,
}

impl Observing {
    /// The capture that was asked for.
    pub fn capture(&self) -> Option<CaptureSpec> {
        let folder = self.capture.as_ref()?.display().to_string();
        let fetch_bytes = Some(self.fetch.0).filter(|most| *most > 0);
        Some(CaptureSpec { snaplen: self.snaplen, folder: Some(folder), fetch_bytes })
    }
}

/// How threads wait, as a flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Wait {
    /// Blocking calls with a thread for each flow; epoll or io_uring where flows share one.
    Auto,
    /// Blocking calls and nothing else.
    Blocking,
    /// One epoll set to a thread.
    Epoll,
    /// One io_uring to a thread: sends and receives of all its flows are handed to the kernel with one call.
    Uring,
}

/// What observers do, as a flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Watching {
    /// Nothing but CPU time per core.
    Off,
    /// Counters at the start and at the end of each pass.
    Counters,
    /// The same, and readings over time.
    Series,
}

/// System calls, as a flag.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Calls {
    /// send and recv.
    SendRecv,
    /// write and read.
    ReadWrite,
}

fn transport_name(name: &str) -> Result<String, String> {
    engine::transport::transport(name).map(|_| name.to_owned()).map_err(|error| error.to_string())
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
            (_, Wait::Auto) => Strategy::Auto,
            (_, Wait::Blocking) => Strategy::Blocking,
            (_, Wait::Epoll) => Strategy::Epoll,
            (_, Wait::Uring) => Strategy::Uring,
        }
    }
}

/// The spec that the shared flags make for `pattern`; block, stop rule and rate are the subcommand's.
///
/// # Errors
/// Options of sockets that the transport does not have.
pub fn spec(pattern: &str, peer: &Peer, load: &Load, sockets: &Sockets, enough: &Enough) -> Result<Spec, Failure> {
    sockets.check(load.transport())?;
    let mut spec = Spec::new(load.transport(), pattern);
    spec.flows = load.flows;
    spec.threads = load.threads;
    spec.processes = load.processes;
    spec.direction = load.direction();
    spec.strategy = load.strategy();
    spec.io = match load.io {
        Calls::SendRecv => Io::SendRecv,
        Calls::ReadWrite => Io::ReadWrite,
    };
    spec.family = peer.family();
    spec.stall_ns = enough.stall.0;
    spec.observe = match load.observe {
        Some(Watching::Off) => Observe::Off,
        Some(Watching::Counters) => Observe::Counters,
        Some(Watching::Series) | None => Observe::Series,
    };
    spec.observe_interval_ns = load.observe_interval.0;
    sockets.apply(&mut spec.near, &mut spec.far);
    spec.settings = settings(&sockets.set);
    spec.near.data_addr = peer.data_from;
    spec.far.data_addr = peer.data;
    Ok(spec)
}

/// What flags set at each end.
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

/// Where the journal of settings is, when it is not at its usual place.
pub fn journal() -> Option<PathBuf> {
    std::env::var_os("THRU_JOURNAL").map(PathBuf::from)
}

/// Whether a stream's sender keeps to what the receiver has room for: where a slow receiver would lose, unless a rate or
/// `--unpaced` says otherwise.
///
/// # Errors
/// `--unpaced` where no sender keeps to it anyway.
pub fn to_receiver(spec: &Spec, unpaced: bool) -> Result<bool, Failure> {
    let overruns = engine::transport::transport(spec.transport.as_str())?.overruns();
    if unpaced && !overruns {
        return Err(Failure::usage(format!(
            "--unpaced has no effect on {}, whose senders wait for their receivers anyway: leave it out, or use udp",
            spec.transport
        )));
    }
    Ok(overruns && !unpaced && spec.rate_bps.is_none())
}

/// Transports that are carried by TCP.
const OVER_TCP: [&str; 3] = ["tcp", "mptcp", "tls"];

impl Sockets {
    /// Refuses options of TCP's sockets on a transport without such.
    fn check(&self, transport: &str) -> Result<(), Failure> {
        let given = [
            ("--nodelay", self.nodelay.is_some()),
            ("--cork", self.cork.is_some()),
            // QUIC has congestion controls of its own.
            ("--cc", self.cc.is_some() && transport != "quic"),
            ("--mss", self.mss.is_some()),
            ("--notsent-lowat", self.notsent_lowat.is_some()),
            ("--keepalive", self.keepalive.is_some()),
            ("--user-timeout", self.user_timeout.is_some()),
        ];
        match given.iter().find(|(_, given)| *given) {
            Some((flag, _)) if !OVER_TCP.contains(&transport) => Err(Failure::usage(format!(
                "{flag} has no effect on {transport}: leave it out, or use {}",
                OVER_TCP.join(", ")
            ))),
            _ => Ok(()),
        }
    }

    fn apply(&self, near: &mut EndOptions, far: &mut EndOptions) {
        /// Sets one option at both ends, turned into the spec's unit.
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
            // Where neither does, the agents say so.
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
