//! What limited an outcome, and the evidence for it.
//!
//! TCP's clocks split the sender's time into four pools: idle, limited by the receiver's window, by the send buffer, and busy
//! otherwise. Rules ([`RULES`]) evaluate everything else that was recorded. A rule gives its evidence a weight between 0 and 1. The
//! weight is a judgement, so it only sets the [`Grade`] and the order and is never shown as a number. For the order, in each pool
//! the kind with the largest weight takes that share of the pool, the next its share of the rest, and so on; what remains belongs
//! to the pool's own kind.

mod bottleneck;
mod changes;
mod clocks;
mod directions;
mod losses;
mod notes;
mod observations;
mod queues;
mod regions;
mod remedies;
mod return_path;
pub mod rules;
mod sharing;
#[cfg(test)]
mod tests;
mod threads;

use std::collections::BTreeMap;

use model::{Cell, Evidence, Grade, Inventory, LimiterKind, Outcome, Pass, Path, RunHeader, TimePart, Why};

use clocks::Clocks;
use observations::Observations;
use text::{Text, say};

use crate::in_force::in_force;

pub(crate) use bottleneck::known_bps;
pub use changes::{changes, jagged_against_smooth};
pub use directions::set_why;
pub use notes::between_runs;
pub use regions::regions;
pub(crate) use regions::{CONFIDENCE, LabelledRates, MATTERS, best_regions, is_ahead, range_of};
pub use rules::{RULES, Rule, rule};

/// Smallest weights of likely and of strong evidence.
const LIKELY: f64 = 0.3;
const STRONG: f64 = 0.6;
/// Smallest share of the sender's time in the statement.
const MIN_STATED_SHARE: f64 = 0.01;
/// Largest number of other kinds in the statement.
const MAX_ALSO: usize = 2;

/// Evidence with its weight, 0 to 1.
struct Weighed {
    weight: f64,
    evidence: Evidence,
}

/// What was recorded around an outcome.
#[derive(Debug, Clone, Copy)]
pub struct Recorded<'a> {
    /// The passes that were kept.
    pub passes: &'a [Pass],
    /// The near and the far host.
    pub hosts: [&'a Inventory; 2],
    /// The largest packet that the path was found to carry, outbound and on return, bytes.
    pub path_mtu: [Option<u32>; 2],
}

impl<'a> Recorded<'a> {
    /// Around an outcome of the run of `header`.
    #[must_use]
    pub fn around(outcome: &Outcome, header: &'a RunHeader, passes: &'a [Pass]) -> Self {
        let hosts = match Cell::find(&header.cells, outcome.cell) {
            Some(cell) => header.hosts_of(cell),
            None => [&header.near, &header.far],
        };
        // The probed path is that between these two; other pairs of hosts have others.
        let probed = std::ptr::eq(hosts[0], &raw const header.near) && std::ptr::eq(hosts[1], &raw const header.far);
        let mtu = |path: &Option<Path>| Some(path.as_ref().filter(|_| probed)?.mtu.as_ref()?.bytes);
        Self { passes, hosts, path_mtu: [mtu(&header.path_outbound), mtu(&header.path_return)] }
    }
}

/// What limited `outcome`, from its trials and what was recorded around them. `None` without any evidence. Points of a curve share
/// passes and are too short for the clocks: use [`changes()`] for curves.
#[must_use]
pub fn why(outcome: &Outcome, recorded: &Recorded<'_>) -> Option<Why> {
    let [near, far] = in_force(outcome, recorded.passes, recorded.hosts);
    let observations = Observations::new(outcome, &Recorded { hosts: [&near, &far], ..*recorded });
    if observations.directions.is_empty() {
        return None;
    }
    let clocks = clocks::clocks(&observations).filter(|_| observations.bulk());
    let mut weighed = rules::weigh(&observations);
    weighed.extend(clocks.iter().flat_map(rules::of_clocks));
    weighed.sort_by(|a, b| b.weight.total_cmp(&a.weight));
    let parts = clocks.as_ref().map(parts).unwrap_or_default();
    let losses = losses::losses(&observations);
    let notes = notes::of_outcome(&observations);
    if weighed.is_empty() && parts.is_empty() && losses.is_none() && notes.is_empty() {
        return None;
    }
    let ranked = ranked(clocks.as_ref(), &weighed);
    let limiter =
        ranked.first().filter(|(_, rank)| *rank >= LIKELY).map_or(LimiterKind::Unexplained, |(kind, _)| *kind);
    let evidence: Vec<Evidence> = weighed.into_iter().map(|one| one.evidence).collect();
    let grade = grade(limiter, &evidence);
    let mut also: Vec<LimiterKind> = ranked.into_iter().map(|(kind, _)| kind).filter(|kind| *kind != limiter).collect();
    also.sort_by_key(|kind| std::cmp::Reverse(self::grade(*kind, &evidence)));
    let statement = statement(limiter, &also, &parts, &evidence);
    let likely = |kind: &LimiterKind| self::grade(*kind, &evidence).is_some_and(|grade| grade >= Grade::Likely);
    let mut limiters: Vec<LimiterKind> = std::iter::once(limiter).chain(also.iter().copied().filter(likely)).collect();
    // Where something else certainly limits, a larger buffer gains nothing: on a full link it lengthens the queue.
    if grade == Some(Grade::Strong) {
        limiters.truncate(1);
    }
    let remedies = remedies::remedies(&observations, &limiters);
    Some(Why {
        limiter,
        grade,
        statement,
        parts,
        evidence,
        also,
        losses,
        notes,
        remedies,
        missing: notes::missing(&observations),
    })
}

/// The grade of a weight.
fn graded(weight: f64) -> Grade {
    match weight {
        weight if weight >= STRONG => Grade::Strong,
        weight if weight >= LIKELY => Grade::Likely,
        _ => Grade::Possible,
    }
}

/// Whether a kind can explain time of a pool better than the pool's own kind.
fn takes(pool: LimiterKind, kind: LimiterKind) -> bool {
    use LimiterKind as K;
    match pool {
        // The program did not provide data, possibly because its thread was busy.
        K::SenderApplication => kind == K::SenderCpu,
        // A window is not too small if it is full because the program does not read or because the data waits in a queue.
        K::ReceiveWindow => matches!(kind, K::ReceiverApplication | K::ReceiverCpu | K::Link),
        K::SendBuffer => kind == K::Link,
        _ => true,
    }
}

/// The pools of the sender's time, by their own kinds.
fn pools(clocks: &Clocks) -> [(LimiterKind, f64); 4] {
    use LimiterKind as K;
    [
        (K::SenderApplication, clocks.idle),
        (K::ReceiveWindow, clocks.rwnd),
        (K::SendBuffer, clocks.sndbuf),
        (K::Network, clocks.rest),
    ]
}

/// The partition of the time by the clocks, largest part first.
fn parts(clocks: &Clocks) -> Vec<TimePart> {
    let method = |kind| match kind {
        LimiterKind::SenderApplication => "time with nothing to send, by TCP's clocks",
        LimiterKind::ReceiveWindow => "time limited by the receiver's window, by TCP's clocks",
        LimiterKind::SendBuffer => "time limited by the send buffer, by TCP's clocks",
        _ => "other busy time, by TCP's clocks",
    };
    let known = pools(clocks).into_iter().filter(|(_, share)| *share > 0.0);
    let mut parts: Vec<TimePart> = known.map(|(of, share)| TimePart { of, share, method: method(of).into() }).collect();
    parts.sort_by(|a, b| b.share.total_cmp(&a.share));
    parts
}

/// The kinds with evidence, the best explanation first.
fn ranked(clocks: Option<&Clocks>, weighed: &[Weighed]) -> Vec<(LimiterKind, f64)> {
    // The clocks define the pools; the other evidence divides them.
    let heaviest = heaviest(weighed);
    let mut ranks: BTreeMap<LimiterKind, f64> = BTreeMap::new();
    match clocks {
        None => ranks.extend(heaviest),
        Some(clocks) => {
            for (own, time) in pools(clocks) {
                let mut left = time;
                for (kind, weight) in heaviest.iter().filter(|(kind, _)| takes(own, *kind) && *kind != own) {
                    *ranks.entry(*kind).or_default() += left * weight;
                    left *= 1.0 - weight;
                }
                *ranks.entry(own).or_default() += left;
            }
        }
    }
    ranks.remove(&LimiterKind::Network);
    let mut ranked: Vec<(LimiterKind, f64)> = ranks.into_iter().collect();
    ranked.retain(|(kind, _)| weighed.iter().any(|one| one.evidence.of == *kind));
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1));
    ranked
}

/// The largest weight of each kind apart from the clocks, in descending order, which is that of `weighed`.
fn heaviest(weighed: &[Weighed]) -> Vec<(LimiterKind, f64)> {
    let mut kinds: Vec<(LimiterKind, f64)> = Vec::new();
    for one in weighed.iter().filter(|one| one.evidence.rule != rules::CLOCKS) {
        if kinds.iter().all(|(kind, _)| *kind != one.evidence.of) {
            kinds.push((one.evidence.of, one.weight.clamp(0.0, 1.0)));
        }
    }
    kinds
}

/// What stands for the limiter if the evidence does not show one.
pub(crate) const UNIDENTIFIED: &str = "bottleneck not identified";

/// The limiter in a word or two.
#[must_use]
pub fn words(why: &Why) -> &'static str {
    if why.grade.is_some() { why.limiter.words() } else { UNIDENTIFIED }
}

/// What limited it, without the evidence: `receive window (strong, 87 % of the sender's time)`.
#[must_use]
pub fn named(why: &Why) -> Text {
    match why.grade {
        Some(grade) => graded_name(why.limiter, grade, &why.parts),
        None => UNIDENTIFIED.into(),
    }
}

/// The statement of a [`Why`] without its lesser causes.
#[must_use]
pub fn first_cause(why: &Why) -> Text {
    first(why.limiter, &why.parts, &why.evidence)
}

/// A limiter with its grade and the share of the time that a clock gives it. A rule may name a kind whose clock hardly ran.
fn graded_name(limiter: LimiterKind, grade: Grade, parts: &[TimePart]) -> Text {
    let share = parts.iter().find(|part| part.of == limiter && part.share >= MIN_STATED_SHARE);
    let share = share.map_or(Text::default(), |part| say!(", {:.0} % of the sender's time", 100.0 * part.share));
    say!("{} ({}{share})", limiter.words(), grade.words())
}

fn first(limiter: LimiterKind, parts: &[TimePart], evidence: &[Evidence]) -> Text {
    match said(limiter, evidence) {
        Some((grade, said)) => say!("{}: {said}", graded_name(limiter, grade, parts)),
        None => UNIDENTIFIED.into(),
    }
}

/// `receive window (strong, 87 % of the sender's time): 64 KiB window over 20 ms carries at most 26 Mbit/s; likely also send buffer:
/// ...`.
fn statement(limiter: LimiterKind, also: &[LimiterKind], parts: &[TimePart], evidence: &[Evidence]) -> Text {
    let mut statement = first(limiter, parts, evidence);
    for kind in also.iter().take(MAX_ALSO) {
        if let Some((grade, said)) = said(*kind, evidence) {
            // A kind that is not the first is at most likely; without a first one, only possible.
            let how_sure = match (limiter, grade) {
                (LimiterKind::Unexplained, _) => "possible",
                (_, Grade::Possible) => "possibly also",
                _ => "likely also",
            };
            statement += say!("; {how_sure} {}: {said}", kind.words());
        }
    }
    statement
}

/// The grade of the best evidence for a kind.
fn grade(kind: LimiterKind, evidence: &[Evidence]) -> Option<Grade> {
    evidence.iter().filter(|one| one.of == kind).map(|one| one.grade).max()
}

/// The best evidence for a kind and its grade: the statement of a rule if there is one, because it says more than the clocks'.
fn said(kind: LimiterKind, evidence: &[Evidence]) -> Option<(Grade, &Text)> {
    let grade = grade(kind, evidence)?;
    let of = |clocks: bool| evidence.iter().find(|one| one.of == kind && (one.rule == rules::CLOCKS) == clocks);
    Some((grade, &of(false).or_else(|| of(true))?.statement))
}
