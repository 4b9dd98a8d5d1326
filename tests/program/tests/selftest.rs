//! `thru selftest`: what it claims of itself that does not depend on how busy the machine is.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use std::fs;

use jsonschema::Validator;
use model::{Check, Claim, SelfTest};
use program::{Sandbox, binary, skip};

/// Runs a self-test and reads its document; its exit code says whether all checks passed.
fn selftest(sandbox: &Sandbox, flags: &[&str]) -> SelfTest {
    let finished = sandbox.run(&[&["selftest", "--json", "result.json"], flags].concat());
    let text = fs::read_to_string(sandbox.path("result.json")).unwrap();
    let schema = fs::read_to_string(binary::workspace().join("docs/schema/selftest.schema.json")).unwrap();
    let schema: Validator = jsonschema::validator_for(&serde_json::from_str(&schema).unwrap()).unwrap();
    let objections: Vec<String> =
        schema.iter_errors(&serde_json::from_str(&text).unwrap()).map(|error| error.to_string()).collect();
    assert_eq!(objections, [""; 0]);
    let found: SelfTest = serde_json::from_str(&text).unwrap();
    let printed = finished.ended_with(if found.passed() { 0 } else { 8 }).stdout;
    for check in &found.checks {
        let verdict = if check.passed { "pass" } else { "FAIL" };
        assert!(
            printed.lines().any(|line| line.starts_with(verdict) && line.contains(&check.path)),
            "{check:?}\n{printed}"
        );
    }
    found
}

/// Bytes never depend on how busy the machine is.
fn assert_bytes(found: &SelfTest, count: usize) {
    let bytes: Vec<&Check> = found.checks.iter().filter(|check| check.claim == Claim::Bytes).collect();
    assert_eq!(bytes.len(), count, "{found:?}");
    for check in bytes {
        assert!(check.measured > 0.0, "{check:?}");
        assert!(check.passed || check.note.contains("sent again"), "{check:?}");
    }
}

#[test]
fn loopback_is_tested_without_root_and_what_is_missing_is_named() {
    let sandbox = Sandbox::new();
    let found = selftest(&sandbox, &["--quick", "--loopback"]);
    assert_bytes(&found, 2);
    assert_eq!(found.missing.len(), 2, "{found:?}");
    assert!(found.missing.iter().all(|missing| missing.contains("--loopback")), "{found:?}");
    assert_eq!(found.realtime, None);
    for claim in [Claim::Clock, Claim::Loop, Claim::Rate] {
        assert_eq!(found.checks.iter().filter(|check| check.claim == claim).count(), 1, "{claim:?}");
    }
}

#[test]
#[ignore = "half a minute of both cores: scripts/test-long.sh whole"]
fn links_of_known_rate_and_delay_are_tested_as_root() {
    if let Err(error) = lab::available() {
        skip::skip("links_of_known_rate_and_delay_are_tested_as_root", &error.to_string());
        return;
    }
    let sandbox = Sandbox::new();
    let found = selftest(&sandbox, &["--quick"]);
    assert_eq!(found.missing, [""; 0]);
    assert!(found.realtime.is_some());
    assert_bytes(&found, 5);
    let of = |claim| found.checks.iter().filter(move |check| check.claim == claim);
    for rate in of(Claim::Rate).filter(|check| check.path.contains("Mbit/s, MTU")) {
        // A shaper lets nothing through beyond its rate, whatever else the machine does.
        assert!(rate.measured < rate.truth * 1.05 && rate.measured > 0.0, "{rate:?}");
    }
    for delay in of(Claim::Rtt).chain(of(Claim::Delay)) {
        // Nor does a path hand anything over before its time; ping rounds, and lateness is taken off.
        assert!(delay.measured > 7.5e6, "{delay:?}");
    }
    assert_eq!((of(Claim::Rtt).count(), of(Claim::Delay).count()), (2, 1));
    let counts = [Claim::Added, Claim::Pacing, Claim::Loss, Claim::Reorder, Claim::OneWay, Claim::Anatomy];
    assert_eq!(counts.map(|claim| of(claim).count()), [4, 3, 2, 2, 2, 3], "{found:?}");
    for exact in
        of(Claim::Loss).chain(of(Claim::Reorder)).chain(of(Claim::Anatomy).filter(|check| check.allowed == 0.0))
    {
        // Counts do not depend on how busy the machine is.
        assert!(exact.passed, "{exact:?}");
    }
    assert!(of(Claim::Loss).any(|check| check.truth > 0.0) && of(Claim::Reorder).any(|check| check.truth > 0.0));
    for delay in of(Claim::OneWay) {
        assert!(delay.measured > delay.truth - 0.5e6, "{delay:?}");
    }
    for check in &found.checks {
        assert_eq!(check.attempts > 1, check.earlier.is_some(), "{check:?}");
    }
}

#[test]
fn a_result_that_cannot_be_written_is_refused_before_it_takes_long() {
    let sandbox = Sandbox::new();
    let finished = sandbox.run(&["selftest", "--loopback", "--json", "no/such/folder/x.json"]).ended_with(6);
    assert!(finished.stderr.contains("no/such/folder"), "{}", finished.stderr);
    assert_eq!(finished.stdout, "");
}
