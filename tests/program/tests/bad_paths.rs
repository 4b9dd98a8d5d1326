//! Paths on which other programs still measure: slow, far and lossy ones (root only).
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use std::time::Duration;

use lab::{CrossoverSpec, DirectionSpec, Lab, LabHost, PathSpec};
use program::{Agent, Doc, Running, Sandbox, binary, check, skip};

/// A minute or two on a path on which each answer takes its time.
const LIMIT: Duration = Duration::from_secs(400);

/// A path with these properties in both directions; `None`, with a line, if none can be made.
fn path(test: &str, direction: DirectionSpec) -> Option<Lab> {
    let spec = PathSpec::symmetric(CrossoverSpec::default(), direction);
    match lab::available().and_then(|()| Lab::path(&spec)) {
        Ok(lab) => Some(lab),
        Err(error) => {
            skip::skip(test, &error.to_string());
            None
        }
    }
}

fn serve(host: &LabHost) -> Agent {
    let place = format!("{}:0", host.v4);
    Agent::spawn(host.command(binary::thru()), &["--open", "--listen", &place])
}

fn measure(sandbox: &Sandbox, a: &LabHost, args: &[&str]) -> Doc {
    let command = sandbox.prepare(a.command(binary::thru()), &[args, &["--json", "-"]].concat());
    let doc = Running::of(command).wait_at_most(LIMIT).ok().doc();
    check::document(&doc, &args.join(" "));
    doc
}

#[test]
fn a_path_of_9600_bits_a_second_is_measured() {
    let slow = DirectionSpec {
        rate_bps: Some(9_600),
        delay: Duration::from_millis(50),
        queue_bytes: 16 << 10,
        ..DirectionSpec::default()
    };
    let Some(lab) = path("a_path_of_9600_bits_a_second_is_measured", slow) else { return };
    let (a, agent, sandbox) = (lab.host("a").unwrap(), serve(lab.host("b").unwrap()), Sandbox::new());
    let doc = measure(&sandbox, a, &["rr", "--time", "5s", "--trials", "1", agent.host()]);
    // 52 bytes of headers and one of payload take 44 ms in each direction, and 50 ms more.
    let rtt = doc.trials()[0].near.rtt.as_ref().unwrap().p50_ns;
    assert!((180_000_000..1_500_000_000).contains(&rtt), "{rtt} ns");
    let ping = doc.run.header.path_outbound.as_ref().unwrap().ping.clone();
    // The probe has not filled the queue, which holds 14 s.
    assert!(ping.is_none_or(|ping| ping.max_ns.is_some_and(|ns| ns < 1_500_000_000)), "the probe waited for itself");
}

#[test]
fn a_round_trip_of_six_seconds_is_measured() {
    let far = DirectionSpec { delay: Duration::from_secs(3), ..DirectionSpec::default() };
    let Some(lab) = path("a_round_trip_of_six_seconds_is_measured", far) else { return };
    let (a, agent, sandbox) = (lab.host("a").unwrap(), serve(lab.host("b").unwrap()), Sandbox::new());
    let doc = measure(&sandbox, a, &["rr", "--count", "2", "--trials", "1", "--no-path", agent.host()]);
    let rtt = doc.trials()[0].near.rtt.as_ref().unwrap().p50_ns;
    assert!((6_000_000_000..6_500_000_000).contains(&rtt), "{rtt} ns");
}

#[test]
fn a_path_that_loses_a_third_in_each_direction_is_measured() {
    let lossy = DirectionSpec { delay: Duration::from_millis(10), loss: 0.35, ..DirectionSpec::default() };
    let Some(lab) = path("a_path_that_loses_a_third_in_each_direction_is_measured", lossy) else { return };
    let (a, agent, sandbox) = (lab.host("a").unwrap(), serve(lab.host("b").unwrap()), Sandbox::new());
    // The probe of the path answers for itself elsewhere.
    let args = ["rr", "--udp", "--rate", "50/s", "--time", "3s", "--trials", "1", "--no-path", agent.host()];
    let doc = measure(&sandbox, a, &args);
    let trial = &doc.trials()[0];
    let datagrams = trial.near.datagrams.as_ref().unwrap();
    assert!((140..=151).contains(&datagrams.sent), "a lost request costs only itself: {} sent", datagrams.sent);
    let rtt = trial.near.rtt.as_ref().unwrap().p50_ns;
    assert!((20_000_000..100_000_000).contains(&rtt), "{rtt} ns, though a round trip takes 20 ms");
}

#[test]
fn a_path_that_swallows_full_packets_is_measured_and_its_mtu_found() {
    let hole = DirectionSpec { delay: Duration::from_millis(5), mtu: Some(1_300), ..DirectionSpec::default() };
    let Some(lab) = path("a_path_that_swallows_full_packets_is_measured_and_its_mtu_found", hole) else { return };
    let (a, agent, sandbox) = (lab.host("a").unwrap(), serve(lab.host("b").unwrap()), Sandbox::new());
    let doc = measure(&sandbox, a, &["rr", "--count", "20", "--trials", "1", agent.host()]);
    let mtu = doc.run.header.path_outbound.as_ref().unwrap().mtu.clone().unwrap();
    assert_eq!((mtu.bytes, mtu.confirmed), (1_280, true), "the largest common size that passes");
}
