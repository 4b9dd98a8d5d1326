//! What one measurement is: transport, pattern, block, flows, direction, socket options at each end, stop rule.

mod choices;

use std::net::IpAddr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::choices::{Direction, Family, Io, Name, Role, Stop, Strategy};
use crate::{CaptureSpec, Engine, HostSettings, ModelError, Observe, StackRule};

/// What one end sets on its sockets and threads. `None` leaves the kernel's default, and says so by staying null.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct EndOptions {
    /// SO_SNDBUF asked for, in bytes; what the kernel gave stands in [`SocketFacts`](crate::SocketFacts).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sndbuf: Option<u64>,
    /// SO_RCVBUF asked for, in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rcvbuf: Option<u64>,
    /// TCP_NODELAY; unset means on for round trips and off for streams.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodelay: Option<bool>,
    /// TCP_CORK.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cork: Option<bool>,
    /// TCP_CONGESTION: the name of a congestion control, or one that the agent loads, with its parameters (`fast:alpha=400`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cc: Option<String>,
    /// What that congestion control does for some destinations.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub cc_rules: Vec<StackRule>,
    /// TCP_MAXSEG in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mss: Option<u32>,
    /// Differentiated services code point, 0 to 63.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dscp: Option<u8>,
    /// Data address at this end: what the far end listens on (`--data`), what the near end binds (`--data-from`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub data_addr: Option<IpAddr>,
    /// SO_BINDTODEVICE.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device: Option<String>,
    /// First local port; flow `i` takes port + `i` at the near end, a listener of its own at the far end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// SO_MAX_PACING_RATE in bit/s for each socket.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_pacing_bps: Option<u64>,
    /// TCP_NOTSENT_LOWAT in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notsent_lowat: Option<u32>,
    /// SO_KEEPALIVE with this idle time and interval in whole seconds, and three probes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub keepalive_s: Option<u32>,
    /// TCP_USER_TIMEOUT in milliseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user_timeout_ms: Option<u32>,
    /// SO_BUSY_POLL in microseconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub busy_poll_us: Option<u32>,
    /// The most that this end's program reads of a stream, bit/s over all flows that it receives; null for as fast as it can.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub drain_bps: Option<u64>,
    /// Cores that the measuring threads are pinned to, thread `i` to entry `i` modulo the length; empty for none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pin: Vec<u32>,
}

impl EndOptions {
    /// Whether an option must be set on a listening socket before the handshake, so that the shared port cannot serve
    /// (tcp(7): buffer sizes act on the window scale only before `listen`).
    #[must_use]
    pub fn needs_own_listener(&self) -> bool {
        self.sndbuf.is_some()
            || self.rcvbuf.is_some()
            || self.mss.is_some()
            || self.device.is_some()
            || self.port.is_some()
            || self.data_addr.is_some()
    }
}

/// Ten readings a second.
const OBSERVE_INTERVAL_NS: u64 = 100_000_000;

fn observe_interval() -> u64 {
    OBSERVE_INTERVAL_NS
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_observe_interval(ns: &u64) -> bool {
    *ns == OBSERVE_INTERVAL_NS
}

/// All that defines one measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Spec {
    /// What carries the bytes: a name of the engine's transport registry.
    pub transport: Name,
    /// How the two ends use it: a name of the engine's pattern registry.
    pub pattern: Name,
    /// Bytes of one application send; the request of a transaction.
    pub block: u64,
    /// Bytes of a transaction's response; null means the same as `block`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply: Option<u64>,
    /// Connections (for `both`: in each direction), at least 1.
    pub flows: u32,
    /// Measuring threads at each end; null means one to a flow, up to the limit of 64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<u32>,
    /// Worker processes at each end that share the flows, at least 1.
    pub processes: u32,
    /// Which way payload goes.
    pub direction: Direction,
    /// When a trial ends.
    pub stop: Stop,
    /// Nanoseconds at the start of a trial that the rates leave out (the byte ledger does not).
    pub warmup_ns: u64,
    /// Application rate limit in bit/s over all flows of a direction; null for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_bps: Option<u64>,
    /// System calls for stream sockets.
    pub io: Io,
    /// Each trial is a search for the highest rate at which no datagram is lost.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_loss: bool,
    /// Round trips of 8 bytes that are asked for each second over a connection of their own while the stream runs; null for
    /// none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe: Option<u32>,
    /// Requests of rr at a rate that may be outstanding at once on a connection, as those of a probe are; null means one: each goes
    /// when the one before is answered.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outstanding: Option<u32>,
    /// Bytes that a paced sender may send at once to make up for a delay; null means what the rate carries in 1 ms, at five
    /// quarters of the rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<u64>,
    /// The sender of a stream of datagrams keeps as many under way as the path carries and the receiver's socket has room for,
    /// as the receiver says on the way: a slow receiver loses nothing, losses on the path stay.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paced_to_receiver: bool,
    /// Which calls move the blocks of a stream.
    #[serde(default, skip_serializing_if = "Engine::is_plain")]
    pub engine: Engine,
    /// How threads wait.
    pub strategy: Strategy,
    /// A blocking receiver of a quick stream sleeps between its reads where that carries more, to save sender wake-ups; no
    /// application's receiver does.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub delayed_reads: bool,
    /// A caller that makes a connection for each transaction closes it after the request of the next one, not before that connects.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub overlap_close: bool,
    /// IP version of the data.
    pub family: Family,
    /// The near end's socket and thread options.
    pub near: EndOptions,
    /// The far end's socket and thread options.
    pub far: EndOptions,
    /// What is set on both hosts before the first trial and put back after the last.
    #[serde(default, skip_serializing_if = "HostSettings::is_empty")]
    pub settings: HostSettings,
    /// Nanoseconds between the entries of the interval series.
    pub interval_ns: u64,
    /// What the observers of both hosts do.
    #[serde(default, skip_serializing_if = "Observe::is_series")]
    pub observe: Observe,
    /// Nanoseconds between the observers' readings over time.
    #[serde(default = "observe_interval", skip_serializing_if = "is_observe_interval")]
    pub observe_interval_ns: u64,
    /// Nanoseconds without any progress after which a trial is ended and marked `stalled`.
    pub stall_ns: u64,
    /// The far end is another program, which is spoken to in its own protocol: its name, such as `iperf3`; null for this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speak: Option<Name>,
    /// Packets are captured at the ends that allow it; null for no capture.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capture: Option<CaptureSpec>,
}

impl Spec {
    /// A tcp measurement with the defaults of the command line.
    #[must_use]
    pub fn new(transport: &str, pattern: &str) -> Self {
        Self {
            transport: transport.into(),
            pattern: pattern.into(),
            block: 128 << 10,
            reply: None,
            flows: 1,
            threads: None,
            processes: 1,
            direction: Direction::Send,
            stop: Stop::TimeNs(1_000_000_000),
            warmup_ns: 0,
            rate_bps: None,
            no_loss: false,
            probe: None,
            outstanding: None,
            burst: None,
            paced_to_receiver: false,
            io: Io::SendRecv,
            engine: Engine::default(),
            strategy: Strategy::Auto,
            delayed_reads: false,
            overlap_close: false,
            family: Family::Any,
            near: EndOptions::default(),
            far: EndOptions::default(),
            settings: HostSettings::default(),
            interval_ns: 100_000_000,
            observe: Observe::default(),
            observe_interval_ns: OBSERVE_INTERVAL_NS,
            stall_ns: 3_000_000_000,
            speak: None,
            capture: None,
        }
    }

    /// Whether it is a point of a curve, which shares its passes with the other sizes.
    #[must_use]
    pub fn is_point(&self) -> bool {
        matches!(self.stop, Stop::AboutNs(_))
    }

    /// The options of the end that plays `role`.
    #[must_use]
    pub fn end(&self, role: Role) -> &EndOptions {
        match role {
            Role::Active => &self.near,
            Role::Passive => &self.far,
        }
    }

    /// As [`end`](Self::end), to be changed.
    pub fn end_mut(&mut self, role: Role) -> &mut EndOptions {
        match role {
            Role::Active => &mut self.near,
            Role::Passive => &mut self.far,
        }
    }

    /// Bytes of a response: `reply`, or `block` where none is set.
    #[must_use]
    pub fn reply_bytes(&self) -> u64 {
        self.reply.unwrap_or(self.block)
    }

    /// What the probe connection does: request and response of 8 bytes, paced, as long as the stream runs.
    #[must_use]
    pub fn probing(&self) -> Option<Self> {
        let per_second = self.probe?;
        // Over datagrams a request of 8 bytes can carry its number whole.
        let block = 8;
        Some(Self {
            pattern: "rr".into(),
            block,
            reply: None,
            flows: 1,
            threads: None,
            processes: 1,
            direction: Direction::Send,
            warmup_ns: 0,
            rate_bps: Some(u64::from(per_second) * block * 8),
            burst: None,
            probe: None,
            outstanding: Some(Self::PROBES_OUTSTANDING),
            near: EndOptions { drain_bps: None, ..self.near.clone() },
            far: EndOptions { drain_bps: None, ..self.far.clone() },
            paced_to_receiver: false,
            engine: Engine::default(),
            strategy: Strategy::Blocking,
            delayed_reads: false,
            capture: None,
            ..self.clone()
        })
    }

    /// Refuses what no measurement can have, whatever the transport; the engine adds its own limits.
    pub fn check(&self) -> Result<(), ModelError> {
        let refuse = |what: String, remedy: &str| Err(ModelError::Spec { what, remedy: remedy.into() });
        if self.block == 0 || self.reply == Some(0) {
            return refuse("a block of 0 bytes carries nothing".into(), "use --block 1 or more");
        }
        if self.block > Self::MAX_BLOCK || self.reply_bytes() > Self::MAX_BLOCK {
            return refuse(
                format!("a block of {} bytes is over the limit", self.block.max(self.reply_bytes())),
                "use at most 1GiB",
            );
        }
        if self.flows == 0 || self.flows > Self::MAX_FLOWS {
            return refuse(format!("--flows {}", self.flows), "use 1 to 16384 flows");
        }
        if self.processes == 0 || self.processes > self.flows {
            return refuse(
                format!("--processes {} for {} flows", self.processes, self.flows),
                "use between 1 and the number of flows",
            );
        }
        if self.threads == Some(0) {
            return refuse("--threads 0".into(), "use at least one thread");
        }
        if self.rate_bps == Some(0) {
            return refuse("--rate 0 would send nothing".into(), "leave --rate out for no limit");
        }
        if [&self.near, &self.far].iter().any(|end| end.drain_bps == Some(0)) {
            return refuse("--drain 0 would read nothing".into(), "leave --drain out for no limit");
        }
        if self.no_loss && (self.rate_bps.is_some() || !matches!(self.stop, Stop::TimeNs(_))) {
            return refuse("a search for a rate with a rate or a count".into(), "use --find-no-loss with --time alone");
        }
        if self.probe.is_some() && !(self.pattern == "stream" && matches!(self.stop, Stop::TimeNs(_))) {
            return refuse(
                "--probe beside a count or a pattern without load".into(),
                "use it with a stream and --time",
            );
        }
        if self.probe.is_some_and(|rate| rate == 0 || rate > Self::MAX_PROBES) {
            return refuse(format!("--probe={}", self.probe.unwrap_or(0)), "use 1 to 10000 round trips a second");
        }
        if self.observe_interval_ns < Self::MIN_OBSERVE_INTERVAL_NS {
            return refuse(
                format!("--observe-interval of {} ns", self.observe_interval_ns),
                "use 10ms or more, for reading takes its time, or --observe counters for none in between",
            );
        }
        if !self.is_point() && self.interval_ns < Self::MIN_INTERVAL_NS {
            return refuse(
                format!("--interval of {} ns", self.interval_ns),
                "use 1ms or more, for more entries than that would be what is measured",
            );
        }
        if self.stall_ns < Self::MIN_STALL_NS {
            return refuse(
                format!("--stall of {} ns", self.stall_ns),
                "use 10ms or more, or any trial may look stalled",
            );
        }
        if let Some(dscp) = [self.near.dscp, self.far.dscp].into_iter().flatten().find(|dscp| *dscp > 63) {
            return refuse(format!("DSCP {dscp}"), "use 0 to 63");
        }
        let snaplens = CaptureSpec::SNAPLEN_MIN..=CaptureSpec::SNAPLEN_MAX;
        if let Some(capture) = self.capture.as_ref().filter(|capture| !snaplens.contains(&capture.snaplen)) {
            return refuse(format!("--snaplen {}", capture.snaplen), "use 80 to 65535 bytes");
        }
        match self.stop {
            Stop::TimeNs(ns) | Stop::AboutNs(ns) if ns < 1_000_000 => {
                refuse(format!("a trial of {ns} ns"), "use --time 1ms or more")
            }
            Stop::TimeNs(ns) if self.warmup_ns >= ns => {
                refuse("the warm-up is as long as the trial".into(), "make --time longer than --warmup")
            }
            Stop::Bytes(0) | Stop::Blocks(0) | Stop::Transactions(0) => {
                refuse("a trial of nothing".into(), "ask for at least one byte, block or transaction")
            }
            _ => Ok(()),
        }
    }

    /// The transport that a curve over another one is given as its ceiling: beside others it is a reference, not a result.
    pub const CEILING: &str = "memcpy";
    /// The largest block and response, in bytes.
    pub const MAX_BLOCK: u64 = 1 << 30;
    /// Probes that are outstanding at most: they fit into TCP's initial window of 10 segments (RFC 6928).
    pub const PROBES_OUTSTANDING: u32 = 8;
    /// The most probes a second.
    pub const MAX_PROBES: u32 = 10_000;
    /// Shortest entries of the interval series, ns.
    pub const MIN_INTERVAL_NS: u64 = 1_000_000;
    /// Shortest time without progress after which a trial can be called stalled, ns.
    pub const MIN_STALL_NS: u64 = 10_000_000;
    /// Shortest distance of the observers' readings, ns.
    pub const MIN_OBSERVE_INTERVAL_NS: u64 = 10_000_000;
    /// The most flows of one measurement.
    pub const MAX_FLOWS: u32 = 16_384;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_specs_name_the_remedy() {
        let good = Spec::new("tcp", "stream");
        assert_eq!(good.check(), Ok(()));
        let bad = [
            Spec { block: 0, ..good.clone() },
            Spec { block: (1 << 30) + 1, ..good.clone() },
            Spec { flows: 0, ..good.clone() },
            Spec { flows: 2, processes: 3, ..good.clone() },
            Spec { stop: Stop::Blocks(0), ..good.clone() },
            Spec { interval_ns: 1_000, ..good.clone() },
            Spec { stall_ns: 0, ..good.clone() },
            Spec { warmup_ns: 1_000_000_000, ..good.clone() },
            Spec { capture: Some(CaptureSpec { snaplen: 20, folder: None, fetch_bytes: None }), ..good.clone() },
        ];
        for spec in bad {
            let message = spec.check().expect_err("must be refused").to_string();
            assert!(message.contains("use") || message.contains("make") || message.contains("ask"), "{message}");
        }
    }

    #[test]
    fn absent_options_stay_absent_in_json() {
        let json = serde_json::to_value(EndOptions::default()).expect("serialises");
        assert_eq!(json, serde_json::json!({}));
    }
}
