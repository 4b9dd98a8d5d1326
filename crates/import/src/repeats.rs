//! Measurements that a text has twice: an output and its copy, or the events of a test and its document.

use std::collections::BTreeMap;

use crate::listing::Imported;

/// Leaves out what repeats an earlier measurement, which gets a note. A few equal figures are no repetition: tests of a steady path
/// print the same again. The time or the ports of a test tell it from another, and so do many digits.
pub(crate) fn leave_out(imported: &mut Vec<Imported>) {
    if imported.len() < 2 {
        return;
    }
    let mut known: BTreeMap<String, Vec<usize>> = BTreeMap::new();
    let mut kept: Vec<Imported> = Vec::new();
    for one in std::mem::take(imported) {
        let Some(identity) = identity(&one) else {
            kept.push(one);
            continue;
        };
        let alike = known.entry(identity).or_default();
        match alike.iter().copied().find(|at| is_same(&kept[*at], &one)) {
            Some(at) => {
                let line = one.rows.first().map(|row| row.line);
                let place = line.map_or(String::new(), |line| format!(" in line {line}"));
                kept[at].copies.push(format!("the text repeats this measurement{place}: imported once"));
            }
            None => {
                alike.push(kept.len());
                kept.push(one);
            }
        }
    }
    *imported = kept;
}

/// When a measurement was made, by which socket, or the figures that chance does not repeat; `None` if the text has none of these.
fn identity(imported: &Imported) -> Option<String> {
    let flows = || imported.rows.iter().flat_map(|row| &row.trial.near.flows);
    let measured = imported.rows.iter().any(|row| row.trial.value.is_some());
    // A listener has no peer, and its port again in the next test.
    let socket = || flows().find_map(|flow| flow.socket.peer.as_ref().and(flow.socket.local.clone()));
    let of_test = || imported.measured_unix_ns.map(|ns| ns.to_string()).or_else(socket).filter(|_| measured);
    let own = of_test().or_else(|| digits(imported))?;
    Some(format!("{} {own}", imported.tool))
}

/// This many equal digits do not come from another test.
const MANY: usize = 30;
/// This many of the first figures are enough.
const MOST: usize = 100;
/// The digits of a figure that count: more may come from a unit.
const OF_ONE: usize = 4;

/// The different figures, if they have too many digits together for two tests to agree in them.
fn digits(imported: &Imported) -> Option<String> {
    let rows = imported.rows.iter().flat_map(|row| {
        let series = row.trial.near.intervals.iter().map(|part| (part.bytes_sent + part.bytes_received) as f64);
        row.trial.value.into_iter().chain(row.figures.values().copied()).chain(series)
    });
    let hops = imported.path.iter().flat_map(|path| path.hops.iter().flatten());
    let trips = hops.flat_map(|hop| hop.rtt_ns.into_iter().chain(hop.rtts_ns.iter().copied())).map(|ns| ns as f64);
    let mut all: Vec<f64> = rows.chain(trips).take(MOST).collect();
    all.sort_by(f64::total_cmp);
    all.dedup();
    let of = |figure: &f64| {
        let text = format!("{figure:e}");
        let mantissa = text.split('e').next().unwrap_or_default();
        mantissa.bytes().filter(u8::is_ascii_digit).count().min(OF_ONE)
    };
    (all.iter().map(of).sum::<usize>() >= MANY).then(|| format!("{all:?}"))
}

fn is_same(a: &Imported, b: &Imported) -> bool {
    let rows = a.rows.iter().zip(&b.rows);
    (&a.target, &a.path, &a.passes) == (&b.target, &b.path, &b.passes)
        && a.rows.len() == b.rows.len()
        && rows
            .into_iter()
            .all(|(a, b)| (&a.spec, &a.levels, &a.trial, &a.figures) == (&b.spec, &b.levels, &b.trial, &b.figures))
}
