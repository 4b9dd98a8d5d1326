//! mtr's report: the hops of a path, each with the mean of its round trips.
//!
//! ```text
//! HOST: vm                          Loss%   Snt   Last   Avg  Best  Wrst StDev
//!   1.|-- 192.0.2.1                  0.0%    10    0.3   0.4   0.3   0.6   0.1
//! ```

use model::{Hop, Path};

use super::Format;
use crate::listing::{Confidence, Imported, Reading};
use crate::text::{lines, ns, number};

/// mtr.
pub(super) const FORMAT: Format = Format { name: "mtr", help: "mtr's report, as the path", detect, read };

fn detect(text: &str) -> Confidence {
    if lines(text).any(|(_, line)| head(line).is_some()) { Confidence::Certain } else { Confidence::No }
}

/// Position of the means among the columns after the host.
fn head(line: &str) -> Option<usize> {
    let rest = line.trim().strip_prefix("HOST: ")?;
    let columns: Vec<&str> = rest.split_whitespace().skip_while(|word| *word != "Loss%").collect();
    columns.iter().position(|column| *column == "Avg")
}

/// `1.|-- NAME (ADDRESS) 0.0% 10 0.3 0.4 ...`; `???` did not answer.
fn hop(line: &str, mean: usize) -> Option<(Hop, &str)> {
    let (number_of_hop, rest) = line.trim().split_once(".|--")?;
    let words: Vec<&str> = rest.split_whitespace().collect();
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

fn read(text: &str) -> Reading {
    let mut reading = Reading::default();
    let mut open: Option<Report<'_>> = None;
    for (at, line) in lines(text) {
        if let Some(mean) = head(line) {
            close(open.take(), &mut reading);
            open = Some((at, mean, Vec::new()));
        } else if let Some((_, mean, hops)) = &mut open {
            // Further addresses of a hop follow below it without a number.
            hops.extend(hop(line, *mean));
        }
    }
    close(open, &mut reading);
    reading
}

fn close(open: Option<Report<'_>>, reading: &mut Reading) {
    let Some((line, _, hops)) = open else { return };
    if hops.is_empty() {
        return reading.refuse(line, "mtr has no hop");
    }
    let notes = hops.iter().map(|(hop, loss)| match (&hop.address, hop.rtt_ns) {
        (Some(address), Some(rtt)) => {
            format!("hop {}: {address}, mean {:.3} ms, {loss} lost", hop.hop, rtt as f64 / 1e6)
        }
        _ => format!("hop {}: no reply", hop.hop),
    });
    let notes = notes.collect();
    let hops: Vec<Hop> = hops.into_iter().map(|(hop, _)| hop).collect();
    let peer = hops.last().and_then(|hop| hop.address.clone()).unwrap_or_default();
    reading.imported.push(Imported {
        tool: "mtr".into(),
        kind: "path".into(),
        target: Some(peer.clone()).filter(|peer| !peer.is_empty()),
        notes,
        path: Some(Path { peer, hops: Some(hops), ..Path::default() }),
        ..Imported::default()
    });
}
