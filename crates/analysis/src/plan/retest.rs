//! Tests again what stands out of a mesh, in turns with pairs of hosts that do not ([`suspects`]), and judges it by these tests alone.
//!
//! A host is compared with the host of the median effect in that role, to the same partners; a pair with another pair of each of its
//! hosts; two directions with each other; a cluster with another one, its pairs one by one and then as many at the same time as it has
//! hosts. The logarithms of the ratios have one mean in each repetition, and Student's interval over the repetitions. What other hosts
//! and clusters explain of a ratio is subtracted if these tests confirmed it, with the ratio that they found. What stands out is
//! confirmed if the interval excludes 0 on the same side and the difference is [`LEAST`] or more. A cluster that differs only with several
//! tests at the same time is said to. A pair is unstable if more of its tests are slow than chance makes those of others.

use std::collections::{BTreeMap, BTreeSet};

use model::{Cell, Factor, Outcome, Plan, Retest, RunHeader, Verdict, median};

use super::comparison::{ComparedTests, Design};
use super::logs::LEAST;
use super::matrix::Matrix;
use super::outlier::{Of, Test, range, times};
use super::standing::StandingOut;
use super::variation::{Rounds, Variation};
use crate::findings::wording::plural;
use crate::outcome::Headline;
use crate::stats::two_way::Side;
use crate::stats::{ConfidenceInterval, MeanDifference, mean, sample_sd};

/// Most of what stands out that is tested again.
pub const MOST_SUSPECTS: usize = 12;
/// Fewest repetitions with a judgement.
const LEAST_ROUNDS: usize = 3;
/// Fewest slow tests of a pair that is unstable.
const LEAST_SLOW: usize = 2;
/// Pairs of hosts that a sentence names.
const MOST_NAMES: usize = 3;
/// Smallest ratio that is said to explain a part of another one.
const EXPLAINS: f64 = 1.02;

/// What stands out of a mesh, and how it is tested again.
#[derive(Debug, Clone, PartialEq)]
pub struct Suspect {
    of: Of,
    kind: Headline,
    /// The logarithm of its ratio in the rounds.
    log: f64,
    /// Its comparisons; none if nothing is comparable.
    pub comparisons: Vec<ComparedTests>,
}

impl Suspect {
    /// The size of its difference in the rounds, as a logarithm.
    #[must_use]
    pub fn size(&self) -> f64 {
        self.log.abs()
    }

    /// Its place in the order of the tests: what explains others goes first, so clusters, then hosts, then pairs, and at last pairs that
    /// were slow in some of their rounds.
    #[must_use]
    pub fn rank(&self) -> u8 {
        match self.of {
            Of::Cluster { .. } | Of::Clusters { .. } | Of::Within { .. } => 0,
            Of::Host { .. } => 1,
            Of::Pair { unstable: false, .. } | Of::Asymmetry { .. } => 2,
            Of::Pair { unstable: true, .. } => 3,
        }
    }

    /// Whether it is mentioned only if the tests confirm it: a few of its rounds were slow.
    #[must_use]
    pub fn is_quiet(&self) -> bool {
        self.rank() == 3
    }

    /// Its comparisons by number, those together that are tested at the same time.
    #[must_use]
    pub fn turns(&self) -> Vec<Vec<u32>> {
        let numbered = || (0u32..).zip(&self.comparisons);
        let alone = numbered().filter(|(_, one)| !one.together).map(|(number, _)| vec![number]);
        let together: Vec<u32> = numbered().filter(|(_, one)| one.together).map(|(number, _)| number).collect();
        alone.chain((!together.is_empty()).then_some(together)).collect()
    }

    /// Whether a test is of this suspect.
    fn is_of(&self, test: &Test) -> bool {
        self.of == test.of && self.kind == test.kind
    }
}

/// What stands out of the matrices of a mesh, in the order of its findings. It depends on the outcomes alone.
#[must_use]
pub fn suspects(header: &RunHeader, outcomes: &[Outcome]) -> Vec<Suspect> {
    let out = StandingOut::of(header, outcomes);
    of_standing(&out, header).into_iter().map(|(_, suspect)| suspect).collect()
}

/// What the tests show of what stands out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Judgement {
    /// It is confirmed, with the evidence.
    Confirmed(String),
    /// It differs only with several tests at the same time, with the evidence.
    Together(String),
    /// It is slow in some tests only, with the evidence.
    Unstable(String),
    /// It is not confirmed, with the evidence.
    NotConfirmed(String),
    /// It was not tested again, or too few times.
    NotRetested,
}

/// The judgement of each suspect.
pub(super) struct Judgements(Vec<(Suspect, Judgement)>);

impl Judgements {
    /// The judgement of a test; `None` for one that is not tested again in any case.
    pub(super) fn of(&self, test: &Test) -> Option<&Judgement> {
        self.0.iter().find(|(suspect, _)| suspect.is_of(test)).map(|(_, judgement)| judgement)
    }
}

/// The judgements of what stands out; `None` if the plan tests nothing again.
pub(super) fn judgements(header: &RunHeader, out: &StandingOut, retests: &[Retest]) -> Option<Judgements> {
    let plan = header.plan.as_ref()?;
    plan.retests?;
    let mut confirmed: Vec<Explanation> = Vec::new();
    let mut judged = Vec::new();
    for ((matrix, suspect), number) in of_standing(out, header).into_iter().zip(0u32..) {
        let own: Vec<&Retest> = retests.iter().filter(|retest| retest.suspect == number).collect();
        let tests = Tests {
            suspect: &suspect,
            header,
            plan,
            matrix: &out.matrices[matrix],
            variation: &out.variations[matrix],
            confirmed: &confirmed,
            logs: logs(&own),
        };
        let (judgement, value) = tests.judge();
        confirmed.extend(value.map(|values| Explanation { of: suspect.of.clone(), kind: suspect.kind, values }));
        judged.push((suspect, judgement));
    }
    Some(Judgements(judged))
}

/// Each with the number of its matrix.
fn of_standing(out: &StandingOut, header: &RunHeader) -> Vec<(usize, Suspect)> {
    let number = |test: &Test| out.matrices.iter().position(|matrix| matrix.pairs.kind == test.kind);
    let groups = out.groups.iter().filter_map(|test| Some((number(test)?, test)));
    let named = out.tests.iter().filter(|(number, test)| !out.is_told(*number, &test.of));
    let tests = named.map(|(number, test)| (*number, test));
    let all: Vec<(usize, &Test)> =
        groups.chain(tests).filter(|(_, test)| !matches!(test.of, Of::Within { .. })).collect();
    let designs: Vec<Design<'_>> = out
        .matrices
        .iter()
        .zip(0..)
        .map(|(matrix, number)| {
            Design::new(matrix, all.iter().filter(|(of, _)| *of == number).map(|(_, test)| *test), header)
        })
        .collect();
    let suspect = |(number, test): &(usize, &Test)| {
        let comparisons = designs[*number].comparisons(&test.of);
        (*number, Suspect { of: test.of.clone(), kind: test.kind, log: test.test.value, comparisons })
    };
    all.iter().map(suspect).collect()
}

/// What a confirmed suspect explains of others.
struct Explanation {
    of: Of,
    kind: Headline,
    /// The logarithms of the ratios that the tests found, one at a time and several at the same time.
    values: [f64; 2],
}

/// The logarithms of the values by repetition, comparison, and whether it is of the control; `None` where nothing arrived.
type Logs = BTreeMap<(u32, u32, bool), Option<f64>>;

fn logs(retests: &[&Retest]) -> Logs {
    let nothing = |verdict: &Verdict| matches!(verdict, Verdict::Stalled | Verdict::NothingArrived);
    let complete = retests.iter().filter(|retest| super::complete(&retest.trial));
    complete
        .filter_map(|retest| {
            let log = retest.trial.value.filter(|value| *value > 0.0).map(f64::ln);
            let is_known = log.is_some() || retest.trial.verdicts.iter().any(nothing);
            is_known.then_some(((retest.round, retest.comparison, retest.control), log))
        })
        .collect()
}

/// The tests of a suspect.
struct Tests<'a> {
    suspect: &'a Suspect,
    header: &'a RunHeader,
    plan: &'a Plan,
    matrix: &'a Matrix,
    variation: &'a Variation,
    /// What was confirmed before.
    confirmed: &'a [Explanation],
    logs: Logs,
}

/// A mean over repetitions with its interval.
struct Mean {
    value: f64,
    interval: ConfidenceInterval,
    rounds: usize,
}

impl Tests<'_> {
    /// The judgement, and the logarithms of the ratios that are the suspect's own if it is confirmed, of one test and of several at the
    /// same time.
    fn judge(&self) -> (Judgement, Option<[f64; 2]>) {
        let alone = self.numbers(false);
        let Some((own, measured)) = self.own(&alone).zip(self.measured(&alone)) else {
            return (Judgement::NotRetested, None);
        };
        let confirmed = self.is_confirmed(&own);
        let not_to = if confirmed { self.exceptions(&alone, own.value) } else { String::new() };
        let figures = times(measured.value, measured.interval);
        let evidence = format!(
            "re-tested {} against {}: {figures}{}{not_to}",
            plural(own.rounds, "time"),
            self.controls(&alone),
            self.explained_by(&alone),
        );
        let together = self.numbers(true);
        let at_once = self.own(&together).filter(|own| self.is_confirmed(own)).zip(self.measured(&together));
        if confirmed {
            let of_several = at_once.as_ref().map_or(own.value, |(at_once, _)| at_once.value);
            let more = at_once.filter(|(at_once, _)| (at_once.value - own.value).abs() >= LEAST.ln());
            let more = more.map_or_else(String::new, |(_, all)| {
                format!(", and {} with {} at the same time", times(all.value, all.interval), together.len())
            });
            return (Judgement::Confirmed(evidence + &more), Some([own.value, of_several]));
        }
        if let Some((own, all)) = at_once {
            let evidence = format!(
                "{} with {} at the same time, re-tested {} against {}; {figures} alone",
                times(all.value, all.interval),
                plural(together.len(), "pair"),
                plural(all.rounds, "time"),
                self.controls(&together),
            );
            return (Judgement::Together(evidence), Some([0.0, own.value]));
        }
        match self.unstable(&alone) {
            Some(tests) => {
                let evidence = format!(
                    "re-tested {} against {}: {}",
                    plural(own.rounds, "time"),
                    self.controls(&alone),
                    range(&tests, "test"),
                );
                (Judgement::Unstable(evidence), None)
            }
            None => (Judgement::NotConfirmed(evidence), None),
        }
    }

    /// The comparisons with tests, of several at the same time or alone.
    fn numbers(&self, together: bool) -> Vec<u32> {
        let all = (0u32..).zip(&self.suspect.comparisons).filter(|(_, one)| one.together == together);
        all.map(|(number, _)| number).filter(|number| !self.of_comparison(*number).is_empty()).collect()
    }

    fn rounds(&self) -> BTreeSet<u32> {
        self.logs.keys().map(|(round, ..)| *round).collect()
    }

    /// The logarithm of a comparison's ratio in a repetition.
    fn ratio(&self, round: u32, number: u32) -> Option<f64> {
        let log = |control: bool| self.logs.get(&(round, number, control)).copied().flatten();
        Some(log(false)? - log(true)?)
    }

    fn of_comparison(&self, number: u32) -> Vec<f64> {
        self.rounds().into_iter().filter_map(|round| self.ratio(round, number)).collect()
    }

    /// The mean of the ratios over the repetitions. A repetition counts with all of these comparisons, so that a lost one does not look
    /// like a change.
    fn mean(&self, numbers: &[u32], less: impl Fn(u32) -> f64) -> Option<Mean> {
        let of_round = |round: u32| {
            let ratios = numbers.iter().map(|number| Some(self.ratio(round, *number)? - less(*number)));
            mean(&ratios.collect::<Option<Vec<f64>>>()?)
        };
        let means: Vec<f64> = self.rounds().into_iter().filter_map(of_round).collect();
        let (rounds, n) = (means.len(), means.len() as f64);
        let (value, sd) = mean(&means).zip(sample_sd(&means)).filter(|_| rounds >= LEAST_ROUNDS)?;
        let difference = MeanDifference { value, standard_error: sd / n.sqrt(), df: n - 1.0 };
        Some(Mean { value, interval: difference.interval(self.header.stopping.confidence)?, rounds })
    }

    /// What was measured.
    fn measured(&self, numbers: &[u32]) -> Option<Mean> {
        self.mean(numbers, |_| 0.0)
    }

    /// The same without what is confirmed of others.
    fn own(&self, numbers: &[u32]) -> Option<Mean> {
        self.mean(numbers, |number| self.explained(number))
    }

    fn is_confirmed(&self, own: &Mean) -> bool {
        own.value * self.suspect.log > 0.0 && !own.interval.contains(0.0) && own.value.abs() >= LEAST.ln()
    }

    /// What others that are confirmed explain of a comparison, each with its logarithm.
    fn explanations(&self, number: u32) -> Vec<(&Of, f64)> {
        let Some(comparison) = self.suspect.comparisons.get(number as usize) else { return Vec::new() };
        let covers = |of: &Of, cell: u32| {
            let [from, to] =
                [Factor::FROM, Factor::TO].map(|factor| host_name(self.header, cell, factor).unwrap_or(""));
            of.covers([from, to], [from, to].map(|host| self.plan.cluster_of(host)))
        };
        let all = self.confirmed.iter().filter(|one| one.kind == self.suspect.kind && one.of != self.suspect.of);
        all.filter_map(|one| match (covers(&one.of, comparison.suspect), covers(&one.of, comparison.control)) {
            (true, false) => Some((&one.of, one.values[usize::from(comparison.together)])),
            (false, true) => Some((&one.of, -one.values[usize::from(comparison.together)])),
            _ => None,
        })
        .collect()
    }

    fn explained(&self, number: u32) -> f64 {
        self.explanations(number).into_iter().map(|(_, value)| value).sum()
    }

    /// How much of the mean ratio others explain, in words.
    fn explained_by(&self, numbers: &[u32]) -> String {
        let all: Vec<(&Of, f64)> = numbers.iter().flat_map(|number| self.explanations(*number)).collect();
        let sum: f64 = all.iter().map(|(_, value)| value).sum::<f64>() / numbers.len().max(1) as f64;
        if sum.abs() < EXPLAINS.ln() {
            return String::new();
        }
        let mut names: Vec<String> = all.iter().map(|(of, _)| of.subject()).collect();
        names.sort();
        names.dedup();
        let verb = if names.len() == 1 { "explains" } else { "explain" };
        let side = if sum < 0.0 { "lower" } else { "higher" };
        let ratio = model::units::three_digits(sum.abs().exp());
        format!(", of which {} {verb} {ratio} times {side}", names.join(" and "))
    }

    /// The tests of a pair, if too many of them are slow for chance.
    fn unstable(&self, numbers: &[u32]) -> Option<Rounds> {
        let Of::Pair { from, to, .. } = &self.suspect.of else { return None };
        let place = *self.matrix.pairs.places().get(&[from.as_str(), to.as_str()])?;
        let sign = self.matrix.pairs.slow();
        let (mut ratios, mut nothing, mut disturbed) = (Vec::new(), 0, Vec::new());
        for number in numbers {
            let of = |control: bool| -> Vec<Option<f64>> {
                let own = self.logs.iter().filter(|((_, of, is_control), _)| of == number && *is_control == control);
                own.map(|(_, log)| *log).collect()
            };
            let controls: Vec<f64> = of(true).into_iter().flatten().collect();
            let Some(level) = median(&controls) else { continue };
            disturbed.extend(controls.iter().map(|log| self.variation.is_slow(log - level, sign)));
            let own = of(false);
            nothing += own.iter().filter(|log| log.is_none()).count();
            ratios.extend(own.into_iter().flatten().map(|log| log - level - self.explained(*number)));
        }
        ratios.sort_by(|a, b| (a * sign).total_cmp(&(b * sign)));
        let range = [*ratios.first()?, *ratios.last()?];
        let slow = nothing + ratios.iter().filter(|ratio| self.variation.is_slow(**ratio, sign)).count();
        let all = nothing + ratios.len();
        let others = disturbed.iter().filter(|slow| **slow).count() as f64 / disturbed.len() as f64;
        let error = (1.0 - self.header.stopping.confidence) / MOST_SUSPECTS as f64;
        let is_unstable = slow >= LEAST_SLOW && self.variation.chance(place, slow, all, others) <= error;
        is_unstable.then_some(Rounds { slow, all, nothing, range, vary: true })
    }

    /// The pairs that the suspect was compared with.
    fn controls(&self, numbers: &[u32]) -> String {
        let mut names: Vec<String> = Vec::new();
        for number in numbers {
            let Some(comparison) = self.suspect.comparisons.get(*number as usize) else { continue };
            let name = pair_name(self.header, comparison.control);
            if !names.contains(&name) {
                names.push(name);
            }
        }
        let more = names.len().saturating_sub(MOST_NAMES);
        if more > 0 {
            names.truncate(MOST_NAMES);
            names.push(format!("{more} more"));
        }
        match names.pop() {
            Some(last) if names.is_empty() => last,
            Some(last) => format!("{} and {last}", names.join(", ")),
            None => String::new(),
        }
    }

    /// The partners with which a host is not slow, of those that it was tested with.
    fn exceptions(&self, numbers: &[u32], value: f64) -> String {
        let Of::Host { role, .. } = &self.suspect.of else { return String::new() };
        let (factor, word) = if *role == Side::Rows { (Factor::TO, "to") } else { (Factor::FROM, "from") };
        let alike = |number: &&u32| {
            mean(&self.of_comparison(**number)).is_some_and(|own| (own - self.explained(**number)) / value < 0.5)
        };
        let cells = numbers.iter().filter(alike).filter_map(|number| self.suspect.comparisons.get(*number as usize));
        let names: Vec<&str> = cells.filter_map(|one| host_name(self.header, one.suspect, factor)).collect();
        if names.is_empty() { String::new() } else { format!(", but not {word} {}", names.join(" and ")) }
    }
}

/// The hosts of a cell, as `a → b`.
#[must_use]
pub fn pair_name(header: &RunHeader, cell: u32) -> String {
    let [from, to] = [Factor::FROM, Factor::TO].map(|factor| host_name(header, cell, factor).unwrap_or_default());
    format!("{from} → {to}")
}

fn host_name<'a>(header: &'a RunHeader, cell: u32, factor: &str) -> Option<&'a str> {
    let cell: &Cell = Cell::find(&header.cells, cell)?;
    cell.levels.get(factor).map(String::as_str)
}
