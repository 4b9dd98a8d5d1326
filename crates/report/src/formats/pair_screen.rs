//! The answer of `thru ab` on one screen: whether B is worse than A, and what else differs between them.

use analysis::compare::{SideDifference, SideFigure, SideFigureKind, paired_figures};
use analysis::stats::ConfidenceInterval;
use model::{Answer, FindingKind, Outcome, Run, RunKind};
use text::units::three_digits;
use text::{Count, Rate, Said, Text, Time, User, say};

use crate::lines::wrapped;
use crate::sections::sides;
use crate::sections::usable::is_usable;
use crate::{Layout, headline, labels};

/// Width of the names of the figures, and the least of a side's column.
const NAME: usize = 16;
const SIDE: usize = 14;
/// Columns of a difference with its interval.
const DIFFERENCE: usize = 26;

/// Whether the run is a comparison of two sides.
pub(super) fn is_of(run: &Run) -> bool {
    run.header.kind == RunKind::Ab && run.header.origin.is_none() && run.outcomes.len() == 2
}

/// The screen; `whole` is how to see the rest.
pub(super) fn screen(run: &Run, layout: Layout, whole: &str) -> String {
    let mut text = String::new();
    wrapped("", &answer(run).unwrap_or_else(|| headline::headline(run)).capitalised(), layout, &mut text);
    if let [a, b] = run.outcomes.as_slice() {
        text.push_str(&table(run, &figures(run, [a, b]), layout));
    }
    let more = say!("{whole}: trials, limits, cost, caveats");
    wrapped("More: ", &more, layout, &mut text);
    text
}

/// The figures of both sides with their differences, and what limited each, as rows; none if a side is not to be used.
pub(super) fn rows(run: &Run) -> Vec<(&'static str, Text)> {
    let [a, b] = run.outcomes.as_slice() else { return Vec::new() };
    if [a, b].into_iter().any(|outcome| headline::reason(outcome).is_some()) {
        return Vec::new();
    }
    let row = |figure: SideFigure| {
        let [a, b] = [figure.a, figure.b].map(|side| value(figure.of, side));
        let difference = figure.difference.map(|difference| format!(": {}", changed(figure.of, difference)));
        (heading(figure.of), say!("A {a}, B {b}{}", difference.unwrap_or_default()))
    };
    let limits = [a, b].map(headline::limits);
    let said = limits.iter().zip(["A", "B"]).filter(|(limits, _)| !limits.is_empty());
    let limits = Text::join(said.map(|(limits, side)| say!("{side}: {limits}")), "; ");
    let limits = (!limits.is_empty()).then_some(("Limited by", limits));
    figures(run, [a, b]).into_iter().map(row).chain(limits).collect()
}

/// The figures of both sides; the first has the difference that decided the answer.
fn figures(run: &Run, [a, b]: [&Outcome; 2]) -> Vec<SideFigure> {
    let mut figures = paired_figures(a, b, &run.header.stopping);
    if let Some((first, deciding)) = figures.first_mut().zip(deciding(run)) {
        first.difference = Some(deciding);
    }
    figures
}

/// The answer as a sentence; `None` if a side is not to be used.
fn answer(run: &Run) -> Option<Text> {
    let difference = run.findings.iter().find(|finding| finding.kind == FindingKind::Difference)?;
    let comparison = difference.comparison.as_ref().filter(|_| is_usable(run, difference))?;
    let [a, b] = [0, 1].map(|at| name(run, at));
    let (a, b) = (User(&a), User(&b));
    let by = format!("{} %", labels::percent(comparison.tolerance));
    Some(match comparison.answer {
        Answer::Better => say!("{b} is better than {a} by more than {by}"),
        Answer::NotWorse => say!("{b} is not worse than {a} by more than {by}"),
        Answer::CannotTell => say!("cannot tell whether {b} is worse than {a} by more than {by}"),
        Answer::Worse => say!("{b} is worse than {a} by more than {by}"),
    })
}

/// How many pairs of trials the answer follows from.
fn pairs(run: &Run) -> String {
    let difference = run.findings.iter().find(|finding| finding.kind == FindingKind::Difference);
    let rounds = difference.and_then(|finding| Some(finding.comparison.as_ref()?.ratios.len()));
    rounds.map_or(String::new(), |rounds| format!("{} pairs", 2 * rounds))
}

/// The difference with the interval that decided the answer.
fn deciding(run: &Run) -> Option<SideDifference> {
    let difference = run.findings.iter().find(|finding| finding.kind == FindingKind::Difference)?;
    let comparison = difference.comparison.as_ref()?;
    let bounds = comparison.adjusted_low.zip(comparison.adjusted_high);
    let interval = bounds.map(|(low, high)| ConfidenceInterval { low: low - 1.0, high: high - 1.0 });
    Some(SideDifference { value: difference.estimate.as_ref()?.value - 1.0, interval })
}

fn name(run: &Run, at: usize) -> String {
    let named = run.outcomes.get(at).and_then(|outcome| sides::name(run, outcome));
    labels::plain(&named.unwrap_or_else(|| ["A", "B"][at.min(1)].to_owned()))
}

/// A line for each figure, with both values and the difference.
fn table(run: &Run, figures: &[SideFigure], layout: Layout) -> String {
    let spare = layout.width().saturating_sub(NAME + DIFFERENCE + 4) / 2;
    let names = [0, 1].map(|at| name(run, at));
    let widest = names.iter().map(|name| name.chars().count()).max().unwrap_or(0);
    let side = widest.clamp(SIDE, spare.max(SIDE));
    let cut = |name: &String| match name.chars().count() {
        count if count > side => name.chars().take(side - 1).chain(['…']).collect(),
        _ => name.clone(),
    };
    let line = |[title, a, b, difference]: [&str; 4]| {
        let line = format!("{title:<NAME$}{a:<side$}  {b:<side$}  {difference}");
        format!("{}\n", line.trim_end())
    };
    let percent = labels::percent(run.header.stopping.confidence);
    let mut text = line([&pairs(run), &cut(&names[0]), &cut(&names[1]), &format!("B to A ({percent} % interval)")]);
    for figure in figures {
        let [a, b] = [figure.a, figure.b].map(|side| layout.shown(&value(figure.of, side)));
        let difference = figure.difference.map(|difference| changed(figure.of, difference)).unwrap_or_default();
        text += &line([title(figure.of), &a, &b, &difference]);
    }
    text
}

fn title(of: SideFigureKind) -> &'static str {
    match of {
        SideFigureKind::Goodput => "goodput",
        SideFigureKind::Transactions => "transactions",
        SideFigureKind::RoundTrip => "median RTT",
        SideFigureKind::RoundTripUnderLoad => "RTT under load",
        SideFigureKind::Retransmits => "retransmits",
        SideFigureKind::Lost => "lost",
        SideFigureKind::CpuPerGigabyte | SideFigureKind::CpuPerTransaction => "CPU, both ends",
        _ => "",
    }
}

/// The same at the head of a row.
fn heading(of: SideFigureKind) -> &'static str {
    match of {
        SideFigureKind::Goodput => "Goodput",
        SideFigureKind::Transactions => "Transactions",
        SideFigureKind::RoundTrip => "Median RTT",
        SideFigureKind::Retransmits => "Retransmits",
        SideFigureKind::Lost => "Lost",
        of => title(of),
    }
}

fn value(of: SideFigureKind, value: f64) -> Text {
    match of {
        SideFigureKind::Goodput => Rate(value).say(),
        SideFigureKind::Transactions => labels::quantity(value, "1/s"),
        SideFigureKind::CpuPerGigabyte => say!("{} s/GB", three_digits(value)),
        of if of.is_count() => count(value).into(),
        _ => Time(value).say(),
    }
}

/// A difference with its interval: `+0.3 % (-0.8 % to +1.5 %)`.
fn changed(of: SideFigureKind, SideDifference { value, interval }: SideDifference) -> String {
    let signed = if of.is_count() { signed_count } else { labels::signed };
    let interval = interval.map(|interval| format!(" ({} to {})", signed(interval.low), signed(interval.high)));
    format!("{}{}", signed(value), interval.unwrap_or_else(|| " (no interval)".to_owned()))
}

fn count(value: f64) -> String {
    Count::rounded(value.abs()).to_string()
}

fn signed_count(value: f64) -> String {
    let sign = match value.round() {
        0.0 => "",
        less if less < 0.0 => "-",
        _ => "+",
    };
    format!("{sign}{}", count(value))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn the_answer_is_a_sentence_and_a_line_for_each_figure() {
        let mut run = sample::pair();
        run.header.command = ["thru", "ab", "--a", "--cc cubic", "--b", "--cc bbr", "beta"].map(str::to_owned).to_vec();
        for columns in [80, 100] {
            let text = screen(&run, Layout { columns, ..Layout::default() }, "`thru show x -v`");
            assert!(text.lines().count() <= 8, "{text}");
            assert!(text.lines().all(|line| line.chars().count() <= usize::from(columns)), "{text}");
            assert!(
                text.starts_with("B --cc bbr is not worse than A --cc cubic by more than 1 %\n16 pairs  "),
                "{text}"
            );
            assert!(text.contains("A --cc cubic") && text.contains("B to A (95 % interval)"), "{text}");
            let goodput = text.lines().find(|line| line.starts_with("goodput ")).unwrap();
            assert!(goodput.contains("bit/s") && goodput.contains(" % (") && goodput.ends_with(" %)"), "{text}");
            assert!(text.ends_with("More: `thru show x -v`: trials, limits, cost, caveats\n"), "{text}");
        }
    }

    #[test]
    fn a_side_that_is_not_to_be_used_gives_no_answer() {
        let mut run = sample::pair();
        run.findings[0].cells = vec![0, 1];
        run.outcomes[1].summary.trust = Some(model::Trust::None);
        run.outcomes[1].summary.verdicts.push(model::Verdict::ByteCountMismatch);
        let text = screen(&run, Layout::default(), "");
        assert!(
            text.contains("cannot be compared: B --cc bbr must not be used: ") && !text.contains("not worse"),
            "{text}"
        );
        assert!(rows(&run).is_empty());
    }

    #[test]
    fn differences_of_counts_are_whole() {
        assert_eq!(["+1,204", "-3", "0"], [1204.4, -3.2, 0.0].map(signed_count));
    }
}
