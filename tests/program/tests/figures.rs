//! Headline figures against what was asked for and what was emulated: a paced stream's goodput, a probe's round trips.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use std::time::Duration;

use lab::{CrossoverSpec, DirectionSpec, Lab, LabError, PathSpec};
use model::Verdict;
use program::{Agent, Doc, Running, Sandbox, binary, check, skip};

/// A path of this round trip, 50 Mbit/s and 20 ms of queue; `None` where this host cannot emulate one.
fn path(test: &str, rtt: Duration) -> Option<Lab> {
    let direction =
        DirectionSpec { delay: rtt / 2, rate_bps: Some(50_000_000), queue_bytes: 125_000, ..DirectionSpec::default() };
    emulated(test, direction)
}

/// A path that is the same in both directions; `None` where this host cannot emulate one.
fn emulated(test: &str, direction: DirectionSpec) -> Option<Lab> {
    let spec = PathSpec { link: CrossoverSpec::default(), forward: direction.clone(), reverse: direction, seed: 3 };
    match lab::available().and_then(|()| Lab::path(&spec)) {
        Ok(lab) => Some(lab),
        Err(error @ (LabError::Privilege { .. } | LabError::NotAllowed { .. } | LabError::Emulator { .. })) => {
            skip::skip(test, &error.to_string());
            None
        }
        Err(error) => panic!("{error}"),
    }
}

/// What `command` with `flags` measured from `a` to `b` of `lab`.
fn measured(lab: &Lab, command: &str, flags: &[&str]) -> Doc {
    let (a, b) = (lab.host("a").unwrap(), lab.host("b").unwrap());
    let agent = Agent::spawn(b.command(binary::thru()), &["--open", "--listen", &format!("{}:0", b.v4)]);
    let sandbox = Sandbox::new();
    let args = [&[command, agent.host(), "--json", "-"][..], flags].concat();
    Running::of(sandbox.prepare(a.command(binary::thru()), &args)).wait().ok().doc()
}

/// What a stream with a probe over `lab` found.
fn probed(lab: &Lab, flags: &[&str]) -> Doc {
    measured(lab, "stream", &[&["--probe", "--trials", "1"][..], flags].concat())
}

/// Other programs may have the cores for the length of a measurement, which then sends less and has longer round trips, never shorter
/// ones: one of ten without that must be right.
fn in_a_quiet_moment(measured: impl Fn() -> Result<(), String>) {
    let mut seen = Vec::new();
    for _ in 0..10 {
        match measured() {
            Ok(()) => return,
            Err(reason) => seen.push(reason),
        }
    }
    panic!("{}", seen.join("\n"));
}

#[test]
fn a_paced_stream_carries_what_was_asked_however_few_its_blocks() {
    // All of a delay is made up for, so that a busy machine costs no block.
    let burst = ["--burst", "1MiB"];
    let (agent, sandbox) = (Agent::start(), Sandbox::new());
    let cases: [&[&str]; 5] = [
        &["--rate", "10Mbit", "--time", "1s"],
        &["--rate", "10Mbit", "--time", "1s", "--flows", "4", "--block", "64KiB"],
        &["--rate", "20Mbit", "--time", "1s", "--warmup", "300ms"],
        &["--rate", "20Mbit", "--time", "1s", "--flows", "2", "--processes", "2"],
        &["--rate", "10Mbit", "--time", "1s", "--udp"],
    ];
    for flags in cases {
        in_a_quiet_moment(|| {
            let doc = sandbox.measure(&[&["stream", "--trials", "1"][..], &burst, flags, &[agent.host()]].concat());
            check::document(&doc, &flags.join(" "));
            let requested = doc.outcome().spec.rate_bps.unwrap() as f64;
            for (what, did) in [("carried", doc.goodput()), ("sent", doc.summary().sender_bps.unwrap())] {
                assert!(did / requested < 1.02, "{flags:?}: {what} {did}");
                // A sender that had no core at the end had no time to make up for it.
                if did / requested <= 0.98 {
                    return Err(format!("{flags:?}: {what} {did}"));
                }
            }
            Ok(())
        });
    }
    let doc = sandbox.measure(&[
        "stream",
        "--rate",
        "10Mbit",
        "--block",
        "1MiB",
        "--time",
        "2s",
        "--trials",
        "1",
        agent.host(),
    ]);
    assert!((doc.goodput() / 10e6 - 1.0).abs() < 0.02 && doc.has(Verdict::ResolutionLimited), "{}", doc.remarks());
}

#[test]
fn a_probe_is_right_where_several_requests_fit_into_a_round_trip() {
    let test = "a_probe_is_right_where_several_requests_fit_into_a_round_trip";
    for ms in [20.0, 120.0] {
        let Some(lab) = path(test, Duration::from_secs_f64(ms / 1e3)) else { return };
        in_a_quiet_moment(|| {
            let doc = probed(&lab, &["--rate", "1Mbit", "--block", "1000", "--time", "1s"]);
            let found = doc.summary().probe.clone().unwrap();
            let idle = found.idle.unwrap();
            for (what, rtt) in [("idle", &idle), ("under a load that fills no queue", &found.loaded)] {
                let times = rtt.p50_ns as f64 / (ms * 1e6);
                assert!(times >= 0.999 && rtt.p99_ns.is_none(), "{ms} ms, {what}: {rtt:?}");
                if times >= 1.05 || rtt.count < 10 {
                    return Err(format!("{ms} ms, {what}: {rtt:?}"));
                }
            }
            Ok(())
        });
        // The queue holds 20 ms: a backlog of the probe's own would be longer.
        in_a_quiet_moment(|| {
            let doc = probed(&lab, &["--time", "1s"]);
            let loaded = doc.summary().probe.clone().unwrap().loaded;
            let median = loaded.p50_ns as f64 / 1e6;
            assert!(median >= ms, "{ms} ms: {loaded:?}");
            if median < ms + 24.0 { Ok(()) } else { Err(format!("{ms} ms: {loaded:?}")) }
        });
        lab.close().unwrap();
    }
}

#[test]
fn where_a_trial_is_too_short_for_its_path_the_finding_says_so() {
    let test = "where_a_trial_is_too_short_for_its_path_the_finding_says_so";
    let Some(lab) = path(test, Duration::from_millis(300)) else { return };
    // Datagrams have no start-up, which would take a trial of TCP longer.
    let doc = probed(&lab, &["--udp", "--time", "200ms", "--rate", "1Mbit", "--block", "1000"]);
    let found = doc.summary().probe.clone().unwrap();
    assert!(found.idle.unwrap().count >= 10 && found.loaded.count < 10, "{:?}", found.loaded);
    assert_eq!(found.bufferbloat_ns, None);
    assert!(
        doc.run.findings.iter().any(|finding| finding.statement.plain().contains("too few to tell")),
        "{}",
        doc.remarks()
    );
    lab.close().unwrap();
}

/// Against round trips of spinning ends at the same rate, in turns: on a path of 0.1 ms a reflector or a prober that had to be
/// woken up would add half of the round trip.
#[test]
fn a_probe_of_a_short_path_has_no_wake_up_in_it() {
    let test = "a_probe_of_a_short_path_has_no_wake_up_in_it";
    let Some(lab) = path(test, Duration::from_micros(100)) else { return };
    let mut ratios: Vec<f64> = (0..5)
        .map(|_| {
            let load = ["--rate", "1Mbit", "--block", "1000", "--time", "1s"];
            let idle = probed(&lab, &load).summary().probe.clone().unwrap().idle.unwrap().p50_ns;
            let spun = measured(&lab, "rr", &["--spin", "--rate", "100", "--time", "1s", "--trials", "1"]);
            assert!(idle >= 100_000, "no round trip is shorter than the path's: {idle} ns");
            idle as f64 / spun.summary().rtt_p50_ns.unwrap()
        })
        .collect();
    ratios.sort_by(f64::total_cmp);
    // Threads that spin may lose their cores to others, so that the ratio has no lower bound.
    assert!(ratios[2] < 1.35, "probe over spinning round trips: {ratios:?}");
    lab.close().unwrap();
}

/// Each flow's handshake is three datagrams; of 40 flows some lose the last one.
#[test]
fn datagram_flows_open_on_a_path_that_loses_a_tenth() {
    let test = "datagram_flows_open_on_a_path_that_loses_a_tenth";
    let direction = DirectionSpec { loss: 0.1, delay: Duration::from_millis(1), ..DirectionSpec::default() };
    let Some(lab) = emulated(test, direction) else { return };
    let doc = measured(&lab, "rr", &["--udp", "--flows", "8", "--time", "100ms", "--trials", "5", "--no-path"]);
    check::document(&doc, test);
    assert_eq!(doc.outcome().trials.len(), 5);
    lab.close().unwrap();
}
