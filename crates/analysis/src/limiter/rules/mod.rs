//! The rules that look for what limits. Each is data: a name, what it speaks for, where it comes from, and a function of one
//! direction of one trial.

mod asked;
mod congestion;
mod cores;
mod datagrams;
mod exchanges;
mod pacing;
mod path;
mod windows;

use std::collections::BTreeMap;

use model::{Evidence, LimiterKind};

use super::clocks::Clocks;
use super::scene::Scene;
use crate::way::Way;

pub(super) use cores::measured as threads_measured;
pub(super) use path::grew as path_counter;

/// One rule.
pub struct Rule {
    /// Its name, as evidence bears it.
    pub name: &'static str,
    /// What it can speak for.
    pub speaks_for: &'static [LimiterKind],
    /// What it looks at, in one sentence.
    pub about: &'static str,
    /// Where it comes from: an RFC, the kernel's documentation or source, a paper.
    pub source: &'static str,
    see: fn(&Scene<'_>, &Way<'_>) -> Vec<Seen>,
}

/// What a rule saw in one direction of one trial.
pub(super) struct Seen {
    pub(super) of: LimiterKind,
    pub(super) weight: f64,
    pub(super) statement: String,
}

impl Seen {
    /// Nothing, where the weight is nothing.
    fn of(kind: LimiterKind, weight: f64, statement: impl FnOnce() -> String) -> Vec<Self> {
        if weight > LEAST { vec![Self { of: kind, weight, statement: statement() }] } else { Vec::new() }
    }
}

/// Weights below this are not worth a sentence.
const LEAST: f64 = 0.02;

/// Name of the rule that reads TCP's clocks; they are read over all trials at once.
pub(super) const CLOCKS: &str = "tcp-clocks";

/// All rules. A new one is an entry here.
pub const RULES: &[Rule] = &[
    Rule {
        name: CLOCKS,
        speaks_for: &[LimiterKind::SenderApplication, LimiterKind::ReceiveWindow, LimiterKind::SendBuffer],
        about: "The time that TCP itself says it was idle, or limited by the receiver's window or the send buffer.",
        source: "tcpi_busy_time, tcpi_rwnd_limited, tcpi_sndbuf_limited in linux/tcp.h (kernel 4.9, commit 0f87230d1a6c)",
        see: |_, _| Vec::new(),
    },
    asked::RATE,
    asked::DRAIN,
    windows::RECEIVE,
    windows::READER,
    windows::SEND,
    congestion::LOSS,
    congestion::WINDOW,
    path::QUEUE,
    path::LINE,
    path::QDISC,
    path::BACKLOG,
    pacing::PACING,
    cores::THREAD,
    cores::CORE,
    cores::SOFTNET,
    datagrams::BUFFER,
    exchanges::ROUND_TRIP,
];

/// The rule of that name.
#[must_use]
pub fn rule(name: &str) -> Option<&'static Rule> {
    RULES.iter().find(|rule| rule.name == name)
}

/// What all rules see, over all directions of all trials: the mean weight, where a direction in which a rule saw nothing counts
/// as 0, and the words of the direction in which it saw most.
pub(super) fn weigh(scene: &Scene<'_>) -> Vec<Evidence> {
    let count = scene.ways.len().max(1) as f64;
    let mut evidence = Vec::new();
    for rule in RULES {
        let mut kinds: BTreeMap<LimiterKind, (f64, Seen)> = BTreeMap::new();
        for seen in scene.ways.iter().flat_map(|way| (rule.see)(scene, way)) {
            match kinds.get_mut(&seen.of) {
                None => {
                    kinds.insert(seen.of, (seen.weight, seen));
                }
                Some((sum, most)) => {
                    *sum += seen.weight;
                    if seen.weight > most.weight {
                        *most = seen;
                    }
                }
            }
        }
        evidence.extend(kinds.into_iter().map(|(of, (sum, seen))| Evidence {
            of,
            rule: rule.name.into(),
            statement: seen.statement,
            weight: sum / count,
        }));
    }
    evidence
}

/// The clocks as evidence.
pub(super) fn of_clocks(clocks: &Clocks) -> Vec<Evidence> {
    let seconds = model::units::seconds(clocks.total_ns);
    let say = |of, weight: f64, what: &str| {
        let statement =
            format!("TCP's clocks over {seconds} of connections: {:.1} % of the time {what}", 100.0 * weight);
        (weight > LEAST).then(|| Evidence { of, rule: CLOCKS.into(), statement, weight })
    };
    [
        say(LimiterKind::SenderApplication, clocks.idle, "nothing to send"),
        say(LimiterKind::ReceiveWindow, clocks.rwnd, "limited by the receiver's window"),
        say(LimiterKind::SendBuffer, clocks.sndbuf, "limited by the send buffer"),
    ]
    .into_iter()
    .flatten()
    .collect()
}
