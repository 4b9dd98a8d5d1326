//! All that the page says about one run.

use analysis::outcome::explain;
use model::{FindingKind, Run};
use serde::Serialize;
use text::{Text, say};

use super::hosts::{self, Fact};
use super::method::{self, Facts};
use super::pairs::{self, PairPart};
use super::tables::{self, Table};
use crate::formats::answer_rows;
use crate::sections::{
    advice, anatomy, captures, ceiling_cost, each_direction, host_activity, limiter, one_way, sides,
};
use crate::{Layout, headline, labels};

/// A run.
#[derive(Debug, Serialize)]
pub(in crate::formats) struct RunPart {
    id: String,
    pub(in crate::formats) title: String,
    kind: String,
    /// Time and hosts, transport and pattern.
    pub(in crate::formats) begun: String,
    pub(in crate::formats) hosts: String,
    pub(in crate::formats) measured: String,
    /// How it ended, if it did not finish.
    pub(in crate::formats) ending: Option<String>,
    /// The answer in a sentence.
    pub(in crate::formats) result: String,
    /// How far to rely on it, and what that says.
    pub(in crate::formats) trust: Option<[&'static str; 2]>,
    /// Title and question of a plan.
    pub(in crate::formats) plan: Vec<String>,
    /// The answer, a title and a text each.
    pub(in crate::formats) answer: Vec<(String, String)>,
    findings: Vec<FindingPart>,
    /// Lines that make settings persistent.
    keep: Vec<String>,
    tables: Vec<Table>,
    outcomes: Table,
    notes: Vec<String>,
    /// Verdicts with what they mean.
    verdicts: Vec<(String, String)>,
    /// Notable host activity.
    activity: Vec<String>,
    counters: Option<Table>,
    facts: Vec<Fact>,
    command: String,
    method: Facts,
    trials: Table,
    pairs: Vec<PairPart>,
}

/// A finding.
#[derive(Debug, Serialize)]
struct FindingPart {
    kind: &'static str,
    statement: String,
}

impl RunPart {
    pub(super) fn new(run: &Run, layout: Layout) -> Self {
        let plan = run.header.plan.as_ref();
        let lines = plan.iter().flat_map(|plan| [&plan.title, &plan.question]).flatten();
        let shown = |list: Vec<Text>| list.iter().map(|text| layout.shown(text)).collect();
        let verdicts = labels::verdicts_of(sides::shown(run)).into_iter();
        Self {
            id: labels::plain(&run.header.id),
            title: labels::plain(&labels::title(run)),
            kind: run.header.kind.to_string(),
            begun: labels::begun(run),
            hosts: labels::plain(&labels::hosts(run)),
            measured: labels::plain(&format!(
                "{} {}",
                labels::distinct(run, |spec| spec.transport.to_string()),
                labels::distinct(run, |spec| spec.pattern.to_string())
            )),
            ending: ending(run).map(|ending| layout.shown(&ending)),
            result: layout.shown(&headline::answer(run)),
            trust: labels::worst_trust(run).map(|trust| [labels::trust(trust), trust.about()]),
            plan: lines.map(|line| labels::plain(line)).collect(),
            answer: answer_rows::of(run)
                .iter()
                .map(|(title, text)| ((*title).to_owned(), layout.shown(text)))
                .collect(),
            findings: run
                .findings
                .iter()
                .map(|finding| FindingPart { kind: kind(finding.kind), statement: layout.shown(&finding.statement) })
                .collect(),
            keep: advice::persistent(run),
            tables: tables::of_plan(run, layout),
            outcomes: tables::outcomes(run, layout),
            notes: shown(notes(run)),
            verdicts: verdicts.map(|one| (labels::verdict(one), layout.shown(&explain(one)))).collect(),
            activity: shown(host_activity::notable(run)),
            counters: tables::counters(run),
            facts: hosts::side_by_side(&run.header),
            command: labels::plain(&method::command_line(&run.header.command)),
            method: method::facts(run, layout),
            trials: tables::trials(run, layout),
            pairs: pairs::all(run),
        }
    }
}

/// How a run ended that did not finish.
fn ending(run: &Run) -> Option<Text> {
    let Some(ending) = &run.ending else { return Some("not finished".into()) };
    let error = ending.error.as_ref().map_or(Text::default(), |error| say!(": {error}"));
    (ending.how != "finished").then(|| say!("{}{error}", ending.how))
}

/// One-way delays, the anatomy of round trips, captures, limiters, and of a single measurement ceiling, cost, and the bounds above the
/// ceiling: of a plan, whose cells differ in them, they are columns of its documents.
fn notes(run: &Run) -> Vec<Text> {
    let mut lines = each_direction::of_run(run);
    lines.extend(one_way::of_run(run));
    lines.extend(anatomy::of_run(run));
    let of_one = run.header.plan.is_none();
    lines.extend(if of_one { ceiling_cost::of_run(run) } else { Vec::new() });
    lines.extend(captures::of_run(run).into_iter().map(|line| say!("capture, {line}")));
    let others: Vec<Text> = run.outcomes.first().filter(|_| of_one).map(ceiling_cost::other_bounds).unwrap_or_default();
    lines.extend((!others.is_empty()).then(|| say!("higher bounds: {}", Text::join(others, "; "))));
    lines.extend(limiter::limiters(run, true));
    lines
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
        FindingKind::Unconfirmed => "unconfirmed",
        FindingKind::Fairness => "fairness",
        FindingKind::Traffic => "traffic",
        FindingKind::Best => "best",
        FindingKind::NoDifference => "no clear best",
        FindingKind::Limits => "limits",
        FindingKind::Advice => "advice",
        _ => "note",
    }
}
