//! A search for what helps, over paths whose best is known (root only: they are emulated between namespaces).
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use std::time::Duration;

use lab::{CrossoverSpec, DirectionSpec, Lab, PathSpec};
use model::{Advice, FindingKind, Outcome};
use program::process::{Signal, eventually};
use program::{Agent, Doc, Running, Sandbox, binary, skip};

/// Longer than any search here takes on a busy machine.
const LIMIT: Duration = Duration::from_secs(180);
/// What the link of the paths carries, bit/s.
const LINK_BPS: u64 = 100_000_000;

struct Path {
    lab: Lab,
    agent: Agent,
    sandbox: Sandbox,
}

impl Path {
    /// A link of 100 Mbit/s with `delay` each way.
    fn new(test: &str, delay: Duration) -> Option<Self> {
        if !skip::root(test) {
            return None;
        }
        if let Err(error) = lab::available() {
            skip::skip(test, &error.to_string());
            return None;
        }
        let direction =
            DirectionSpec { delay, rate_bps: Some(LINK_BPS), queue_bytes: 300_000, ..DirectionSpec::default() };
        let lab = Lab::path(&PathSpec::symmetric(CrossoverSpec::default(), direction)).unwrap();
        Some(Self::between(lab, &[]))
    }

    /// A veth pair, with an agent that has more flags.
    fn wire(test: &str, flags: &[&str]) -> Option<Self> {
        Some(Self::between(skip::lab(test, &CrossoverSpec::default())?, flags))
    }

    fn between(lab: Lab, flags: &[&str]) -> Self {
        let (b, sandbox) = (lab.host("b").unwrap(), Sandbox::with_token());
        let mut command = b.command(binary::thru());
        command.env("THRU_JOURNAL", sandbox.path("journal"));
        let listen = format!("{}:0", b.v4);
        let agent = Agent::spawn(command, &[&sandbox.token_flags()[..], &["--listen", &listen], flags].concat());
        Self { lab, agent, sandbox }
    }

    /// `thru` on a host, with the journal of this test.
    fn on(&self, host: &str, args: &[&str]) -> Running {
        let mut command = self.sandbox.prepare(self.lab.host(host).unwrap().command(binary::thru()), args);
        command.env("THRU_JOURNAL", self.sandbox.path("journal"));
        Running::of(command)
    }

    /// TCP's segmentation by the device at both hosts, as `thru tune` shows it.
    fn tso(&self) -> [String; 2] {
        ["a", "b"].map(|host| self.on(host, &["tune", "show", "dev.eth0.offload.tso"]).wait().ok().stdout)
    }

    /// Starts a search on `a`.
    fn start(&self, args: &[&str]) -> Running {
        self.on("a", &[&["advise", self.agent.host()], args].concat())
    }

    fn advise(&self, args: &[&str]) -> Doc {
        self.start(&[args, &["--json", "-"]].concat()).wait_at_most(LIMIT).ok().doc()
    }
}

fn advice(doc: &Doc) -> &Advice {
    doc.run.advice.as_ref().expect("an advice")
}

/// The outcome of what the search ended with.
fn best(doc: &Doc) -> &Outcome {
    let wanted = &advice(doc).best;
    let cell = doc.run.header.cells.iter().rfind(|cell| cell.levels == *wanted).expect("a cell of it");
    doc.run.outcomes.iter().find(|outcome| outcome.cell == cell.id).expect("its outcome")
}

#[test]
#[ignore = "half a minute of both cores: scripts/test-long.sh whole"]
fn a_window_within_5_percent_of_the_best_is_found() {
    // 20 ms there and back: 250 kB are under way where the link is full, and 32 KiB carry a small part of that.
    let test = "a_window_within_5_percent_of_the_best_is_found";
    let Some(path) = Path::new(test, Duration::from_millis(10)) else { return };
    let file = path.sandbox.path("90-thru.conf");
    let args = [
        "--sndbuf",
        "32KiB",
        "--rcvbuf",
        "32KiB",
        "--time",
        "300ms",
        "--budget",
        "45s",
        "--seed",
        "5",
        "--write-sysctl",
    ];
    let doc = path.advise(&[args.as_slice(), &[file.to_str().unwrap()]].concat());
    let advice = advice(&doc);
    assert!(advice.confirmed, "{:?}", doc.run.findings);
    assert!(advice.best.contains_key("window"), "{:?}", advice.best);
    let total = advice.total.as_ref().and_then(|total| total.estimate.as_ref()).unwrap();
    assert!(total.low.unwrap() > 2.0 && total.high.is_some(), "{total:?}");
    let goodput = best(&doc).summary.goodput_bps.unwrap();
    assert!(goodput < LINK_BPS as f64 * 1_448.0 / 1_538.0 * 1.02, "more than the link carries: {goodput}");
    // What was advised can be typed. It carries what the best does, which here is known: buffers that grow with the path.
    let command = advice.command.as_deref().unwrap();
    assert!(command.starts_with("thru stream "), "{command}");
    // The buffers of the direction that was measured; those of the other one, which carries nothing, stay as they were.
    let spec = &best(&doc).spec;
    for (end, buffer) in [("sender's", spec.near.sndbuf), ("receiver's", spec.far.rcvbuf)] {
        assert!(buffer.is_none_or(|bytes| bytes > 32 << 10), "the {end} buffer is {buffer:?}: {command}");
    }
    let flags: Vec<&str> = command.split(' ').skip(3).collect();
    let side = |flags: &str| format!("{flags} --time 400ms --warmup 150ms");
    let (known, advised) = (side(""), side(&flags.join(" ")));
    // Where both are the same words there is nothing to compare.
    if advised != known {
        let ab =
            ["ab", path.agent.host(), "--pairs", "12", "--seed", "5", "--json", "-", "--a", &known, "--b", &advised];
        let compared = path.on("a", &ab).wait_at_most(LIMIT).doc();
        let ratio = compared.run.findings[0].estimate.as_ref().unwrap().value;
        assert!(ratio > 0.95, "{ratio} of the best: {:?}", advice.best);
    }
    let written = std::fs::read_to_string(&file).unwrap();
    assert!(written.starts_with("# near host of "), "{written}");
    // It is kept, and can be shown again.
    let shown = path.sandbox.run(&["show", &doc.run.header.id]).ok().stdout;
    assert!(shown.contains("To keep these settings") && shown.contains(command), "{shown}");
}

#[test]
#[ignore = "half a minute of both cores: scripts/test-long.sh whole"]
fn where_nothing_helps_nothing_is_claimed() {
    // The kernel sizes the buffers, and one flow fills the link.
    let test = "where_nothing_helps_nothing_is_claimed";
    let Some(path) = Path::new(test, Duration::from_millis(1)) else { return };
    let doc = path.advise(&["--budget", "10s", "--least", "2%", "--seed", "6"]);
    let advice = advice(&doc);
    assert!(!advice.confirmed && advice.command.is_none(), "{advice:?}");
    // What the path and the hosts are like may be told before.
    let first = doc.run.findings.iter().find(|finding| finding.kind == FindingKind::Advice).unwrap();
    let nothing = ["No change in ", "No significant improvement "];
    assert!(nothing.iter().any(|start| first.statement.plain().starts_with(start)), "{:?}", first.statement);
    assert!(!advice.unchanged.is_empty() && advice.unchanged.iter().any(|same| same.estimate.is_some()), "{advice:?}");
    assert!(advice.untried.iter().any(|one| one.what == "mtu" && one.allow.as_deref() == Some("mtu")), "{advice:?}");
    let trials: u32 = advice.spent.iter().map(|part| part.trials).sum();
    assert_eq!(trials as usize, doc.run.passes.len(), "every trial's time is accounted for");
}

#[test]
fn a_search_that_is_interrupted_says_what_it_knows() {
    let (agent, sandbox) = (Agent::start(), Sandbox::new());
    let mut client = sandbox.start(&["advise", agent.host(), "--budget", "10m", "--time", "100ms"]);
    client.until_printed("levels");
    // Some blocks of the first race, beyond the first look at the path.
    eventually("some trials are stored", || {
        let shown = sandbox.run(&["show", "last", "--json"]);
        Doc::try_parse(&shown.stdout).is_ok_and(|doc| doc.run.passes.len() >= 12)
    });
    client.signal(Signal::INT);
    client.wait().ended_with(130);
    let doc = sandbox.run(&["show", "last", "--json"]).ok().doc();
    assert_eq!(doc.run.ending.as_ref().map(|ending| ending.how.as_str()), Some("interrupted"));
    let advice = advice(&doc);
    assert!(!advice.confirmed && !advice.spent.is_empty() && !advice.untried.is_empty(), "{advice:?}");
}

#[test]
fn host_settings_are_put_back_whatever_ends_the_search() {
    let test = "host_settings_are_put_back_whatever_ends_the_search";
    let Some(path) = Path::wire(test, &["--allow-tuning", "--grace", "1s"]) else { return };
    let before = path.tso();
    let search = ["--goal", "latency", "--allow", "offloads", "--time", "60ms", "--budget", "10m"];
    for signal in [Signal::INT, Signal::KILL] {
        let client = path.start(&search);
        eventually("a trial has other settings at both ends", || {
            path.tso().iter().zip(&before).all(|(now, was)| now != was)
        });
        client.signal(signal);
        let ended = client.wait_at_most(LIMIT);
        if signal == Signal::KILL {
            assert_eq!(ended.code, None);
            path.on("a", &["tune", "revert"]).wait().ok();
        } else {
            assert_eq!(ended.code, Some(130), "{}", ended.stderr);
        }
        eventually("both hosts are as they were", || path.tso() == before);
    }
}

#[test]
fn an_agent_that_was_not_told_to_allow_it_changes_nothing() {
    let test = "an_agent_that_was_not_told_to_allow_it_changes_nothing";
    let Some(path) = Path::wire(test, &[]) else { return };
    let before = path.tso();
    let doc = path.advise(&["--goal", "latency", "--allow", "offloads", "--time", "50ms", "--budget", "40s"]);
    let why = |what: &str| {
        let found = advice(&doc).untried.iter().find(|one| one.what.starts_with(what));
        found.map(|one| one.why.clone()).unwrap_or_default()
    };
    assert!(why("tso").plain().contains("--allow-tuning"), "{:?}", advice(&doc).untried);
    assert_eq!(path.tso(), before);
}

#[test]
fn what_cannot_be_searched_is_refused_with_the_remedy() {
    let sandbox = Sandbox::new();
    for (args, part) in [
        (&["advise", "localhost", "--allow", "mtv"][..], "use sysctl, mtu"),
        (&["advise", "--transport", "memcpy"], "use tcp"),
        (&["advise", "localhost", "--goal", "latency", "--both"], "--both"),
        (&["advise", "localhost", "--least", "100%"], "0% to 99%"),
    ] {
        let ended = sandbox.run(args);
        assert_eq!(ended.code, Some(2), "{args:?}: {}", ended.stderr);
        assert!(ended.stderr.contains(part), "{args:?}: {}", ended.stderr);
    }
}
