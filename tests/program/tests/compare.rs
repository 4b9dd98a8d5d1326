//! `thru ab` and `thru compare`: what they measure, keep, say and end with.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use std::fs;
use std::process::Command;

use lab::CrossoverSpec;
use model::{Answer, Comparison, Finding, FindingKind, RunComparison, Verdict};
use program::process::Signal;
use program::{Agent, Doc, Running, Sandbox, binary, check, skip};

/// Twelve short pairs, whose order is drawn from a fixed seed.
const SHORT: [&str; 6] = ["ab", "--pairs", "12", "--gap", "1ms", "--seed=7"];

/// Runs `thru ab` and returns its document, whatever it answered.
fn ab(sandbox: &Sandbox, args: &[&str], code: i32) -> Doc {
    let doc = sandbox.run(&[&SHORT[..], args, &["--json", "-"]].concat()).ended_with(code).doc();
    check::document(&doc, &args.join(" "));
    doc
}

fn difference(doc: &Doc) -> (&Finding, &Comparison) {
    let finding =
        doc.run.findings.iter().find(|finding| finding.kind == FindingKind::Difference).expect("a difference");
    (finding, finding.comparison.as_ref().expect("an answer"))
}

#[test]
fn a_paced_stream_that_is_slower_is_worse_and_one_that_is_faster_is_not() {
    let (agent, sandbox) = (Agent::start(), Sandbox::new());
    // Paced, so that the answer does not depend on what else this machine does, and of many blocks, of which some may come late.
    let (slow, fast) = ("--time 120ms --rate 5Mbit --block 1KiB", "stream --time 120ms --rate 40Mbit --block 1KiB");
    let doc = ab(&sandbox, &["--a", fast, "--b", slow, agent.host()], 3);
    let (finding, comparison) = difference(&doc);
    let estimate = finding.estimate.as_ref().unwrap();
    assert!(estimate.value < 0.5 && estimate.high.unwrap() < 0.9, "{estimate:?}");
    assert_eq!((comparison.answer, comparison.ratios.len(), estimate.n), (Answer::Worse, 6, 6));
    assert!(comparison.p_value.unwrap() < 0.04, "{comparison:?}");
    let doc = ab(&sandbox, &["--a", slow, "--b", fast, agent.host()], 0);
    assert_eq!(difference(&doc).1.answer, Answer::Better);
}

#[test]
fn trials_alternate_in_blocks_over_fresh_connections_and_the_run_is_kept() {
    let (agent, sandbox) = (Agent::start(), Sandbox::new());
    let doc = sandbox
        .run(
            &[
                &SHORT[..],
                &["--pattern", "rr", "--a", "--time 60ms", "--b", "--time 40ms", "--tolerance", "90%"],
                &["--json", "-"],
            ]
            .concat()
            .into_iter()
            .chain([agent.host()])
            .collect::<Vec<_>>(),
        )
        .doc();
    let mut order: Vec<(u32, u32, String)> = Vec::new();
    for outcome in &doc.run.outcomes {
        assert_eq!(outcome.trials.len(), 12);
        for trial in &outcome.trials {
            order.push((trial.pass, trial.cell, trial.near.flows[0].socket.local.clone().unwrap()));
        }
    }
    order.sort();
    let blocks: Vec<String> = order
        .chunks(4)
        .map(|block| block.iter().map(|(_, cell, _)| if *cell == 0 { 'A' } else { 'B' }).collect())
        .collect();
    assert!(blocks.iter().all(|block| block == "ABBA" || block == "BAAB"), "{blocks:?}");
    assert!(blocks.contains(&"ABBA".to_owned()) && blocks.contains(&"BAAB".to_owned()), "{blocks:?}");
    let mut ports: Vec<&String> = order.iter().map(|(_, _, port)| port).collect();
    ports.sort();
    ports.dedup();
    assert_eq!(ports.len(), 24, "every trial has a connection of its own");
    // The store has the same document, and the list names the ratio.
    let shown = sandbox.run(&["show", "--json"]).ok().doc();
    assert_eq!(shown.json, doc.json);
    let list = sandbox.run(&["runs"]).ok().stdout;
    assert!(list.contains(" ab ") && list.contains("B/A "), "{list}");
    let screen = sandbox.run(&["show"]).ok().stdout;
    assert!(screen.contains("\n12 pairs  ") && screen.contains("\nCPU, both ends  "), "{screen}");
    let text = sandbox.run(&["show", "-v"]).ok().stdout;
    assert!(text.contains(" A ") && text.contains(" B ") && text.contains("over 12 pairs"), "{text}");
}

#[test]
fn a_spec_of_a_document_serves_as_a_side() {
    let (agent, sandbox) = (Agent::start(), Sandbox::new());
    let doc = sandbox.measure(&[
        "stream",
        "--time",
        "60ms",
        "--rate",
        "20Mbit",
        "--block",
        "1KiB",
        "--trials",
        "1",
        agent.host(),
    ]);
    fs::write(sandbox.path("a.json"), doc.json.pointer("/outcomes/0/spec").unwrap().to_string()).unwrap();
    let doc = ab(&sandbox, &["--a-file", "a.json", "--b-file", "a.json", "--tolerance", "60%", agent.host()], 0);
    assert_eq!(doc.run.outcomes[0].spec, doc.run.outcomes[1].spec);
    let wrong = |text: &str, word: &str| {
        fs::write(sandbox.path("wrong.json"), text).unwrap();
        let finished = sandbox.run(&["ab", "--a-file", "wrong.json", "--b", "", agent.host()]).ended_with(2);
        assert!(finished.message().contains(word), "{}", finished.stderr);
    };
    wrong("{}", "outcomes[0].spec");
    wrong("", "is not a spec");
    wrong("{\"blok\": 64}", "wrong.json: thru stream has no 'blok'; did you mean 'block'?");
}

#[test]
fn wrong_sides_are_refused_before_anything_is_measured() {
    let (agent, sandbox) = (Agent::start(), Sandbox::new());
    for (args, word) in [
        (&["--a", "rr", "--b", "stream"][..], "compare two streams, or two rr"),
        (&["--a", "curve", "--b", ""], "--a \"curve\""),
        (&["--a", "--json x", "--b", ""], "--json applies to the whole comparison"),
        (&["--a", "", "--b", "stream otherhost"], "HOST applies to the whole comparison"),
        (&["--a", "", "--b", "--transport unix"], "between the same ends"),
        (&["--a", "", "--b", "", "--pairs", "7"], "from 12 to"),
        (&["--a", "", "--b", "", "--pairs", "13"], "even number"),
        (&["--a", "", "--b", "", "--tolerance", "100%"], "--tolerance"),
        (&["--a", "", "--b", "--block 0"], "block"),
    ] {
        let finished = sandbox.run(&[&["ab"], args, &[agent.host()]].concat()).ended_with(2);
        assert!(finished.message().contains(word), "{args:?}: {}", finished.stderr);
    }
    assert!(sandbox.run(&["runs"]).ok().stdout.contains("no runs"));
}

#[test]
fn a_host_that_is_not_there_is_no_answer() {
    let sandbox = Sandbox::new();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().to_string();
    let message = sandbox.run(&["ab", "--a", "", "--b", "", &port]).ended_with(1).message();
    assert!(message.contains("refused") && message.contains(&port), "{message}");
}

#[test]
fn a_killed_comparison_can_still_be_read() {
    let (agent, sandbox) = (Agent::start(), Sandbox::new());
    let mut running = sandbox.start(&["ab", "--a", "--time 20ms", "--b", "--time 20ms", "--live", agent.host()]);
    running.until_printed("\"pass\":36");
    running.signal(Signal::KILL);
    let _ = running.wait();
    let doc = sandbox.run(&["show", "--json"]).ok().doc();
    let (finding, comparison) = difference(&doc);
    assert!(comparison.ratios.len() >= 6 && finding.estimate.as_ref().unwrap().low.is_some(), "{comparison:?}");
}

#[test]
fn an_interrupted_comparison_says_what_it_has() {
    let (agent, sandbox) = (Agent::start(), Sandbox::new());
    let mut running = sandbox.start(&["ab", "--a", "--time 20ms", "--b", "--time 20ms", "--live", agent.host()]);
    running.until_printed("\"pass\":5");
    running.signal(Signal::INT);
    let finished = running.wait().ended_with(130);
    assert!(finished.stdout.contains("\"kind\":\"difference\""), "{}", finished.stdout);
}

#[test]
fn the_metrics_cache_is_off_flushed_or_named() {
    let test = "the_metrics_cache_is_off_flushed_or_named";
    let Some(lab) = skip::lab(test, &CrossoverSpec::default()) else { return };
    let (a, b, sandbox) = (lab.host("a").unwrap(), lab.host("b").unwrap(), Sandbox::new());
    let listen = format!("{}:0", b.v4);
    let agent = Agent::spawn(b.command(binary::thru()), &["--open", "--listen", &listen]);
    let set = |command: &mut Command, value: &str| {
        let path = "/proc/sys/net/ipv4/tcp_no_metrics_save";
        assert!(command.args(["-c", &format!("echo {value} > {path}")]).status().unwrap().success());
    };
    let (forth, back) = ("transfer --bytes 64KiB", "transfer --bytes 64KiB --reverse");
    for (near, far, side, words, kept) in [
        ("1", "1", forth, "off at the near end and off at the far end", false),
        ("0", "1", forth, "flushed before each trial at the near end and off at the far end", false),
        // What an end that only acknowledges has learnt does not matter.
        ("0", "0", forth, "flushed before each trial at the near end and on at the far end", false),
        ("1", "0", back, "off at the near end and on at the far end", true),
    ] {
        set(&mut a.command("sh"), near);
        set(&mut b.command("sh"), far);
        let args =
            [&SHORT[..], &["--a", side, "--b", side, "--tolerance", "99%", "--json", "-", agent.host()]].concat();
        let doc = Running::of(sandbox.prepare(a.command(binary::thru()), &args)).wait().doc();
        assert!(
            doc.run.findings.iter().any(|finding| finding.statement.plain().contains(words)),
            "{:?}",
            doc.run.findings
        );
        assert_eq!(doc.has(Verdict::MetricsKept), kept);
    }
}

#[test]
fn the_exit_code_of_stored_runs_is_their_answer() {
    let (agent, sandbox) = (Agent::start(), Sandbox::new());
    let measure = |name: &str, rate: &str, mss: &str| {
        let args = ["stream", "--time", "60ms", "--block", "2KiB", "--rate", rate, "--mss", mss, "--trials", "6"];
        sandbox.run(&[&args[..], &["--quiet", "--name", name, agent.host()]].concat()).ok();
    };
    for (name, rate) in
        [("a1", "40Mbit"), ("b1", "5Mbit"), ("a2", "40Mbit"), ("b2", "5Mbit"), ("a3", "40Mbit"), ("b3", "5Mbit")]
    {
        measure(name, rate, if name.starts_with('a') { "1400" } else { "1000" });
    }
    let read = |args: &[&str], code| -> RunComparison {
        serde_json::from_str(&sandbox.run(&[&["compare", "--json"], args].concat()).ended_with(code).stdout).unwrap()
    };
    let one = read(&["a1", "b1"], 3);
    assert_eq!((one.answer, one.cells.len()), (Answer::Worse, 1));
    assert!(one.cells[0].ratio.value < 0.5, "{:?}", one.cells[0]);
    let fields: Vec<&str> = one.differences.iter().map(|one| one.field.as_str()).collect();
    assert!(fields.contains(&"near.mss") && fields.contains(&"rate_bps"), "{fields:?}");
    assert!(!fields.contains(&"flows"), "{fields:?}");
    let several = read(&["a1,a2,a3", "b1,b2,b3"], 3);
    assert_eq!((several.answer, several.cells[0].ratio.n), (Answer::Worse, 6));
    assert_eq!(read(&["b1,b2,b3", "a1,a2,a3"], 0).answer, Answer::Better);
    let text = sandbox.run(&["compare", "a1", "b1"]).ended_with(3).stdout;
    assert!(text.contains("\nB is worse than A by more than 1.00 %: B's goodput differs by -"), "{text}");
    assert!(text.lines().count() <= 24, "{text}");
    let text = sandbox.run(&["compare", "a1", "b1", "-v"]).ended_with(3).stdout;
    assert!(text.contains("not paired") && text.contains("spec near.mss: 1400 -> 1000"), "{text}");
    // What cannot be compared says why.
    assert!(sandbox.run(&["compare", "a1", "a1"]).ended_with(2).message().contains("both sides"));
    sandbox.run(&["rr", "--time", "20ms", "--trials", "3", "--quiet", "--name", "trips", agent.host()]).ok();
    assert!(sandbox.run(&["compare", "a1", "trips"]).ended_with(2).message().contains("no cell in common"));
    sandbox.run(&["compare", "a1", "nothing"]).ended_with(6);
}
