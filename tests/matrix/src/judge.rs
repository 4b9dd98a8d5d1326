//! Which limiter `thru why` names for a recorded path, and whether that is right.

use std::path::Path as FilePath;

use anyhow::Result;
use model::{LimiterKind as K, Outcome, Run, Verdict};

use crate::bounds::exact;
use crate::path::Path;
use crate::record::{self, Record};

/// What names the limiter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// The rules of this build.
    Rules,
    /// The same without the requested rates and buffer sizes.
    RulesBlind,
    /// The program that measured.
    Record,
}

/// A recorded path and its limiter.
#[derive(Debug)]
pub struct Judged {
    /// What was produced.
    pub path: Path,
    /// The limiter that the rules name.
    pub named: K,
    /// Their statement.
    pub statement: String,
    /// Goodput, bit/s.
    pub goodput_bps: Option<f64>,
    /// Why the path was not what its draw says; it then counts neither as right nor as wrong.
    pub not_produced: Option<&'static str>,
}

impl Judged {
    /// The limiter of a recorded path.
    pub fn of(record: Record, by: By) -> Self {
        let Record { path, mut run } = record;
        if by == By::RulesBlind {
            run.outcomes.iter_mut().for_each(forget_requests);
        }
        if let (By::Rules | By::RulesBlind, Some(outcome)) = (by, run.outcomes.first_mut()) {
            analysis::set_why(outcome, &run.header, &run.passes);
        }
        let outcome = run.outcomes.first();
        let why = outcome.and_then(|outcome| outcome.summary.why.clone());
        let (named, statement) =
            why.map_or((K::Unexplained, String::new()), |why| (why.limiter, why.statement.plain()));
        let goodput_bps = outcome.and_then(|outcome| outcome.summary.goodput_bps);
        let not_produced = not_produced(&path, &run, goodput_bps);
        Self { path, named, statement, goodput_bps, not_produced }
    }

    /// Whether the limiter is right; `None` if the path does not count.
    pub fn right(&self) -> Option<bool> {
        self.not_produced.is_none().then(|| is_right(&self.path.faults, self.named))
    }
}

/// An innocent path is limited by its hosts; that they are not identified is right too.
fn is_right(faults: &[K], named: K) -> bool {
    match faults {
        [] => matches!(named, K::SenderCpu | K::ReceiverCpu | K::Softirq | K::Unexplained),
        _ => faults.contains(&named),
    }
}

/// Why a path does not count. Decided by the goodput and the lab's report only, never by the rules.
fn not_produced(path: &Path, run: &Run, goodput_bps: Option<f64>) -> Option<&'static str> {
    // What the path does not carry at all has no rate.
    let hole = path.faults == [K::PathMtu];
    let Some(goodput) = goodput_bps.or(hole.then_some(0.0)) else { return Some("no goodput") };
    let late = |outcome: &Outcome| outcome.summary.verdicts.contains(&Verdict::EmulatorLate);
    if run.outcomes.iter().any(late) {
        return Some("the emulated link was late");
    }
    let [low, high] = path.expected_bps.unwrap_or([0.0, f64::INFINITY]);
    match goodput {
        bps if bps < low => Some("slower than its faults"),
        bps if bps > high => Some("faster than its faults"),
        _ => None,
    }
}

fn forget_requests(outcome: &mut Outcome) {
    let spec = &mut *outcome.spec;
    spec.rate_bps = None;
    for end in [&mut spec.near, &mut spec.far] {
        (end.drain_bps, end.max_pacing_bps, end.sndbuf, end.rcvbuf) = (None, None, None, None);
    }
}

/// Share of single faults that are to be named, and of innocent paths that may be wrong.
const GOALS: [f64; 2] = [0.90, 0.02];

/// Whether the exact bounds exclude a goal.
pub fn misses_goals(judged: &[Judged]) -> bool {
    let bounds = |faults: usize, right: bool| {
        let counted: Vec<bool> =
            judged.iter().filter(|one| one.path.faults.len() == faults).filter_map(Judged::right).collect();
        exact(counted.iter().filter(|one| **one == right).count(), counted.len())
    };
    let [[_, most_right], [least_wrong, _]] = [bounds(1, true), bounds(0, false)];
    most_right < GOALS[0] || least_wrong > GOALS[1]
}

/// All recorded paths of a folder.
pub fn folder(folder: &FilePath, by: By) -> Result<Vec<Judged>> {
    record::files(folder)?.iter().map(|file| Ok(Judged::of(record::read(file)?, by))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_of_two_faults_is_right_and_an_innocent_path_has_no_fault() {
        assert!(is_right(&[K::Link, K::Loss], K::Loss) && !is_right(&[K::Link, K::Loss], K::Pacing));
        assert!(!is_right(&[K::Link], K::Unexplained));
        assert!(is_right(&[], K::Unexplained) && is_right(&[], K::ReceiverCpu));
        assert!(!is_right(&[], K::ReceiveWindow) && !is_right(&[], K::SenderApplication));
    }
}
