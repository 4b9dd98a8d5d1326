//! The answer of a run, the same wherever it is shown.

use analysis::outcome::{is_unusable, why_unusable};
use model::{
    Answer, CellComparison, Direction, Estimate, Finding, FindingKind, Outcome, Run, RunComparison, RunKind,
    RunSummary, Trust,
};
use text::{Text, User, say};

use crate::labels;
use crate::sections::responsiveness::rpm;
use crate::sections::usable::is_usable;
use crate::sections::{check, next_step, outcome_line, plan_answer, sides, spread};

/// The answer of a run in one line, what limited it, what to do next, and the number that stands for it.
#[must_use]
pub fn summary(run: &Run) -> RunSummary {
    if let Some(checked) = check::summary(run) {
        return RunSummary { headline: headline(run), trust: labels::worst_trust(run), ..checked };
    }
    let only = only(run);
    let limits = only.map(limits).filter(|limits| !limits.is_empty());
    let estimate = match only {
        Some(outcome) => outcome.estimate.as_ref().filter(|_| reason(outcome).is_none()).cloned(),
        None => {
            let usable = found(run).filter(|finding| is_usable(run, finding));
            // The median of both sides of a comparison would describe neither.
            usable
                .and_then(|finding| finding.estimate.clone())
                .or_else(|| median(run).filter(|_| run.header.kind != RunKind::Ab))
        }
    };
    let of = |wanted| {
        let mut each = only.into_iter().filter(|outcome| reason(outcome).is_none()).flat_map(Outcome::directions);
        each.find(|(direction, _)| *direction == wanted).map(|(_, estimate)| estimate)
    };
    RunSummary {
        headline: headline(run),
        limited_by: limits,
        next: only.filter(|outcome| outcome.summary.limits().next().is_some()).map(|only| next_step::of(run, only)),
        estimate,
        outbound: of(Direction::Send),
        return_trip: of(Direction::Reverse),
        trust: labels::worst_trust(run),
    }
}

/// The answer of a run in one line, with its question if it has one, and with the trust of a single value. Says how a run ended that did
/// not finish.
#[must_use]
pub fn headline(run: &Run) -> Text {
    let question = run.header.plan.as_ref().and_then(|plan| plan.question.as_deref());
    let question = question.map_or(Text::default(), |question| say!("{} ", User(question)));
    let ending = match &run.ending {
        Some(ending) if ending.how == "finished" => Text::default(),
        Some(ending) => say!(" ({})", ending.how),
        None => " (not finished)".into(),
    };
    let trust = trust_of_value(run).map_or(Text::default(), |trust| say!(", trust {}", labels::trust(trust)));
    say!("{question}{}{trust}{ending}", answer(run))
}

/// The trust of a run whose answer is one value, or the peak and latency of one curve, unless it must not be used.
fn trust_of_value(run: &Run) -> Option<Trust> {
    let is_curve = run.header.kind == RunKind::Curve && curve(run).is_some();
    let is_one = is_curve || only(run).is_some() || run.outcomes.len() == 1;
    let is_value = is_one && check::headline(run).is_none();
    labels::worst_trust(run).filter(|trust| is_value && *trust != Trust::None)
}

/// How the second of two runs differs from the first, whose names are given, in the cells that may be used.
pub(crate) fn compared(names: [&str; 2], found: &RunComparison) -> Text {
    let [first, second] = names;
    let cells: Vec<&CellComparison> = found.cells.iter().filter(|cell| cell.trust != Some(Trust::None)).collect();
    let of = |answer| cells.iter().filter(|cell| cell.comparison.answer == answer).count();
    let Some(worst) = cells.iter().map(|cell| cell.comparison.answer).max() else {
        return say!("{} and {} cannot be compared: the result of one must not be used", User(first), User(second));
    };
    let answer = difference(worst, first, second);
    if let [only] = cells.as_slice() {
        return say!(
            "{answer}: {} {}",
            analysis::compare::what(&only.unit),
            labels::change(&only.ratio, &only.comparison)
        );
    }
    let kinds = [Answer::Worse, Answer::Better, Answer::NotWorse, Answer::CannotTell].into_iter();
    let counts = kinds.filter(|kind| of(*kind) > 0).map(|kind| say!("{} in {}", labels::answer(kind), of(kind)));
    let some = if worst == Answer::Worse && of(worst) < cells.len() { " in some cells" } else { "" };
    say!("{answer}{some}: of {} cells {}", cells.len(), Text::join(counts, ", "))
}

/// The answer on the second side as a clause.
fn difference(answer: Answer, first: &str, second: &str) -> Text {
    let (first, second) = (User(first), User(second));
    match answer {
        Answer::Better => say!("{second} is better than {first}"),
        Answer::NotWorse => say!("{second} is not worse than {first}"),
        Answer::CannotTell => say!("cannot tell whether {second} is worse than {first}"),
        Answer::Worse => say!("{second} is worse than {first}"),
    }
}

/// The only outcome of a run that was measured as one.
pub(crate) fn only(run: &Run) -> Option<&Outcome> {
    match sides::shown(run).as_slice() {
        [outcome] if run.header.kind != RunKind::Curve => Some(*outcome),
        _ => None,
    }
}

/// The answer of a run without its question, its trust and how it ended.
pub(crate) fn answer(run: &Run) -> Text {
    if let Some(checked) = check::headline(run) {
        return checked;
    }
    if run.header.kind == RunKind::Curve {
        return curve(run).unwrap_or_else(|| of_cells(run));
    }
    if let (RunKind::Ab, [a, b]) = (run.header.kind, run.outcomes.as_slice()) {
        return of_sides(run, a, b);
    }
    if let Some(outcome) = only(run) {
        return of_outcome(outcome);
    }
    if plan_answer::is_of(run) {
        return plan_answer::short(run);
    }
    if let Some(finding) = found(run) {
        let more = match run.findings.iter().filter(|other| other.kind == FindingKind::Outlier).count() {
            others if finding.kind == FindingKind::Outlier && others > 1 => {
                say!(" {} more stand{} out.", others - 1, if others == 2 { "s" } else { "" })
            }
            _ => Text::default(),
        };
        return finding.statement.brief() + more;
    }
    spread::short(run).unwrap_or_else(|| of_cells(run))
}

/// The finding that is the answer of several cells.
fn found(run: &Run) -> Option<&Finding> {
    let of = |kind| run.findings.iter().filter(move |finding| finding.kind == kind);
    match run.header.kind {
        RunKind::Curve => of(FindingKind::Peak).find(|finding| is_usable(run, finding)),
        RunKind::Ab => of(FindingKind::Difference).next(),
        RunKind::Advise => of(FindingKind::Advice).next(),
        _ => {
            let first = [FindingKind::Traffic, FindingKind::Fairness, FindingKind::Outlier, FindingKind::Asymmetry];
            let first = first.into_iter().find_map(|kind| of(kind).next());
            let best = || of(FindingKind::Best).find(|finding| finding.estimate.is_some() && is_usable(run, finding));
            first.or_else(best).or_else(|| of(FindingKind::Effect).find(|finding| is_clear(finding)))
        }
    }
}

/// Whether the interval of a ratio excludes 1.
fn is_clear(finding: &Finding) -> bool {
    let interval = finding.estimate.as_ref().and_then(|ratio| ratio.low.zip(ratio.high));
    interval.is_some_and(|(low, high)| low > 1.0 || high < 1.0)
}

/// The median of the cells that have the unit of the first one with a value. Cells of a plan differ on purpose, so it has no interval.
fn median(run: &Run) -> Option<Estimate> {
    let usable = || run.outcomes.iter().filter(|outcome| !is_unusable(outcome));
    let all = || usable().filter_map(|outcome| outcome.estimate.as_ref());
    let unit = all().next()?.unit.clone();
    let values: Vec<f64> = all().filter(|one| one.unit == unit).map(|one| one.value).collect();
    Some(Estimate {
        statistic: Estimate::MEDIAN_OVER_CELLS.to_owned(),
        unit,
        value: model::median(&values)?,
        low: None,
        high: None,
        confidence: 0.0,
        method: "median".to_owned(),
        n: u32::try_from(values.len()).unwrap_or(u32::MAX),
    })
}

/// Peak and latency of a curve.
fn curve(run: &Run) -> Option<Text> {
    let found = |kind, unit: &str| {
        let finding = run.findings.iter().find(|finding| finding.kind == kind && is_usable(run, finding))?;
        let estimate = finding.estimate.as_ref().filter(|one| one.unit == unit && one.value.is_finite())?;
        Some((estimate, finding.block))
    };
    let peak = found(FindingKind::Peak, "bit/s").map(|(estimate, block)| {
        let at = block.map_or(String::new(), |block| format!(" at {}", labels::block(block)));
        say!("peak {}{at}", labels::estimated(estimate))
    });
    let latency = found(FindingKind::Latency, "ns").map(|(estimate, _)| say!("RTT {}", labels::estimated(estimate)));
    let parts: Vec<Text> = peak.into_iter().chain(latency).collect();
    (!parts.is_empty()).then(|| Text::join(parts, ", "))
}

/// Both sides of a comparison with its answer.
fn of_sides(run: &Run, a: &Outcome, b: &Outcome) -> Text {
    let side = |outcome, letter: &str| sides::name(run, outcome).unwrap_or_else(|| letter.to_owned());
    let (first, second) = (side(a, "A"), side(b, "B"));
    let value = |outcome| outcome_line::value(outcome).unwrap_or_else(|| "no value".into());
    let unusable = [(a, &first), (b, &second)].into_iter().find_map(|(outcome, name)| Some((name, reason(outcome)?)));
    if let Some((name, why)) = unusable {
        return say!(
            "{} and {} cannot be compared: {} must not be used: {why}",
            User(&first),
            User(&second),
            User(name)
        );
    }
    let found = found(run).filter(|finding| is_usable(run, finding));
    let Some((finding, comparison)) = found.and_then(|finding| Some((finding, finding.comparison.as_ref()?))) else {
        return say!("{} {}, {} {}", User(&first), value(a), User(&second), value(b));
    };
    let answer = difference(comparison.answer, &first, &second);
    let what = analysis::compare::what(a.estimate.as_ref().map_or("", |estimate| estimate.unit.as_str()));
    let change = finding.estimate.as_ref().map(|ratio| say!(": {what} {}", labels::change(ratio, comparison)));
    say!("{answer}{}; A {}, B {}", change.unwrap_or_default(), value(a), value(b))
}

/// The values of several cells without a finding, or a note that there are none.
fn of_cells(run: &Run) -> Text {
    match run.outcomes.as_slice() {
        [] => "no outcome".into(),
        [only] => of_outcome(only),
        [first, rest @ ..] => say!("{}; {} more", outcome_line::values(first), rest.len()),
    }
}

/// The answer of one outcome.
fn of_outcome(outcome: &Outcome) -> Text {
    match reason(outcome) {
        Some(why) => say!("no result: {why}"),
        None => say!("{}{}", value(outcome), labels::unsettled(outcome)),
    }
}

/// Responsiveness, or the value with its interval.
fn value(outcome: &Outcome) -> Text {
    let value = outcome_line::values(outcome);
    match rpm(outcome) {
        Some((rpm, confidence)) => say!("{rpm} RPM (confidence {}), {value}", confidence.name()),
        None => value,
    }
}

/// Why an outcome is not to be used, without what to do; `None` of one that may be.
pub(crate) fn reason(outcome: &Outcome) -> Option<Text> {
    (outcome.summary.trust == Some(Trust::None)).then(|| why_unusable(outcome)).flatten()
}

/// What limited an outcome, in a word or two; in both directions, each.
pub(crate) fn limits(outcome: &Outcome) -> Text {
    let of = |(direction, why): (Option<Direction>, &model::Why)| {
        let way = direction.map_or(String::new(), |direction| format!("{}: ", direction.way()));
        say!("{way}{}", analysis::limiter::named(why))
    };
    Text::join(outcome.summary.limits().map(of), "; ")
}

#[cfg(test)]
mod tests {
    use model::Verdict;

    use super::*;
    use crate::{ListedRun, View, sample};

    fn rendered(run: &Run, format: &str) -> String {
        let runs = std::slice::from_ref(run);
        let pieces = (crate::format(format).unwrap().render)(&View::new(runs)).unwrap();
        String::from_utf8(pieces.into_iter().next().unwrap().bytes).unwrap()
    }

    #[test]
    fn an_unusable_result_is_a_reason_and_no_number() {
        let mut run = sample::stream();
        run.outcomes[0].summary.verdicts = vec![Verdict::ByteCountMismatch];
        run.outcomes[0].summary.trust = Some(Trust::None);
        let summary = summary(&run);
        let text = summary.headline.plain();
        assert!(text.starts_with("no result: ") && !text.contains("bit/s"), "{text}");
        assert_eq!((summary.estimate, summary.outbound, summary.trust), (None, None, Some(Trust::None)));
        // The peak of a curve, and the median of cells.
        for mut run in [sample::curve(), sample::planned()] {
            assert!(super::summary(&run).estimate.is_some());
            run.outcomes.iter_mut().for_each(|outcome| outcome.summary.verdicts.push(Verdict::ByteCountMismatch));
            run.outcomes.iter_mut().for_each(|outcome| outcome.summary.trust = Some(Trust::None));
            run.findings.retain(|finding| matches!(finding.kind, FindingKind::Peak | FindingKind::Best));
            assert_eq!(super::summary(&run).estimate, None, "{}", headline(&run).plain());
        }
    }

    #[test]
    fn a_check_has_a_figure_for_each_direction_and_no_number_for_both() {
        let summary = summary(&sample::check());
        assert!(summary.headline.plain().starts_with("2 findings: out 9"), "{}", summary.headline.plain());
        let [out, back] = [summary.outbound, summary.return_trip].map(|estimate| estimate.unwrap().value);
        assert!((9e7..1e8).contains(&out) && (4e7..5e7).contains(&back), "{out} and {back}");
        assert_eq!(summary.estimate, None);
    }

    #[test]
    fn every_output_has_the_same_answer() {
        let runs =
            [sample::stream(), sample::rr(), sample::curve(), sample::pair(), sample::planned(), sample::check()];
        for run in runs {
            let expected = headline(&run).plain();
            let document: serde_json::Value = serde_json::from_str(&rendered(&run, "json")).unwrap();
            assert_eq!(document["summary"]["headline"], expected.as_str());
            let whole = rendered(&run, "text").split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(whole.contains(&expected), "{whole}");
            assert!(ListedRun::from(&run).summary.unwrap().headline.plain().ends_with(&expected));
            // Markdown escapes its own marks.
            let markdown = rendered(&run, "md").replace('\\', "");
            assert!(markdown.contains(&expected), "{markdown}");
        }
    }
}
