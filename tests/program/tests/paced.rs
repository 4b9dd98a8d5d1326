//! Streams of datagrams that are paced to their receiver: nothing is lost for want of buffer, and losses on the path stay.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use std::time::Duration;

use lab::{CrossoverSpec, DirectionSpec, Lab, LabError, PathSpec};
use program::{Agent, Running, Sandbox, binary, check, eventually, skip};

#[test]
fn a_slow_receiver_slows_its_sender_down_and_loses_nothing() {
    let (agent, sandbox) = (Agent::start(), Sandbox::new());
    let flags = ["stream", "--udp", "--time", "200ms", "--trials", "1", "--rcvbuf", "100000", "--engine"];
    for engine in ["copy", "gso"] {
        let doc = sandbox.measure(&[&flags[..], &[engine, agent.host()]].concat());
        let outcome = doc.outcome();
        assert!(outcome.spec.paced_to_receiver, "{engine}");
        assert_eq!(outcome.summary.packets_lost, Some(0), "{engine}");
        assert!(
            doc.run.findings.iter().any(|finding| finding.statement.plain().contains("paced to the receiver")),
            "{engine}"
        );
    }
    for flags in [["--unpaced", "--time"], ["--find-no-loss", "--time"]] {
        let doc =
            sandbox.measure(&[&["stream", "--udp"][..], &flags, &["20ms", "--trials", "1", agent.host()]].concat());
        assert!(!doc.outcome().spec.paced_to_receiver, "{flags:?}");
    }
}

#[test]
fn what_the_path_loses_is_counted_to_the_datagram() {
    let test = "what_the_path_loses_is_counted_to_the_datagram";
    let forward = DirectionSpec {
        delay: Duration::from_millis(10),
        rate_bps: Some(100_000_000),
        queue_bytes: 300_000,
        loss: 0.02,
        ..DirectionSpec::default()
    };
    let reverse = DirectionSpec { delay: Duration::from_millis(10), loss: 0.02, ..DirectionSpec::default() };
    let spec = PathSpec { link: CrossoverSpec::default(), forward, reverse, seed: 7 };
    let lab = match lab::available().and_then(|()| Lab::path(&spec)) {
        Ok(lab) => lab,
        Err(error @ (LabError::Privilege { .. } | LabError::NotAllowed { .. } | LabError::Emulator { .. })) => {
            return skip::skip(test, &error.to_string());
        }
        Err(error) => panic!("{error}"),
    };
    let (a, b) = (lab.host("a").unwrap(), lab.host("b").unwrap());
    let agent = Agent::spawn(b.command(binary::thru()), &["--open", "--listen", &format!("{}:0", b.v4)]);
    let sandbox = Sandbox::new();
    for engine in ["copy", "gso"] {
        let path = lab.emulator().unwrap();
        let before = path.counts();
        let args =
            ["stream", "--udp", "--block", "1000", "--time", "2s", "--trials", "1", "--engine", engine, "--json", "-"];
        let command = sandbox.prepare(a.command(binary::thru()), &[&args[..], &[agent.host()]].concat());
        let doc = Running::of(command).wait().ok().doc();
        check::document(&doc, engine);
        eventually("the path is empty", || path.counts().iter().all(|direction| direction.travelling() == 0));
        let after = path.counts();
        let dropped = after[0].since(&before[0]).dropped();
        let trial = &doc.outcome().trials[0];
        let (near, far) = (trial.near.datagrams.unwrap(), trial.far.datagrams.unwrap());
        // On a busy machine the receiver may come too late for some.
        let lost = near.sent - far.received - far.socket_drops;
        // The control connection loses some packets as well.
        assert!(lost <= dropped && lost + 100 >= dropped, "{engine}: {lost} lost, {dropped} dropped on the path");
        assert!(lost * 100 > near.sent, "{engine}: {lost} of {}", near.sent);
    }
    drop(agent);
    lab.close().unwrap();
}
