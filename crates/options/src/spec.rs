//! The spec of one measurement: transport, pattern, block, flows, direction, socket options of each end, stop rule.

mod choices;
mod exchanges;
mod facts;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use text::{Text, say};

pub use self::choices::{Direction, Family, Io, Role, Stop, Strategy};
use crate::error::ImpossibleSpec;
use crate::{
    ByteSize, CaptureSpec, EndOptions, Engine, HostSettings, Mix, MixStep, Observe, Pattern, Payload, Program,
    TransportFacts, TransportName,
};

/// Ten readings a second.
const OBSERVE_INTERVAL_NS: u64 = 100_000_000;
/// A line a second.
const READING_NS: u64 = 1_000_000_000;

fn reading() -> u64 {
    READING_NS
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_reading(ns: &u64) -> bool {
    *ns == READING_NS
}

fn observe_interval() -> u64 {
    OBSERVE_INTERVAL_NS
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_observe_interval(ns: &u64) -> bool {
    *ns == OBSERVE_INTERVAL_NS
}

/// Everything that defines one measurement.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Spec {
    /// The transport, by its name in the engine's registry.
    pub transport: TransportName,
    /// What the transport is, if another program added it; absent for this program's own transports.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transport_facts: Option<TransportFacts>,
    /// What the two ends do with each connection.
    pub pattern: Pattern,
    /// Bytes of one application send, or of a transaction's request; for a mix, the largest payload.
    pub block: u64,
    /// The sequence of datagram sizes that each flow repeats, for a mix of sizes; absent for one size.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub mix: Vec<MixStep>,
    /// Bytes of a transaction's response; null means the same as `block`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reply: Option<u64>,
    /// Connections (for `both`: in each direction), at least 1.
    pub flows: u32,
    /// Measuring threads at each end; null means one per flow, up to the limit of 64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub threads: Option<u32>,
    /// Worker processes at each end that share the flows, at least 1.
    pub processes: u32,
    /// The direction of the payload.
    pub direction: Direction,
    /// When a trial ends.
    pub stop: Stop,
    /// Start of one of several simultaneous tests between the same hosts, after the common start, ns; null for a test that has the
    /// path to itself.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start_ns: Option<u64>,
    /// Nanoseconds at the start of a trial that the rates exclude (the ledger includes them).
    pub warmup_ns: u64,
    /// The goodput must be that of settled connections. Without a warm-up, their start-up is detected in each trial and left out. A
    /// trial that has not settled gets the verdict `not-settled`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub steady: bool,
    /// Application rate limit in bit/s over all flows of a direction; null for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate_bps: Option<u64>,
    /// The payload bytes; null means random ones, which differ in each block where the path may compress them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub payload: Option<Payload>,
    /// System calls for stream sockets.
    pub io: Io,
    /// Whether each trial is a search for the highest rate without loss of a datagram.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub no_loss: bool,
    /// Requests per second of the probe: round trips of 8 bytes over a separate connection during the stream; null for no probe.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe: Option<u32>,
    /// Whether responsiveness under working conditions is measured (draft-ietf-ippm-responsiveness): the flows start one after the
    /// other, [`RAMP_NS`](Spec::RAMP_NS) apart, and each request of the probe has a connection of its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub responsiveness: bool,
    /// Most outstanding requests on a connection of rr with a rate; null means one over a stream, so that each request is sent after
    /// the previous answer, and all that are due over datagrams.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outstanding: Option<u32>,
    /// Bytes that a paced sender may send at once after a delay; null means the bytes of 100 ms at the rate, sent a tenth faster for
    /// each millisecond of the delay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub burst: Option<u64>,
    /// Whether the sender of a stream of datagrams keeps only as many in flight as the path carries and the receiver's socket has
    /// room for, as reported by the receiver: a slow receiver loses nothing, but losses on the path remain.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub paced_to_receiver: bool,
    /// Send and receive method of a stream.
    #[serde(default, skip_serializing_if = "Engine::is_plain")]
    pub engine: Engine,
    /// How threads wait.
    pub strategy: Strategy,
    /// Whether a blocking receiver of a fast stream sleeps between its reads when that increases the rate, to save wake-ups.
    /// Applications do not do that.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub delayed_reads: bool,
    /// Whether a connection for one transaction is closed after the request of the next one, and not before the next one connects.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub overlap_close: bool,
    /// Whether some of the round trips are broken down by the kernel's timestamps.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub anatomy: bool,
    /// IP version of the data.
    pub family: Family,
    /// The near end's socket and thread options.
    pub near: EndOptions,
    /// The far end's socket and thread options.
    pub far: EndOptions,
    /// Settings of both hosts, set before the first trial and reverted after the last.
    #[serde(default, skip_serializing_if = "HostSettings::is_empty")]
    pub settings: HostSettings,
    /// Nanoseconds between the entries of the interval series.
    pub interval_ns: u64,
    /// Nanoseconds between the lines that a running trial prints.
    #[serde(default = "reading", skip_serializing_if = "is_reading")]
    pub reading_ns: u64,
    /// What the observers of both hosts read.
    #[serde(default, skip_serializing_if = "Observe::is_series")]
    pub observe: Observe,
    /// Nanoseconds between the observers' readings over time.
    #[serde(default = "observe_interval", skip_serializing_if = "is_observe_interval")]
    pub observe_interval_ns: u64,
    /// Nanoseconds without progress after which a trial is ended and marked `stalled`.
    pub stall_ns: u64,
    /// The other program at the far end, such as `iperf3`, whose protocol is used; null for this program.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub speak: Option<Program>,
    /// Packet capture at the ends that allow it; null for none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capture: Option<CaptureSpec>,
}

impl Spec {
    /// A measurement with the defaults of the command line.
    #[must_use]
    pub fn new(transport: &str, pattern: Pattern) -> Self {
        Self {
            transport: transport.into(),
            transport_facts: None,
            pattern,
            block: 128 << 10,
            mix: Vec::new(),
            reply: None,
            flows: 1,
            threads: None,
            processes: 1,
            direction: Direction::Send,
            stop: Stop::TimeNs(1_000_000_000),
            start_ns: None,
            warmup_ns: 0,
            steady: false,
            rate_bps: None,
            no_loss: false,
            probe: None,
            responsiveness: false,
            outstanding: None,
            burst: None,
            paced_to_receiver: false,
            payload: None,
            io: Io::SendRecv,
            engine: Engine::default(),
            strategy: Strategy::Auto,
            delayed_reads: false,
            overlap_close: false,
            anatomy: false,
            family: Family::Any,
            near: EndOptions::default(),
            far: EndOptions::default(),
            settings: HostSettings::default(),
            interval_ns: Self::INTERVAL_NS,
            reading_ns: READING_NS,
            observe: Observe::default(),
            observe_interval_ns: OBSERVE_INTERVAL_NS,
            stall_ns: 3_000_000_000,
            speak: None,
            capture: None,
        }
    }

    /// Its start after the common start of simultaneous tests, ns.
    #[must_use]
    pub fn starts_after_ns(&self) -> u64 {
        self.start_ns.unwrap_or(0)
    }

    /// How long a trial of it takes, ns, without connections and results; `None` if it ends after a count, or searches for a rate.
    #[must_use]
    pub fn timed_ns(&self) -> Option<u64> {
        match self.stop {
            Stop::TimeNs(ns) if !self.no_loss => Some(self.starts_after_ns() + ns),
            _ => None,
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

    /// As [`end`](Self::end), mutable.
    pub fn end_mut(&mut self, role: Role) -> &mut EndOptions {
        match role {
            Role::Active => &mut self.near,
            Role::Passive => &mut self.far,
        }
    }

    /// Bytes of a response: `reply`, or `block` if it is null.
    #[must_use]
    pub fn reply_bytes(&self) -> u64 {
        self.reply.unwrap_or(self.block)
    }

    /// Whether connections are opened during a trial.
    #[must_use]
    pub fn renews_connections(&self) -> bool {
        self.pattern == Pattern::Crr || self.responsiveness
    }

    /// Whether the trial's connection `link` is one that is opened again and again: with a load, the probe's come last.
    #[must_use]
    pub fn renews_link(&self, link: u32) -> bool {
        let width = if self.direction == Direction::Both { 2 } else { 1 };
        self.pattern == Pattern::Crr || (self.responsiveness && link >= self.flows.saturating_mul(width))
    }

    /// How long after the trial's start this flow starts, ns. The flows of a probe with several share its rate evenly.
    #[must_use]
    pub fn flow_starts_ns(&self, flow: u32) -> u64 {
        match (self.responsiveness, self.rate_bps) {
            (false, _) => 0,
            (true, Some(bps)) => u64::from(flow).saturating_mul(self.block * 8_000_000_000 / bps.max(1)),
            (true, None) => u64::from(flow).saturating_mul(Self::RAMP_NS),
        }
    }

    /// Payload bytes of the first `count` blocks of a flow.
    #[must_use]
    pub fn bytes_of(&self, count: u64) -> u64 {
        let of = |step: &MixStep, times: u64| step.payload_bytes.saturating_mul(times);
        let period: u64 = self.mix.iter().map(|step| u64::from(step.count)).sum();
        let Some(mut rest) = count.checked_rem(period) else { return count.saturating_mul(self.block) };
        let whole: u64 = self.mix.iter().map(|step| of(step, step.count.into())).sum();
        let mut bytes = whole.saturating_mul(count / period);
        for step in &self.mix {
            let some = rest.min(step.count.into());
            bytes = bytes.saturating_add(of(step, some));
            rest -= some;
        }
        bytes
    }

    /// Mean payload of its blocks, bytes.
    #[must_use]
    pub fn mean_block(&self) -> u64 {
        let period: u64 = self.mix.iter().map(|step| u64::from(step.count)).sum();
        self.bytes_of(period).checked_div(period).unwrap_or(self.block)
    }

    /// The size of its blocks in words: `128 KiB`, or `imix`.
    #[must_use]
    pub fn block_words(&self) -> String {
        if self.mix.is_empty() { ByteSize(self.block).to_string() } else { Mix::of(&self.mix).to_string() }
    }

    /// The spec of the probe: paced requests and responses of 8 bytes, while the stream runs.
    #[must_use]
    pub fn probing(&self) -> Option<Self> {
        let per_second = self.probe?;
        // A datagram's sequence number has 8 bytes.
        let block = 8;
        let (pattern, flows, outstanding) = match self.responsiveness {
            // Each waits for its connection and its response, which take long under load.
            true => (Pattern::Crr, per_second.min(Self::MAX_CALLERS), None),
            false => (Pattern::Rr, 1, Some(Self::PROBES_OUTSTANDING)),
        };
        Some(Self {
            pattern,
            block,
            mix: Vec::new(),
            reply: None,
            flows,
            threads: None,
            processes: 1,
            direction: Direction::Send,
            warmup_ns: 0,
            steady: false,
            rate_bps: Some(u64::from(per_second) * block * 8),
            burst: None,
            probe: None,
            outstanding,
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

    /// Refuses values that are impossible for any transport; the engine adds its own limits.
    pub fn check(&self) -> Result<(), ImpossibleSpec> {
        let refuse = |what: Text, remedy: Text| Err(ImpossibleSpec { what, remedy });
        if self.block == 0 || self.reply == Some(0) {
            return refuse(say!("a block of 0 bytes has no payload"), say!("use `--block 1` or more"));
        }
        if self.block > Self::MAX_BLOCK || self.reply_bytes() > Self::MAX_BLOCK {
            return refuse(
                say!("a block of {} bytes exceeds the limit", self.block.max(self.reply_bytes())),
                say!("use at most 1GiB"),
            );
        }
        self.check_mix()?;
        if self.flows == 0 || self.flows > Self::MAX_FLOWS {
            return refuse(say!("`--flows {}`", self.flows), say!("use 1 to 16384 flows"));
        }
        if self.processes == 0 || self.processes > self.flows {
            return refuse(
                say!("`--processes {}` with {} flows", self.processes, self.flows),
                say!("use between 1 and the number of flows"),
            );
        }
        if self.threads == Some(0) {
            return refuse(say!("`--threads 0`"), say!("use at least one thread"));
        }
        if self.rate_bps == Some(0) {
            return refuse(say!("`--rate 0` would send nothing"), say!("leave `--rate` out for no limit"));
        }
        if [&self.near, &self.far].iter().any(|end| end.drain_bps == Some(0)) {
            return refuse(say!("`--drain 0` would read nothing"), say!("leave `--drain` out for no limit"));
        }
        if self.no_loss && (self.rate_bps.is_some() || !matches!(self.stop, Stop::TimeNs(_))) {
            return refuse(
                say!("`--find-no-loss` cannot have a rate or a count"),
                say!("use `--find-no-loss` with `--time` only"),
            );
        }
        if self.probe.is_some() && !(self.pattern == Pattern::Stream && matches!(self.stop, Stop::TimeNs(_))) {
            return refuse(
                say!("`--probe` needs a stream that ends by time"),
                say!("use it with `thru stream` and `--time`"),
            );
        }
        if self.probe.is_some_and(|rate| rate == 0 || rate > Self::MAX_PROBES) {
            return refuse(say!("`--probe={}`", self.probe.unwrap_or(0)), say!("use 1 to 10000 round trips a second"));
        }
        if self.responsiveness && self.pattern != Pattern::Crr {
            if self.probe.is_none() || self.rate_bps.is_some() || self.no_loss || self.warmup_ns > 0 {
                return refuse(
                    say!("`--responsiveness` cannot have a rate, a search or a warm-up"),
                    say!(
                        "omit `--rate`, `--find-no-loss` and `--warmup`, because its load takes what the path carries"
                    ),
                );
            }
            if !matches!(self.stop, Stop::TimeNs(ns) if ns >= u64::from(self.flows) * Self::RAMP_NS) {
                let what = say!(
                    "the trial is too short for {} flows of `--responsiveness`, which start 1 s apart",
                    self.flows
                );
                return refuse(what, say!("use `--time` with a second per flow, or fewer `--flows`"));
            }
            if self.interval_ns > Self::RAMP_NS / 2 {
                return refuse(say!("`--responsiveness` needs a short `--interval`"), say!("use 500ms or less"));
            }
        }
        if let Some(outstanding) = self.outstanding.filter(|most| !(1..=Self::PROBES_OUTSTANDING).contains(most)) {
            return refuse(say!("{outstanding} outstanding requests per connection"), say!("use 1 to 8"));
        }
        if self.observe_interval_ns < Self::MIN_OBSERVE_INTERVAL_NS {
            return refuse(
                say!("`--observe-interval` of {} ns is too short", self.observe_interval_ns),
                say!(
                    "use 10ms or more, because each reading takes time, or `--observe counters` to read nothing during a trial"
                ),
            );
        }
        if !self.is_point() && self.interval_ns < Self::MIN_INTERVAL_NS {
            return refuse(
                say!("`--interval` of {} ns is too short", self.interval_ns),
                say!("use 1ms or more, because more entries would disturb the measurement"),
            );
        }
        if self.stall_ns < Self::MIN_STALL_NS {
            return refuse(
                say!("`--stall` of {} ns is too short", self.stall_ns),
                say!("use 10ms or more, because any trial can pause for less"),
            );
        }
        if let Some(dscp) = [self.near.dscp, self.far.dscp].into_iter().flatten().find(|dscp| *dscp > 63) {
            return refuse(say!("DSCP {dscp}"), say!("use 0 to 63"));
        }
        let snaplens = CaptureSpec::SNAPLEN_MIN..=CaptureSpec::SNAPLEN_MAX;
        if let Some(capture) = self.capture.as_ref().filter(|capture| !snaplens.contains(&capture.snaplen)) {
            return refuse(say!("`--snaplen {}`", capture.snaplen), say!("use 80 to 65535 bytes"));
        }
        if let Some(fault) = self.payload.as_ref().and_then(Payload::fault) {
            return refuse(fault.into(), say!("use `--payload random`, zeros, pattern, or a file of at most 64 KiB"));
        }
        match self.stop {
            Stop::TimeNs(ns) | Stop::AboutNs(ns) if ns < 1_000_000 => {
                refuse(say!("a trial of {ns} ns is too short"), say!("use `--time 1ms` or more"))
            }
            Stop::TimeNs(ns) if self.warmup_ns >= ns => {
                refuse(say!("the warm-up is as long as the trial"), say!("make `--time` longer than `--warmup`"))
            }
            Stop::Bytes(0) | Stop::Blocks(0) | Stop::Transactions(0) => {
                refuse(say!("a trial needs payload"), say!("use at least one byte, block or transaction"))
            }
            _ => Ok(()),
        }
    }

    /// Refuses a mix that is none of [`Mix`], or that does not agree with the block.
    fn check_mix(&self) -> Result<(), ImpossibleSpec> {
        let largest = self.mix.iter().map(|step| step.payload_bytes).max();
        let count = self.mix.iter().map(|step| u64::from(step.count)).sum::<u64>();
        let wrong = self.mix.len() > MixStep::MAX_STEPS
            || count > u64::from(MixStep::MAX_COUNT)
            || self.mix.iter().any(|step| step.count == 0 || step.payload_bytes < MixStep::MIN_PAYLOAD)
            || largest.is_some_and(|largest| largest != self.block);
        if wrong {
            let what = say!("a mix of {} sizes and {count} datagrams for a block of {}", self.mix.len(), self.block);
            return Err(ImpossibleSpec { what, remedy: say!("use `--block imix`") });
        }
        Ok(())
    }

    /// The transport of a curve's memory ceiling: a reference, not a result.
    pub const CEILING: TransportName = TransportName::Memcpy;
    /// The largest block and response, in bytes.
    pub const MAX_BLOCK: u64 = 1 << 30;
    /// Most outstanding probes: they fit into TCP's initial window of 10 segments (RFC 6928).
    pub const PROBES_OUTSTANDING: u32 = 8;
    /// Time between the starts of two flows when responsiveness is measured, and the interval at which it is judged, ns.
    pub const RAMP_NS: u64 = 1_000_000_000;
    /// Most connections of a probe at a time, if each request has its own.
    pub const MAX_CALLERS: u32 = 16;
    /// Most probes per second.
    pub const MAX_PROBES: u32 = 10_000;
    /// Usual interval of the series, ns.
    pub const INTERVAL_NS: u64 = 100_000_000;
    /// Shortest interval of the series, ns.
    pub const MIN_INTERVAL_NS: u64 = 1_000_000;
    /// Shortest stall time, ns.
    pub const MIN_STALL_NS: u64 = 10_000_000;
    /// Shortest interval of the observers' readings, ns.
    pub const MIN_OBSERVE_INTERVAL_NS: u64 = 10_000_000;
    /// Most flows of one measurement.
    pub const MAX_FLOWS: u32 = 16_384;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_specs_name_the_remedy() {
        let good = Spec::new("tcp", Pattern::Stream);
        assert_eq!(good.check(), Ok(()));
        let bad = [
            Spec { block: 0, ..good.clone() },
            Spec { block: (1 << 30) + 1, ..good.clone() },
            Spec { flows: 0, ..good.clone() },
            Spec { flows: 2, processes: 3, ..good.clone() },
            Spec { stop: Stop::Blocks(0), ..good.clone() },
            Spec { interval_ns: 1_000, ..good.clone() },
            Spec { stall_ns: 0, ..good.clone() },
            Spec { outstanding: Some(0), ..good.clone() },
            Spec { outstanding: Some(u32::MAX), ..good.clone() },
            Spec { warmup_ns: 1_000_000_000, ..good.clone() },
            Spec { mix: "imix".parse::<Mix>().unwrap().steps(false), ..good.clone() },
            Spec { responsiveness: true, ..good.clone() },
            Spec { responsiveness: true, probe: Some(100), flows: 2, ..good.clone() },
            Spec { responsiveness: true, probe: Some(100), warmup_ns: 1, ..good.clone() },
            Spec { capture: Some(CaptureSpec { snaplen: 20, folder: None, fetch_bytes: None }), ..good.clone() },
        ];
        for spec in bad {
            let message = spec.check().expect_err("must be refused").to_string();
            assert!(message.contains("use") || message.contains("make"), "{message}");
        }
    }

    #[test]
    fn the_bytes_of_a_mix_follow_its_sequence() {
        let mix = "imix:64*2,1518".parse::<Mix>().unwrap().steps(false);
        let spec = Spec { block: 1472, mix, ..Spec::new("udp", Pattern::Stream) };
        assert_eq!(spec.check(), Ok(()));
        assert_eq!([0, 1, 3, 4, 6, 8].map(|count| spec.bytes_of(count)), [0, 18, 1508, 1526, 3016, 3052]);
        assert_eq!((spec.mean_block(), spec.block_words().as_str()), (502, "imix:64*2,1518"));
        let plain = Spec { block: 1000, mix: Vec::new(), ..spec };
        assert_eq!((plain.bytes_of(3), plain.mean_block(), plain.block_words()), (3000, 1000, "1000 B".into()));
    }

    #[test]
    fn a_load_that_grows_has_probes_with_connections_of_their_own() {
        let stop = Stop::TimeNs(4 * Spec::RAMP_NS);
        let load = Spec { responsiveness: true, probe: Some(100), flows: 4, stop, ..Spec::new("tcp", Pattern::Stream) };
        assert_eq!(load.check(), Ok(()));
        let probe = load.probing().unwrap();
        assert_eq!((probe.pattern, probe.flows, probe.check()), (Pattern::Crr, 16, Ok(())));
        assert_eq!([0, 3].map(|flow| load.flow_starts_ns(flow)), [0, 3 * Spec::RAMP_NS]);
        assert_eq!([0, 3].map(|flow| probe.flow_starts_ns(flow)), [0, 30_000_000], "they share the rate evenly");
        assert!(!load.renews_link(3) && load.renews_link(4) && probe.renews_link(0));
        let both = Spec { direction: Direction::Both, ..load };
        assert!(!both.renews_link(7) && both.renews_link(8));
    }

    #[test]
    fn absent_options_stay_absent_in_json() {
        let json = serde_json::to_value(EndOptions::default()).expect("serialises");
        assert_eq!(json, serde_json::json!({}));
    }
}
