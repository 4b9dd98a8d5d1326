//! mtr's report, as text, CSV and JSON: the hops of a path, each with the mean of its round trips.
//!
//! ```text
//! HOST: vm                          Loss%   Snt   Last   Avg  Best  Wrst StDev
//!   1.|-- 192.0.2.1                  0.0%    10    0.3   0.4   0.3   0.6   0.1
//! ```

use model::{Hop, Path, RunKind};
use serde_json::Value;

use super::ImportFormat;
use crate::error::{ImportError, PathError};
use crate::json::{Shape, documents, may_have_documents};
use crate::listing::{Certainty, Imported, TextReading};
use crate::text::{lines, ns, number};

/// mtr.
pub(super) const FORMAT: ImportFormat =
    ImportFormat { name: "mtr", help: "mtr's report as text, CSV or JSON, as the path", detect, read };

fn detect(text: &str) -> Certainty {
    let known = |line: &str| head(line).is_some() || columns(line).is_some();
    if lines(text).any(|(_, line)| known(line)) || is_json(text) { Certainty::Certain } else { Certainty::No }
}

/// Position of the means among the columns after the host.
fn head(line: &str) -> Option<usize> {
    let rest = line.trim().strip_prefix("HOST: ")?;
    let columns: Vec<&str> = rest.split_whitespace().skip_while(|word| *word != "Loss%").collect();
    columns.iter().position(|column| *column == "Avg")
}

/// `1.|-- NAME (ADDRESS) 0.0% 10 0.3 0.4 ...`; `???` did not answer.
fn hop(line: &str, mean: usize) -> Option<(Hop, &str)> {
    let line = line.trim();
    // With -z a full stop follows the number, and the address comes after the number of its network (`AS???`).
    let (number_of_hop, rest) = line.split_once(".|--").or_else(|| line.split_once(". "))?;
    let mut words: Vec<&str> = rest.split_whitespace().collect();
    if words.first().is_some_and(|word| word.starts_with("AS")) && !line.contains(".|--") {
        words.remove(0);
    }
    let loss = words.iter().rposition(|word| word.ends_with('%') || *word == "100.0")?;
    let name = words.first()?;
    let bracketed = words.iter().find_map(|word| word.strip_prefix('(')?.strip_suffix(')'));
    let answered = *name != "???";
    let rtt = words.get(loss + mean).and_then(|word| number(word)).filter(|_| answered);
    let address = answered.then(|| bracketed.unwrap_or(name).to_owned());
    Some((
        Hop { hop: number_of_hop.parse().ok()?, address, rtt_ns: rtt.map(|ms| ns(ms / 1e3)), ..Hop::default() },
        words[loss],
    ))
}

/// A report: its line, the position of the means, and the hops with their losses.
type Report<'a> = (u32, usize, Vec<(Hop, &'a str)>);

fn read(text: &str) -> TextReading {
    let mut reading = TextReading::default();
    if is_json(text) {
        for (line, found) in documents(text, SHAPE) {
            match found {
                Ok(document) => of_document(&document, line, &mut reading),
                Err(refused) => reading.refused.push(refused),
            }
        }
    }
    let mut open: Option<Report<'_>> = None;
    let mut table: Option<Table<'_>> = None;
    for (at, line) in lines(text) {
        if let Some(mean) = head(line) {
            close(open.take(), &mut reading);
            open = Some((at, mean, Vec::new()));
        } else if let Some(columns) = columns(line) {
            close_table(table.take(), &mut reading);
            table = Some(Table { line: at, columns, runs: Vec::new() });
        } else if let Some((_, mean, hops)) = &mut open {
            // Further addresses of a hop follow below it without a number.
            match hop(line, *mean) {
                Some((_, loss)) if !lost(loss) => {
                    reading.refuse_text(at, line, PathError::Loss(loss.to_owned()));
                }
                Some(one) => hops.push(one),
                None if line.contains(".|--") => reading.refuse_text(at, line, PathError::NotAHop),
                None => {}
            }
        } else if let Some(table) = table.as_mut().filter(|_| line.split(',').count() >= CUT_COLUMNS)
            && let Err(reason) = table.add(line)
        {
            reading.refuse_text(at, line, reason);
        }
    }
    close(open, &mut reading);
    close_table(table, &mut reading);
    reading
}

/// The fewest columns of a line that is cut; others are not of the CSV.
const CUT_COLUMNS: usize = 4;

/// mtr --csv: `Mtr_Version,Start_Time,Status,Host,Hop,Ip,Loss%,Snt, ,Last,Avg,Best,Wrst,StDev,`, and a line for each hop.
struct Table<'a> {
    line: u32,
    columns: Vec<&'a str>,
    runs: Vec<TableRun<'a>>,
}

/// A host and a start, and the hops with their losses.
type TableRun<'a> = ((&'a str, &'a str), Vec<(Hop, &'a str)>);

fn columns(line: &str) -> Option<Vec<&str>> {
    let columns: Vec<&str> = line.trim().split(',').map(str::trim).collect();
    (columns.first() == Some(&"Mtr_Version") && columns.contains(&"Avg")).then_some(columns)
}

impl<'a> Table<'a> {
    fn add(&mut self, line: &'a str) -> Result<(), ImportError> {
        let cells: Vec<&str> = line.trim().split(',').map(str::trim).collect();
        let cell = |name: &'static str| {
            let at = self.columns.iter().position(|column| *column == name);
            at.and_then(|at| cells.get(at).copied()).ok_or(PathError::NoColumn(name))
        };
        let none = |name| ImportError::Figure { name, what: "a number" };
        let hop = cell("Hop")?.parse().map_err(|_| none("the hop"))?;
        let one = averaged(hop, cell("Ip")?, number(cell("Avg")?).ok_or(none("Avg"))?);
        let run = (cell("Host")?, cell("Start_Time")?);
        let loss = cell("Loss%")?;
        if !lost(loss) {
            return Err(PathError::Loss(loss.to_owned()).into());
        }
        match self.runs.iter_mut().find(|(known, _)| *known == run) {
            Some((_, hops)) => hops.push((one, loss)),
            None => self.runs.push((run, vec![(one, loss)])),
        }
        Ok(())
    }
}

fn close_table(table: Option<Table<'_>>, reading: &mut TextReading) {
    let Some(table) = table else { return };
    if table.runs.is_empty() {
        return reading.refuse(table.line, PathError::NoHop("mtr"));
    }
    for ((host, _), hops) in table.runs {
        add(Some(host), hops, table.line, reading);
    }
}

/// Whether a text has a document of mtr --json.
fn is_json(text: &str) -> bool {
    may_have_documents(text) && text.contains("\"report\"") && text.contains("\"hubs\"")
}

/// The documents of mtr.
const SHAPE: Shape = Shape::of(|document| document["report"]["hubs"].is_array());

fn of_document(document: &Value, line: u32, reading: &mut TextReading) {
    let report = &document["report"];
    let one = |hub: &Value| {
        // Older versions write the number as a string.
        let hop = hub["count"].as_u64().or_else(|| hub["count"].as_str()?.parse().ok())?;
        let mean = hub["Avg"].as_f64().filter(|mean| *mean >= 0.0)?;
        let loss = hub["Loss%"].as_str().map_or_else(|| hub["Loss%"].to_string(), str::to_owned);
        lost(&loss).then_some(())?;
        Some((averaged(u8::try_from(hop).ok()?, hub["host"].as_str()?, mean), loss))
    };
    let hops: Vec<Option<(Hop, String)>> = report["hubs"].as_array().into_iter().flatten().map(one).collect();
    if hops.is_empty() || hops.iter().any(Option::is_none) {
        return reading.refuse(line, PathError::Hubs);
    }
    add(report["mtr"]["dst"].as_str(), hops.into_iter().flatten().collect(), line, reading);
}

/// Whether a share of lost echoes can be one, in percent.
fn lost(percent: &str) -> bool {
    number(percent.trim_end_matches('%')).is_some_and(|percent| percent <= 100.0)
}

/// Adds a path unless its hops are out of order.
fn add<Loss: AsRef<str>>(peer: Option<&str>, hops: Vec<(Hop, Loss)>, line: u32, reading: &mut TextReading) {
    if hops.windows(2).any(|pair| pair[1].0.hop <= pair[0].0.hop) {
        return reading.refuse(line, PathError::Unordered);
    }
    reading.imported.push(path(peer, hops));
}

/// A hop with the mean of its round trips, ms; `???` did not answer.
fn averaged(hop: u8, host: &str, mean_ms: f64) -> Hop {
    let answered = host != "???";
    let bracketed = host.split_once('(').and_then(|(_, rest)| rest.strip_suffix(')'));
    Hop {
        hop,
        address: answered.then(|| bracketed.unwrap_or(host).to_owned()),
        rtt_ns: answered.then(|| ns(mean_ms / 1e3)),
        ..Hop::default()
    }
}

fn close(open: Option<Report<'_>>, reading: &mut TextReading) {
    let Some((line, _, hops)) = open else { return };
    if hops.is_empty() {
        return reading.refuse(line, PathError::NoHop("mtr"));
    }
    add(None, hops, line, reading);
}

/// The path with these hops and their losses in percent; without a peer, to the last of them.
fn path<Loss: AsRef<str>>(peer: Option<&str>, hops: Vec<(Hop, Loss)>) -> Imported {
    let notes = hops.iter().map(|(hop, loss)| match (&hop.address, hop.rtt_ns) {
        (Some(address), Some(rtt)) => {
            let loss = loss.as_ref().trim_end_matches('%');
            format!("hop {}: {address}, mean {:.3} ms, {loss}% lost", hop.hop, rtt as f64 / 1e6)
        }
        _ => format!("hop {}: no reply", hop.hop),
    });
    let notes = notes.collect();
    let hops: Vec<Hop> = hops.into_iter().map(|(hop, _)| hop).collect();
    let last = || hops.last().and_then(|hop| hop.address.clone());
    let peer = peer.map(str::to_owned).or_else(last).unwrap_or_default();
    Imported {
        tool: "mtr".into(),
        kind: RunKind::Path,
        target: Some(peer.clone()).filter(|peer| !peer.is_empty()),
        notes,
        path: Some(Path { peer, hops: Some(hops), ..Path::default() }),
        ..Imported::default()
    }
}
