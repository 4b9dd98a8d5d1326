//! A short storm over all codecs; `cargo bench -p throughline-speak` throws ten million inputs.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

mod common;

use common::recording;
#[path = "common/storm.rs"]
mod storm;

#[test]
fn no_codec_panics_and_every_error_names_its_peer() {
    let targets = storm::targets();
    let tallies = storm::storm(&targets, 32_000, &mut storm::Random::new(6));
    for (target, tally) in targets.iter().zip(tallies) {
        assert_eq!(tally.inputs, 2000, "{} {}", target.peer, target.role);
        let never = target.role == "datagrams";
        assert_eq!(tally.errors > 0, !never, "{} {}: noise is refused", target.peer, target.role);
        assert!(tally.errors < tally.inputs, "{} {}: some sessions pass", target.peer, target.role);
    }
    for peer in speak::PEERS {
        assert!(targets.iter().filter(|target| target.peer == peer.name).count() >= 2, "{} in both roles", peer.name);
    }
}
