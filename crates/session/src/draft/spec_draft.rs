//! The draft: an entry for each option of a measurement, empty where the default applies.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use model::{BitRate, ByteSize, Io, Mix, Nanos, Observe, RunKind, Strategy};

use crate::values::{
    BlockFlag, Congestion, Cores, EngineFlag, PayloadFlag, PerEnd, RequestRate, Rules, SetFlag, Switch,
};

/// What is measured.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum TestKind {
    /// Goodput.
    #[default]
    Stream,
    /// Transactions.
    Rr,
    /// Goodput of a fixed amount.
    Transfer,
    /// All block sizes.
    Curve,
}

impl TestKind {
    /// The key of the pattern in a plan and in JSON.
    pub const KEY: &'static str = "pattern";
    /// Every pattern.
    pub const ALL: [Self; 4] = [Self::Stream, Self::Rr, Self::Transfer, Self::Curve];

    /// Its name, which is that of its command.
    pub fn name(self) -> &'static str {
        match self {
            Self::Stream => "stream",
            Self::Rr => "rr",
            Self::Transfer => "transfer",
            Self::Curve => "curve",
        }
    }

    /// What a run of it is.
    pub fn run_kind(self) -> RunKind {
        match self {
            Self::Stream => RunKind::Stream,
            Self::Rr => RunKind::Rr,
            Self::Transfer => RunKind::Transfer,
            Self::Curve => RunKind::Curve,
        }
    }

    /// The pattern with this name.
    ///
    /// # Errors
    /// There is none; the message lists them.
    pub fn read(name: &str) -> Result<Self, String> {
        Self::ALL
            .into_iter()
            .find(|pattern| pattern.name() == name)
            .ok_or_else(|| format!("unknown pattern '{name}': use one of {}", Self::ALL.map(Self::name).join(", ")))
    }
}

/// An end of the measurement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    /// The end that the command runs at.
    Near,
    /// The other end.
    Far,
}

/// The options of a measurement. Each is named after its flag; `None`, `false` and an empty list are what was not given.
#[derive(Debug, Clone, Default)]
#[allow(missing_docs, clippy::struct_excessive_bools, reason = "a field is what the flag of its name is")]
pub struct SpecDraft {
    pub pattern: TestKind,

    pub transport: Option<String>,
    pub udp: bool,
    pub flows: Option<u32>,
    pub threads: Option<u32>,
    pub processes: Option<u32>,
    pub reverse: bool,
    pub both: bool,
    pub spin: bool,
    pub wait: Option<Strategy>,
    pub io: Option<Io>,
    pub engine: Option<EngineFlag>,
    pub delayed_reads: bool,
    pub speak: Option<String>,

    pub data: Option<SocketAddr>,
    pub data_from: Option<IpAddr>,
    pub ipv4: bool,
    pub ipv6: bool,
    /// Whether HOST leads to an IPv6 address. Without `data` this decides the default block of datagrams.
    pub host_is_ipv6: bool,

    pub block: Option<ByteSize>,
    /// `block` as a mix of datagram sizes.
    pub mix: Option<Mix>,
    pub reply: Option<ByteSize>,
    pub time: Option<Nanos>,
    pub bytes: Option<ByteSize>,
    pub count: Option<u64>,
    pub warmup: Option<Nanos>,
    pub interval: Option<Nanos>,
    pub stall: Option<Nanos>,
    pub rate: Option<BitRate>,
    /// `rate` of rr.
    pub request_rate: Option<RequestRate>,
    pub drain: Option<BitRate>,
    pub burst: Option<ByteSize>,
    pub unpaced: bool,
    pub payload: Option<PayloadFlag>,
    pub find_no_loss: bool,
    pub probe: Option<u32>,
    pub responsiveness: bool,
    pub connect: bool,
    pub overlap_close: bool,
    pub anatomy: bool,

    /// `block` of a curve.
    pub sizes: Vec<ByteSize>,
    pub first: Option<ByteSize>,
    pub to: Option<ByteSize>,
    pub perturbation: Option<u64>,
    pub stream: bool,

    pub observe: Option<Observe>,
    pub observe_interval: Option<Nanos>,
    pub capture: Option<PathBuf>,
    pub snaplen: Option<u32>,
    pub fetch: Option<ByteSize>,

    pub sndbuf: Option<PerEnd<ByteSize>>,
    pub rcvbuf: Option<PerEnd<ByteSize>>,
    pub nodelay: Option<PerEnd<Switch>>,
    pub cork: Option<PerEnd<Switch>>,
    pub cc: Option<PerEnd<Congestion>>,
    pub cc_rules: Option<Rules>,
    pub mss: Option<PerEnd<u32>>,
    pub dscp: Option<PerEnd<u8>>,
    pub device: Option<PerEnd<String>>,
    pub data_port: Option<PerEnd<u16>>,
    pub pacing: Option<PerEnd<BitRate>>,
    pub notsent_lowat: Option<PerEnd<ByteSize>>,
    pub keepalive: Option<PerEnd<Nanos>>,
    pub user_timeout: Option<PerEnd<Nanos>>,
    pub busy_poll: Option<PerEnd<Nanos>>,
    pub pin: Option<PerEnd<Cores>>,
    pub set: Vec<SetFlag>,
}

impl SpecDraft {
    /// A draft without options.
    pub fn new(pattern: TestKind) -> Self {
        Self { pattern, ..Self::default() }
    }

    /// Sets the size of blocks, or their mix; each replaces the other.
    pub fn set_block(&mut self, block: BlockFlag) {
        (self.block, self.mix) = match block {
            BlockFlag::One(size) => (Some(size), None),
            BlockFlag::Mix(mix) => (None, Some(mix)),
        };
    }

    /// The transport's name.
    pub fn transport(&self) -> &str {
        if self.udp { "udp" } else { self.transport.as_deref().unwrap_or("tcp") }
    }
}
