//! Options that no program, or none of the older ones, supports.

use std::ops::RangeInclusive;

use model::{Direction, EndOptions, Spec};

use crate::InteropError;

/// Remedy for an option of the far end.
pub(crate) const REMEDY: &str = "not supported by its protocol; leave it out, or set it for this end only (VALUE,)";

/// Remedy for both directions.
pub(crate) const ONE_DIRECTION: &str = "it supports one direction only; leave it out, or use `reverse`";

/// The first flag of a spec that needs an agent at the far end.
pub(crate) fn needs_agent(spec: &Spec) -> Option<&'static str> {
    first(&[
        (spec.processes > 1, "`processes`"),
        (spec.probe.is_some(), "`probe`"),
        (spec.no_loss, "`find-no-loss`"),
        (spec.delayed_reads, "`delayed-reads`"),
        (spec.overlap_close, "`overlap-close`"),
        (spec.anatomy, "`anatomy`"),
        (spec.capture.is_some(), "`capture`"),
        (!spec.settings.is_empty(), "`set`"),
        (spec.engine.auto, "`engine auto`"),
        (spec.payload.is_some() && far_sends(spec), "`payload` at the far end"),
    ])
}

/// Whether the far end sends payload of its own.
fn far_sends(spec: &Spec) -> bool {
    !spec.is_stream() || spec.direction != Direction::Send
}

/// The first flag of a spec that no program but netperf supports.
pub(crate) fn unsupported_by_all(spec: &Spec) -> Option<&'static str> {
    let others = [
        (spec.far.data_addr.is_some(), "`data`"),
        (spec.far.device.is_some(), "`device` at the far end"),
        (spec.far.port.is_some(), "`data-port` at the far end"),
        (spec.far.cork.is_some(), "`cork` at the far end"),
        (spec.far.notsent_lowat.is_some(), "`notsent-lowat` at the far end"),
        (spec.far.keepalive_s.is_some(), "`keepalive` at the far end"),
        (spec.far.user_timeout_ms.is_some(), "`user-timeout` at the far end"),
        (spec.far.busy_poll_us.is_some(), "`busy-poll` at the far end"),
        (spec.far.drain_bps.is_some(), "`drain` at the far end"),
        (spec.far.pin.len() > 1, "`pin` to several cores at the far end"),
        (!spec.near.cc_rules.is_empty() || !spec.far.cc_rules.is_empty(), "`cc-rules`"),
    ];
    needs_agent(spec).or_else(|| first(&others))
}

/// The first that is there.
fn first(flags: &[(bool, &'static str)]) -> Option<&'static str> {
    flags.iter().find(|(there, _)| *there).map(|(_, what)| *what)
}

/// What one of the older programs can measure: transfers from one buffer.
pub(crate) struct Capabilities {
    /// Its name.
    pub(crate) program: &'static str,
    /// Its patterns, and the remedy for others.
    pub(crate) patterns: (&'static [&'static str], &'static str),
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
        if !patterns.contains(&spec.pattern.as_str()) {
            return Err(self.unsupported(spec.pattern.as_str(), remedy));
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
        unsupported_by_simple(spec).map_or(Ok(()), |what| Err(self.unsupported(what, REMEDY)))
    }

    /// An error with what is unsupported and the remedy.
    pub(crate) fn unsupported(&self, what: &str, remedy: &str) -> InteropError {
        InteropError::unsupported(format!("{what} with {}", self.program), remedy)
    }
}

/// The first flag of a spec that the older programs, which set only buffers and TCP_NODELAY, do not support.
pub(crate) fn unsupported_by_simple(spec: &Spec) -> Option<&'static str> {
    let EndOptions { cc, mss, dscp, max_pacing_bps, pin, .. } = &spec.far;
    let others = [
        (cc.is_some(), "`cc` at the far end"),
        (mss.is_some(), "`mss` at the far end"),
        (dscp.is_some(), "`dscp` at the far end"),
        (max_pacing_bps.is_some(), "`pacing` at the far end"),
        (!pin.is_empty(), "`pin` at the far end"),
        (spec.warmup_ns > 0, "`warmup`"),
        (spec.far.sndbuf != spec.far.rcvbuf, "`sndbuf` and `rcvbuf` of different values at the far end"),
    ];
    unsupported_by_all(spec).or_else(|| first(&others))
}
