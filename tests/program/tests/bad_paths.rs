//! Paths on which other programs still measure: slow, far and lossy ones (root only). With `THRU_BAD_PATHS=1` they are as bad as it
//! gets (`scripts/test-long.sh paths`), and take minutes.
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

/// The value for paths that are as bad as it gets, or that for those which a test of seconds can wait for.
fn worst<T>(worst: T, else_: T) -> T {
    if std::env::var_os("THRU_BAD_PATHS").is_some() { worst } else { else_ }
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
fn a_path_of_some_kilobits_a_second_is_measured() {
    let (rate_bps, queue_bytes) = (worst(9_600, 64_000), 16 << 10);
    let slow = DirectionSpec {
        rate_bps: Some(rate_bps),
        delay: Duration::from_millis(50),
        queue_bytes,
        ..DirectionSpec::default()
    };
    let Some(lab) = path("a_path_of_some_kilobits_a_second_is_measured", slow) else { return };
    let (a, agent, sandbox) = (lab.host("a").unwrap(), serve(lab.host("b").unwrap()), Sandbox::new());
    let doc = measure(&sandbox, a, &["rr", "--time", "5s", "--trials", "1", agent.host()]);
    // 52 bytes of headers and one of payload take 7 or 44 ms in each direction, and 50 ms more.
    let rtt = doc.trials()[0].near.rtt.as_ref().unwrap().p50_ns;
    assert!((100_000_000..1_500_000_000).contains(&rtt), "{rtt} ns");
    let ping = doc.run.header.path_outbound.as_ref().unwrap().ping.clone();
    // The control connection's messages are in the same queue.
    let half = queue_bytes * 8 * 1_000_000_000 / rate_bps / 2;
    assert!(ping.is_none_or(|ping| ping.max_ns.is_some_and(|ns| ns < half)), "the probe filled the queue");
}

#[test]
fn a_round_trip_of_seconds_is_measured() {
    let delay = Duration::from_secs(worst(3, 1));
    let far = DirectionSpec { delay, ..DirectionSpec::default() };
    let Some(lab) = path("a_round_trip_of_seconds_is_measured", far) else { return };
    let (a, agent, sandbox) = (lab.host("a").unwrap(), serve(lab.host("b").unwrap()), Sandbox::new());
    let doc = measure(&sandbox, a, &["rr", "--count", "2", "--trials", "1", "--no-path", agent.host()]);
    let rtt = doc.trials()[0].near.rtt.as_ref().unwrap().p50_ns;
    let least = 2 * delay.as_nanos() as u64;
    assert!((least..least + 500_000_000).contains(&rtt), "{rtt} ns");
}

#[test]
fn a_path_that_loses_a_third_in_each_direction_is_measured() {
    let lossy = DirectionSpec { delay: Duration::from_millis(10), loss: worst(0.35, 0.1), ..DirectionSpec::default() };
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
