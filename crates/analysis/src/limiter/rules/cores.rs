//! Fully loaded threads and cores.

use model::source::counter;
use model::{CoreUse, LimiterKind, Strategy};
use text::{Count, Text, Time, say};

use super::super::bottleneck;
use super::super::observations::{Observations, SenderFlow, each, ramp, sender_flows};
use super::super::threads::busiest;
use super::{Rule, Signal};
use crate::direction::{DirectionView, Side};

/// Share of its time from which a core is full.
const FULL: f64 = 0.95;

pub(super) const THREAD: Rule = Rule {
    name: "full-thread",
    speaks_for: &[LimiterKind::SenderCpu, LimiterKind::ReceiverCpu],
    about: "The busiest measuring thread of an end ran, or waited for CPU, nearly all the time.",
    source: "clock_gettime(2), CLOCK_PROCESS_CPUTIME_ID; getrusage(2), RUSAGE_THREAD; Documentation/scheduler/sched-stats.rst (run-queue delay)",
    evaluate: |observations, direction| {
        ends(direction)
            .into_iter()
            .flat_map(|(kind, name, side)| {
                let Some(busy) = busiest(observations, side) else { return Vec::new() };
                // Full, or waiting for CPU for a large part of the time.
                let full = 0.95 * ramp(busy.share(), 0.8, FULL).max(ramp(busy.waited, 0.1, 0.5)) * busy.works();
                // Of two threads that wait for each other the one that sleeps less is the limit.
                let other = if kind == LimiterKind::SenderCpu { &direction.receiver } else { &direction.sender };
                let busier =
                    busiest(observations, other).map_or(0.0, |other| ramp(other.share() - busy.share(), 0.1, 0.3));
                // A crowded core delays packets too, which looks like a queue on the path.
                let elsewhere = elsewhere(observations, direction, kind) * (1.0 - busy.starves());
                let weight = full * (1.0 - busier) * (1.0 - elsewhere);
                Signal::shared(kind, weight, Some(busy.share()), || {
                    let split = busy.user.map_or(Text::default(), |user| {
                        say!(
                            " ({:.0} % in user space, {:.0} % in the kernel)",
                            100.0 * user,
                            100.0 * (busy.ran - user).max(0.0)
                        )
                    });
                    let waited = if busy.waited > 0.02 {
                        say!(" and waited for CPU for {:.0} %", 100.0 * busy.waited)
                    } else {
                        Text::default()
                    };
                    say!("the {name}'s busiest thread ran for {:.0} % of the time{split}{waited}", 100.0 * busy.ran)
                })
            })
            .collect()
    },
};

pub(super) const CORE: Rule = Rule {
    name: "full-core",
    speaks_for: &[LimiterKind::SenderCpu, LimiterKind::ReceiverCpu, LimiterKind::Softirq],
    about: "A core of an end had nearly no idle time.",
    source: "proc_stat(5); tick-sampled on most kernels",
    evaluate: |observations, direction| {
        ends(direction)
            .into_iter()
            .flat_map(|(kind, name, side)| {
                let Some(cpu) = side.pass.and_then(|pass| pass.cpu.as_ref()) else { return Vec::new() };
                let Some(core) = cpu.cores.iter().max_by(|a, b| rank(side, a).total_cmp(&rank(side, b))) else { return Vec::new() };
                let (share, softirq) = (busy(core), part(core, core.softirq_ns));
                let pinned = side.options.pin.contains(&core.core);
                // The load may be that of another program unless a measuring thread was pinned to the core, and on one host that of
                // the other end. Packet processing belongs to no program.
                let (kind, most) = match () {
                    () if softirq >= 0.5 => (LimiterKind::Softirq, 0.85),
                    () if observations.spec.strategy == Strategy::Spin => return Vec::new(),
                    () if pinned => (kind, 0.9),
                    () if observations.one_host => (kind, 0.2),
                    () => (kind, 0.5),
                };
                // If the threads' own time is known and they are not full, another program fills the core.
                let own = if kind == LimiterKind::Softirq { None } else { busiest(observations, side) };
                let own = own.map_or(1.0, |thread| ramp(thread.share(), 0.4, 0.8) * thread.works());
                let weight = most * own * ramp(share, 0.85, FULL) * (1.0 - elsewhere(observations, direction, kind));
                Signal::of(kind, weight, || {
                    let steal = part(core, core.steal_ns);
                    let steal = if steal > 0.01 { say!(", steal {:.0} %", 100.0 * steal) } else { Text::default() };
                    say!(
                        "core {} of the {name} was busy for {:.0} % of the pass: user {:.0} %, system {:.0} %, softirq {:.0} %{steal} (sampled every {})",
                        core.core,
                        100.0 * share,
                        100.0 * part(core, core.user_ns),
                        100.0 * part(core, core.system_ns),
                        100.0 * softirq,
                        Time(cpu.resolution_ns as f64)
                    )
                })
            })
            .collect()
    },
};

pub(super) const SOFTNET: Rule = Rule {
    name: "softnet",
    speaks_for: &[LimiterKind::Softirq],
    about: "The receiver's softnet queue dropped packets, or its soft interrupt used up its budget with packets left.",
    source: "Documentation/networking/scaling.rst; /proc/net/softnet_stat; net.core.netdev_max_backlog and netdev_budget",
    evaluate: |_: &Observations<'_>, direction: &DirectionView<'_>| {
        let Some(observed) = direction.receiver.pass.and_then(|pass| pass.observed.as_ref()) else { return Vec::new() };
        let grew = |name: &str| observed.grew(name).unwrap_or(0).max(0) as f64;
        let (dropped, squeezed, processed) = (
            grew(counter::SOFTNET_DROPPED),
            grew(counter::SOFTNET_SQUEEZED),
            grew(counter::SOFTNET_PROCESSED).max(1.0),
        );
        let weight =
            f64::max(0.6 * ramp(dropped / processed, 0.0, 0.001), 0.2 * ramp(squeezed / processed, 0.0005, 0.01));
        Signal::of(LimiterKind::Softirq, weight, || {
            say!(
                "the receiver's softnet queue dropped {} of {} packets, and its soft interrupt used up its budget {} times",
                Count::rounded(dropped),
                Count::rounded(processed),
                Count::rounded(squeezed)
            )
        })
    },
};

/// Evidence against the CPU of an end, from 0 to 1: a bottleneck on the path, a sender that sends more than arrives, or a receiver for
/// which no data waits.
fn elsewhere(observations: &Observations<'_>, direction: &DirectionView<'_>, kind: LimiterKind) -> f64 {
    match kind {
        LimiterKind::Softirq => 0.0,
        LimiterKind::SenderCpu => bottleneck::weight(observations, direction).max(bottleneck::oversent(direction)),
        _ => bottleneck::weight(observations, direction).max(1.0 - held_back(direction)),
    }
}

/// Whether a slow receiver could hold the sender back, from 0 to 1. 1 where TCP does not tell.
fn held_back(direction: &DirectionView<'_>) -> f64 {
    each(&sender_flows(direction), SenderFlow::held_back).unwrap_or(1.0)
}

/// Both ends of a direction, with the kind and the name of each.
fn ends<'s, 'a>(direction: &'s DirectionView<'a>) -> [(LimiterKind, &'static str, &'s Side<'a>); 2] {
    [(LimiterKind::SenderCpu, "sender", &direction.sender), (LimiterKind::ReceiverCpu, "receiver", &direction.receiver)]
}

fn part(core: &CoreUse, ns: u64) -> f64 {
    let all = core.user_ns + core.system_ns + core.irq_ns + core.softirq_ns + core.steal_ns + core.idle_ns;
    ns as f64 / all.max(1) as f64
}

/// Order of cores by load; of equally busy ones, those with a pinned measuring thread first.
fn rank(side: &Side<'_>, core: &CoreUse) -> f64 {
    busy(core) + if side.options.pin.contains(&core.core) { 0.05 } else { 0.0 }
}

fn busy(core: &CoreUse) -> f64 {
    1.0 - part(core, core.idle_ns)
}
