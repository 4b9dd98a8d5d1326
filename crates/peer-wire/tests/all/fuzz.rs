//! Mutated input for all codecs for a second; `cargo bench -p throughline-peer-wire` runs ten million inputs each.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use crate::common::recording;

#[path = "common/fuzz.rs"]
mod codecs;

/// Inputs for each codec in each role.
const EACH: u64 = 2_000;

#[test]
fn no_codec_panics_and_every_error_names_its_peer() {
    let targets = codecs::targets();
    let tallies = codecs::run(&targets, EACH * targets.len() as u64, &mut model::SplitMix64::new(6));
    for (target, tally) in targets.iter().zip(tallies) {
        assert_eq!(tally.inputs, EACH, "{} {}", target.peer, target.role);
        let never = target.role == "datagrams";
        assert_eq!(tally.errors > 0, !never, "{} {}: noise is refused", target.peer, target.role);
        assert!(tally.errors < tally.inputs, "{} {}: some sessions pass", target.peer, target.role);
    }
    for target in &targets {
        assert!(targets.iter().filter(|other| other.peer == target.peer).count() >= 2, "{} in both roles", target.peer);
    }
}
