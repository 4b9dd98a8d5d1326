//! Makes a run of a listing.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};

use analysis::Context;
use model::{
    Cell, Count, Direction, EndTally, Ending, Finding, FindingKind, Ledger, Origin, OriginLine, OriginRow, Outcome,
    Pattern, Run, RunHeader, RunKind, Shared, Spec, Stopping, Summary, Tool, Trial,
};

use crate::listing::{CARRIED, Imported, Refused, Row};

/// The file of a listing, and the id and name of its run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ListingSource {
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
    /// The time of the import, ns since the Unix epoch: the run's start if the file has no time.
    pub imported_unix_ns: u64,
}

/// What a row states of its trial beside the value, bit/s.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
struct Stated {
    sender_bps: Option<f64>,
    /// By the outbound direction and the return, of a test in both.
    carried: [Option<f64>; 2],
}

/// Makes a run of a listing: rows of the same spec and levels are the trials of one cell, analysed like measured ones. Most files have
/// one row per cell, which then has a value without an interval, and a verdict for it. A document of this program is kept as it is,
/// with the id and the name of `source`.
#[must_use]
pub fn assemble(imported: Imported, source: &ListingSource, refused: &[Refused]) -> Run {
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
        by_server: _,
        copies,
        assumed,
        unknown,
        run,
    } = imported;
    if let Some(run) = run {
        return kept(*run, source, refused);
    }
    let rule = Stopping::default();
    let mut cells: Vec<Cell> = Vec::new();
    // Cells by a number that equal ones have in common: comparing each row with each cell would take minutes for a large table.
    let mut places: HashMap<u64, Vec<usize>> = HashMap::new();
    let mut trials: Vec<Vec<Trial>> = Vec::new();
    let mut stated: Vec<Vec<Stated>> = Vec::new();
    let mut origins: Vec<OriginRow> = Vec::with_capacity(rows.len());
    let mut remark_lines: BTreeMap<String, Vec<(u32, u32)>> = BTreeMap::new();
    for row in rows {
        let Row { spec, levels, mut trial, line, text, figures, remarks } = row;
        let alike = places.entry(digest(spec.block, &levels)).or_default();
        let is_same = |cell: &Cell| cell.levels == levels && (cell.spec.is_same(&spec) || cell.spec == spec);
        let index = alike.iter().copied().find(|at| is_same(&cells[*at])).unwrap_or_else(|| {
            let id = u32::try_from(cells.len()).unwrap_or(u32::MAX);
            cells.push(Cell { id, spec, levels });
            // Most have one.
            trials.push(Vec::with_capacity(1));
            stated.push(Vec::new());
            alike.push(cells.len() - 1);
            cells.len() - 1
        });
        let (cell, own) = (cells[index].id, &mut trials[index]);
        let number = u32::try_from(own.len()).unwrap_or(u32::MAX);
        (trial.cell, trial.pass) = (cell, number);
        balance(&cells[index].spec, &mut trial);
        own.push(trial);
        let printed = Stated {
            sender_bps: figures.get("sender_rate_bps").copied(),
            carried: CARRIED.map(|name| figures.get(name).copied()),
        };
        if printed != Stated::default() || !stated[index].is_empty() {
            stated[index].resize(own.len() - 1, Stated::default());
            stated[index].push(printed);
        }
        for remark in &remarks {
            remark_lines.entry(remark.clone()).or_default().push((line, cell));
        }
        origins.push(OriginRow { cell, trial: number, line, text, figures, remarks });
    }
    let curve = kind == RunKind::Curve;
    let outcomes: Vec<Outcome> = cells
        .iter()
        .zip(trials)
        .zip(stated)
        .map(|((cell, own), stated)| outcome(cell, own, &stated, &rule, curve))
        .collect();
    let mut findings: Vec<Finding> =
        notes.into_iter().chain(copies).map(|statement| note(statement, Vec::new())).collect();
    findings.extend(remark_lines.into_iter().map(|(remark, rows)| {
        let mut lines: Vec<u32> = rows.iter().map(|(line, _)| *line).collect();
        lines.dedup();
        note(format!("{}: {remark}", named(&lines)), rows.iter().map(|(_, cell)| *cell).collect())
    }));
    if !assumed.is_empty() {
        findings.push(note(format!("not in the file, default used: {}", assumed.join(", ")), Vec::new()));
    }
    if !unknown.is_empty() {
        findings.push(note(format!("fields not imported: {}", unknown.join(", ")), Vec::new()));
    }
    let refused: Vec<OriginLine> =
        refused.iter().map(|part| OriginLine { line: part.line, reason: part.to_string() }).collect();
    findings
        .extend(refused.iter().map(|part| note(format!("line {} was refused: {}", part.line, part.reason), vec![])));
    let program = version.as_ref().map_or_else(|| tool.clone(), |version| format!("{tool} {version}"));
    findings.insert(0, note(format!("imported from {} ({program})", source.file), Vec::new()));
    if curve && is_one_curve(&cells) {
        findings.splice(0..0, analysis::of_curve(&outcomes));
    }
    let header = RunHeader {
        id: source.id.clone(),
        name: source.name.clone(),
        kind,
        command: source.command.clone(),
        started_unix_ns: measured_unix_ns.unwrap_or(source.imported_unix_ns),
        tool: Tool { near_version: program.clone(), far_version: program, ..Tool::default() },
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
    findings.splice(0..0, analysis::of_imported_matrix(&header, &outcomes));
    let duration_ns = outcomes.iter().filter_map(|outcome| outcome.summary.duration_ns).fold(0, u64::saturating_add);
    Run {
        schema: Run::SCHEMA.into(),
        header,
        ending: Some(Ending { how: "finished".into(), duration_ns, ..Ending::default() }),
        passes,
        outcomes,
        findings,
        retests: Vec::new(),
        advice: None,
    }
}

/// A number that cells of this block and these levels have in common.
fn digest(block: u64, levels: &BTreeMap<String, String>) -> u64 {
    let mut hasher = DefaultHasher::new();
    (block, levels).hash(&mut hasher);
    hasher.finish()
}

/// The lines by their numbers; of many the first ones.
fn named(lines: &[u32]) -> String {
    const MOST: usize = 20;
    let noun = if lines.len() > 1 { "lines" } else { "line" };
    let shown = lines.iter().take(MOST).map(u32::to_string).collect::<Vec<_>>().join(", ");
    let more = lines.len().saturating_sub(MOST);
    if more > 0 { format!("{noun} {shown} and {more} more") } else { format!("{noun} {shown}") }
}

/// Whether cells differ in nothing but their sizes.
fn is_one_curve(cells: &[Cell]) -> bool {
    let common = |cell: &Cell| (Spec { block: 0, reply: None, ..Spec::clone(&cell.spec) }, cell.levels.clone());
    let first = cells.first().map(common);
    cells.len() > 2 && cells.iter().all(|cell| Some(common(cell)) == first)
}

/// A run of this program with the id and the name of the import. A note has those of the document.
fn kept(mut run: Run, source: &ListingSource, refused: &[Refused]) -> Run {
    let name = run.header.name.take().map_or(String::new(), |name| format!(" named {name}"));
    let imported = format!("imported from {} (run {}{name})", source.file, run.header.id);
    let refusals = refused.iter().map(|part| format!("line {} was refused: {part}", part.line));
    let notes: Vec<Finding> = std::iter::once(imported).chain(refusals).map(|text| note(text, Vec::new())).collect();
    run.findings.splice(0..0, notes);
    (run.header.id, run.header.name) = (source.id.clone(), source.name.clone());
    run
}

/// The outcome of a cell. The tallies of most files have no counts, so the rates of the summary are those of the estimate, and the
/// printed ones of the senders.
fn outcome(cell: &Cell, trials: Vec<Trial>, stated: &[Stated], rule: &Stopping, curve: bool) -> Outcome {
    // What measured did not stop at our target, so its interval cannot have missed that.
    let rule = Stopping { min_trials: rule.max_trials, ..rule.clone() };
    let mut outcome = analysis::outcome(cell, trials, &rule, Context { curve, ..Context::default() });
    let value = outcome.estimate.as_ref().map(|estimate| estimate.value);
    let summary = &mut outcome.summary;
    // Files have no CPU time of threads, so there is no cost.
    summary.cost = None;
    match cell.spec.pattern {
        Pattern::Rr | Pattern::Crr => summary.transactions_per_s = value,
        Pattern::Pingpong => summary.rtt_p50_ns = summary.rtt_p50_ns.or(value),
        _ => {
            summary.goodput_bps = value;
            let senders: Vec<f64> = stated.iter().filter_map(|one| one.sender_bps).collect();
            let printed = (!senders.is_empty()).then(|| senders.iter().sum::<f64>() / senders.len() as f64);
            // What one end sent is not what both did.
            let whole = cell.spec.direction != Direction::Both
                || outcome.trials.iter().all(|trial| [&trial.near, &trial.far].into_iter().all(sent));
            summary.sender_bps = printed.or(summary.sender_bps.filter(|_| whole));
        }
    }
    each_direction(&mut outcome, cell, stated, &rule);
    let summary = &mut outcome.summary;
    if cell.spec.transport.as_str() == "icmp" {
        // An echo has no payload, so it has no rate.
        summary.netpipe_bps = None;
    }
    outcome
}

fn sent(end: &Shared<EndTally>) -> bool {
    end.reported(Count::BytesSent).is_some()
}

/// Gives each direction of a cell of `both` the value that the rows state. Its verdicts are those of the rows, as those of a row in one
/// direction are.
fn each_direction(outcome: &mut Outcome, cell: &Cell, stated: &[Stated], rule: &Stopping) {
    if cell.spec.direction != Direction::Both || stated.iter().all(|one| one.carried == [None; 2]) {
        return;
    }
    let of = |direction: Direction, at: usize| {
        let cell = Cell { spec: Spec { direction, ..Spec::clone(&cell.spec) }.into(), ..cell.clone() };
        let trials = outcome.trials.iter().zip(stated).map(|(trial, stated)| Trial {
            near: EndTally::unreported().into(),
            far: EndTally::unreported().into(),
            ledger: Ledger::default(),
            value: stated.carried[at],
            ..trial.clone()
        });
        analysis::outcome(&cell, trials.collect(), rule, Context::default())
    };
    let both = [(Direction::Send, 0), (Direction::Reverse, 1)].map(|(direction, at)| of(direction, at));
    let summary = &mut outcome.summary;
    for (known, own) in [&mut summary.outbound, &mut summary.return_trip].into_iter().zip(both) {
        let Summary { ci95_low, ci95_high, trials, verdicts, trust, .. } = own.summary;
        let known_else = known.take().map_or_else(Summary::default, |known| *known);
        let goodput_bps = own.estimate.map(|estimate| estimate.value);
        *known = Some(Box::new(Summary { goodput_bps, ci95_low, ci95_high, trials, verdicts, trust, ..known_else }));
    }
}

/// Fills in the ledger if the text reports both ends' bytes.
fn balance(spec: &Spec, trial: &mut Trial) {
    let ends = [&trial.near, &trial.far];
    let both = [Count::BytesSent, Count::BytesReceived]
        .into_iter()
        .all(|count| ends.iter().any(|end| end.reported(count).is_some()));
    if both {
        trial.ledger = analysis::ledger(spec, &trial.near, &trial.far);
    }
}

fn note(statement: String, cells: Vec<u32>) -> Finding {
    let statement = statement.into();
    Finding { kind: FindingKind::Note, statement, estimate: None, block: None, cells, comparison: None }
}
