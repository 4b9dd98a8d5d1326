//! A transport and an observer that another program adds work as those of this workspace do: between a client and an agent, in
//! workers, in the store, in analysis and in reports, also those of a program that does not have them.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

#[path = "../src/sluice.rs"]
mod sluice;

use std::process::Command;

use model::{Framing, Outcome, Pattern, Spec, TransportFacts};
use program::{Agent, Doc, Finished, Running, Sandbox, check};

const OUTSIDE: &str = env!("CARGO_BIN_EXE_thru_outside");

/// The program with the transport, and its agent.
struct Bed {
    agent: Agent,
    sandbox: Sandbox,
}

impl Bed {
    fn new() -> Self {
        let agent = Agent::spawn(Command::new(OUTSIDE), &["--listen", "127.0.0.1:0"]);
        Self { agent, sandbox: Sandbox::new() }
    }

    fn run(&self, args: &[&str]) -> Finished {
        Running::of(self.sandbox.prepare(Command::new(OUTSIDE), args)).wait()
    }

    /// A measurement over the added transport.
    fn measure(&self, args: &[&str]) -> Doc {
        let over = ["--transport", "sluice", "--trials", "3", "--json", "-", self.agent.host()];
        let doc = self.run(&[args, &over].concat()).ok().doc();
        check::document(&doc, &args.join(" "));
        doc
    }
}

#[test]
fn an_added_transport_runs_every_pattern_between_a_client_and_an_agent() {
    let bed = Bed::new();
    for args in [
        &["stream", "--time", "200ms"][..],
        &["stream", "--time", "200ms", "--both", "--flows", "4", "--threads", "1"],
        &["stream", "--time", "200ms", "--reverse", "--processes", "2", "--flows", "2"],
        &["rr", "--time", "200ms"],
        &["transfer", "--bytes", "1MiB"],
        &["rr", "--block", "100", "--reply", "5000", "--flows", "3"],
        &["curve", "--to", "64"],
    ] {
        let doc = bed.measure(args);
        let of_ceiling = |outcome: &&Outcome| outcome.spec.transport == Spec::CEILING;
        assert!(doc.run.outcomes.iter().any(|outcome| outcome.spec.transport.as_str() == "sluice"), "{args:?}");
        for outcome in doc.run.outcomes.iter().filter(|outcome| !of_ceiling(outcome)) {
            assert!(
                outcome.summary.trust.is_some() && outcome.summary.bytes_received > Some(0),
                "{args:?}: {outcome:?}"
            );
        }
    }
}

#[test]
fn readers_without_an_added_transport_have_its_facts_from_the_document() {
    let bed = Bed::new();
    let doc = bed.measure(&["stream", "--time", "300ms", "--name", "outside"]);
    let facts = doc.outcome().spec.transport_facts().expect("the document has the facts");
    assert!(facts.is_over_tcp() && facts.framing == Some(Framing::Tcp) && !facts.one_host, "{facts:?}");
    // `thru` has the store of the other program, but neither its transport nor its observer.
    let refused = bed.sandbox.run(&["stream", "--transport", "sluice", bed.agent.host()]);
    assert!(refused.code == Some(2) && refused.stderr.contains("sluice"), "{refused:?}");
    bed.sandbox.run(&["why", "outside", "--json"]).ok();
    // Of a transport over TCP, what limits it is judged by TCP_INFO over time. Here it was lost, or there was none to record.
    let [mut known, mut unknown] = [(); 2].map(|()| doc.outcome().clone());
    for outcome in [&mut known, &mut unknown] {
        for flow in outcome.trials.iter_mut().flat_map(|trial| trial.near.flows.iter_mut().chain(&mut trial.far.flows))
        {
            flow.tcp.clear();
        }
    }
    unknown.spec.transport_facts = None;
    let needs_tcp_info = |outcome: &Outcome| {
        let why = analysis::limiter::why(
            outcome,
            &analysis::limiter::Recorded::around(outcome, &doc.run.header, &doc.run.passes),
        );
        why.expect("evidence").missing.iter().any(|gap| gap.starts_with("TCP_INFO over time"))
    };
    assert!(needs_tcp_info(&known) && !needs_tcp_info(&unknown));
    let report = bed.sandbox.run(&["show", "outside"]).ok();
    assert!(report.stdout.contains("sluice"), "{report:?}");
    bed.sandbox.run(&["report", "outside", "-o", "report.html"]).ok();
    let page = std::fs::read_to_string(bed.sandbox.path("report.html")).unwrap();
    assert!(
        program::page::texts(&page).contains("losses and full buffers: faults.all"),
        "a report names the losses of an added source"
    );
}

#[test]
fn an_added_observer_is_read_at_both_ends() {
    let bed = Bed::new();
    let doc = bed.measure(&["stream", "--time", "300ms"]);
    for end in doc.run.passes.iter().flat_map(|pass| [&pass.near, &pass.far]) {
        let seen = end.observed.as_ref().expect("counters");
        assert!(seen.sources.iter().any(|source| source == "faults"), "{:?} {:?}", seen.sources, seen.missing);
        assert!(seen.grew("faults.all").is_some_and(|faults| faults > 0) && seen.is_loss("faults.all"));
        let series = seen.series.as_ref().expect("a series");
        assert!(series.lines.iter().any(|line| line.name == "faults.all"), "it is read over time, too");
    }
}

#[test]
fn a_spec_with_other_facts_of_a_transport_than_its_own_is_refused() {
    engine::transport::add(&sluice::Sluice).unwrap();
    assert!(engine::transport::add(&sluice::Sluice).is_err(), "a name is taken once");
    let own = Spec::over(engine::transport::transport("sluice").unwrap().named(), Pattern::Stream);
    assert!(engine::pattern::check(&own).is_ok());
    for facts in [None, Some(TransportFacts::LOCAL)] {
        let error = engine::pattern::check(&Spec { transport_facts: facts, ..own.clone() }).unwrap_err().to_string();
        assert!(error.contains("sluice as the spec describes it"), "{error}");
    }
}
