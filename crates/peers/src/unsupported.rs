//! Options that a program's protocol does not carry.

use std::ops::RangeInclusive;

use model::{Direction, EndOptions, Pattern, Spec};

use crate::InteropError;

/// Remedy for an option of the far end.
pub(crate) const REMEDY: &str = "not supported by its protocol; leave it out, or set it for this end only (VALUE,)";

/// Remedy for both directions.
pub(crate) const ONE_DIRECTION: &str = "it supports one direction only; leave it out, or use `reverse`";

/// The first option of a spec that needs the far end to act and that the program's protocol does not carry. `carried` has the names of
/// those that it does.
pub(crate) fn uncarried(spec: &Spec, carried: &[&str]) -> Option<String> {
    let both = of_both_ends(spec).into_iter().map(|option| (option, ""));
    let far = of_far_end(spec).into_iter().map(|option| (option, " at the far end"));
    let refused = both.chain(far).find(|((there, name), _)| *there && !carried.contains(name));
    refused.map(|((_, name), place)| format!("`{name}`{place}"))
}

/// The options that only an agent carries out at both ends, and whether they are set. Every field of a spec is here, so that a new one is
/// refused until a program is known to carry it.
fn of_both_ends(spec: &Spec) -> Vec<(bool, &'static str)> {
    let Spec {
        processes,
        probe,
        no_loss,
        responsiveness,
        delayed_reads,
        overlap_close,
        anatomy,
        capture,
        settings,
        engine,
        mix,
        start_ns,
        warmup_ns,
        // Each program's own check has these.
        transport: _,
        transport_facts: _,
        pattern: _,
        block: _,
        reply: _,
        flows: _,
        direction: _,
        stop: _,
        rate_bps: _,
        // This end alone carries these out.
        threads: _,
        io: _,
        outstanding: _,
        burst: _,
        strategy: _,
        family: _,
        near: _,
        interval_ns: _,
        reading_ns: _,
        observe: _,
        observe_interval_ns: _,
        stall_ns: _,
        // For the far end see below.
        far: _,
        payload: _,
        // No option: they follow from others, and are off towards another program.
        steady: _,
        paced_to_receiver: _,
        speak: _,
    } = spec;
    vec![
        (*processes > 1, "processes"),
        (probe.is_some() && !responsiveness, "probe"),
        (*no_loss, "find-no-loss"),
        (*responsiveness, "responsiveness"),
        (*delayed_reads, "delayed-reads"),
        (*overlap_close, "overlap-close"),
        (*anatomy, "anatomy"),
        (capture.is_some(), "capture"),
        (!settings.is_empty(), "set"),
        (engine.auto, "engine auto"),
        (!mix.is_empty(), "mix"),
        (start_ns.is_some(), "start"),
        (*warmup_ns > 0, "warmup"),
    ]
}

/// The options of the far end, and whether they are set.
fn of_far_end(spec: &Spec) -> Vec<(bool, &'static str)> {
    let EndOptions {
        sndbuf,
        rcvbuf,
        nodelay,
        cork,
        cc,
        cc_rules,
        mss,
        dscp,
        data_addr,
        data_at,
        device,
        port,
        max_pacing_bps,
        notsent_lowat,
        keepalive_s,
        user_timeout_ms,
        busy_poll_us,
        drain_bps,
        pin,
    } = &spec.far;
    vec![
        (sndbuf.is_some(), "sndbuf"),
        (rcvbuf.is_some(), "rcvbuf"),
        (nodelay.is_some(), "nodelay"),
        (cork.is_some(), "cork"),
        (cc.is_some(), "cc"),
        (!cc_rules.is_empty(), "cc-rules"),
        (mss.is_some(), "mss"),
        (dscp.is_some(), "dscp"),
        (data_addr.is_some() || data_at.is_some(), "data"),
        (device.is_some(), "device"),
        (port.is_some(), "data-port"),
        (max_pacing_bps.is_some(), "pacing"),
        (notsent_lowat.is_some(), "notsent-lowat"),
        (keepalive_s.is_some(), "keepalive"),
        (user_timeout_ms.is_some(), "user-timeout"),
        (busy_poll_us.is_some(), "busy-poll"),
        (drain_bps.is_some(), "drain"),
        (!pin.is_empty(), "pin"),
        (spec.payload.is_some() && far_sends(spec), "payload"),
    ]
}

/// Whether the far end sends payload of its own.
fn far_sends(spec: &Spec) -> bool {
    !spec.is_stream() || spec.direction != Direction::Send
}

/// What one of the older programs can measure: transfers from one buffer.
pub(crate) struct Capabilities {
    /// Its name.
    pub(crate) program: &'static str,
    /// Its patterns, and the remedy for others.
    pub(crate) patterns: (&'static [Pattern], &'static str),
    /// Most flows over TCP and over UDP.
    pub(crate) flows: [u32; 2],
    /// Bytes of a block over TCP and over UDP.
    pub(crate) blocks: [RangeInclusive<u64>; 2],
}

impl Capabilities {
    /// Refuses what the program cannot express. Directions, stops and the far end's buffers are checked by each
    /// program.
    pub(crate) fn check(&self, spec: &Spec) -> Result<(), InteropError> {
        spec.check().map_err(|error| InteropError::unsupported("this measurement", error.to_string()))?;
        let carrier = match spec.transport.as_str() {
            "tcp" => 0,
            "udp" => 1,
            other => {
                return Err(self.unsupported(&format!("`transport {other}`"), "use TCP, or UDP with `udp`"));
            }
        };
        let (patterns, remedy) = self.patterns;
        if !patterns.contains(&spec.pattern) {
            return Err(self.unsupported(spec.pattern.name(), remedy));
        }
        let flows = self.flows[carrier];
        if !(1..=flows).contains(&spec.flows) {
            let takes = match flows {
                1 => format!("use one over {}", spec.transport),
                most => format!("use 1 to {most} over {}", spec.transport),
            };
            return Err(self.unsupported(&format!("`flows {}`", spec.flows), &takes));
        }
        let blocks = &self.blocks[carrier];
        if !blocks.contains(&spec.block) {
            let takes = format!("use {} to {} bytes", blocks.start(), blocks.end());
            return Err(self.unsupported(&format!("`block {}`", spec.block), &takes));
        }
        if spec.far.sndbuf != spec.far.rcvbuf {
            return Err(self.unsupported("`sndbuf` and `rcvbuf` of different values at the far end", REMEDY));
        }
        uncarried(spec, &["sndbuf", "rcvbuf", "nodelay"]).map_or(Ok(()), |what| Err(self.unsupported(&what, REMEDY)))
    }

    /// An error with what is unsupported and the remedy.
    pub(crate) fn unsupported(&self, what: &str, remedy: &str) -> InteropError {
        InteropError::unsupported(format!("{what} with {}", self.program), remedy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Pattern, Payload, PayloadKind};

    #[test]
    fn what_a_protocol_does_not_carry_is_refused_by_its_name() {
        let said = |change: fn(&mut Spec)| {
            let mut spec = Spec::new("tcp", Pattern::Stream);
            change(&mut spec);
            uncarried(&spec, &["cc", "warmup"])
        };
        assert_eq!(said(|_| {}), None);
        assert_eq!(said(|spec| (spec.far.cc, spec.warmup_ns) = (Some("reno".into()), 1)), None);
        assert_eq!(said(|spec| spec.far.mss = Some(1_400)).as_deref(), Some("`mss` at the far end"));
        assert_eq!(said(|spec| spec.near.mss = Some(1_400)), None, "this end sets it");
        assert_eq!(said(|spec| spec.processes = 2).as_deref(), Some("`processes`"));
        assert_eq!(said(|spec| spec.start_ns = Some(0)).as_deref(), Some("`start`"));
        let zeros = |spec: &mut Spec| spec.payload = Some(Payload { kind: PayloadKind::Zeros, ..Payload::default() });
        assert_eq!(said(zeros), None, "this end sends it");
        let reverse = |spec: &mut Spec| {
            spec.payload = Some(Payload { kind: PayloadKind::Zeros, ..Payload::default() });
            spec.direction = Direction::Reverse;
        };
        assert_eq!(said(reverse).as_deref(), Some("`payload` at the far end"));
    }
}
