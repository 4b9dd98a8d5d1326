//! Cores and threads.

use super::*;

fn core(core: u32, user: u64, softirq: u64, idle: u64) -> CoreUse {
    CoreUse { core, user_ns: user * MS, softirq_ns: softirq * MS, idle_ns: idle * MS, ..CoreUse::default() }
}

#[test]
fn a_full_core_is_evidence_as_far_as_it_belongs_to_the_measurement() {
    let mut case = RecordedCase::tcp(900, MS);
    let cpu = |cores| Some(CpuUse { window_ns: SECOND, resolution_ns: 10 * MS, cores });
    let far = |case: &mut RecordedCase, cores: Vec<CoreUse>| {
        case.passes.iter_mut().for_each(|pass| pass.far = EndPass { cpu: cpu(cores.clone()), ..EndPass::default() });
    };
    far(&mut case, vec![core(0, 100, 0, 900), core(1, 100, 880, 20)]);
    let why = case.why();
    assert_eq!(why.limiter, LimiterKind::Softirq);
    assert!(
        why.statement.plain().contains("core 1 of the receiver was busy for 98 %")
            && why.statement.plain().contains("softirq 88 %"),
        "{}",
        why.statement.plain()
    );
    far(&mut case, vec![core(0, 100, 0, 900), core(1, 900, 80, 20)]);
    let why = case.why();
    assert_eq!((why.limiter, why.grade), (LimiterKind::ReceiverCpu, Some(Grade::Likely)), "any core: {why:#?}");
    case.outcome.spec.far.pin = vec![1];
    assert_eq!(case.limiter(), LimiterKind::ReceiverCpu);
}

#[test]
fn softnet_drops_are_softirq() {
    let mut case = RecordedCase::udp(10_000, 9_900);
    case.counters(true, &[("softnet.dropped", 100), ("softnet.processed", 10_000)]);
    assert_eq!(case.limiter(), LimiterKind::Softirq);
}

#[test]
fn a_thread_that_waits_for_cpu_is_cpu_limited() {
    let mut case = RecordedCase::tcp(400, MS);
    let thread = model::ThreadTime {
        threads: 1,
        elapsed_ns: SECOND,
        cpu_ns: 520 * MS,
        system_ns: 480 * MS,
        wait_ns: Some(460 * MS),
        ..model::ThreadTime::default()
    };
    case.trials(|trial| trial.near.spent = Some(Spent { busiest: Some(thread), ..Spent::default() }));
    let why = case.why();
    assert_eq!(why.limiter, LimiterKind::SenderCpu);
    let said = "ran for 52 % of the time (4 % in user space, 48 % in the kernel) and waited for CPU for 46 %";
    assert!(why.statement.plain().contains(said), "{}", why.statement.plain());
    // The same for a thread that sleeps but waits for CPU each time.
    let half = model::ThreadTime { cpu_ns: 200 * MS, wait_ns: Some(450 * MS), ..thread };
    case.trials(|trial| trial.near.spent = Some(Spent { busiest: Some(half), ..Spent::default() }));
    assert_eq!(case.limiter(), LimiterKind::SenderCpu);
    // A full core is not the sender's limit while its thread has time.
    let idle = model::ThreadTime { cpu_ns: 200 * MS, wait_ns: Some(0), ..thread };
    let cpu = CpuUse { window_ns: SECOND, resolution_ns: MS, cores: vec![core(1, 990, 0, 10)] };
    case.outcome.spec.near.pin = vec![1];
    case.passes.iter_mut().for_each(|pass| pass.near = EndPass { cpu: Some(cpu.clone()), ..EndPass::default() });
    case.trials(|trial| trial.near.spent = Some(Spent { busiest: Some(idle), ..Spent::default() }));
    assert_eq!(case.limiter(), LimiterKind::Unexplained);
    // A spinning thread is always busy.
    case.outcome.spec.strategy = model::Strategy::Spin;
    assert_eq!(case.limiter(), LimiterKind::Unexplained);
}

#[test]
fn a_thread_that_others_keep_from_running_had_nothing_to_send_for_want_of_cpu() {
    let mut case = RecordedCase::tcp(400, MS);
    // Its host also delays and drops acknowledgements, as a queue on the path would.
    case.samples(|i, one| {
        one.busy_ns = Some(i * 40 * MS);
        one.rtt_ns = 12 * MS;
        one.retransmits = 20 * i;
    });
    let mut limiter = |ran: u64, waited: u64| {
        let thread = model::ThreadTime {
            threads: 1,
            elapsed_ns: SECOND,
            cpu_ns: ran * MS,
            wait_ns: Some(waited * MS),
            ..model::ThreadTime::default()
        };
        case.trials(|trial| trial.near.spent = Some(Spent { busiest: Some(thread), ..Spent::default() }));
        case.limiter()
    };
    assert_eq!(limiter(80, 890), LimiterKind::SenderCpu);
    // One that sleeps had nothing to send of its own accord.
    assert_eq!(limiter(20, 100), LimiterKind::SenderApplication);
}
