//! What a program's protocol does not carry.

use std::ops::RangeInclusive;

use model::{Pattern, Program, Spec, TransportName};
use text::{Said, Text, say};

use crate::ProgramError;

/// Remedy for an option of the far end.
pub(crate) const REMEDY: &str = "not supported by its protocol; leave it out, or set it for this end only (VALUE,)";

/// Remedy for both directions.
pub(crate) fn one_direction() -> Text {
    say!("it supports only one direction; leave it out, or use `--reverse`")
}

/// The first option of a spec that the server of a program would have a part in and does not carry out, in words.
pub(crate) fn uncarried(spec: &Spec, program: Program) -> Option<Text> {
    let beside_options = [
        (spec.engine.auto, say!("`--engine auto`")),
        (!spec.mix.is_empty(), say!("`--block imix`")),
        (spec.start_ns.is_some(), say!("`start`")),
    ];
    let other = beside_options.into_iter().find(|(there, _)| *there).map(|(_, name)| name);
    other.or_else(|| options::uncarried(spec, program))
}

/// What one of the older programs can measure: transfers from one buffer.
pub(crate) struct Capabilities {
    /// The program.
    pub(crate) program: Program,
    /// Its patterns, and the remedy for others.
    pub(crate) patterns: (&'static [Pattern], fn() -> Text),
    /// Most flows over TCP and over UDP.
    pub(crate) flows: [u32; 2],
    /// Bytes of a block over TCP and over UDP.
    pub(crate) blocks: [RangeInclusive<u64>; 2],
}

impl Capabilities {
    /// Refuses what the program cannot express. Directions, stops and the far end's buffers are checked by each
    /// program.
    pub(crate) fn check(&self, spec: &Spec) -> Result<(), ProgramError> {
        spec.check().map_err(|error| ProgramError::unsupported("these settings", error.say()))?;
        let carrier = match &spec.transport {
            TransportName::Tcp => 0,
            TransportName::Udp => 1,
            other => {
                return Err(self.unsupported(say!("`--transport {other}`"), say!("use TCP, or UDP with `--udp`")));
            }
        };
        let (patterns, remedy) = self.patterns;
        if !patterns.contains(&spec.pattern) {
            return Err(self.unsupported(spec.pattern.name(), remedy()));
        }
        let flows = self.flows[carrier];
        if !(1..=flows).contains(&spec.flows) {
            let takes = match flows {
                1 => say!("use one over {}", spec.transport),
                most => say!("use 1 to {most} over {}", spec.transport),
            };
            return Err(self.unsupported(say!("`--flows {}`", spec.flows), takes));
        }
        let blocks = &self.blocks[carrier];
        if !blocks.contains(&spec.block) {
            let takes = say!("use {} to {} bytes", blocks.start(), blocks.end());
            return Err(self.unsupported(say!("`--block {}`", spec.block), takes));
        }
        if spec.far.sndbuf != spec.far.rcvbuf {
            return Err(self.unsupported(say!("different values of `--sndbuf` and `--rcvbuf` at the far end"), REMEDY));
        }
        uncarried(spec, self.program).map_or(Ok(()), |what| Err(self.unsupported(what, REMEDY)))
    }

    /// An error with what is unsupported and the remedy.
    pub(crate) fn unsupported(&self, what: impl Into<Text>, remedy: impl Into<Text>) -> ProgramError {
        ProgramError::unsupported(say!("{} with {}", what.into(), self.program), remedy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::{Direction, Payload, PayloadKind};

    #[test]
    fn what_a_protocol_does_not_carry_is_refused_by_its_name() {
        let said = |change: fn(&mut Spec)| {
            let mut spec = Spec::new("tcp", Pattern::Stream);
            change(&mut spec);
            uncarried(&spec, Program::Netperf).map(|what| what.plain())
        };
        assert_eq!(said(|_| {}), None);
        assert_eq!(said(|spec| (spec.far.cc, spec.warmup_ns) = (Some("reno".into()), 1)), None);
        assert_eq!(said(|spec| spec.far.mss = Some(1_400)).as_deref(), Some("`--mss` at the far end"));
        assert_eq!(said(|spec| spec.near.mss = Some(1_400)), None, "this end sets it");
        assert_eq!(said(|spec| spec.processes = 2).as_deref(), Some("`--processes`"));
        assert_eq!(said(|spec| spec.start_ns = Some(0)).as_deref(), Some("`start`"));
        let zeros = |spec: &mut Spec| spec.payload = Some(Payload { kind: PayloadKind::Zeros, ..Payload::default() });
        assert_eq!(said(zeros), None, "this end sends it");
        let reverse = |spec: &mut Spec| {
            spec.payload = Some(Payload { kind: PayloadKind::Zeros, ..Payload::default() });
            spec.direction = Direction::Reverse;
        };
        assert_eq!(said(reverse).as_deref(), Some("`--payload`"));
    }
}
