//! The report for a terminal. It has no colours and no control codes, so that it can be a file or a mail too.

use model::{FindingKind, Run, RunKind, Scale, units};
use text::Text;

use super::table::OutcomeTable;
use super::{
    advice_screen, answer, braille, check_screen, curve_screen, groups, mesh_screen, pair_screen, plan_screen,
    traffic_screen,
};
use crate::grid::Grid;
use crate::headline::headline;
use crate::lines::wrapped;
use crate::screens::host;
use crate::sections::limiter::limiters;
use crate::sections::{
    adapters, advice, anatomy, captures, ceiling_cost, each_direction, host_activity, one_way, plan_answer, sides,
};
use crate::view::stem;
use crate::{Layout, Piece, ReportError, View, labels};

pub(super) fn render(view: &View<'_>) -> Result<Vec<Piece>, ReportError> {
    view.some_run("text")?;
    if view.runs.len() > 1 && view.whole.is_some() && view.runs.iter().all(is_curve) {
        let heads: String = view.runs.iter().map(|run| header(run, view.layout)).collect();
        let merits: String = view.runs.iter().map(|run| merit(run, view)).collect();
        let text = format!("{heads}\n{}{merits}", curve_screen::side_by_side(view.runs, view.layout));
        return Ok(vec![Piece::new(stem(view.runs), "txt", text.into_bytes())]);
    }
    let reports: Vec<String> = view.runs.iter().map(|run| report(run, view) + &merit(run, view)).collect();
    Ok(vec![Piece::new(stem(view.runs), "txt", reports.join("\n").into_bytes())])
}

/// Rate times distance, if a distance is given.
fn merit(run: &Run, view: &View<'_>) -> String {
    let mut text = String::new();
    if let Some(distance) = view.distance {
        text.push('\n');
        wrapped("Rate × distance:", &distance.sentence(run), view.layout, &mut text);
    }
    text
}

fn report(run: &Run, view: &View<'_>) -> String {
    let mut text = header(run, view.layout);
    text.extend(view.whole.and_then(|whole| kept(run, whole)));
    if let Some(whole) = view.whole.filter(|_| check_screen::is_of(run)) {
        return text + "\n" + &check_screen::screen(run, view.layout, whole);
    }
    if let Some((whole, outcome)) = view.whole.zip(answer::of(run)) {
        return text + "\n" + &answer::screen(run, outcome, view.layout, whole);
    }
    if let Some(whole) = view.whole.filter(|_| advice_screen::is_of(run)) {
        return text + "\n" + &advice_screen::screen(run, view.layout, whole);
    }
    if let Some(whole) = view.whole.filter(|_| pair_screen::is_of(run)) {
        return text + "\n" + &pair_screen::screen(run, view.layout, whole);
    }
    if let Some(whole) = view.whole.filter(|_| is_curve(run)) {
        return text + "\n" + &curve_screen::screen(run, view.layout, whole);
    }
    if let Some(whole) = view.whole.filter(|_| traffic_screen::is_of(run)) {
        return text + "\n" + &traffic_screen::screen(run, view.layout, whole);
    }
    if let Some(whole) = view.whole.filter(|_| mesh_screen::is_of(run)) {
        return text + "\n" + &mesh_screen::screen(run, view.layout, whole);
    }
    if let Some(whole) = view.whole.filter(|_| groups::is_of(run)) {
        return text + "\n" + &groups::screen(run, view.layout, whole);
    }
    if let Some(whole) = view.whole.filter(|_| plan_answer::is_of(run)) {
        return text + "\n" + &plan_screen::screen(run, view.layout, whole);
    }
    if plan_answer::is_of(run) {
        text += &format!("\n{}", plan_screen::answer(run, view.layout));
    } else if !run.outcomes.is_empty() {
        text.push('\n');
        wrapped("", &headline(run), view.layout, &mut text);
    }
    if run.header.kind == RunKind::Environment {
        text.push_str(&format!("\n{}", host::environment(&run.header.near)));
    }
    text.push_str(&crate::screens::plan::in_text(run, view.layout));
    if let Some(adapters) = adapters::of_run(run) {
        text.push('\n');
        wrapped("Adapters: ", &adapters, view.layout, &mut text);
    }
    if !run.outcomes.is_empty() {
        text.push_str(&format!("\n{}\n", table(run, view.layout)));
    }
    if view.plot {
        // One or two points need no plot beside the table.
        let figures = crate::figures(std::slice::from_ref(run));
        // Between categories there are no lines.
        let mut of_numbers = figures.iter().filter(|f| f.x.scale != Scale::Names);
        let lines = of_numbers.find(|f| f.series.iter().all(|series| !series.stacked));
        let figure = lines.filter(|f| f.series.iter().any(|series| series.points.len() > 2));
        let plot = figure.map(|figure| braille::plot(figure, view.layout.width(), 14)).unwrap_or_default();
        if !plot.is_empty() {
            text.push_str(&format!("\n{plot}"));
        }
    }
    let findings: Vec<Text> = run.findings.iter().map(|finding| finding.statement.clone()).collect();
    text.push_str(&section("Findings", &findings, view.layout));
    text.push_str(&persistent(run));
    text.push_str(&anatomy::in_text(run, view.layout));
    text.push_str(&section("Directions", &each_direction::of_run(run), view.layout));
    text.push_str(&section("One-way delay", &one_way::of_run(run), view.layout));
    // For the many cells of a plan, they are only on the page and in the JSON document.
    let ceilings = if run.header.plan.is_none() { ceiling_cost::of_run(run) } else { Vec::new() };
    text.push_str(&section("Ceiling and cost", &ceilings, view.layout));
    text.push_str(&section("Host activity", &host_activity::notable(run), view.layout));
    text.push_str(&section("Captures", &captures::of_run(run), view.layout));
    let verdicts = labels::verdicts_of(sides::shown(run));
    let meanings: Vec<Text> = verdicts.into_iter().map(|one| labels::meaning(run, one)).collect();
    text.push_str(&section("Verdicts", &meanings, view.layout));
    text.push_str(&section("Self-test", &ceiling_cost::selftests(run), view.layout));
    text.push_str(&limited_by(run, view));
    text
}

/// Whether a run is a curve with an answer. An import may hold anything under that name; a curve has a peak.
fn is_curve(run: &Run) -> bool {
    let found = || run.findings.iter().any(|finding| finding.kind == FindingKind::Peak);
    run.header.kind == RunKind::Curve && !run.outcomes.is_empty() && (run.header.origin.is_none() || found())
}

/// What limited each outcome; without lesser causes where only the answer is asked for.
fn limited_by(run: &Run, view: &View<'_>) -> String {
    let mut text = String::new();
    for line in limiters(run, view.whole.is_none()) {
        wrapped("", &line, view.layout, &mut text);
    }
    if text.is_empty() { text } else { format!("\n{text}") }
}

/// What was measured, between which hosts and when; then how the run ended.
fn header(run: &Run, layout: Layout) -> String {
    let header = &run.header;
    let [transport, pattern] = [
        labels::distinct(run, |spec| spec.transport.to_string()),
        labels::distinct(run, |spec| spec.pattern.to_string()),
    ];
    // A run without measurements, such as a host's settings, is described by its kind.
    let what = if transport.is_empty() { header.kind.to_string() } else { format!("{transport} {pattern}") };
    let mut text = format!(
        "{}: {}, {}, {} (run {})\n",
        labels::plain(&labels::title(run)),
        labels::plain(&what),
        labels::plain(&labels::hosts(run)),
        labels::begun(run),
        labels::plain(&header.id),
    );
    let speak = |cell: &model::Cell| cell.spec.speak.as_ref().map(ToString::to_string);
    let programs: std::collections::BTreeSet<Option<String>> = header.cells.iter().map(speak).collect();
    if programs.len() > 1 {
        let programs: Vec<String> = programs.into_iter().flatten().collect();
        let programs = labels::plain(&programs.join(" or "));
        text.push_str(&format!("The far end of some cells is {programs}; its figures are those that it reported.\n"));
    } else if header.cells.iter().any(|cell| cell.spec.speak.is_some()) {
        let far = labels::plain(&header.tool.far_version);
        let reports = |cell: &model::Cell| cell.spec.speak.is_some_and(|program| program.reports(cell.spec.pattern));
        let reports = header.cells.iter().any(reports);
        let whose = if reports {
            "; its figures are those that it reported"
        } else {
            ", which reports nothing; all figures are those of this end"
        };
        text.push_str(&format!("The far end is {far}{whose}.\n"));
    }
    match &run.ending {
        None => text.push_str("The run has not finished.\n"),
        // An import has the duration of each measurement in its rows.
        Some(_) if header.origin.is_some() => {}
        Some(ending) => {
            let took = units::seconds(ending.duration_ns as f64);
            let why = ending.error.as_ref().map(|why| format!(": {}", layout.shown(why))).unwrap_or_default();
            text.push_str(&format!("{} after {took}{why}\n", text::capitalised(&labels::plain(&ending.how))));
        }
    }
    text
}

/// What was measured before a run failed, and how to see it again.
fn kept(run: &Run, whole: &str) -> Option<String> {
    run.ending.as_ref().filter(|ending| ending.how == "failed")?;
    let trials: usize = run.outcomes.iter().map(|outcome| outcome.trials.len()).sum();
    // A run that is not stored cannot be shown again.
    let again = whole.contains(&run.header.id).then(|| format!("; `thru show {}` prints it again", run.header.id));
    Some(match trials {
        0 => "No trial had ended, so there is no result beyond the lines printed while it ran.\n".to_owned(),
        1 => format!("One trial had ended{}.\n", again.unwrap_or_default()),
        _ => format!("{trials} trials had ended{}.\n", again.unwrap_or_default()),
    })
}

fn table(run: &Run, layout: Layout) -> String {
    let of = OutcomeTable::new(run);
    let text = Grid { head: &of.head, rows: &layout.rows(&of.rows), numeric: &of.numeric, names: of.names }
        .text(layout.columns);
    if of.shared.is_empty() { text } else { format!("{text}\nall outcomes: {}", labels::verdicts(&of.shared)) }
}

/// How to make the result of `thru advise` persistent. The lines are not wrapped, because commands are copied.
fn persistent(run: &Run) -> String {
    let lines = advice::persistent(run);
    if lines.is_empty() {
        return String::new();
    }
    format!("\nTo keep these settings\n{}\n", lines.join("\n"))
}

/// A title and its entries, wrapped; nothing if there are none.
fn section(title: &str, entries: &[Text], layout: Layout) -> String {
    if entries.is_empty() {
        return String::new();
    }
    let mut text = format!("\n{title}\n");
    for entry in entries {
        wrapped("- ", entry, layout, &mut text);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    fn rendered(run: Run, columns: u16) -> String {
        let pieces = render(&View { layout: Layout { columns, ..Layout::default() }, ..View::new(&[run]) }).unwrap();
        String::from_utf8(pieces.into_iter().next().unwrap().bytes).unwrap()
    }

    #[test]
    fn a_curve_has_its_table_plot_findings_and_verdicts() {
        let run = sample::curve();
        let text = rendered(run.clone(), 100);
        assert!(text.starts_with("curve to beta: tcp pingpong, alpha to beta, 2026-11-21 20:37:58 UTC"), "{text}");
        assert_eq!(
            text.lines().filter(|line| line.starts_with(' ') && line.contains("bit/s") && line.contains('±')).count(),
            124,
            "{text}"
        );
        assert!(text.contains("NetPIPE ") && text.contains("RTT"));
        assert!(text.chars().any(|c| ('\u{2801}'..='\u{28ff}').contains(&c)), "a plot");
        assert!(run.findings.iter().all(|finding| { text.replace("\n  ", " ").contains(&finding.statement.plain()) }));
        assert!(text.contains("target-missed: up to ±2.3 %, wanted ±2 %: --budget "), "{text}");
    }

    #[test]
    fn a_failed_run_says_what_is_kept_of_it() {
        let mut run = sample::stream();
        let ending = run.ending.as_mut().unwrap();
        (ending.how, ending.error) = ("failed".to_owned(), Some("lost the connection".into()));
        let whole = format!("`thru show {} -v`", run.header.id);
        let text = |run: &Run| {
            let view = View { whole: Some(&whole), ..View::new(std::slice::from_ref(run)) };
            String::from_utf8(render(&view).unwrap().remove(0).bytes).unwrap()
        };
        let kept = format!(" trials had ended; `thru show {}` prints it again.\n\nGoodput ", run.header.id);
        assert!(text(&run).contains(&kept), "{}", text(&run));
        run.outcomes.clear();
        assert!(text(&run).contains("\nNo trial had ended, so there is no result beyond"), "{}", text(&run));
    }

    #[test]
    fn the_width_is_kept() {
        for run in [sample::curve(), sample::stream(), sample::rr(), sample::pair()] {
            for columns in [60, 80, 120] {
                let text = rendered(run.clone(), columns);
                let body = text.lines().skip(2);
                let widest = body.map(|line| line.chars().count()).max().unwrap();
                assert!(widest <= usize::from(columns), "{widest} of {columns}:\n{text}");
            }
        }
    }

    #[test]
    fn ceiling_cost_and_self_test_are_in_order() {
        let mut run = sample::pair();
        let cited = model::SelfTestCitation { version: "0.1.0".into(), ..Default::default() };
        run.header.near.selftest = Some(cited);
        let text = rendered(run, 100);
        let at = |words: &str| text.find(words).unwrap_or_else(|| panic!("{words} in:\n{text}"));
        assert!(at("Findings") < at("Ceiling and cost") && at("Ceiling and cost") < at("Self-test"));
        assert!(text.contains(" of at most 9.41 Gbit/s (MTU 1500 on 10 Gbit/s)"), "{text}");
        assert!(text.contains("version 0.1.0: 0 of 0 checks passed"), "{text}");
        assert!(!rendered(sample::stream(), 100).contains("Self-test"));
    }

    #[test]
    fn the_last_lines_name_what_limited_the_sides() {
        let mut run = sample::pair();
        for outcome in &mut run.outcomes {
            outcome.summary.why =
                Some(sample::why("9.41 Gbit/s is 99.9 % of what MTU 1500 on 10 Gbit/s leaves").into());
        }
        let text = rendered(run, 100);
        let last = text.trim_end().rsplit("\n\n").next().unwrap();
        assert!(
            last.starts_with("A, limited by: link rate (strong):")
                && last.contains("\nB, limited by: link rate (strong):"),
            "{text}"
        );
        assert!(!rendered(sample::pair(), 100).contains("limited by"));
    }

    #[test]
    fn each_cell_of_a_plan_is_named_beside_what_limited_it() {
        let mut run = sample::planned();
        run.outcomes.iter_mut().for_each(|outcome| outcome.summary.why = Some(sample::why("a standing queue").into()));
        let text = rendered(run.clone(), 100);
        let levels = &run.header.cells[run.outcomes[0].cell as usize].levels;
        let (factor, level) = levels.first_key_value().unwrap();
        let line = text.lines().find(|line| line.contains("limited by: ")).unwrap();
        assert!(line.starts_with(&format!("{factor} {level}, ")), "{text}");
    }

    #[test]
    fn names_cannot_move_the_cursor() {
        let text = rendered(sample::hostile(), 100);
        assert!(!text.contains('\u{1b}') && !text.contains('\u{7}'), "{text:?}");
    }
}
