//! What the figures of a run stand for: plain reads and closes unless asked otherwise, trust that its interval bears out, and an
//! interrupt that costs no more than the trial it cut.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use model::{Outcome, TransportName, Trust, Verdict};
use program::process::{Signal, eventually};
use program::{Agent, Doc, Sandbox};

/// Short trials.
const SHORT: [&str; 5] = ["--time", "100ms", "--trials", "3", "--no-path"];

/// How often receivers slept.
fn delayed_reads(doc: &Doc) -> u64 {
    let ends = doc.trials().iter().flat_map(|trial| [&trial.near, &trial.far]);
    ends.flat_map(|end| &end.flows).filter_map(|flow| flow.socket.delayed_reads).sum()
}

#[test]
fn streams_are_read_a_block_at_a_time_and_delayed_reads_say_so() {
    let (agent, sandbox) = (Agent::start(), Sandbox::new());
    for command in ["stream", "transfer"] {
        let amount: &[&str] =
            if command == "stream" { &SHORT } else { &["--count", "20000", "--trials", "3", "--no-path"] };
        let plain = [&[command, "--block", "16KiB", agent.host()], amount].concat();
        let doc = sandbox.measure(&plain);
        let spec = &doc.outcome().spec;
        assert!(
            !spec.delayed_reads && !doc.has(Verdict::DelayedReads) && delayed_reads(&doc) == 0,
            "{}",
            doc.remarks()
        );
        for trial in doc.trials() {
            assert!(trial.far.calls_received >= trial.far.bytes_received.div_ceil(spec.block), "{:?}", trial.far);
        }
        assert!(!sandbox.run(&["show", "last", "-v"]).ok().stdout.contains("delayed"));

        let doc = sandbox.measure(&[&plain[..], &["--delayed-reads"]].concat());
        assert!(doc.outcome().spec.delayed_reads && doc.has(Verdict::DelayedReads), "{}", doc.remarks());
        let shown = sandbox.run(&["show", "last", "-v"]).ok().stdout;
        for text in ["delayed-reads", "slept between"] {
            assert!(shown.contains(text), "no {text}:\n{shown}");
        }
        // The terminal's table may wrap its head.
        let markdown = sandbox.run(&["show", "last", "--as", "md"]).ok().stdout;
        assert!(markdown.contains("| delayed reads |"), "{markdown}");
        let csv = sandbox.run(&["show", "last", "--as", "csv"]).ok().stdout;
        let mut lines = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
        let (head, row) = (lines.next().unwrap(), lines.next().unwrap());
        let cell = |name: &str| row[head.iter().position(|column| *column == name).unwrap()];
        assert_eq!(
            (cell("delayed_reads"), cell("delayed_read_count")),
            ("true", delayed_reads(&doc).to_string().as_str())
        );
    }
    let curve = ["curve", "--stream", "--to", "64", "--budget", "300ms", "--no-path", "--delayed-reads", agent.host()];
    let doc = sandbox.measure(&curve);
    let (ceiling, sizes): (Vec<&Outcome>, Vec<&Outcome>) =
        doc.run.outcomes.iter().partition(|outcome| outcome.spec.transport == TransportName::Memcpy);
    assert!(sizes.iter().all(|outcome| outcome.summary.verdicts.contains(&Verdict::DelayedReads)));
    assert!(!ceiling.is_empty() && ceiling.iter().all(|outcome| !outcome.spec.delayed_reads));
}

#[test]
fn delayed_reads_are_refused_where_they_do_nothing_or_harm() {
    let (agent, sandbox) = (Agent::start(), Sandbox::new());
    let cases: [(&[&str], &str); 9] = [
        (&["stream", "--delayed-reads", "--spin"], "give each flow a thread"),
        (&["stream", "--delayed-reads", "--wait", "epoll"], "give each flow a thread"),
        (&["stream", "--delayed-reads", "--rate", "1Gbit"], "leave out --rate"),
        (&["stream", "--delayed-reads", "--drain", "1Gbit"], "leave out --rate"),
        (&["stream", "--delayed-reads", "--udp"], "many datagrams per call"),
        (&["stream", "--delayed-reads", "--transport", "quic"], "it works with tcp"),
        (&["stream", "--delayed-reads", "--speak", "iperf3"], "--delayed-reads with iperf3"),
        (&["ab", "--a=", "--b=--delayed-reads"], "cannot be compared"),
        (&["rr", "--connect", "--overlap-close", "--speak", "netperf"], "--overlap-close with netperf"),
    ];
    for (args, why) in cases {
        let message = sandbox.run(&[args, &[agent.host()]].concat()).ended_with(2).message();
        assert!(message.contains(why), "{args:?}: {message}");
    }
}

#[test]
fn an_overlapping_close_is_asked_for_and_said() {
    let (agent, sandbox) = (Agent::start(), Sandbox::new());
    for overlaps in [false, true] {
        let flag: &[&str] = if overlaps { &["--overlap-close"] } else { &[] };
        let doc = sandbox.measure(&[&["rr", "--connect", agent.host()], flag, &SHORT].concat());
        assert_eq!(doc.outcome().spec.overlap_close, overlaps);
        assert_eq!(doc.has(Verdict::OverlapClose), overlaps, "{}", doc.remarks());
        assert!(doc.trials().iter().all(|trial| trial.near.transactions > 0));
    }
}

/// High trust stands beside an interval as narrow as asked, and beside no value there is none.
fn assert_borne_out(doc: &Doc, target: f64) {
    for outcome in &doc.run.outcomes {
        let width = outcome.estimate.as_ref().and_then(model::Estimate::relative_half_width);
        let place = outcome.summary.within_pass.as_deref().and_then(model::Estimate::relative_half_width);
        let narrow = width.is_some_and(|width| width <= target) && place.is_none_or(|width| width <= target);
        assert!(outcome.summary.trust != Some(Trust::High) || narrow, "{width:?} {place:?}: {}", doc.remarks());
        assert_eq!(outcome.summary.trust.is_none(), outcome.estimate.is_none(), "{}", doc.remarks());
    }
}

#[test]
fn high_trust_is_borne_out_by_its_interval() {
    let (agent, sandbox) = (Agent::start(), Sandbox::new());
    let ab = ["ab", "--a", "--time 20ms", "--b", "--time 20ms --flows 4", "--pairs", "12", "--json", "-", agent.host()];
    assert_borne_out(&sandbox.run(&ab).doc(), 0.02);
    assert_borne_out(&sandbox.measure(&["curve", "--to", "64", "--budget", "1s", "--no-path", agent.host()]), 0.02);
    // One transaction has the rate of its own time, and nothing that bears it out.
    let doc = sandbox.measure(&["rr", "--count", "1", "--trials", "1", "--no-path", agent.host()]);
    let estimate = doc.outcome().estimate.as_ref().expect("a rate");
    assert!(estimate.value > 0.0 && estimate.low.is_none() && doc.has(Verdict::ResolutionLimited), "{estimate:?}");
    assert_eq!(doc.outcome().summary.trust, Some(Trust::Low));
    assert_borne_out(&doc, 0.02);
    let shown = sandbox.run(&["show", "last"]).ok().stdout;
    assert!(shown.contains("trust low"), "{shown}");
}

#[test]
fn an_interrupt_costs_only_the_trial_that_it_cut() {
    let (agent, sandbox) = (Agent::start(), Sandbox::new());
    for _ in 0..4 {
        let args = ["rr", "--rate", "500/s", "--time", "300ms", "--trials", "60", "--live", "--no-path", agent.host()];
        let client = sandbox.start(&args);
        let trials = |text: &str| text.lines().filter(|line| line.starts_with("{\"event\":\"trial\"")).count();
        // In the middle of a trial, as its live readings show.
        eventually("a fifth trial is under way", || {
            let text = client.stdout();
            trials(&text) >= 4 && text.lines().last().is_some_and(|line| line.contains("\"event\":\"interval\""))
        });
        client.signal(Signal::INT);
        client.wait().ended_with(130);
        let doc = sandbox.run(&["show", "last", "--json"]).ok().doc();
        let (summary, cut) = (doc.summary(), |trial: &&model::Trial| trial.verdicts.contains(&Verdict::CutShort));
        let whole = doc.trials().iter().filter(|trial| !cut(trial)).count();
        assert!(
            doc.trials().iter().filter(cut).all(|trial| trial.verdicts == [Verdict::CutShort]),
            "{}",
            doc.remarks()
        );
        assert_eq!(summary.trials as usize, whole, "only whole trials count: {}", doc.remarks());
        let known = [Verdict::CutShort, Verdict::TargetMissed, Verdict::SameHost];
        assert!(
            doc.has(Verdict::CutShort) && summary.verdicts.iter().all(|one| known.contains(one)),
            "{}",
            doc.remarks()
        );
        // The width of the interval alone decides: the cut trial does not lower the trust in whole ones.
        let width = doc.outcome().estimate.as_ref().and_then(model::Estimate::relative_half_width).unwrap();
        let by_width = match width {
            width if width > 0.1 => Trust::Low,
            width if width > 0.02 => Trust::Fair,
            _ => Trust::High,
        };
        assert_eq!(summary.trust, Some(by_width), "{}", doc.remarks());
    }
}
