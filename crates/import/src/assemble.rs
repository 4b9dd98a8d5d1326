//! From what was read to a run.

use std::collections::BTreeMap;

use analysis::Context;
use model::{
    Cell, Count, Ending, Finding, FindingKind, Origin, OriginLine, OriginRow, Outcome, Run, RunHeader, Spec, Stopping,
    Tool, Trial,
};

use crate::listing::{Imported, Refused, Row};

/// The file that a listing was in, and what its run is called.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Source {
    /// Identifier of the run.
    pub id: String,
    /// Its name, or none.
    pub name: Option<String>,
    /// The command line of the import.
    pub command: Vec<String>,
    /// Name of the file, without its folder.
    pub file: String,
    /// SHA-256 of the file, in hexadecimal.
    pub sha256: String,
    /// When it is imported, ns since the Unix epoch: the run's start where the file tells none.
    pub imported_unix_ns: u64,
}

/// Makes a run of a listing: rows of the same spec and levels are the trials of one cell, with the analysis of our own runs. No
/// row has more trials than the file shows, so most cells have a value without an interval, and their verdicts say so.
#[must_use]
pub fn assemble(imported: Imported, source: &Source, refused: &[Refused]) -> Run {
    let Imported {
        tool,
        version,
        kind,
        target,
        measured_unix_ns,
        near,
        path,
        passes,
        plan,
        rows,
        notes,
        assumed,
        unknown,
    } = imported;
    let rule = Stopping::default();
    let mut cells: Vec<Cell> = Vec::new();
    let mut trials: Vec<Vec<Trial>> = Vec::new();
    let mut senders: Vec<Vec<f64>> = Vec::new();
    let mut origins: Vec<OriginRow> = Vec::new();
    let mut remarked: BTreeMap<String, Vec<(u32, u32)>> = BTreeMap::new();
    for row in rows {
        let Row { spec, levels, mut trial, line, text, figures, remarks } = row;
        let place = cells.iter().position(|cell| cell.spec == spec && cell.levels == levels).unwrap_or_else(|| {
            let id = u32::try_from(cells.len()).unwrap_or(u32::MAX);
            cells.push(Cell { id, spec, levels });
            trials.push(Vec::new());
            senders.push(Vec::new());
            cells.len() - 1
        });
        let (cell, own) = (cells[place].id, &mut trials[place]);
        let number = u32::try_from(own.len()).unwrap_or(u32::MAX);
        (trial.cell, trial.pass) = (cell, number);
        balance(&cells[place].spec, &mut trial);
        own.push(trial);
        senders[place].extend(figures.get("sender_rate_bps"));
        for remark in &remarks {
            remarked.entry(remark.clone()).or_default().push((line, cell));
        }
        origins.push(OriginRow { cell, trial: number, line, text, figures, remarks });
    }
    let curve = kind == "curve";
    let outcomes: Vec<Outcome> = cells
        .iter()
        .zip(trials)
        .zip(senders)
        .map(|((cell, own), senders)| outcome(cell, own, &senders, &rule, curve))
        .collect();
    let mut findings: Vec<Finding> = notes.into_iter().map(|statement| note(statement, Vec::new())).collect();
    findings.extend(remarked.into_iter().map(|(remark, places)| {
        let lines = places.iter().map(|(line, _)| line.to_string()).collect::<Vec<_>>().join(", ");
        let many = if places.len() > 1 { "lines" } else { "line" };
        note(format!("{many} {lines}: {remark}"), places.iter().map(|(_, cell)| *cell).collect())
    }));
    if !assumed.is_empty() {
        findings.push(note(format!("not told, so that a default stands for it: {}", assumed.join(", ")), Vec::new()));
    }
    if !unknown.is_empty() {
        findings.push(note(format!("without a place here: {}", unknown.join(", ")), Vec::new()));
    }
    let refused: Vec<OriginLine> =
        refused.iter().map(|part| OriginLine { line: part.line, reason: part.reason.clone() }).collect();
    findings
        .extend(refused.iter().map(|part| note(format!("line {} was refused: {}", part.line, part.reason), vec![])));
    let reported = version.as_ref().map_or_else(|| tool.clone(), |version| format!("{tool} {version}"));
    findings.insert(0, note(format!("imported from {} ({reported})", source.file), Vec::new()));
    let header = RunHeader {
        id: source.id.clone(),
        name: source.name.clone(),
        kind,
        command: source.command.clone(),
        started_unix_ns: measured_unix_ns.unwrap_or(source.imported_unix_ns),
        tool: Tool { near_version: reported.clone(), far_version: reported, ..Tool::default() },
        target,
        stopping: rule,
        cells,
        near,
        path_outbound: path,
        plan: plan.map(Box::new),
        origin: Some(Box::new(Origin {
            tool,
            version,
            file: source.file.clone(),
            sha256: source.sha256.clone(),
            measured_unix_ns,
            rows: origins,
            assumed: assumed.into_iter().map(str::to_owned).collect(),
            unknown,
            refused,
        })),
        ..RunHeader::default()
    };
    let duration_ns = outcomes.iter().filter_map(|outcome| outcome.summary.duration_ns).sum();
    Run {
        schema: Run::SCHEMA.into(),
        header,
        ending: Some(Ending { how: "finished".into(), duration_ns, ..Ending::default() }),
        passes,
        outcomes,
        findings,
        advice: None,
    }
}

/// The outcome of a cell. The tallies of most files hold no counts, so the rates of the summary are those of the estimate, and of
/// the senders as they were printed.
fn outcome(cell: &Cell, trials: Vec<Trial>, senders: &[f64], rule: &Stopping, curve: bool) -> Outcome {
    let mut outcome = analysis::outcome(cell, trials, rule, Context { curve, ..Context::default() });
    let value = outcome.estimate.as_ref().map(|estimate| estimate.value);
    let summary = &mut outcome.summary;
    // What it cost is not told by a file without times of threads.
    summary.cost = None;
    match cell.spec.pattern.as_str() {
        "rr" | "crr" => summary.transactions_per_s = value,
        "pingpong" => summary.rtt_p50_ns = summary.rtt_p50_ns.or(value),
        _ => {
            summary.goodput_bps = value;
            let printed = (!senders.is_empty()).then(|| senders.iter().sum::<f64>() / senders.len() as f64);
            summary.sender_bps = printed.or(summary.sender_bps);
        }
    }
    if cell.spec.transport == "icmp" {
        // Echoes carry no payload that a rate would be about.
        summary.netpipe_bps = None;
    }
    outcome
}

/// Sets the ends' bytes against each other where the text tells both.
fn balance(spec: &Spec, trial: &mut Trial) {
    let ends = [&trial.near, &trial.far];
    let all = [Count::BytesSent, Count::BytesReceived]
        .into_iter()
        .all(|count| ends.iter().any(|end| end.reported(count).is_some()));
    if all {
        trial.ledger = analysis::ledger(spec, &trial.near, &trial.far);
    }
}

fn note(statement: String, cells: Vec<u32>) -> Finding {
    Finding { kind: FindingKind::Note, statement, estimate: None, block: None, cells, comparison: None }
}
