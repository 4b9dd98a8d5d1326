//! A link of 50 Mbit/s and 20 ms is what holds streams back, whatever sends over it (root only).
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

use std::time::Duration;

use lab::{CrossoverSpec, DirectionSpec, Lab, LabError, PathSpec};
use model::{Grade, LimiterKind, Outcome, Why};
use program::{Agent, Running, Sandbox, binary, skip};

/// What the link carries, headers included, bit/s.
const LINK_BPS: f64 = 50e6;

struct Path {
    lab: Lab,
    agent: Agent,
    sandbox: Sandbox,
}

impl Path {
    /// 20 ms there and back over a link of [`LINK_BPS`], whose queue holds 100 ms; `direction` changes the way there.
    fn new(test: &str, change: impl FnOnce(&mut DirectionSpec)) -> Option<Self> {
        let delay = Duration::from_millis(10);
        let direction =
            DirectionSpec { delay, rate_bps: Some(LINK_BPS as u64), queue_bytes: 625_000, ..DirectionSpec::default() };
        let mut forward = direction.clone();
        change(&mut forward);
        let spec = PathSpec { link: CrossoverSpec::default(), forward, reverse: direction, seed: 18 };
        let lab = match lab::available().and_then(|()| Lab::path(&spec)) {
            Ok(lab) => lab,
            Err(error @ (LabError::Privilege { .. } | LabError::NotAllowed { .. } | LabError::Emulator { .. })) => {
                skip::skip(test, &error.to_string());
                return None;
            }
            Err(error) => panic!("{error}"),
        };
        let b = lab.host("b").unwrap();
        let listen = format!("{}:0", b.v4);
        let agent = Agent::spawn(b.command(binary::thru()), &["--open", "--listen", &listen]);
        Some(Self { lab, agent, sandbox: Sandbox::new() })
    }

    fn stream(&self, flags: &[&str]) -> Outcome {
        let fixed = ["--trials", "1", "--time", "2500ms", "--json", "-", self.agent.host()];
        let args = [&["stream"], flags, &fixed].concat();
        let a = self.lab.host("a").unwrap();
        Running::of(self.sandbox.prepare(a.command(binary::thru()), &args)).wait().ok().doc().run.outcomes.remove(0)
    }
}

fn why(outcome: &Outcome) -> &Why {
    outcome.summary.why.as_ref().expect("a limiter")
}

/// The rate that is named, in Mbit/s.
fn named(why: &Why) -> f64 {
    let statement = why.statement.plain();
    let (_, rest) = statement.split_once("a bottleneck of about ").expect(&statement);
    let (rate, _) = rest.split_once(" Mbit/s on the path: ").expect(rest);
    rate.parse().unwrap()
}

/// The link is named with its rate, and no share of time is given that no clock measured; no ceiling is above the link.
fn is_the_link(what: &str, outcome: &Outcome) {
    let why = why(outcome);
    assert_eq!(why.limiter, LimiterKind::Link, "{what}: {why:#?}");
    assert!(why.grade >= Some(Grade::Likely), "{what}: {why:#?}");
    assert!((40.0..=50.0).contains(&named(why)), "{what}: {}", why.statement.plain());
    assert!(!why.statement.plain().contains("of the sender's time"), "{what}: {}", why.statement.plain());
    if let Some(ceiling) = &outcome.summary.ceiling {
        assert!(ceiling.bound_bps <= LINK_BPS, "{what}: {ceiling:?}");
    }
}

#[test]
fn a_plain_link_is_named_with_every_congestion_control_and_over_udp() {
    let Some(path) = Path::new("a_plain_link_is_named_with_every_congestion_control_and_over_udp", |_| {}) else {
        return;
    };
    let known = std::fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default();
    for cc in ["cubic", "reno", "bbr"] {
        if known.split_whitespace().any(|name| name == cc) {
            is_the_link(cc, &path.stream(&["--cc", cc]));
        } else {
            skip::skip(&format!("a plain link under {cc}"), "this kernel does not have it");
        }
    }
    // Twice what the link carries and more, so that half of it is lost there. A busy machine may leave the sender no time for that.
    let sent = |outcome: &Outcome| outcome.summary.sender_bps.unwrap_or(0.0);
    let mut streams = (0..3).map(|_| path.stream(&["--udp", "--rate", "max"]));
    let udp = streams.find(|outcome| sent(outcome) > 1.3 * LINK_BPS).expect("a sender that is quick enough");
    is_the_link("udp", &udp);
}

#[test]
fn of_two_faults_the_one_that_binds_comes_first() {
    let test = "of_two_faults_the_one_that_binds_comes_first";
    let Some(path) = Path::new(test, |_| {}) else { return };
    // 124 kB fill the path: the window of this buffer is larger, so that the link binds, and all of it is always under way.
    let large = path.stream(&["--cc", "cubic", "--rcvbuf", ",256KiB"]);
    is_the_link("a window of more than the path holds", &large);
    assert!(why(&large).also.contains(&LimiterKind::ReceiveWindow), "{:#?}", why(&large));
    // This one is smaller than the path.
    let small = path.stream(&["--cc", "cubic", "--rcvbuf", ",32KiB", "--sndbuf", "32KiB,"]);
    let why = why(&small);
    assert_eq!(why.limiter, LimiterKind::ReceiveWindow, "{why:#?}");
    let also = "; likely also send buffer: 64 KiB send buffer (SO_SNDBUF of 32 KiB, which the kernel doubles) over 2";
    assert!(why.statement.plain().contains(also), "{:?}", why.statement);
    let share = why.parts.iter().find(|part| part.of == LimiterKind::ReceiveWindow).expect("its clock").share;
    assert!(
        why.statement.plain().contains(&format!("{:.0} % of the sender's time", 100.0 * share)),
        "{:?}",
        why.statement
    );
    // Losses that a link does not make itself hold Reno far below its rate.
    let Some(lossy) = Path::new(test, |direction| direction.loss = 0.01) else { return };
    let why = lossy.stream(&["--cc", "reno"]).summary.why.expect("a limiter");
    assert_eq!(why.limiter, LimiterKind::Loss, "{why:#?}");
    assert!(why.statement.plain().contains("segments retransmitted"), "{:?}", why.statement);
}

#[test]
fn a_limit_of_autotuning_is_named_with_the_command_that_raises_it() {
    let test = "a_limit_of_autotuning_is_named_with_the_command_that_raises_it";
    let Some(path) = Path::new(test, |_| {}) else { return };
    let allow = |values: &str| {
        let script = format!("echo '{values}' > /proc/sys/net/ipv4/tcp_wmem");
        let set = path.lab.host("a").unwrap().command("sh").args(["-c", &script]).status().unwrap();
        assert!(set.success(), "{values}");
    };
    // 64 KiB over 20 ms are at most 26 Mbit/s; twice as much needs 128 KiB.
    allow("4096 16384 65536");
    let limited = path.stream(&[]);
    let found = why(&limited);
    assert_eq!(found.limiter, LimiterKind::SendBuffer, "{found:#?}");
    let [remedy] = &found.remedies[..] else { panic!("{:#?}", found.remedies) };
    assert_eq!(remedy.command, "thru tune set 'sysctl.net.ipv4.tcp_wmem=4096 16384 196608'");
    assert_eq!((remedy.role, remedy.now.as_str()), (model::Role::Active, "4096 16384 65536"));
    // Nobody knows yet what the path carries: each remedy is for twice as much as was measured.
    let mut value = remedy.value.clone();
    let free = (0..5).map(|_| {
        allow(&value);
        let outcome = path.stream(&[]);
        if let [next, ..] = &why(&outcome).remedies[..] {
            value.clone_from(&next.value);
        }
        outcome
    });
    let free = free.into_iter().find(|outcome| why(outcome).remedies.is_empty()).expect("the last remedy is enough");
    assert!(free.summary.goodput_bps > limited.summary.goodput_bps, "{:?}", free.summary.goodput_bps);
}
