//! The advice of a search and its confirmation, as data and as findings.

use std::collections::BTreeMap;

use model::{
    Advice, AdvicePersistent, AdviceSpent, AdviceStep, AdviceUnchanged, AdviceUntried, Estimate, Finding, FindingKind,
    Goal, Inventory, Ratio, Role, Spec,
};
use text::{Text, Time, say};

use super::confirm::CONFIDENCE;
use super::dimension::Untried;
use super::{Candidate, Confirmed, Race, Search, noun, persistent, spec_of};
use crate::compare::{change, ratio};
use crate::findings::wording;
use crate::stats::{ConfidenceInterval, mean, t_interval};

/// The results of a search and its confirmation.
#[derive(Debug, Clone, Copy)]
pub struct SearchResult<'a> {
    /// The goal of the search.
    pub goal: Goal,
    /// The start.
    pub start: &'a Spec,
    /// The far end as named by the user.
    pub target: Option<&'a str>,
    /// The dimensions, in the order of the search.
    pub candidates: &'a [Candidate],
    /// The search, finished or stopped.
    pub search: &'a Search,
    /// The results of the confirmation, that of all changes together first; empty without one.
    pub confirmed: &'a [Confirmed],
    /// The dimensions that were not tried.
    pub untried: &'a [AdviceUntried],
    /// How the time was spent.
    pub spent: &'a [AdviceSpent],
    /// The near and the far host.
    pub hosts: [&'a Inventory; 2],
}

/// The advice and its findings; `cell` finds the cell of a combination by its changes.
#[must_use]
pub fn advice(
    of: &SearchResult<'_>,
    cell: impl Fn(&BTreeMap<String, String>) -> Option<u32>,
) -> (Advice, Vec<Finding>) {
    let advice = of.advice();
    let (best, start) = (cell(&advice.best), cell(&BTreeMap::new()));
    let cells: Vec<u32> = start.into_iter().chain(best).collect();
    let finding = |statement: Text, estimate: Option<Estimate>, cells: Vec<u32>| Finding {
        kind: FindingKind::Advice,
        statement,
        estimate,
        block: None,
        cells,
        comparison: None,
    };
    let total = advice.total.as_ref().and_then(|total| total.estimate.clone());
    let mut findings = vec![finding(of.conclusion(&advice), total, cells)];
    findings.extend(
        advice.steps.iter().map(|step| finding(of.step(step), step.estimate.clone(), best.into_iter().collect())),
    );
    findings.extend(advice.unchanged.iter().map(|kept| finding(of.unchanged(kept), kept.estimate.clone(), Vec::new())));
    findings.extend(untried(&advice.untried).map(|statement| finding(statement, None, Vec::new())));
    findings.extend(spent(&advice.spent).map(|statement| finding(statement, None, Vec::new())));
    (advice, findings)
}

impl SearchResult<'_> {
    fn advice(&self) -> Advice {
        let best = self.search.best();
        let (spec, levels) = spec_of(self.start, self.candidates, best);
        let steps: Vec<AdviceStep> = self.confirmed.iter().map(|one| self.compared(one, best)).collect();
        let (total, mut steps) = match steps.split_first() {
            Some((total, steps)) => (Some(total.clone()), steps.to_vec()),
            None => (None, Vec::new()),
        };
        if steps.is_empty() && levels.len() > 1 {
            // The changes were not compared separately, so the results of the search are used.
            steps = self.search.races().iter().filter_map(|race| self.adopted(race, best)).collect();
        }
        let confirmed = total.as_ref().is_some_and(|total| total.confirmed);
        let settings = |role, host| {
            if confirmed { persistent::persistent(self.start, &spec, role, host) } else { AdvicePersistent::default() }
        };
        let [near, far] = self.hosts;
        let raced = |at: &usize| self.search.races().iter().any(|race| race.dimension == *at);
        let tried = (0..self.candidates.len()).filter(raced);
        Advice {
            goal: self.goal,
            min_effect: self.search.rule().min_effect,
            start: tried.map(|at| (self.candidates[at].name.to_owned(), self.label(at, 0))).collect(),
            best: levels,
            confirmed,
            command: confirmed.then(|| persistent::command(&spec, self.target)),
            near: settings(Role::Active, near),
            far: settings(Role::Passive, far),
            settings: spec.settings,
            total,
            steps,
            unchanged: (0..self.candidates.len()).filter(|at| best[*at] == 0).filter_map(|at| self.kept(at)).collect(),
            untried: self.untried.iter().cloned().chain(self.not_reached()).collect(),
            spent: self.spent.to_vec(),
        }
    }

    fn label(&self, dimension: usize, level: usize) -> String {
        self.candidates[dimension].levels[level].label.clone()
    }

    fn compared(&self, one: &Confirmed, best: &[usize]) -> AdviceStep {
        let (dimension, from, to) = match one.dimension {
            Some(at) => (self.candidates[at].name.to_owned(), self.label(at, 0), self.label(at, best[at])),
            None => ("all".to_owned(), "the start".to_owned(), "the best combination".to_owned()),
        };
        let method = "randomisation test over ABBA rounds of new pairs, on the logarithms of their ratios";
        let estimate = |log: f64, interval: Option<ConfidenceInterval>, noun: &str| {
            let statistic =
                format!("ratio of the {noun} with the change to the {noun} without it, geometric mean over rounds");
            ratio(log, interval, statistic, method.into(), CONFIDENCE, one.rounds)
        };
        AdviceStep {
            dimension,
            from,
            to,
            estimate: one.gain.map(|gain| {
                let (log, interval) = self.change_of(gain, one.interval);
                estimate(log, interval, noun(self.goal))
            }),
            goodput: one.goodput.map(|(log, interval)| estimate(log, interval, noun(Goal::Throughput))),
            p_value: one.p_value,
            confirmed: one.confirmed,
        }
    }

    /// The step of a race whose best level is in the best combination, by the search alone.
    fn adopted(&self, race: &Race, best: &[usize]) -> Option<AdviceStep> {
        let to = race.best.filter(|level| race.adopted && best[race.dimension] == *level)?;
        Some(AdviceStep {
            dimension: self.candidates[race.dimension].name.to_owned(),
            from: self.label(race.dimension, race.from),
            to: self.label(race.dimension, to),
            estimate: self.race_estimate(race, "the adopted level to that at the level before"),
            goodput: None,
            p_value: None,
            confirmed: false,
        })
    }

    /// The result of a race for its best level.
    fn race_estimate(&self, race: &Race, of: &str) -> Option<Estimate> {
        let (log, interval) = self.change_of(mean(&race.gains)?, t_interval(&race.gains, CONFIDENCE));
        let statistic = format!("ratio of the {} at {of}", noun(self.goal));
        let method =
            "Student's t over rounds of the search, on logarithms; not corrected for the number of levels".to_owned();
        Some(ratio(log, interval, statistic, method, CONFIDENCE, race.gains.len()))
    }

    /// A gain as a change of the statistic: lower times and costs are better.
    fn change_of(&self, gain: f64, interval: Option<ConfidenceInterval>) -> (f64, Option<ConfidenceInterval>) {
        match self.goal {
            Goal::Throughput => (gain, interval),
            Goal::Latency | Goal::Cpu => {
                (-gain, interval.map(|interval| ConfidenceInterval { low: -interval.high, high: -interval.low }))
            }
        }
    }

    /// The last race of an unchanged dimension; `None` if it had none, or if no other level had a score.
    fn kept(&self, dimension: usize) -> Option<AdviceUnchanged> {
        let race: &Race = self.search.races().iter().rev().find(|race| race.dimension == dimension)?;
        if race.tried.is_empty() {
            return None;
        }
        let estimate = Some(race)
            .filter(|race| race.from == 0)
            .and_then(|race| self.race_estimate(race, "the best other level to that at the kept level"));
        Some(AdviceUnchanged {
            dimension: self.candidates[dimension].name.to_owned(),
            kept: self.label(dimension, 0),
            best: race.best.filter(|_| race.from == 0).map(|level| self.label(dimension, level)),
            estimate,
            levels: race.tried.iter().filter(|level| **level != 0).map(|level| self.label(dimension, *level)).collect(),
            complete: race.complete,
        })
    }

    fn not_reached(&self) -> impl Iterator<Item = AdviceUntried> + '_ {
        self.search.waiting().map(move |at| Untried::OutOfTime.of(self.candidates[at].name))
    }

    /// The conclusion of the search.
    fn conclusion(&self, advice: &Advice) -> Text {
        let min = Ratio(advice.min_effect);
        let noun = noun(self.goal);
        let changes = Text::join(advice.best.iter().map(|(name, level)| say!("{name} {level}")), ", ");
        if changes.is_empty() {
            let tried = wording::plural(advice.unchanged.len(), "dimension");
            return say!("No change in {tried} improved the {noun} by more than {min}.");
        }
        let confirmed = advice.total.as_ref().and_then(|total| Some((total, total.estimate.as_ref()?)));
        let Some((total, estimate)) = confirmed else {
            return say!(
                "No significant improvement of the {noun} by more than {min}: {changes} looked better in the search, but there was \
                 no time to confirm it. Use a larger `--budget`."
            );
        };
        let pairs = wording::plural(2 * estimate.n as usize, "new pair");
        let p = p_value(total.p_value);
        let goodput = total.goodput.as_ref().map_or(Text::default(), |goodput| say!(", goodput {}", change(goodput)));
        if total.confirmed {
            return say!("With {changes} the {noun} changes by {} over {pairs}{p}{goodput}.", change(estimate));
        }
        say!(
            "No significant improvement of the {noun} by more than {min}: the best candidate, {changes}, changes it by {} over \
             {pairs}{p}{goodput}.",
            change(estimate)
        )
    }

    fn step(&self, step: &AdviceStep) -> Text {
        let AdviceStep { dimension, from, to, .. } = step;
        let Some(estimate) = &step.estimate else {
            return say!("{dimension} ({from} to {to}): no confirmation round was completed.");
        };
        let qualifier = match (step.confirmed, step.p_value) {
            (true, _) => "",
            (false, Some(_)) => "; not significant, so you can leave it unchanged",
            (false, None) => " in the search; not confirmed separately",
        };
        say!(
            "{dimension} ({from} to {to}) changes the {} by {}{}{qualifier}.",
            noun(self.goal),
            change(estimate),
            p_value(step.p_value)
        )
    }

    fn unchanged(&self, of: &AdviceUnchanged) -> Text {
        let AdviceUnchanged { dimension, kept, best, levels, .. } = of;
        let cut = if of.complete { "" } else { "; out of time" };
        let tried = levels.join(", ");
        let (Some(best), Some(estimate)) = (best, &of.estimate) else {
            let none = if levels.len() == 1 { say!("{tried} was not") } else { say!("none of {tried} was") };
            return say!("{dimension} stays {kept}: {none} better{cut}.");
        };
        let gain = |ratio: f64| if self.goal == Goal::Throughput { ratio - 1.0 } else { 1.0 / ratio - 1.0 };
        let min = self.search.rule().min_effect;
        let ends = [estimate.low, estimate.high].map(|end| end.map(gain));
        let high = ends.iter().flatten().copied().reduce(f64::max);
        let result = match high {
            Some(high) if high < -min => "is worse",
            Some(high) if high <= min => "makes no difference",
            _ => "is not significantly different",
        };
        let best_of = if levels.len() > 1 { say!(", the best of {tried},") } else { Text::default() };
        let rounds = wording::plural(estimate.n as usize, "round");
        say!("{dimension} stays {kept}: {best}{best_of} {result}, {} in {rounds} of the search{cut}.", change(estimate))
    }
}

fn p_value(p: Option<f64>) -> Text {
    match p {
        Some(p) if p < 0.001 => ", corrected p < 0.001".into(),
        Some(p) => say!(", corrected p = {p:.3}"),
        None => Text::default(),
    }
}

/// The dimensions that were not tried, grouped by reason, with the classes for `--allow` in one list.
fn untried(list: &[AdviceUntried]) -> impl Iterator<Item = Text> + '_ {
    let mut reasons: Vec<(&Text, Vec<&str>, Vec<&str>)> = Vec::new();
    for one in list {
        let at = reasons.iter().position(|(known, ..)| **known == one.why).unwrap_or(reasons.len());
        if at == reasons.len() {
            reasons.push((&one.why, Vec::new(), Vec::new()));
        }
        let (_, what, classes) = &mut reasons[at];
        what.push(&one.what);
        if let Some(class) = one.allow.as_deref().filter(|class| !classes.contains(class)) {
            classes.push(class);
        }
    }
    reasons.into_iter().map(|(why, what, classes)| {
        let allow = if classes.is_empty() { Text::default() } else { say!(": `--allow {}`", classes.join(",")) };
        say!("Not tried: {} ({why}{allow}).", what.join(", "))
    })
}

fn spent(list: &[AdviceSpent]) -> Option<Text> {
    if list.is_empty() {
        return None;
    }
    let part = |one: &AdviceSpent| {
        say!("{} {} in {}", one.on, wording::plural(one.trials as usize, "trial"), Time(one.ns as f64))
    };
    Some(say!("Time spent: {}.", Text::join(list.iter().map(part), "; ")))
}

#[cfg(test)]
mod tests;
