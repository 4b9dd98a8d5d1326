//! The parts of the page.

mod host_activity;
mod inventory;

use maud::{Markup, PreEscaped, html};
use model::{Figure, FindingKind, Order, Run, Stopping, units};

use super::table::OutcomeTable;
use crate::draw::{NARROW, Use, WIDTH, draw};
use crate::{advice, anatomy, captures, ceiling_cost, labels, one_way, sides};
pub(super) use host_activity::section as host_activity;

/// Longer tables are folded.
const LONG: usize = 40;

pub(super) fn findings(runs: &[Run]) -> Markup {
    html! {
        section {
            h2 { "Findings" }
            @for run in runs {
                @if runs.len() > 1 { (heading(run)) }
                @if run.findings.is_empty() {
                    p.muted { "None for this run." }
                } @else {
                    ul.findings {
                        @for finding in &run.findings {
                            li { span.kind { (kind(finding.kind)) } " " (finding.statement) }
                        }
                    }
                }
                @let persistent = advice::persistent(run);
                @if !persistent.is_empty() {
                    h3 { "To keep these settings" }
                    pre.command { (persistent.join("\n")) }
                }
            }
        }
    }
}

/// The heading of one of several runs, with its id, because titles may be equal.
fn heading(run: &Run) -> Markup {
    html! { h3 { (labels::title(run)) " " span.id { (run.header.id) } } }
}

fn kind(kind: FindingKind) -> &'static str {
    match kind {
        FindingKind::Latency => "latency",
        FindingKind::Path => "path",
        FindingKind::Peak => "peak",
        FindingKind::Saturation => "saturation",
        FindingKind::HalfPeak => "half peak",
        FindingKind::Anomaly => "anomaly",
        FindingKind::Connections => "connections",
        FindingKind::Difference => "difference",
        FindingKind::Effect => "effect",
        FindingKind::Asymmetry => "asymmetry",
        FindingKind::Outlier => "outlier",
        FindingKind::Best => "best",
        FindingKind::Advice => "advice",
        _ => "note",
    }
}

pub(super) fn figures(figures: &[Figure]) -> Markup {
    html! {
        section {
            h2 { "Figures" }
            @for figure in figures {
                (drawn(figure))
            }
        }
    }
}

/// A figure in two sizes: a window shows the one whose texts are readable in it.
fn drawn(figure: &Figure) -> Markup {
    html! {
        div.figure {
            (PreEscaped(draw(figure, Use::Inline, WIDTH)))
            (PreEscaped(draw(figure, Use::Inline, NARROW)))
        }
    }
}

/// The tables of plans.
pub(super) fn plans(runs: &[Run]) -> Markup {
    html! {
        @for run in runs.iter().filter(|run| run.header.plan.is_some()) {
            section {
                h2 { "Tables" }
                @if runs.len() > 1 { (heading(run)) }
                @if let Some(plan) = &run.header.plan {
                    @for line in [&plan.title, &plan.question].into_iter().flatten() { p { (line) } }
                }
                @for table in crate::plan::text_tables(run) {
                    h3 { (table.title) }
                    div.wide { table {
                        thead { tr { @for title in &table.head { th { (title) } } } }
                        tbody {
                            @for row in &table.rows {
                                tr { @for (column, cell) in row.iter().enumerate() {
                                    td class=(if column == 0 { "words" } else { "number" }) { (cell) }
                                } }
                            }
                        }
                    } }
                }
            }
        }
    }
}

pub(super) fn outcomes(runs: &[Run]) -> Markup {
    html! {
        section {
            h2 { "Outcomes" }
            @for run in runs {
                @let table = OutcomeTable::new(run);
                @if runs.len() > 1 { (heading(run)) }
                @if table.rows.is_empty() {
                    p.muted { "This run has no outcome." }
                } @else if table.rows.len() > LONG {
                    details { summary { (table.rows.len()) " outcomes" } (outcome_table(&table)) }
                } @else {
                    (outcome_table(&table))
                }
                @if !table.shared.is_empty() { p.muted { "All outcomes: " (labels::verdicts(&table.shared)) } }
                (notes_of(run))
                (verdicts(run))
            }
        }
    }
}

fn outcome_table(table: &OutcomeTable) -> Markup {
    let class = |column: usize| if table.numeric.get(column) == Some(&true) { "number" } else { "words" };
    html! {
        div.wide { table {
            thead { tr { @for (column, title) in table.head.iter().enumerate() { th class=(class(column)) { (title) } } } }
            tbody {
                @for row in &table.rows {
                    tr { @for (column, cell) in row.iter().enumerate() { td class=(class(column)) { (cell) } } }
                }
            }
        } }
    }
}

/// One-way delays, the anatomy of round trips, ceiling and cost, captures, limiters, and the bounds above the ceiling.
fn notes_of(run: &Run) -> Markup {
    let mut lines = one_way::of_run(run);
    lines.extend(anatomy::of_run(run));
    lines.extend(ceiling_cost::of_run(run));
    lines.extend(captures::of_run(run).into_iter().map(|line| format!("capture, {line}")));
    let others: Vec<String> = run.outcomes.first().map(ceiling_cost::other_bounds).unwrap_or_default();
    let limiters = crate::limiter::limiters(run);
    html! {
        @if !lines.is_empty() || !limiters.is_empty() {
            ul.findings {
                @for line in lines { li { (line) } }
                @for line in limiters { li { (line) } }
                @if !others.is_empty() { li { "higher bounds: " (others.join("; ")) } }
            }
        }
    }
}

fn verdicts(run: &Run) -> Markup {
    let all = labels::verdicts_of(sides::shown(run));
    html! {
        @if !all.is_empty() {
            dl.verdicts {
                @for verdict in all {
                    div { dt { (labels::verdict(verdict)) } dd { (analysis::outcome::explain(verdict)) } }
                }
            }
        }
    }
}

pub(super) fn hosts(runs: &[Run]) -> Markup {
    html! {
        section {
            h2 { "Hosts" }
            @for run in runs {
                @if runs.len() > 1 { (heading(run)) }
                @if let Some(map) = crate::topology(run) { (drawn(&map)) }
                (inventory::side_by_side(&run.header))
            }
        }
    }
}

/// The source of an imported run.
fn imported(origin: &model::Origin) -> Markup {
    html! {
        dl.facts {
            div { dt { "measured by" } dd { (labels::plain(&origin.tool)) " " (labels::plain(origin.version.as_deref().unwrap_or_default())) } }
            div { dt { "imported from" } dd { (labels::plain(&origin.file)) } }
            div { dt { "SHA-256 of the file" } dd { (labels::plain(&origin.sha256)) } }
            @if !origin.unknown.is_empty() {
                div { dt { "fields not imported" } dd { (labels::plain(&origin.unknown.join(", "))) } }
            }
        }
    }
}

pub(super) fn method(runs: &[Run]) -> Markup {
    html! {
        section {
            h2 { "How it was measured" }
            @for run in runs {
                @if runs.len() > 1 { (heading(run)) }
                pre.command { (command_line(&run.header.command)) }
                @let tool = &run.header.tool;
                @if let Some(origin) = &run.header.origin {
                    (imported(origin))
                } @else { dl.facts {
                    div { dt { "stop rule" } dd { (stop_rule(&run.header.stopping)) } }
                    div { dt { "order of the cells" } dd { (order(&run.header.stopping)) } }
                    div { dt { "passes (each over fresh connections)" } dd { (run.passes.len()) } }
                    @if let Some(ending) = &run.ending {
                        div { dt { "duration" } dd { (units::seconds(ending.duration_ns as f64)) } }
                    }
                    @for cited in ceiling_cost::selftests(run) { div { dt { "self-test" } dd { (cited) } } }
                    div { dt { "version, near and far" } dd { (tool.near_version) " and " (tool.far_version) } }
                    div {
                        dt { "cost of a clock read, near and far" }
                        dd { (units::seconds(tool.near_clock_ns)) " and " (units::seconds(tool.far_clock_ns)) }
                    }
                } }
            }
            p.muted {
                "Rates are decimal bit/s, sizes binary. The NetPIPE rate is a block's bits over half the round trip, by "
                "NetPIPE's convention; half a round trip is not a one-way delay. ± is half the width of the interval relative to the value."
            }
        }
    }
}

fn stop_rule(stopping: &Stopping) -> String {
    let budget =
        stopping.budget_ns.map_or(String::new(), |ns| format!(", at most {} in total", units::seconds(ns as f64)));
    format!(
        "± {} % at {} % confidence, {} to {} trials{budget}",
        labels::percent(stopping.target),
        labels::percent(stopping.confidence),
        stopping.min_trials,
        stopping.max_trials
    )
}

fn order(stopping: &Stopping) -> String {
    match stopping.order {
        Order::AsWritten => "as written in the plan".to_owned(),
        Order::Ascending => "small blocks first".to_owned(),
        Order::Random => format!("random in each pass, seed {}", stopping.seed),
    }
}

/// The command line, with words quoted that a shell would split or expand.
fn command_line(words: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=,%+@".contains(c);
    let quote = |word: &String| {
        if !word.is_empty() && word.chars().all(plain) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', "'\\''"))
        }
    };
    words.iter().map(quote).collect::<Vec<_>>().join(" ")
}

/// A hint to run the self-test on hosts without one.
pub(super) fn untested(runs: &[Run]) -> Markup {
    let mut hosts: Vec<&str> = Vec::new();
    for host in runs.iter().flat_map(|run| [&run.header.near, &run.header.far]).filter(|host| host.selftest.is_none()) {
        let name = host.hostname.as_deref().unwrap_or("an unnamed host");
        if !hosts.contains(&name) {
            hosts.push(name);
        }
    }
    html! {
        @if !hosts.is_empty() {
            p { "No self-test is known for " (hosts.join(" and ")) ": run " code { "thru selftest" } " there." }
        }
    }
}
