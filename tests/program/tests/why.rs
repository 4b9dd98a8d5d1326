//! What holds a stream back, really produced on hosts in network namespaces, and named right (root only).
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use std::process::{Child, Command, Stdio};
use std::time::Duration;

use lab::{CrossoverSpec, DirectionSpec, Lab, LabError, LabHost, PathSpec};
use model::{Grade, LimiterKind, LossLocation, Why, WhyDocument};
use program::{Agent, Doc, Running, Sandbox, binary, check, skip};

/// Two hosts and an agent on the second one.
struct TestPath {
    lab: Lab,
    agent: Agent,
    sandbox: Sandbox,
}

impl TestPath {
    fn on(lab: Lab) -> Self {
        let command = lab.host("b").unwrap().command(binary::thru());
        Self::with_agent(lab, command)
    }

    /// With the agent that `command` starts.
    fn with_agent(lab: Lab, command: Command) -> Self {
        let listen = format!("{}:0", lab.host("b").unwrap().v4);
        let agent = Agent::spawn(command, &["--open", "--listen", &listen]);
        Self { lab, agent, sandbox: Sandbox::new() }
    }

    /// Joined by a veth pair.
    fn link(test: &str) -> Option<Self> {
        skip::lab(test, &CrossoverSpec::default()).map(Self::on)
    }

    /// Joined by an emulated path, the same both ways but for the loss.
    fn path(test: &str, direction: DirectionSpec) -> Option<Self> {
        let reverse = DirectionSpec { loss: 0.0, ..direction.clone() };
        let spec = PathSpec { link: CrossoverSpec::default(), forward: direction, reverse, seed: 7 };
        match lab::available().and_then(|()| Lab::path(&spec)) {
            Ok(lab) => Some(Self::on(lab)),
            Err(error @ (LabError::Privilege { .. } | LabError::NotAllowed { .. } | LabError::Emulator { .. })) => {
                skip::skip(test, &error.to_string());
                None
            }
            Err(error) => panic!("{error}"),
        }
    }

    fn a(&self) -> &LabHost {
        self.lab.host("a").unwrap()
    }

    fn thru(&self, args: &[&str]) -> program::Finished {
        Running::of(self.sandbox.prepare(self.a().command(binary::thru()), args)).wait()
    }

    fn measure(&self, flags: &[&str]) -> Doc {
        let fixed = ["--trials", "3", "--json", "-", self.agent.host()];
        let doc = self.thru(&[&["stream"], flags, &fixed].concat()).ok().doc();
        check::document(&doc, &flags.join(" "));
        doc
    }

    /// What held a stream with these flags back. The parts are checked.
    fn why(&self, flags: &[&str]) -> Why {
        let why = self.measure(flags).summary().why.as_deref().cloned().expect("a limiter");
        let sum: f64 = why.parts.iter().map(|part| part.share).sum();
        assert!(why.parts.is_empty() || (sum - 1.0).abs() < 1e-9, "{why:#?}");
        why
    }
}

/// A path of 20 ms there and back.
fn long() -> DirectionSpec {
    DirectionSpec { delay: Duration::from_millis(10), ..DirectionSpec::default() }
}

fn tbf(host: &LabHost, rate: &str) {
    let shape =
        ["qdisc", "add", "dev", &host.interface, "root", "tbf", "rate", rate, "burst", "32kb", "limit", "128kb"];
    assert!(host.command("tc").args(shape).status().unwrap().success());
}

#[test]
fn a_tiny_receive_buffer_is_the_receive_window() {
    let Some(path) = TestPath::path("a_tiny_receive_buffer_is_the_receive_window", long()) else { return };
    let why = path.why(&["--rcvbuf", ",16KiB", "--time", "1s"]);
    assert_eq!(why.limiter, LimiterKind::ReceiveWindow, "{why:#?}");
    assert!(
        why.statement.plain().contains(" window over 2") && why.statement.plain().contains("carries at most"),
        "{:?}",
        why.statement
    );
    // The terminal says the same, the whole report in its last line, and `thru why` shows what speaks for it.
    let shown = path.thru(&["show"]).ok().stdout;
    assert!(shown.contains("\nLimited by   receive window (strong, "), "{shown}");
    let shown = path.thru(&["show", "-v"]).ok().stdout;
    let last = shown.trim_end().rsplit("\n\n").next().unwrap();
    assert!(last.starts_with("limited by: receive window (strong, "), "{shown}");
    let screen = path.thru(&["why"]).ok().stdout;
    assert!(
        screen.contains("limited by: receive window (strong, ") && screen.contains("\nMore: `thru why "),
        "{screen}"
    );
    let reported = path.thru(&["why", "-v"]).ok().stdout;
    assert!(
        reported.contains("receive window (window-over-rtt, strong)") && reported.contains("RFC 7323"),
        "{reported}"
    );
    assert!(reported.contains('█') && reported.contains(" %  receive window"), "{reported}");
    let document: WhyDocument = serde_json::from_str(&path.thru(&["why", "--json"]).ok().stdout).unwrap();
    assert_eq!(document.runs[0].cells[0].why, Some(why));
    let refused = path.thru(&["why", "--cell", "7"]).ended_with(2);
    assert!(refused.message().contains("the cells are 0"), "{}", refused.stderr);
}

#[test]
fn a_tiny_send_buffer_is_the_send_buffer() {
    let Some(path) = TestPath::path("a_tiny_send_buffer_is_the_send_buffer", long()) else { return };
    let why = path.why(&["--sndbuf", "8KiB,", "--time", "1s"]);
    assert_eq!(why.limiter, LimiterKind::SendBuffer, "{why:#?}");
}

#[test]
fn programs_that_read_or_write_slowly_are_the_applications() {
    let Some(path) = TestPath::link("programs_that_read_or_write_slowly_are_the_applications") else { return };
    let doc = path.measure(&["--drain", "40Mbit", "--time", "1s"]);
    // The reader keeps its rate although the sender could do much more.
    assert!((30e6..44e6).contains(&doc.goodput()), "{}", doc.goodput());
    let why = doc.summary().why.clone().unwrap();
    assert_eq!(why.limiter, LimiterKind::ReceiverApplication, "{why:#?}");
    // It is seen by TCP's clocks too, not only because it was asked for.
    assert!(why.evidence.iter().any(|one| one.rule == "slow-reader" && one.grade == Grade::Strong), "{why:#?}");
    let why = path.why(&["--rate", "40Mbit", "--time", "1s"]);
    assert_eq!(why.limiter, LimiterKind::SenderApplication, "{why:#?}");
    let udp = ["stream", "--udp", "--rate", "1Mbit", "--drain", "1Mbit", path.agent.host()];
    let refused = path.thru(&udp).ended_with(2);
    assert!(refused.message().contains("--drain"), "{}", refused.stderr);
}

#[test]
fn a_link_on_the_path_is_the_link_and_its_queue_is_seen() {
    let direction = DirectionSpec {
        rate_bps: Some(20_000_000),
        queue_bytes: 256 << 10,
        delay: Duration::from_millis(3),
        ..DirectionSpec::default()
    };
    let Some(path) = TestPath::path("a_link_on_the_path_is_the_link_and_its_queue_is_seen", direction) else { return };
    // The same congestion control everywhere, and one that fills queues.
    let why = path.why(&["--time", "2s", "--cc", "reno"]);
    assert_eq!(why.limiter, LimiterKind::Link, "{why:#?}");
    assert!(why.notes.iter().any(|note| note.plain().contains("bufferbloat")), "{why:#?}");
}

#[test]
fn a_shaper_at_the_sender_is_the_qdisc_and_its_drops_are_placed() {
    let Some(path) = TestPath::link("a_shaper_at_the_sender_is_the_qdisc_and_its_drops_are_placed") else { return };
    tbf(path.a(), "50mbit");
    let why = path.why(&["--time", "1s"]);
    assert_eq!(why.limiter, LimiterKind::Qdisc, "{why:#?}");
    let why = path.why(&["--udp", "--rate", "100Mbit", "--time", "500ms"]);
    assert_eq!(why.limiter, LimiterKind::Qdisc, "{why:#?}");
    let losses = why.losses.expect("lost datagrams");
    assert_eq!(losses.packets, losses.locations.iter().map(|one| one.packets).sum::<u64>());
    let most = losses.locations.iter().max_by_key(|one| one.packets).unwrap();
    assert_eq!(most.location, LossLocation::SenderQdisc, "{losses:#?}");
    assert!(most.packets * 10 > losses.packets * 9, "{losses:#?}");
}

#[test]
fn losses_on_the_path_are_the_congestion_window_and_placed_there() {
    let direction = DirectionSpec { loss: 0.02, ..long() };
    let Some(path) = TestPath::path("losses_on_the_path_are_the_congestion_window_and_placed_there", direction) else {
        return;
    };
    let why = path.why(&["--time", "2s", "--cc", "reno"]);
    assert_eq!(why.limiter, LimiterKind::Loss, "{why:#?}");
    let losses = why.losses.expect("segments sent again");
    let path = losses.locations.iter().find(|one| one.location == LossLocation::Path).map_or(0, |one| one.packets);
    assert!(path * 2 > losses.packets, "{losses:#?}");
}

#[test]
fn pacing_is_named() {
    let Some(path) = TestPath::link("pacing_is_named") else { return };
    let why = path.why(&["--pacing", "50Mbit,", "--time", "1s"]);
    assert_eq!(why.limiter, LimiterKind::Pacing, "{why:#?}");
}

/// Processes that keep a core busy; gone when dropped.
struct Burners(Vec<Child>);

impl Burners {
    fn on(core: u32, count: usize) -> Self {
        let burner = || {
            let mut command = Command::new("taskset");
            let core = core.to_string();
            command.args(["-c", &core, "sh", "-c", "while :; do :; done"]).stdin(Stdio::null()).spawn().unwrap()
        };
        Self((0..count).map(|_| burner()).collect())
    }
}

impl Drop for Burners {
    fn drop(&mut self) {
        for child in &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

#[test]
fn a_core_that_others_burn_is_the_senders_cpu() {
    let test = "a_core_that_others_burn_is_the_senders_cpu";
    if !skip::program(test, "taskset", "util-linux") {
        return;
    }
    let Some(lab) = skip::lab(test, &CrossoverSpec::default()) else { return };
    // The far end has the other core, where there is one, and what else runs there does not take it.
    let far = std::thread::available_parallelism().map_or(0, |cores| usize::from(cores.get() > 1));
    let mut agent = lab.host("b").unwrap().command("nice");
    agent.args(["-n", "-20"]).arg(binary::thru());
    let path = TestPath::with_agent(lab, agent);
    let _burners = Burners::on(0, 4);
    let pin = format!("0,{far}");
    let why = path.why(&["--pin", &pin, "--time", "1s"]);
    assert_eq!(why.limiter, LimiterKind::SenderCpu, "{why:#?}");
    assert!(why.statement.plain().contains("waited for CPU for "), "{:?}", why.statement);
}

#[test]
fn several_curves_are_set_against_each_other_by_region() {
    let Some(path) = TestPath::link("several_curves_are_set_against_each_other_by_region") else { return };
    let curve = |name: &str, flags: &[&str]| {
        let fixed = ["curve", "--to", "64KiB", "--perturbation", "0", "--trials", "3", "--time", "1ms"];
        path.thru(&[&fixed[..], &["--quiet", "--name", name], flags, &[path.agent.host()]].concat()).ok();
    };
    curve("plain", &[]);
    curve("small", &["--mss", "300"]);
    let document: WhyDocument =
        serde_json::from_str(&path.thru(&["why", "plain", "small", "--json"]).ok().stdout).unwrap();
    assert_eq!((document.runs.len(), document.runs[0].cells.len()), (2, 0));
    let (first, last) = (document.regions.first().expect("regions"), document.regions.last().unwrap());
    assert_eq!((first.from, last.to), (1, 65_536), "{:#?}", document.regions);
    let text = path.thru(&["why", "plain", "small"]).ok().stdout;
    assert!(text.contains("Best run by block size\n- 1 B"), "{text}");
}
