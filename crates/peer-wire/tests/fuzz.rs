//! Mutated input for all codecs for a second, in CI for a minute; `cargo bench -p throughline-peer-wire` runs ten
//! million inputs each.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

mod common;

use common::recording;
#[path = "common/fuzz.rs"]
mod fuzz;

/// Inputs per thread for each codec in each role: about a second, and a minute beside other tests.
const BRIEF: u64 = 2_000;
const LONG: u64 = 25_000;

fn withstand(seed: u64, each: u64) {
    let targets = fuzz::targets();
    let tallies = fuzz::run(&targets, each * targets.len() as u64, &mut model::SplitMix64::new(seed));
    for (target, tally) in targets.iter().zip(tallies) {
        assert_eq!(tally.inputs, each, "{} {}", target.peer, target.role);
        let never = target.role == "datagrams";
        assert_eq!(tally.errors > 0, !never, "{} {}: noise is refused", target.peer, target.role);
        assert!(tally.errors < tally.inputs, "{} {}: some sessions pass", target.peer, target.role);
    }
    for peer in peer_wire::PEERS {
        assert!(targets.iter().filter(|target| target.peer == peer.name).count() >= 2, "{} in both roles", peer.name);
    }
}

#[test]
fn no_codec_panics_and_every_error_names_its_peer() {
    if std::env::var_os("CI").is_none() {
        return withstand(6, BRIEF);
    }
    std::thread::scope(|scope| {
        for seed in [6, 7] {
            scope.spawn(move || withstand(seed, LONG));
        }
    });
}
