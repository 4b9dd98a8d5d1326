//! The keys of a draft, each with the patterns that have it and the parser of its value.

use model::{BitRate, ByteSize, CaptureSpec, Nanos, Spec};

use super::error::FieldError;
use super::names::{IO, WAIT, given, observe, on_off, one_of, program, transport};
use super::spec_draft::TestKind::{Curve, Rr, Stream, Transfer};
use super::spec_draft::{End, SpecDraft, TestKind};
use super::unknown::unknown;
use crate::values::{
    Congestion, Cores, PerEnd, Value, above_zero, address, any, at_least, data_address, dscp, each, name, one_block,
    sending_rate, whole, within,
};

/// A key of a draft. Its name is that of its flag.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// The name.
    pub key: &'static str,
    /// The patterns that have it.
    pub patterns: &'static [TestKind],
    /// Whether it takes a value per end: `near.KEY`, `far.KEY`, or `KEY` for both.
    pub per_end: bool,
    /// Whether its value is the path of a file, which is read.
    pub is_file: bool,
    set: Set,
}

/// Parses a value into its place in a draft.
type Set = fn(&mut SpecDraft, Option<End>, &str) -> Result<(), String>;

const ALL: &[TestKind] = &TestKind::ALL;
const TIMED: &[TestKind] = &[Stream, Rr, Curve];
const SINGLE: &[TestKind] = &[Stream, Rr, Transfer];
const TRIAL: &[TestKind] = &[Stream, Rr];
const SENDING: &[TestKind] = &[Stream, Transfer];
const ONE_WAY: &[TestKind] = &[Stream, Transfer, Curve];

/// Every key but [`TestKind::KEY`].
pub const FIELDS: &[Field] = &[
    Field::of("transport", ALL, |draft, _, text| put(&mut draft.transport, transport, text)),
    Field::of("udp", ALL, |draft, _, text| switch(&mut draft.udp, text)),
    Field::of("flows", ALL, |draft, _, text| put(&mut draft.flows, whole(1..=Spec::MAX_FLOWS), text)),
    Field::of("threads", ALL, |draft, _, text| put(&mut draft.threads, whole(1..=Spec::MAX_FLOWS), text)),
    Field::of("processes", ALL, |draft, _, text| put(&mut draft.processes, whole(1..=Spec::MAX_FLOWS), text)),
    Field::of("reverse", ALL, |draft, _, text| switch(&mut draft.reverse, text)),
    Field::of("both", ALL, |draft, _, text| switch(&mut draft.both, text)),
    Field::of("spin", ALL, |draft, _, text| switch(&mut draft.spin, text)),
    Field::of("wait", ALL, |draft, _, text| put(&mut draft.wait, one_of(&WAIT), text)),
    Field::of("io", ALL, |draft, _, text| put(&mut draft.io, one_of(&IO), text)),
    Field::of("engine", SENDING, |draft, _, text| put(&mut draft.engine, any, text)),
    Field::of("delayed-reads", ONE_WAY, |draft, _, text| switch(&mut draft.delayed_reads, text)),
    Field::of("speak", ALL, |draft, _, text| put(&mut draft.speak, program, text)),
    Field::of("data", ALL, |draft, _, text| put(&mut draft.data, data_address, text)),
    Field::of("data-from", ALL, |draft, _, text| put(&mut draft.data_from, address, text)),
    Field::of("ipv4", ALL, |draft, _, text| switch(&mut draft.ipv4, text)),
    Field::of("ipv6", ALL, |draft, _, text| switch(&mut draft.ipv6, text)),
    Field::of("block", ALL, block),
    Field::of("reply", &[Rr], |draft, _, text| put(&mut draft.reply, above_zero::<ByteSize>, text)),
    Field::of("time", TIMED, time),
    Field::of("bytes", SENDING, |draft, _, text| put(&mut draft.bytes, above_zero::<ByteSize>, text)),
    Field::of("count", SINGLE, |draft, _, text| put(&mut draft.count, whole(1..=u64::MAX), text)),
    Field::of("warmup", TRIAL, |draft, _, text| put(&mut draft.warmup, any, text)),
    Field::of("interval", SENDING, |draft, _, text| {
        put(&mut draft.interval, at_least(Nanos(Spec::MIN_INTERVAL_NS)), text)
    }),
    Field::of("stall", ALL, |draft, _, text| put(&mut draft.stall, at_least(Nanos(Spec::MIN_STALL_NS)), text)),
    Field::of("payload", ALL, |draft, _, text| put(&mut draft.payload, any, text)),
    Field::of("rate", ALL, rate),
    Field::of("drain", &[Stream], |draft, _, text| put(&mut draft.drain, above_zero::<BitRate>, text)),
    Field::of("burst", SENDING, |draft, _, text| put(&mut draft.burst, above_zero::<ByteSize>, text)),
    Field::of("unpaced", ONE_WAY, |draft, _, text| switch(&mut draft.unpaced, text)),
    Field::of("find-no-loss", &[Stream], |draft, _, text| switch(&mut draft.find_no_loss, text)),
    Field::of("probe", &[Stream], |draft, _, text| put(&mut draft.probe, whole(1..=Spec::MAX_PROBES), text)),
    Field::of("responsiveness", &[Stream], |draft, _, text| switch(&mut draft.responsiveness, text)),
    Field::of("connect", &[Rr], |draft, _, text| switch(&mut draft.connect, text)),
    Field::of("overlap-close", &[Rr], |draft, _, text| switch(&mut draft.overlap_close, text)),
    Field::of("anatomy", &[Rr], |draft, _, text| switch(&mut draft.anatomy, text)),
    Field::of("first", &[Curve], |draft, _, text| put(&mut draft.first, above_zero::<ByteSize>, text)),
    Field::of("to", &[Curve], |draft, _, text| put(&mut draft.to, above_zero::<ByteSize>, text)),
    Field::of("perturbation", &[Curve], |draft, _, text| {
        put(&mut draft.perturbation, whole(0..=Spec::MAX_BLOCK), text)
    }),
    Field::of("stream", &[Curve], |draft, _, text| switch(&mut draft.stream, text)),
    Field::of("observe", ALL, |draft, _, text| put(&mut draft.observe, observe, text)),
    Field::of("observe-interval", ALL, |draft, _, text| {
        put(&mut draft.observe_interval, at_least(Nanos(Spec::MIN_OBSERVE_INTERVAL_NS)), text)
    }),
    Field::of("capture", SINGLE, |draft, _, text| put(&mut draft.capture, any, text)),
    Field::of("snaplen", SINGLE, |draft, _, text| {
        put(&mut draft.snaplen, whole(CaptureSpec::SNAPLEN_MIN..=CaptureSpec::SNAPLEN_MAX), text)
    }),
    Field::of("fetch", SINGLE, |draft, _, text| put(&mut draft.fetch, any, text)),
    Field::of_end("sndbuf", |draft, end, text| put_end(&mut draft.sndbuf, end, above_zero::<ByteSize>, text)),
    Field::of_end("rcvbuf", |draft, end, text| put_end(&mut draft.rcvbuf, end, above_zero::<ByteSize>, text)),
    Field::of_end("nodelay", |draft, end, text| put_end(&mut draft.nodelay, end, on_off, text)),
    Field::of_end("cork", |draft, end, text| put_end(&mut draft.cork, end, on_off, text)),
    Field::of_end("cc", |draft, end, text| put_end(&mut draft.cc, end, any::<Congestion>, text)),
    Field { is_file: true, ..Field::of("cc-rules", ALL, |draft, _, text| put(&mut draft.cc_rules, any, text)) },
    Field::of_end("mss", |draft, end, text| put_end(&mut draft.mss, end, whole(88..=32_767_u32), text)),
    Field::of_end("dscp", |draft, end, text| put_end(&mut draft.dscp, end, dscp, text)),
    Field::of_end("device", |draft, end, text| put_end(&mut draft.device, end, name, text)),
    Field::of_end("data-port", |draft, end, text| put_end(&mut draft.data_port, end, whole(1..=u16::MAX), text)),
    Field::of_end("pacing", |draft, end, text| put_end(&mut draft.pacing, end, above_zero::<BitRate>, text)),
    Field::of_end("notsent-lowat", |draft, end, text| {
        put_end(&mut draft.notsent_lowat, end, within(ByteSize(1)..=ByteSize(u32::MAX.into())), text)
    }),
    Field::of_end("keepalive", |draft, end, text| {
        put_end(&mut draft.keepalive, end, within(Nanos(1_000_000_000)..=Nanos(32_767_000_000_000)), text)
    }),
    Field::of_end("user-timeout", |draft, end, text| {
        put_end(&mut draft.user_timeout, end, within(Nanos(1_000_000)..=Nanos(2_147_483_647_000_000)), text)
    }),
    Field::of_end("busy-poll", |draft, end, text| {
        put_end(&mut draft.busy_poll, end, within(Nanos(0)..=Nanos(2_147_483_647_000)), text)
    }),
    Field::of_end("pin", |draft, end, text| put_end(&mut draft.pin, end, any::<Cores>, text)),
    Field::of("set", ALL, |draft, _, text| {
        draft.set.push(text.parse()?);
        Ok(())
    }),
];

impl Field {
    const fn of(key: &'static str, patterns: &'static [TestKind], set: Set) -> Self {
        Self { key, patterns, per_end: false, is_file: false, set }
    }

    const fn of_end(key: &'static str, set: Set) -> Self {
        Self { per_end: true, ..Self::of(key, ALL, set) }
    }

    /// Whether `pattern` has it.
    pub fn is_of(&self, pattern: TestKind) -> bool {
        self.patterns.contains(&pattern)
    }
}

/// The field called `key`.
pub fn field(key: &str) -> Option<&'static Field> {
    FIELDS.iter().find(|field| field.key == key)
}

/// The end and the name in a key such as `near.sndbuf`.
pub fn split(key: &str) -> (Option<End>, &str) {
    match key.split_once('.') {
        Some(("near", name)) => (Some(End::Near), name),
        Some(("far", name)) => (Some(End::Far), name),
        _ => (None, key),
    }
}

impl SpecDraft {
    /// Sets an option from its text. A value of one end replaces what was set for both before.
    ///
    /// # Errors
    /// The pattern does not have the key, or the key does not take the value.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), FieldError> {
        let (end, name) = split(key);
        let Some(field) = field(name).filter(|field| field.is_of(self.pattern)) else {
            let known: Vec<&str> =
                FIELDS.iter().filter(|field| field.is_of(self.pattern)).map(|field| field.key).collect();
            return Err(FieldError::of_key(key, unknown(name, &known, &format!("thru {}", self.pattern.name()))));
        };
        if let Some(end) = end.filter(|_| !field.per_end) {
            return Err(FieldError::of_key(key, for_both(name, end)));
        }
        (field.set)(self, end, value).map_err(|what| FieldError::of_value(key, value, what))
    }
}

/// The error for an end of a field that has one value for both.
fn for_both(name: &str, end: End) -> String {
    let end = match end {
        End::Near => "near",
        End::Far => "far",
    };
    format!("'{name}' applies to both ends: omit the {end}. prefix")
}

fn put<T>(place: &mut Option<T>, read: impl Value<T>, text: &str) -> Result<(), String> {
    *place = Some(read(text)?);
    Ok(())
}

fn put_end<T: Clone>(
    place: &mut Option<PerEnd<T>>,
    end: Option<End>,
    one: impl Value<T>,
    text: &str,
) -> Result<(), String> {
    let Some(end) = end else { return put(place, each(one), text) };
    let text = text.trim();
    if text.is_empty() {
        return Err("'' has no value: write one, or omit the key".into());
    }
    let value = Some(one(text)?);
    let ends = place.get_or_insert(PerEnd { near: None, far: None });
    match end {
        End::Near => ends.near = value,
        End::Far => ends.far = value,
    }
    Ok(())
}

fn switch(place: &mut bool, text: &str) -> Result<(), String> {
    *place = given(text)?;
    Ok(())
}

/// One size, or those of a curve.
fn block(draft: &mut SpecDraft, _: Option<End>, text: &str) -> Result<(), String> {
    match draft.pattern {
        Stream | Transfer => draft.set_block(text.parse()?),
        Rr => draft.block = Some(one_block(text)?),
        Curve => draft.sizes = text.split(',').map(|size| one_block(size.trim())).collect::<Result<_, _>>()?,
    }
    Ok(())
}

fn time(draft: &mut SpecDraft, _: Option<End>, text: &str) -> Result<(), String> {
    let curve = draft.pattern == Curve;
    put(&mut draft.time, move |text: &str| if curve { above_zero::<Nanos>(text) } else { any(text) }, text)
}

fn rate(draft: &mut SpecDraft, _: Option<End>, text: &str) -> Result<(), String> {
    match draft.pattern {
        Rr => put(&mut draft.request_rate, any, text),
        _ => put(&mut draft.rate, sending_rate, text),
    }
}
