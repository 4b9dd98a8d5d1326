//! The rules that look for what limits. Each is data: a name, what it speaks for, where it comes from, and a function of one
//! direction of one trial.

mod congestion;
mod cores;
mod datagrams;
mod exchanges;
mod pacing;
mod path;
mod requested;
mod windows;

use std::collections::BTreeMap;

use model::{Evidence, LimiterKind};

use super::clocks::Clocks;
use super::observations::Observations;
use super::{Weighed, graded};
use crate::direction::DirectionView;

pub(super) use cores::{busiest, measured as threads_measured};
pub(super) use path::{grew as path_counter, held as held_by_qdisc};

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
    see: fn(&Observations<'_>, &DirectionView<'_>) -> Vec<Seen>,
}

/// What a rule saw in one direction of one trial.
pub(super) struct Seen {
    pub(super) of: LimiterKind,
    pub(super) weight: f64,
    /// The share of the time, where a clock measured one.
    pub(super) share: Option<f64>,
    pub(super) statement: String,
}

impl Seen {
    /// Nothing, where the weight is nothing.
    fn of(kind: LimiterKind, weight: f64, statement: impl FnOnce() -> String) -> Vec<Self> {
        Self::shared(kind, weight, None, statement)
    }

    /// The same with a share of the time that a clock measured.
    fn shared(kind: LimiterKind, weight: f64, share: Option<f64>, statement: impl FnOnce() -> String) -> Vec<Self> {
        if weight > LEAST { vec![Self { of: kind, weight, share, statement: statement() }] } else { Vec::new() }
    }
}

/// Weights below this are not worth a sentence.
const LEAST: f64 = 0.1;

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
    requested::RATE,
    requested::DRAIN,
    windows::RECEIVE,
    windows::READER,
    windows::SEND,
    congestion::LOSS,
    congestion::WINDOW,
    path::BOTTLENECK,
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
pub(super) fn weigh(observations: &Observations<'_>) -> Vec<Weighed> {
    let count = observations.directions.len().max(1) as f64;
    let mut weighed = Vec::new();
    for rule in RULES {
        let mut kinds: BTreeMap<LimiterKind, (f64, Seen)> = BTreeMap::new();
        for seen in observations.directions.iter().flat_map(|direction| (rule.see)(observations, direction)) {
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
        weighed.extend(kinds.into_iter().filter(|(_, (sum, _))| sum / count > LEAST).map(|(of, (sum, seen))| {
            let (weight, rule) = (sum / count, rule.name.into());
            let (grade, share, statement) = (graded(weight), seen.share, seen.statement);
            Weighed { weight, evidence: Evidence { of, rule, statement, grade, share } }
        }));
    }
    weighed
}

/// The clocks as evidence.
pub(super) fn of_clocks(clocks: &Clocks) -> Vec<Weighed> {
    let seconds = model::units::seconds(clocks.total_ns);
    let say = |of, share: f64, what: &str| {
        let statement =
            format!("TCP's clocks over {seconds} of connections: {:.1} % of the time {what}", 100.0 * share);
        let evidence = Evidence { of, rule: CLOCKS.into(), statement, grade: graded(share), share: Some(share) };
        (share > LEAST).then_some(Weighed { weight: share, evidence })
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
