//! A draft becomes specs: the defaults.

use engine::transport::Transport;
use model::{
    BitRate, ByteSize, CaptureSpec, Direction, Family, Framing, HostSettings, MixStep, Name, Nanos, Observe, Pattern,
    Spec, Stop, Strategy,
};

use super::error::FieldError;
use super::spec_draft::{SpecDraft, TestKind};
use super::{check, end_options, sizes};
use crate::values::{NO_LIMIT, SetFlag};

/// Fewest entries of a series in which the start-up can be told from the rest.
const ENTRIES: u64 = 10;
/// Shorter intervals are too many lines to read, ns: there is one line a second then.
const SHORTEST_READING_NS: u64 = 200_000_000;

/// Default limit of what is copied of the far host's capture.
const FETCH: ByteSize = ByteSize(64 << 20);

/// Defaults when responsiveness is measured: draft-ietf-ippm-responsiveness has at most 16 connections (MNP) and 100 probes per second
/// (MPS), and recommends about ten seconds for each of two stages.
const RESPONSIVENESS_TIME: Nanos = Nanos(20_000_000_000);
const RESPONSIVENESS_FLOWS: u32 = 16;
const RESPONSIVENESS_PROBES: u32 = 100;
/// TCP_NOTSENT_LOWAT of its flows, bytes: a block.
const RESPONSIVENESS_UNSENT: u32 = 128 << 10;

impl SpecDraft {
    /// The spec, or one for each size of a curve, with the defaults of the pattern.
    ///
    /// # Errors
    /// Options that cannot be combined, with each other or with the transport, and a missing amount.
    pub fn finish(self) -> Result<Vec<Spec>, FieldError> {
        check::check(&self)?;
        let transport = engine::transport::transport(self.transport())
            .map_err(|error| FieldError::of_key("transport", error.to_string()))?;
        end_options::check(&self, transport)?;
        let specs = match self.pattern {
            TestKind::Stream => self.stream(transport),
            TestKind::Rr => self.rr(transport),
            TestKind::Transfer => self.transfer(transport),
            TestKind::Curve => self.curve(transport),
        }?;
        specs.iter().try_for_each(|spec| end_options::check_forwarded(spec, transport))?;
        Ok(specs)
    }

    /// The spec of a draft that is not a curve.
    ///
    /// # Errors
    /// As [`finish`](Self::finish), and for a curve, which has many specs.
    pub fn one(self) -> Result<Spec, FieldError> {
        let mut specs = self.finish()?;
        match (specs.pop(), specs.is_empty()) {
            (Some(spec), true) => Ok(spec),
            _ => Err(FieldError::of_key("pattern", "a curve is several measurements: measure one size")),
        }
    }

    fn stream(&self, transport: &dyn Transport) -> Result<Vec<Spec>, FieldError> {
        let mut spec = self.sending(Pattern::Stream, transport)?;
        spec.stop = match (self.bytes, self.count) {
            (Some(bytes), _) => Stop::Bytes(bytes.0),
            (_, Some(count)) => Stop::Blocks(count),
            _ if self.responsiveness => Stop::TimeNs(self.time.unwrap_or(RESPONSIVENESS_TIME).0),
            _ => self.time.map_or(spec.stop, |time| Stop::TimeNs(time.0)),
        };
        if let (Stop::TimeNs(ns), true) = (spec.stop, self.responsiveness) {
            spec.responsiveness = true;
            // As the draft wants it: what waits in the sender is not the path's, and delays the end of the trial.
            for end in [&mut spec.near, &mut spec.far] {
                end.notsent_lowat.get_or_insert(RESPONSIVENESS_UNSENT);
            }
            let fit = u32::try_from(ns / Spec::RAMP_NS).unwrap_or(u32::MAX).max(1);
            spec.flows = self.flows.unwrap_or(RESPONSIVENESS_FLOWS.min(fit));
        }
        spec.warmup_ns = self.warmup.map_or(spec.warmup_ns, |time| time.0);
        spec.steady = self.is_steady(&spec, transport);
        if let (Stop::TimeNs(ns), true) = (spec.stop, spec.steady) {
            spec.interval_ns = spec.interval_ns.min((ns / ENTRIES).max(Spec::MIN_INTERVAL_NS));
        }
        let drain = self.drain.map(|rate| rate.0);
        // The limit applies to the receiving end.
        spec.far.drain_bps = drain.filter(|_| spec.direction != Direction::Reverse);
        spec.near.drain_bps = drain.filter(|_| spec.direction != Direction::Send);
        spec.no_loss = self.find_no_loss;
        spec.probe = self.probe.or(self.responsiveness.then_some(RESPONSIVENESS_PROBES));
        spec.paced_to_receiver &= !self.find_no_loss;
        Ok(vec![spec])
    }

    /// Whether a stream's goodput is to be that of settled connections: a congestion window grows on its transport, it is measured by
    /// time at the path's own rate, and its start-up was not asked for.
    fn is_steady(&self, spec: &Spec, transport: &dyn Transport) -> bool {
        let grows = matches!(transport.facts().framing, Some(Framing::Tcp | Framing::Tls | Framing::Quic));
        let grows = grows || transport.facts().is_over_tcp();
        let wanted = self.warmup.is_none_or(|time| time.0 > 0) && !self.responsiveness && spec.rate_bps.is_none();
        // Another program counts in its own way.
        let wanted = wanted && self.speak.is_none();
        grows && wanted && matches!(spec.stop, Stop::TimeNs(_))
    }

    fn transfer(&self, transport: &dyn Transport) -> Result<Vec<Spec>, FieldError> {
        let mut spec = self.sending(Pattern::Transfer, transport)?;
        spec.stop = match self.bytes {
            Some(bytes) => Stop::Bytes(bytes.0),
            None => Stop::Blocks(self.count.unwrap_or(0)),
        };
        Ok(vec![spec])
    }

    /// What a stream and a transfer have in common.
    fn sending(&self, pattern: Pattern, transport: &dyn Transport) -> Result<Spec, FieldError> {
        let mut spec = self.base(transport, pattern);
        let over_ipv6 = self.data.map_or(self.host_is_ipv6 || self.ipv6, |address| address.is_ipv6());
        let theirs = match &self.speak {
            Some(name) => program(name)?.default_block(spec.transport.as_str(), over_ipv6),
            None => None,
        };
        let paced = || {
            self.limit()
                .filter(|_| self.speak.is_none() && !transport.capabilities().datagram)
                .map(|rate| paced_block(transport, rate.0, self.flows))
        };
        let default = || theirs.or_else(paced).unwrap_or_else(|| transport.default_block(over_ipv6));
        spec.mix = self.mix_of_sizes(transport, over_ipv6)?;
        let largest = spec.mix.iter().map(|step| step.payload_bytes).max();
        spec.block = largest.or(self.block.map(|block| block.0)).unwrap_or_else(default);
        spec.rate_bps = self.limit().map(|rate| rate.0);
        self.set_intervals(&mut spec);
        spec.burst = self.burst.map(|burst| burst.0);
        spec.engine = self.engine.map(|engine| engine.0).unwrap_or_default();
        spec.delayed_reads = self.delayed_reads;
        spec.capture = self.captured();
        spec.paced_to_receiver = self.is_paced_to_receiver(transport)?;
        Ok(spec)
    }

    /// A long interval is that of the lines alone: the stored series stays fine enough to judge the trial. Another program has one
    /// interval.
    fn set_intervals(&self, spec: &mut Spec) {
        let Some(Nanos(ns)) = self.interval else { return };
        spec.interval_ns = if self.speak.is_some() { ns } else { ns.min(Spec::INTERVAL_NS) };
        if ns >= SHORTEST_READING_NS {
            spec.reading_ns = ns;
        }
    }

    /// The sequence of sizes of a mix; empty for one size.
    fn mix_of_sizes(&self, transport: &dyn Transport, over_ipv6: bool) -> Result<Vec<MixStep>, FieldError> {
        let Some(mix) = &self.mix else { return Ok(Vec::new()) };
        let refuse = |why: String| Err(FieldError::of_key("block", format!("`block {mix}` {why}")));
        if transport.facts().framing != Some(Framing::Udp) {
            let able = engine::transport::names(|other| other.facts().framing == Some(Framing::Udp));
            let name = transport.name();
            return refuse(format!(
                "is a mix of packet sizes, and a block on {name} is no packet: use {able}, or one size"
            ));
        }
        if let Some(program) = &self.speak {
            return refuse(format!("has no effect with `speak {program}`, which sends one size: omit one of them"));
        }
        Ok(mix.steps(over_ipv6))
    }

    fn rr(&self, transport: &dyn Transport) -> Result<Vec<Spec>, FieldError> {
        let mut spec = self.base(transport, if self.connect { Pattern::Crr } else { Pattern::Rr });
        spec.block = self.block.map_or(1, |block| block.0);
        spec.reply = self.reply.map(|size| size.0);
        spec.overlap_close = self.overlap_close;
        spec.anatomy = self.anatomy;
        if let Some(name) = &self.speak {
            program(name)?.shape(&mut spec);
        }
        spec.stop = match self.count {
            Some(count) => Stop::Transactions(count),
            None => self.time.map_or(spec.stop, |time| Stop::TimeNs(time.0)),
        };
        spec.rate_bps = self.request_rate.map(|rate| rate.bits_per_second(spec.block));
        spec.warmup_ns = self.warmup.map_or(spec.warmup_ns, |time| time.0);
        spec.capture = self.captured();
        Ok(vec![spec])
    }

    fn curve(&self, transport: &dyn Transport) -> Result<Vec<Spec>, FieldError> {
        let mut base = self.base(transport, if self.stream { Pattern::Stream } else { Pattern::Pingpong });
        // As NetPIPE does, for streams too: Nagle's algorithm would delay the last segment of each leg until an ACK.
        base.near.nodelay.get_or_insert(true);
        base.far.nodelay.get_or_insert(true);
        // A curve has many short passes: a series of each has little information and fills the store.
        base.observe = self.observe.unwrap_or(Observe::Counters);
        base.rate_bps = self.limit().map(|rate| rate.0);
        base.delayed_reads = self.delayed_reads;
        base.paced_to_receiver = self.is_paced_to_receiver(transport)? && self.stream;
        sizes::specs(self, &base, transport)
    }

    /// What all patterns have in common.
    fn base(&self, transport: &dyn Transport, pattern: Pattern) -> Spec {
        let mut spec = Spec::over(transport.named(), pattern);
        spec.flows = self.flows.unwrap_or(spec.flows);
        spec.threads = self.threads;
        spec.processes = self.processes.unwrap_or(spec.processes);
        spec.direction = match (self.reverse, self.both) {
            (true, _) => Direction::Reverse,
            (_, true) => Direction::Both,
            _ => Direction::Send,
        };
        spec.strategy = if self.spin { Strategy::Spin } else { self.wait.unwrap_or(spec.strategy) };
        spec.io = self.io.unwrap_or(spec.io);
        spec.family = match (self.ipv4, self.ipv6) {
            (true, _) => Family::V4,
            (_, true) => Family::V6,
            _ => Family::Any,
        };
        spec.stall_ns = self.stall.map_or(spec.stall_ns, |time| time.0);
        spec.observe = self.observe.unwrap_or(spec.observe);
        spec.observe_interval_ns = self.observe_interval.map_or(spec.observe_interval_ns, |time| time.0);
        spec.speak = self.speak.as_deref().map(Name::from);
        spec.payload = self.payload.clone().map(|payload| payload.0);
        end_options::apply(self, &mut spec.near, &mut spec.far);
        spec.settings = settings(&self.set);
        spec
    }

    /// The rate to keep, if it is limited.
    fn limit(&self) -> Option<BitRate> {
        self.rate.filter(|rate| *rate != NO_LIMIT)
    }

    fn captured(&self) -> Option<CaptureSpec> {
        let folder = self.capture.as_ref()?.display().to_string();
        let fetch_bytes = Some(self.fetch.unwrap_or(FETCH).0).filter(|most| *most > 0);
        Some(CaptureSpec { snaplen: self.snaplen.unwrap_or(CaptureSpec::SNAPLEN), folder: Some(folder), fetch_bytes })
    }

    /// Whether a stream's sender limits itself to the free space of the receiver's socket: on transports that drop data at a slow
    /// receiver, unless a rate or `unpaced` is given. Servers of other programs do not report that space.
    fn is_paced_to_receiver(&self, transport: &dyn Transport) -> Result<bool, FieldError> {
        let overruns = transport.overruns();
        if self.unpaced && !overruns {
            let able = engine::transport::names(|other| other.overruns());
            let what = format!(
                "`unpaced` has no effect on {}, which has flow control: omit it, or use {able}",
                transport.name()
            );
            return Err(FieldError::of_key("unpaced", what));
        }
        Ok(overruns && !self.unpaced && self.limit().is_none() && self.speak.is_none())
    }
}

/// Longest time between two blocks of a paced stream whose block is not given, ns, and the smallest such block.
const PACED_GAP_NS: u64 = 10_000_000;
const SMALLEST_PACED: u64 = 1 << 10;

/// The default block of a stream at a rate: small enough to be due a hundred times a second, because each block goes out
/// at once.
fn paced_block(transport: &dyn Transport, bps: u64, flows: Option<u32>) -> u64 {
    let usual = transport.default_block(false);
    let own = bps / u64::from(flows.unwrap_or(1).max(1));
    let due = u64::try_from(u128::from(own) * u128::from(PACED_GAP_NS) / 8_000_000_000).unwrap_or(u64::MAX);
    // The largest power of two.
    let block = due.checked_ilog2().map_or(0, |power| 1_u64 << power);
    block.clamp(SMALLEST_PACED.min(usual), usual)
}

/// The settings of each end.
fn settings(given: &[SetFlag]) -> HostSettings {
    let mut settings = HostSettings::default();
    for SetFlag { near, far, setting } in given.iter().cloned() {
        if near {
            settings.near.push(setting.clone());
        }
        if far {
            settings.far.push(setting);
        }
    }
    settings
}

/// The program of `speak`.
fn program(name: &str) -> Result<&'static dyn peers::PeerProtocol, FieldError> {
    peers::protocol(name).map_err(|error| FieldError::of_key("speak", error.to_string()))
}
