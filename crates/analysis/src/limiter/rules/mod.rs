//! The rules that look for limiters. Each is data: a name, the limiters that it can give evidence for, its source, and a function of
//! one direction of one trial.

mod congestion;
mod cores;
mod datagrams;
mod exchanges;
mod pacing;
mod packets;
mod path;
mod requested;
mod windows;

use std::collections::BTreeMap;

use model::{Evidence, LimiterKind};
use text::{Text, Time, say};

use super::clocks::Clocks;
use super::observations::Observations;
use super::{Weighed, graded};
use crate::direction::DirectionView;

/// One rule.
pub struct Rule {
    /// Its name, as in the evidence.
    pub name: &'static str,
    /// The limiters that it can give evidence for.
    pub speaks_for: &'static [LimiterKind],
    /// The observation that it looks for, in one sentence.
    pub about: &'static str,
    /// Where it comes from: an RFC, the kernel's documentation or source, a paper.
    pub source: &'static str,
    evaluate: fn(&Observations<'_>, &DirectionView<'_>) -> Vec<Signal>,
}

/// The evidence of a rule in one direction of one trial.
pub(super) struct Signal {
    pub(super) of: LimiterKind,
    pub(super) weight: f64,
    /// The share of the time, if a clock measured one.
    pub(super) share: Option<f64>,
    pub(super) statement: Text,
}

impl Signal {
    /// One signal, or none if the weight is too small.
    fn of(kind: LimiterKind, weight: f64, statement: impl FnOnce() -> Text) -> Vec<Self> {
        Self::shared(kind, weight, None, statement)
    }

    /// The same with a measured share of the time.
    fn shared(kind: LimiterKind, weight: f64, share: Option<f64>, statement: impl FnOnce() -> Text) -> Vec<Self> {
        if weight > MIN_WEIGHT { vec![Self { of: kind, weight, share, statement: statement() }] } else { Vec::new() }
    }
}

/// Evidence of less weight is not reported.
const MIN_WEIGHT: f64 = 0.1;

/// Name of the rule for TCP's clocks, which are evaluated over all trials at once.
pub(super) const CLOCKS: &str = "tcp-clocks";

/// All rules. A new one is an entry here.
pub const RULES: &[Rule] = &[
    Rule {
        name: CLOCKS,
        speaks_for: &[LimiterKind::SenderApplication, LimiterKind::ReceiveWindow, LimiterKind::SendBuffer],
        about: "TCP's own clocks: time idle, limited by the receiver's window or limited by the send buffer.",
        source: "tcpi_busy_time, tcpi_rwnd_limited, tcpi_sndbuf_limited in linux/tcp.h (kernel 4.9, commit 0f87230d1a6c)",
        evaluate: |_, _| Vec::new(),
    },
    requested::RATE,
    requested::DRAIN,
    windows::RECEIVE,
    windows::READER,
    windows::SEND,
    congestion::LOSS,
    congestion::WINDOW,
    packets::SIZE,
    packets::ORDER,
    path::BOTTLENECK,
    path::RETURN_PATH,
    path::SHARED,
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

/// The evidence of all rules over all directions of all trials: the mean weight (a direction without a signal counts as 0) and the
/// statement of the direction with the largest weight.
pub(super) fn weigh(observations: &Observations<'_>) -> Vec<Weighed> {
    let count = observations.directions.len().max(1) as f64;
    let mut weighed = Vec::new();
    for rule in RULES {
        let mut kinds: BTreeMap<LimiterKind, (f64, Signal)> = BTreeMap::new();
        for signal in observations.directions.iter().flat_map(|direction| (rule.evaluate)(observations, direction)) {
            match kinds.get_mut(&signal.of) {
                None => {
                    kinds.insert(signal.of, (signal.weight, signal));
                }
                Some((sum, most)) => {
                    *sum += signal.weight;
                    if signal.weight > most.weight {
                        *most = signal;
                    }
                }
            }
        }
        weighed.extend(kinds.into_iter().filter(|(_, (sum, _))| sum / count > MIN_WEIGHT).map(
            |(of, (sum, signal))| {
                let (weight, rule) = (sum / count, rule.name.into());
                let (grade, share, statement) = (graded(weight), signal.share, signal.statement);
                Weighed { weight, evidence: Evidence { of, rule, statement, grade, share } }
            },
        ));
    }
    weighed
}

/// The clocks as evidence.
pub(super) fn of_clocks(clocks: &Clocks) -> Vec<Weighed> {
    let seconds = Time(clocks.total_ns);
    let evidence_of = |of, share: f64, what: &str| {
        let statement = say!("TCP's clocks show {:.1} % of {seconds} of connection time {what}", 100.0 * share);
        let evidence = Evidence { of, rule: CLOCKS.into(), statement, grade: graded(share), share: Some(share) };
        (share > MIN_WEIGHT).then_some(Weighed { weight: share, evidence })
    };
    [
        evidence_of(LimiterKind::SenderApplication, clocks.idle, "with nothing to send"),
        evidence_of(LimiterKind::ReceiveWindow, clocks.rwnd, "limited by the receiver's window"),
        evidence_of(LimiterKind::SendBuffer, clocks.sndbuf, "limited by the send buffer"),
    ]
    .into_iter()
    .flatten()
    .collect()
}
