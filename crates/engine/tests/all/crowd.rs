#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]
#![allow(clippy::print_stdout, reason = "it says what it skips")]
//! Many flows per thread, by readiness and by completion: every one is served and every one is counted.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use engine::transport::{FlowHello, Link, ListenOptions, check_options, transport};
use engine::{EngineError, LegTally, Signals, TrialPlan, now_ns, run};
use model::{Direction, EndTally, Leg, Pattern, Role, Spec, Stop, Strategy};

const FLOWS: u32 = 300;
const COOKIE: [u8; 16] = [9; 16];

/// Longer than anything here takes on a busy machine.
const LIMIT: Duration = Duration::from_secs(60);

type End = JoinHandle<Result<LegTally, EngineError>>;

/// The strategies that this host supports.
fn transports(test: &str) -> Vec<Strategy> {
    let spec = Spec { strategy: Strategy::Uring, ..Spec::new("tcp", Pattern::Rr) };
    match check_options(Role::Active, &spec) {
        Ok(()) => vec![Strategy::Epoll, Strategy::Uring],
        Err(error) => {
            println!("SKIPPED: {test} by completion: {error}");
            vec![Strategy::Epoll]
        }
    }
}

fn spec(transport: &str, pattern: Pattern, strategy: Strategy) -> Spec {
    Spec {
        strategy,
        flows: FLOWS,
        threads: Some(2),
        block: 1_000,
        stop: Stop::TimeNs(300_000_000),
        ..Spec::new(transport, pattern)
    }
}

fn plan(spec: &Spec, role: Role) -> TrialPlan {
    let leg = Leg { block: spec.block, reply: spec.reply_bytes(), stop: spec.stop, expected_ns: 0 };
    TrialPlan {
        spec: spec.clone(),
        role,
        trial: 1,
        flows: 0..spec.flows,
        legs: vec![leg],
        path: model::PathTimes::default(),
    }
}

/// Both ends, running, with the flags that end each, and what it says once it has moved payload.
fn start(spec: &Spec) -> [(End, Arc<Signals>, Receiver<()>); 2] {
    engine::pattern::check(spec).expect("a valid spec");
    let transport = transport(spec.transport.as_str()).expect("known");
    let directory = tempfile::tempdir().expect("a directory");
    let options = ListenOptions::new([127, 0, 0, 1].into(), directory.path().into(), COOKIE);
    let mut listener = transport.listen(spec, &options).expect("listens");
    let to = listener.rendezvous();
    let (plans, flags) = ([Role::Passive, Role::Active].map(|role| plan(spec, role)), [Signals::new(), Signals::new()]);
    let [far_plan, near_plan] = plans;
    let [far_flags, near_flags] = flags.clone();
    let [(far_moves, far_moved), (near_moves, near_moved)] = [channel(), channel()];
    // Nobody need listen.
    let say = |moves: std::sync::mpsc::Sender<()>| {
        move |report: model::Live| {
            if matches!(report, model::Live::Interval(interval) if interval.bytes_sent + interval.bytes_received > 0) {
                let _ = moves.send(());
            }
        }
    };
    let (mut far_says, mut near_says) = (say(far_moves), say(near_moves));
    let far = std::thread::spawn(move || {
        let accept = |_| listener.accept(now_ns() + 10_000_000_000).expect("accepts");
        let mut links: Vec<(FlowHello, Link)> = far_plan.links().iter().map(accept).collect();
        links.sort_by_key(|(hello, _)| hello.link);
        run(&far_plan, transport, links.into_iter().map(|(_, link)| link).collect(), &far_flags, &mut far_says)
    });
    let near = std::thread::spawn(move || {
        let hello = |link: u32| FlowHello::new(COOKIE, 1, link).expect("random numbers");
        let hellos: Vec<_> = near_plan.links().iter().map(|link| hello(link.index)).collect();
        let links = transport.connect_all(&near_plan.spec, &to, &hellos).expect("connects");
        drop(directory);
        run(&near_plan, transport, links, &near_flags, &mut near_says)
    });
    let [far_flags, near_flags] = flags;
    [(far, far_flags, far_moved), (near, near_flags, near_moved)]
}

/// Near and far tallies of a successful trial.
fn measure(spec: &Spec) -> (EndTally, EndTally) {
    let [far, near] = start(spec).map(|(end, ..)| {
        let tally = end.join().expect("no panic").expect("runs");
        assert!(tally.failure.is_none(), "{:?} {:?}", spec.strategy, tally.failure);
        tally.legs.into_iter().next().expect("a leg")
    });
    assert!(!near.stalled && !far.stalled && !near.cut_short && !far.cut_short, "{:?}", spec.strategy);
    (near, far)
}

/// Each flow's bytes agree at the two ends, and every flow has moved some.
fn every_flow_is_counted(spec: &Spec, near: &EndTally, far: &EndTally) {
    let what = format!("{} {} {:?} {:?}", spec.transport, spec.pattern, spec.strategy, spec.direction);
    assert_eq!((near.flows.len(), far.flows.len()), (near.flows.len(), near.flows.len()), "{what}");
    for (one, other) in near.flows.iter().zip(&far.flows) {
        assert_eq!(
            (one.flow, one.bytes_sent, one.bytes_received),
            (other.flow, other.bytes_received, other.bytes_sent),
            "{what}"
        );
        assert!(one.bytes_sent + one.bytes_received > 0, "{what}: flow {} moved nothing", one.flow);
    }
    for end in [near, far] {
        assert_eq!(end.flows.iter().map(|flow| flow.bytes_sent).sum::<u64>(), end.bytes_sent, "{what}");
        assert_eq!(end.flows.iter().map(|flow| flow.transactions).sum::<u64>(), end.transactions, "{what}");
    }
}

#[test]
fn round_trips_of_many_flows() {
    for transport in ["tcp", "unix"] {
        for strategy in transports("round_trips_of_many_flows") {
            let spec = Spec { reply: Some(70_000), ..spec(transport, Pattern::Rr, strategy) };
            let (near, far) = measure(&spec);
            every_flow_is_counted(&spec, &near, &far);
            assert_eq!(near.flows.len(), FLOWS as usize);
            let rtt = near.rtt.expect("round trips were timed");
            assert_eq!((rtt.count, near.bytes_sent), (near.transactions, near.transactions * 1_000), "{strategy:?}");
        }
    }
}

#[test]
fn streams_of_many_flows_in_both_directions() {
    for strategy in transports("streams_of_many_flows_in_both_directions") {
        for direction in [Direction::Send, Direction::Reverse, Direction::Both] {
            let spec = Spec { direction, block: 16_000, ..spec("tcp", Pattern::Stream, strategy) };
            let (near, far) = measure(&spec);
            every_flow_is_counted(&spec, &near, &far);
        }
    }
}

#[test]
fn counts_are_met_exactly_by_many_flows() {
    for strategy in transports("counts_are_met_exactly_by_many_flows") {
        let blocks = Spec { stop: Stop::Blocks(3_001), ..spec("tcp", Pattern::Transfer, strategy) };
        let (near, far) = measure(&blocks);
        every_flow_is_counted(&blocks, &near, &far);
        assert_eq!((near.blocks_sent, far.bytes_received), (3_001, 3_001_000), "{strategy:?}");
        let trips = Spec { stop: Stop::Transactions(1_234), ..spec("tcp", Pattern::Rr, strategy) };
        let (near, far) = measure(&trips);
        assert_eq!((near.transactions, far.blocks_sent), (1_234, 1_234), "{strategy:?}");
    }
}

#[test]
fn paced_datagrams_and_requests_of_many_flows_keep_their_rate() {
    for (transport, strategy) in [("udp", Strategy::Epoll), ("tcp", Strategy::Epoll), ("tcp", Strategy::Uring)] {
        if !transports("paced_datagrams_and_requests_of_many_flows_keep_their_rate").contains(&strategy) {
            continue;
        }
        // 10 a second per flow: fewer than the path carries, so that the requested rate is reached.
        let rate_bps = Some(u64::from(FLOWS) * 10 * 1_000 * 8);
        let spec = Spec { rate_bps, stop: Stop::TimeNs(1_000_000_000), ..spec(transport, Pattern::Rr, strategy) };
        let (near, _) = measure(&spec);
        let requested = u64::from(FLOWS) * 10;
        assert!(
            near.transactions > 0 && near.transactions <= requested + u64::from(FLOWS),
            "{transport} {strategy:?}: {}",
            near.transactions
        );
    }
}

#[test]
fn an_end_that_disappears_ends_the_trial() {
    for strategy in transports("an_end_that_disappears_ends_the_trial") {
        let spec = Spec { stop: Stop::TimeNs(60_000_000_000), ..spec("tcp", Pattern::Rr, strategy) };
        let [(far, far_signals, far_moved), (near, _, near_moved)] = start(&spec);
        [far_moved, near_moved].iter().for_each(|moved| moved.recv_timeout(LIMIT).expect("payload moves"));
        far_signals.abort();
        let far = far.join().expect("no panic").expect("runs");
        let near = near.join().expect("no panic").expect("runs");
        assert!(far.legs[0].cut_short && near.legs[0].cut_short, "{strategy:?}");
        let reason = near.failure.expect("it noticed").to_string();
        assert!(reason.contains("the other end"), "{strategy:?}: {reason}");
        assert_eq!(near.legs[0].flows.len(), FLOWS as usize, "what was counted is kept");
    }
}

#[test]
fn an_abort_ends_many_flows_at_once() {
    for strategy in transports("an_abort_ends_many_flows_at_once") {
        for pattern in [Pattern::Rr, Pattern::Stream] {
            let spec = Spec { stop: Stop::TimeNs(60_000_000_000), ..spec("tcp", pattern, strategy) };
            let ends = start(&spec);
            ends.iter().for_each(|(_, _, moved)| moved.recv_timeout(LIMIT).expect("payload moves"));
            ends.iter().for_each(|(_, signals, _)| signals.abort());
            for (end, ..) in ends {
                let tally = end.join().expect("no panic").expect("runs");
                assert!(tally.legs[0].cut_short && tally.failure.is_none(), "{strategy:?} {pattern}");
            }
        }
    }
}

#[test]
fn connections_of_their_own_for_each_transaction_in_threads_that_sleep_and_that_spin() {
    for (strategy, threads) in [(Strategy::Blocking, 4), (Strategy::Spin, 4), (Strategy::Spin, 1)] {
        let spec = Spec { flows: 4, threads: Some(threads), ..spec("tcp", Pattern::Crr, strategy) };
        let (near, far) = measure(&spec);
        // Any free flow of the far end takes the next connection, so only the sums agree.
        assert_eq!((near.bytes_sent, near.bytes_received), (far.bytes_received, far.bytes_sent), "{strategy:?}");
        assert!(near.flows.iter().all(|flow| flow.transactions > 0), "{strategy:?}");
        assert_eq!(near.rtt.map(|rtt| rtt.count), Some(near.transactions), "{strategy:?}");
        let spec = Spec { stop: Stop::Transactions(101), ..spec };
        let (near, far) = measure(&spec);
        assert_eq!((near.transactions, far.blocks_sent), (101, 101), "{strategy:?}");
    }
}

#[test]
fn completions_are_refused_where_they_cannot_be() {
    let refusal = |spec: &Spec| engine::pattern::check(spec).expect_err("refused").to_string();
    let text = refusal(&Spec { transport: "udp".into(), ..spec("udp", Pattern::Rr, Strategy::Uring) });
    assert!(text.contains("`--wait uring` on udp") && text.contains("`--wait epoll`"), "{text}");
    let text = refusal(&Spec { io: model::Io::ReadWrite, ..spec("tcp", Pattern::Rr, Strategy::Uring) });
    assert!(text.contains("`--io`"), "{text}");
}

#[test]
fn more_flows_than_files_are_refused_with_the_remedy() {
    let limit = file_limit();
    let Some(limit) = limit.filter(|limit| *limit < u64::from(Spec::MAX_FLOWS) * 2) else { return };
    let spec =
        Spec { direction: Direction::Both, flows: Spec::MAX_FLOWS, ..spec("tcp", Pattern::Stream, Strategy::Epoll) };
    let text = check_options(Role::Active, &spec).expect_err("refused").to_string();
    assert!(text.contains(&limit.to_string()) && text.contains("`--processes`"), "{text}");
}

/// The soft limit of files that this process may open (proc(5), limits).
fn file_limit() -> Option<u64> {
    let limits = std::fs::read_to_string("/proc/self/limits").ok()?;
    limits.lines().find_map(|line| line.strip_prefix("Max open files")?.split_whitespace().next()?.parse().ok())
}
