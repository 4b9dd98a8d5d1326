//! fping's summary of each host: `192.0.2.1 : xmt/rcv/%loss = 5/5/0%, min/avg/max = 0.03/0.05/0.07`.

use model::{Path, Pattern, Ping, RunKind, Spec, Verdict};

use super::ImportFormat;
use crate::error::{Contradiction, ImportError, PathError};
use crate::listing::{Certainty, Imported, Row, TextReading};
use crate::text::{MAX_ROWS, lines, ns, number, resolution, whole};

/// fping.
pub(super) const FORMAT: ImportFormat =
    ImportFormat { name: "fping", help: "fping's summaries, as round trips", detect, read };

fn detect(text: &str) -> Certainty {
    if lines(text).any(|(_, line)| summary(line).is_some()) { Certainty::Certain } else { Certainty::No }
}

/// A host's summary: its name, requests and replies, and the least, the mean and the longest round trip in ms, if there was a reply.
type Summary<'a> = (&'a str, [u32; 2], Option<[f64; 3]>);

fn summary(line: &str) -> Option<Summary<'_>> {
    let (host, rest) = line.split_once(" : xmt/rcv/%loss = ")?;
    let (counts, times) =
        rest.split_once(", min/avg/max = ").map_or((rest, None), |(counts, times)| (counts, Some(times)));
    let mut counts = counts.split('/').map(|count| whole(number(count)?)?.try_into().ok());
    let counts = [counts.next()??, counts.next()??];
    let times = match times {
        Some(times) => Some(times.trim().split('/').map(number).collect::<Option<Vec<f64>>>()?.try_into().ok()?),
        None => None,
    };
    Some((host.trim(), counts, times))
}

/// Refuses counts and times that contradict each other.
fn check([sent, received]: [u32; 2], times: Option<[f64; 3]>) -> Result<(), ImportError> {
    if received > sent {
        return Err(Contradiction::echoes([sent, received]).into());
    }
    match times {
        Some([min, mean, max]) if !(min..=max).contains(&mean) => {
            Err(Contradiction::MeanOutside { mean, min, max }.into())
        }
        Some(_) if received == 0 => Err(ImportError::Without { what: "round trips", lacks: "an answer" }),
        _ => Ok(()),
    }
}

fn read(text: &str) -> TextReading {
    let mut reading = TextReading::default();
    for (at, line) in lines(text) {
        let Some((host, [sent, received], times)) = summary(line) else {
            if line.contains(" : xmt/rcv/%loss = ") {
                reading.refuse_text(at, line, PathError::Summary);
            }
            continue;
        };
        if let Err(reason) = check([sent, received], times) {
            reading.refuse_text(at, line, reason);
            continue;
        }
        if reading.imported.len() >= MAX_ROWS {
            reading.refuse(at, ImportError::TooMany { most: MAX_ROWS, what: "hosts" });
            break;
        }
        // The size of an echo is not printed.
        let spec = Spec { block: BYTES, ..Spec::new("icmp", Pattern::Pingpong) };
        let mut row = Row::new(spec, times.map_or(0.0, |[_, mean, _]| mean * 1e6), at, line);
        row.trial.value = row.trial.value.filter(|_| times.is_some());
        if let Some(word) = line.rsplit('/').nth(1).filter(|_| times.is_some_and(|[_, mean, _]| mean > 0.0)) {
            row.rounded(resolution(word));
        }
        row.figure("echoes_sent", f64::from(sent));
        row.figure("echoes_received", f64::from(received));
        if let Some([min, mean, max]) = times {
            row.figure("summary_min_ns", min * 1e6);
            row.figure("summary_mean_ns", mean * 1e6);
            row.figure("summary_max_ns", max * 1e6);
            row.remarks.push("the value is the mean of the round trips, not the median".into());
        }
        if received < sent {
            row.flag(Verdict::Loss, format!("{} of {sent} echoes were lost", sent - received));
        }
        let in_ns = |part: usize| times.map(|times: [f64; 3]| ns(times[part] / 1e3));
        let ping = Ping {
            method: "fping".into(),
            sent,
            received,
            packet_bytes: u32::try_from(BYTES).unwrap_or(0) + if host.contains(':') { 48 } else { 28 },
            min_ns: in_ns(0),
            median_ns: None,
            max_ns: in_ns(2),
        };
        reading.imported.push(Imported {
            tool: "fping".into(),
            kind: RunKind::Rr,
            target: Some(host.to_owned()),
            path: Some(Path { peer: host.to_owned(), ping: Some(ping), ..Path::default() }),
            rows: vec![row],
            assumed: vec!["block"],
            notes: vec![format!("{received} of {sent} echo requests were answered")],
            ..Imported::default()
        });
    }
    reading
}

/// fping's default payload, bytes.
const BYTES: u64 = 56;
