//! The defaults of what was not given.

use engine::transport::Transport;
use model::{
    BitRate, ByteSize, CaptureSpec, Direction, Framing, HostSettings, MixStep, Nanos, Observe, Pattern, Payload, Spec,
    Stop, Strategy,
};
use options::values::{BlockFlag, NO_LIMIT, PayloadFlag, SetFlag};
use options::{OptionError, TestKind, TestOptions};
use text::{Text, say};
use vec1::{Vec1, vec1};

use super::{check, ends, sizes};
use crate::resolver::Resolver;

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

/// The spec of a test, or one for each size of a curve, with the defaults of the test.
///
/// # Errors
/// TestOptions that cannot be combined, with each other or with the transport, values that this host does not have, and a missing amount.
pub fn of(options: &TestOptions, resolver: &dyn Resolver) -> Result<Vec1<Spec>, OptionError> {
    check::check(options)?;
    let transport = engine::transport::transport(options.transport())
        .map_err(|error| OptionError::of_value("transport", options.transport(), error))?;
    ends::check(options, transport)?;
    let test = Test { options, transport, resolver };
    let specs = match options.test {
        TestKind::Stream => test.stream(),
        TestKind::Rr => test.rr(),
        TestKind::Transfer => test.transfer(),
        TestKind::Curve => test.curve(),
    }?;
    specs.iter().try_for_each(|spec| ends::check_forwarded(spec, transport))?;
    Ok(specs)
}

/// The spec of a test that is not a curve.
///
/// # Errors
/// As [`of`], and for a curve, which has many specs.
pub fn one(options: &TestOptions, resolver: &dyn Resolver) -> Result<Spec, OptionError> {
    let (spec, others) = of(options, resolver)?.split_off_first();
    match others.is_empty() && options.test != TestKind::Curve {
        true => Ok(spec),
        false => Err(OptionError::of_key("pattern", say!("a curve is several measurements: measure one size"))),
    }
}

/// A test: its options, the transport that they name, and what else they refer to.
struct Test<'a> {
    options: &'a TestOptions,
    transport: &'a dyn Transport,
    resolver: &'a dyn Resolver,
}

impl Test<'_> {
    fn stream(&self) -> Result<Vec1<Spec>, OptionError> {
        let mut spec = self.sending(Pattern::Stream)?;
        spec.stop = match (self.options.bytes, self.options.count) {
            (Some(bytes), _) => Stop::Bytes(bytes.0),
            (_, Some(count)) => Stop::Blocks(count),
            _ if self.options.responsiveness => Stop::TimeNs(self.options.time.unwrap_or(RESPONSIVENESS_TIME).0),
            _ => self.options.time.map_or(spec.stop, |time| Stop::TimeNs(time.0)),
        };
        if let (Stop::TimeNs(ns), true) = (spec.stop, self.options.responsiveness) {
            spec.responsiveness = true;
            // As the draft wants it: what waits in the sender is not the path's, and delays the end of the trial.
            for end in [&mut spec.near, &mut spec.far] {
                end.notsent_lowat.get_or_insert(RESPONSIVENESS_UNSENT);
            }
            let fit = u32::try_from(ns / Spec::RAMP_NS).unwrap_or(u32::MAX).max(1);
            spec.flows = self.options.flows.unwrap_or(RESPONSIVENESS_FLOWS.min(fit));
        }
        spec.warmup_ns = self.options.warmup.map_or(spec.warmup_ns, |time| time.0);
        spec.steady = self.is_steady(&spec);
        if let (Stop::TimeNs(ns), true) = (spec.stop, spec.steady) {
            spec.interval_ns = spec.interval_ns.min((ns / ENTRIES).max(Spec::MIN_INTERVAL_NS));
        }
        let drain = self.options.drain.map(|rate| rate.0);
        // The limit applies to the receiving end.
        spec.far.drain_bps = drain.filter(|_| spec.direction != Direction::Reverse);
        spec.near.drain_bps = drain.filter(|_| spec.direction != Direction::Send);
        spec.no_loss = self.options.find_no_loss;
        spec.probe = self.options.probe.or(self.options.responsiveness.then_some(RESPONSIVENESS_PROBES));
        spec.paced_to_receiver &= !self.options.find_no_loss;
        Ok(vec1![spec])
    }

    /// Whether a stream's goodput is to be that of settled connections: a congestion window grows on its transport, it is measured by
    /// time at the path's own rate, and its start-up was not asked for.
    fn is_steady(&self, spec: &Spec) -> bool {
        let grows = matches!(self.transport.facts().framing, Some(Framing::Tcp | Framing::Tls | Framing::Quic));
        let grows = grows || self.transport.facts().is_over_tcp();
        let wanted = self.options.warmup.is_none_or(|time| time.0 > 0)
            && !self.options.responsiveness
            && spec.rate_bps.is_none();
        // Another program counts in its own way.
        let wanted = wanted && self.options.speak.is_none();
        grows && wanted && matches!(spec.stop, Stop::TimeNs(_))
    }

    fn transfer(&self) -> Result<Vec1<Spec>, OptionError> {
        let mut spec = self.sending(Pattern::Transfer)?;
        spec.stop = match self.options.bytes {
            Some(bytes) => Stop::Bytes(bytes.0),
            None => Stop::Blocks(self.options.count.unwrap_or(0)),
        };
        Ok(vec1![spec])
    }

    /// What a stream and a transfer have in common.
    fn sending(&self, pattern: Pattern) -> Result<Spec, OptionError> {
        let mut spec = self.base(pattern)?;
        let over_ipv6 = match &self.options.data {
            Some(address) => address.ip.is_ipv6(),
            None => self.options.host_is_ipv6 || self.options.ipv6,
        };
        let theirs = |program| peers::protocol(program).default_block(&spec.transport, over_ipv6);
        let theirs = self.options.speak.and_then(theirs);
        let paced = || {
            self.limit()
                .filter(|_| self.options.speak.is_none() && !self.transport.capabilities().datagram)
                .map(|rate| paced_block(self.transport, rate.0, self.options.flows))
        };
        let default = || theirs.or_else(paced).unwrap_or_else(|| self.transport.default_block(over_ipv6));
        spec.mix = self.mix_of_sizes(over_ipv6)?;
        spec.block = match &self.options.block {
            Some(BlockFlag::One(size)) => size.0,
            Some(BlockFlag::Mix(_)) => spec.mix.iter().map(|step| step.payload_bytes).max().unwrap_or_else(default),
            None => default(),
        };
        spec.rate_bps = self.limit().map(|rate| rate.0);
        self.set_intervals(&mut spec);
        spec.burst = self.options.burst.map(|burst| burst.0);
        spec.engine = self.options.engine.map(|engine| engine.0).unwrap_or_default();
        spec.delayed_reads = self.options.delayed_reads;
        spec.capture = self.captured();
        spec.paced_to_receiver = self.is_paced_to_receiver()?;
        Ok(spec)
    }

    /// A long interval is that of the lines alone: the stored series stays fine enough to judge the trial. Another program has one
    /// interval.
    fn set_intervals(&self, spec: &mut Spec) {
        let Some(Nanos(ns)) = self.options.interval else { return };
        spec.interval_ns = if self.options.speak.is_some() { ns } else { ns.min(Spec::INTERVAL_NS) };
        if ns >= SHORTEST_READING_NS {
            spec.reading_ns = ns;
        }
    }

    /// The sequence of sizes of a mix; empty for one size.
    fn mix_of_sizes(&self, over_ipv6: bool) -> Result<Vec<MixStep>, OptionError> {
        let Some(BlockFlag::Mix(mix)) = &self.options.block else { return Ok(Vec::new()) };
        let refuse = |why: Text| Err(OptionError::of_key("block", say!("`--block {mix}` {why}")));
        if !self.transport.facts().has_datagrams() {
            let able = engine::transport::names(|other| other.facts().has_datagrams());
            let name = self.transport.name();
            return refuse(say!(
                "is a mix of packet sizes, and a block on {name} is not a packet: use {able}, or one size"
            ));
        }
        if let Some(program) = self.options.speak {
            return refuse(say!("has no effect with `--speak {program}`, which sends one size: omit one of them"));
        }
        Ok(mix.steps(over_ipv6))
    }

    fn rr(&self) -> Result<Vec1<Spec>, OptionError> {
        let mut spec = self.base(if self.options.connect { Pattern::Crr } else { Pattern::Rr })?;
        spec.block = self.options.request.map_or(1, |block| block.0);
        spec.reply = self.options.reply.map(|size| size.0);
        spec.overlap_close = self.options.overlap_close;
        spec.anatomy = self.options.anatomy;
        if let Some(program) = self.options.speak {
            peers::protocol(program).shape(&mut spec);
        }
        spec.stop = match self.options.count {
            Some(count) => Stop::Transactions(count),
            None => self.options.time.map_or(spec.stop, |time| Stop::TimeNs(time.0)),
        };
        spec.rate_bps = self.options.request_rate.map(|rate| rate.bits_per_second(spec.block));
        spec.warmup_ns = self.options.warmup.map_or(spec.warmup_ns, |time| time.0);
        spec.capture = self.captured();
        Ok(vec1![spec])
    }

    fn curve(&self) -> Result<Vec1<Spec>, OptionError> {
        let mut base = self.base(if self.options.stream { Pattern::Stream } else { Pattern::Pingpong })?;
        // As NetPIPE does, for streams too: Nagle's algorithm would delay the last segment of each leg until an ACK.
        base.near.nodelay.get_or_insert(true);
        base.far.nodelay.get_or_insert(true);
        // A curve has many short passes: a series of each has little information and fills the store.
        base.observe = self.options.observe.unwrap_or(Observe::Counters);
        base.rate_bps = self.limit().map(|rate| rate.0);
        base.delayed_reads = self.options.delayed_reads;
        base.paced_to_receiver = self.is_paced_to_receiver()? && self.options.stream;
        sizes::specs(self.options, &base, self.transport)
    }

    /// What all patterns have in common.
    fn base(&self, pattern: Pattern) -> Result<Spec, OptionError> {
        let mut spec = Spec::over(self.transport.named(), pattern);
        spec.flows = self.options.flows.unwrap_or(spec.flows);
        spec.threads = self.options.threads;
        spec.processes = self.options.processes.unwrap_or(spec.processes);
        spec.direction = match (self.options.reverse, self.options.both) {
            (true, _) => Direction::Reverse,
            (_, true) => Direction::Both,
            _ => Direction::Send,
        };
        spec.strategy = if self.options.spin { Strategy::Spin } else { self.options.wait.unwrap_or(spec.strategy) };
        spec.io = self.options.io.unwrap_or(spec.io);
        spec.family = self.options.family();
        spec.stall_ns = self.options.stall.map_or(spec.stall_ns, |time| time.0);
        spec.observe = self.options.observe.unwrap_or(spec.observe);
        spec.observe_interval_ns = self.options.observe_interval.map_or(spec.observe_interval_ns, |time| time.0);
        spec.speak = self.options.speak;
        spec.payload = self.payload()?;
        ends::apply(self.options, &mut spec.near, &mut spec.far, self.resolver)?;
        spec.settings = settings(&self.options.set);
        Ok(spec)
    }

    fn payload(&self) -> Result<Option<Payload>, OptionError> {
        match &self.options.payload {
            None => Ok(None),
            Some(PayloadFlag::Kind(kind)) => Ok(Some(Payload { kind: *kind, ..Payload::default() })),
            Some(PayloadFlag::File(path)) => self
                .resolver
                .payload(path)
                .map(Some)
                .map_err(|error| OptionError::of_value("payload", &path.display().to_string(), error)),
        }
    }

    /// The rate to keep, if it is limited.
    fn limit(&self) -> Option<BitRate> {
        self.options.rate.filter(|rate| *rate != NO_LIMIT)
    }

    fn captured(&self) -> Option<CaptureSpec> {
        let folder = self.options.capture.as_ref()?.display().to_string();
        let fetch_bytes = Some(self.options.fetch.unwrap_or(FETCH).0).filter(|most| *most > 0);
        Some(CaptureSpec {
            snaplen: self.options.snaplen.unwrap_or(CaptureSpec::SNAPLEN),
            folder: Some(folder),
            fetch_bytes,
        })
    }

    /// Whether a stream's sender limits itself to the free space of the receiver's socket: on transports that drop data at a slow
    /// receiver, unless a rate or `unpaced` is given. Servers of other programs do not report that space.
    fn is_paced_to_receiver(&self) -> Result<bool, OptionError> {
        let overruns = self.transport.overruns();
        if self.options.unpaced && !overruns {
            let able = engine::transport::names(|other| other.overruns());
            let what = say!(
                "`--unpaced` has no effect on {}, which has flow control: omit it, or use {able}",
                self.transport.name()
            );
            return Err(OptionError::of_key("unpaced", what));
        }
        Ok(overruns && !self.options.unpaced && self.limit().is_none() && self.options.speak.is_none())
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
