//! What a reflector can measure, and the options of ours.

use model::{Direction, Pattern, Program, Spec, TransportName};
use peer_wire::stamp::BASE_BYTES;
use text::{Said, Text, say};

use crate::ProgramError;
use crate::capabilities::{REMEDY, uncarried};

/// Bytes of a datagram at most.
const MOST_BYTES: u64 = 65_507;

/// Refuses what a reflector cannot do.
pub(super) fn check(spec: &Spec) -> Result<(), ProgramError> {
    fn refuse(what: impl Into<Text>, remedy: impl Into<Text>) -> Result<(), ProgramError> {
        Err(ProgramError::unsupported(say!("{} with stamp", what.into()), remedy))
    }
    spec.check().map_err(|error| ProgramError::unsupported("these settings", error.say()))?;
    if spec.transport != TransportName::Udp || spec.pattern != Pattern::Rr || spec.is_point() {
        return refuse(
            say!("{} over {}", spec.pattern, spec.transport),
            say!("only round trips over UDP are supported: `thru rr HOST --speak stamp`"),
        );
    }
    if !(BASE_BYTES as u64..=MOST_BYTES).contains(&spec.block) {
        return refuse(say!("`--block {}`", spec.block), "use 44 to 65507 bytes");
    }
    let others = [
        (spec.reply.is_some_and(|reply| reply != spec.block), say!("`--reply`")),
        (spec.direction != Direction::Send, say!("`--reverse`")),
        (spec.flows > 1, say!("`--flows`")),
        (!spec.engine.is_plain(), say!("`--engine`")),
        (spec.strategy != model::Strategy::Auto, say!("`--spin` and `--wait`")),
        (!spec.near.pin.is_empty(), say!("`--pin`")),
        (spec.threads.is_some(), say!("`--threads`")),
    ];
    if let Some((_, what)) = others.into_iter().find(|(outbound, _)| *outbound) {
        return refuse(what, "not supported by its protocol; leave it out");
    }
    uncarried(spec, Program::Stamp).map_or(Ok(()), |what| refuse(what, REMEDY))
}

/// The reflector's options.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct ReflectorMode {
    /// Counts each sender's requests by itself (RFC 8762, 4: stateful).
    pub(super) stateful: bool,
    /// Answers all requests that are shorter than a reply (RFC 8762, 4.6), not only some per second.
    pub(super) unpadded: bool,
}

/// Parses the reflector's options.
pub(super) fn mode(words: &str) -> Result<ReflectorMode, ProgramError> {
    let mut mode = ReflectorMode::default();
    for word in words.split_whitespace() {
        match word {
            "stateless" => mode.stateful = false,
            "stateful" => mode.stateful = true,
            "unpadded" => mode.unpadded = true,
            other => {
                return Err(ProgramError::unsupported(
                    say!("`--speak stamp:{other}`"),
                    "options are stateless (the default), stateful, and unpadded to answer any number of short requests, for \
                     example 'stamp:stateful unpadded'",
                ));
            }
        }
    }
    Ok(mode)
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::EndOptions;

    #[test]
    fn unsupported_options_are_named() {
        let good = Spec { block: 44, ..Spec::new("udp", Pattern::Rr) };
        check(&good).unwrap();
        let said = |spec: Spec| check(&spec).unwrap_err().to_string();
        assert!(said(Spec { block: 43, ..good.clone() }).contains("44 to 65507"));
        assert!(said(Spec { flows: 2, ..good.clone() }).contains("`--flows` with stamp"));
        assert!(said(Spec { transport: "tcp".into(), ..good.clone() }).contains("round trips over UDP"));
        assert!(said(Spec { reply: Some(45), ..good.clone() }).contains("`--reply`"));
        let marked = EndOptions { dscp: Some(46), ..EndOptions::default() };
        check(&Spec { near: marked.clone(), ..good.clone() }).unwrap();
        assert!(said(Spec { far: marked, ..good.clone() }).contains("`--dscp` at the far end with stamp"));
        let pinned = EndOptions { pin: vec![1], ..EndOptions::default() };
        assert!(said(Spec { near: pinned, ..good }).contains("`--pin` with stamp"));
        assert_eq!(mode("").unwrap(), ReflectorMode { stateful: false, unpadded: false });
        assert_eq!(mode("stateful unpadded").unwrap(), ReflectorMode { stateful: true, unpadded: true });
        assert!(mode("both").unwrap_err().to_string().contains("stamp:both"));
    }
}
