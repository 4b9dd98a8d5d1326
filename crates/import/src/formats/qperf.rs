//! qperf: `tcp_lat:` or another test, followed by `name = value unit` lines.
//!
//! Rates are decimal, sizes binary with their names (qperf's manual, -uu). A latency is half a round trip.

use model::{Count, Pattern, RunKind, Spec, Stop};

use super::ImportFormat;
use super::repetitions::{self, Listed};
use crate::error::{Contradiction, ImportError, QperfError, QperfFault};
use crate::listing::{Certainty, Imported, Row, TextReading};
use crate::text::{MAX_ROWS, block, lines, ns, number, resolution, time_unit};

/// qperf.
pub(super) const FORMAT: ImportFormat =
    ImportFormat { name: "qperf", help: "qperf's latencies and bandwidths, as printed and with -v", detect, read };

fn detect(text: &str) -> Certainty {
    let mut all = lines(text).map(|(_, line)| line).peekable();
    while let Some(line) = all.next() {
        let value = |next: &&str| next.starts_with(' ') && key(next).is_some();
        if test(line).is_some() && all.peek().is_some_and(value) {
            return Certainty::Certain;
        }
    }
    Certainty::No
}

/// `tcp_bw:`: the test's name.
fn test(line: &str) -> Option<&str> {
    let name = line.trim_end().strip_suffix(':')?;
    let word = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    let known = name == "conf" || name.contains('_');
    (known && name.bytes().all(word)).then_some(name)
}

/// `    msg_size  =     1 KiB (1,024)`: name, value and unit.
fn key(line: &str) -> Option<(&str, &str)> {
    let (name, value) = line.split_once(" = ")?;
    Some((name.trim(), value.trim()))
}

/// The digits of a number, whose thousands may have commas: `65,536`. A decimal comma is none of qperf's.
fn digits(word: &str) -> Option<String> {
    let (whole, decimals) = word.split_once('.').unwrap_or((word, ""));
    let mut groups = whole.split(',');
    let first = groups.next().is_some_and(|first| !whole.contains(',') || (1..=3).contains(&first.len()));
    (first && groups.all(|group| group.len() == 3) && !decimals.contains(',')).then(|| word.replace(',', ""))
}

/// A value of qperf in ns, bytes, bit/s, per second or without a unit; the unit is appended to the name.
fn figure(name: &str, value: &str) -> Option<(String, f64)> {
    let exact = value.split_once('(').and_then(|(_, rest)| rest.split_once(')')).and_then(|(exact, _)| digits(exact));
    let mut words = value.split_whitespace();
    let plain = digits(words.next()?)?;
    let unit = words.next().unwrap_or_default();
    let value = number(&plain)?;
    if let Some(scale) = time_unit(unit) {
        return Some((format!("{name}_ns"), value * scale));
    }
    let (prefix, rest) = unit.split_at(usize::from(unit.starts_with(['K', 'M', 'G', 'T'])));
    let binary = rest.starts_with('i');
    let power = ["", "K", "M", "G", "T"].iter().position(|one| *one == prefix)? as i32;
    let scale = if binary { 1024f64.powi(power) } else { 1000f64.powi(power) };
    Some(match rest.trim_start_matches('i') {
        "b/sec" | "bits/sec" => (format!("{name}_bps"), value * scale),
        "B/sec" | "bytes/sec" => (format!("{name}_bps"), value * scale * 8.0),
        "B" | "bytes" => (format!("{name}_bytes"), exact.and_then(|exact| number(&exact)).unwrap_or(value * scale)),
        "/sec" => (format!("{name}_per_s"), value * scale),
        "%" => (format!("{name}_percent"), value),
        _ if unit.is_empty() => (name.to_owned(), value),
        other => (format!("{name}_{}", other.replace('/', "_per_")), value * scale),
    })
}

/// A test and its lines.
struct Test<'a> {
    line: u32,
    name: &'a str,
    keys: Vec<(&'a str, &'a str)>,
    texts: Vec<&'a str>,
}

fn read(text: &str) -> TextReading {
    let mut reading = TextReading::default();
    let mut tests: Vec<Test<'_>> = Vec::new();
    let mut errors: Vec<(u32, &str)> = Vec::new();
    for (at, line) in lines(text) {
        if tests.len() >= MAX_ROWS {
            reading.refuse(at, ImportError::TooMany { most: MAX_ROWS, what: "tests" });
            break;
        }
        if let Some(name) = test(line) {
            tests.push(Test { line: at, name, keys: Vec::new(), texts: vec![line] });
        } else if let Some((pair, test)) = key(line).filter(|_| line.starts_with(' ')).zip(tests.last_mut()) {
            test.keys.push(pair);
            test.texts.push(line.trim());
        } else if line.contains("failed to") || line.contains("server not responding") {
            errors.push((at, line.trim()));
        }
    }
    let mut found: Vec<Listed> = Vec::new();
    let mut hosts = None;
    for test in tests {
        if test.name == "conf" {
            let of = |key: &str| test.keys.iter().find(|(name, _)| *name == key).map(|(_, value)| (*value).to_owned());
            hosts = Some((of("loc_node"), of("loc_os")));
            continue;
        }
        match row(&test) {
            Ok((kind, row)) => found.push(listed(kind, row)),
            Err(fault) => {
                let own_error = errors.iter().find(|(at, _)| *at > test.line).map(|(_, line)| (*line).to_owned());
                let error = QperfError { test: test.name.to_owned(), fault, own_error };
                reading.refuse(test.line, Box::new(error));
            }
        }
    }
    reading.imported = repetitions::gathered(found);
    for imported in &mut reading.imported {
        if let Some((node, os)) = &hosts {
            imported.near.hostname.clone_from(node);
            imported.near.kernel = os.as_ref().and_then(|os| os.strip_prefix("Linux ")).map(str::to_owned);
        }
    }
    reading
}

fn listed(kind: RunKind, row: Row) -> Listed {
    let sized = row.figures.contains_key("msg_size_bytes");
    let mut notes = vec![match kind {
        RunKind::Rr => "qperf's latency is half a round trip: values are twice the printed ones".to_owned(),
        _ => "qperf's rates are decimal; the value is the receiver's".to_owned(),
    }];
    if !sized {
        notes.push("msg_size is printed only with -vu; qperf's default is used".into());
    }
    let assumed = if sized { Vec::new() } else { vec!["block"] };
    let imported = Imported { tool: "qperf".into(), kind, rows: vec![row], notes, assumed, ..Imported::default() };
    Listed { imported, sized }
}

fn row(test: &Test<'_>) -> Result<(RunKind, Row), QperfFault> {
    let (transport, measure) = test.name.rsplit_once('_').unwrap_or((test.name, ""));
    let twice = |name: &str| test.keys.iter().filter(|(known, _)| *known == name).count() > 1;
    if let Some((name, _)) = test.keys.iter().find(|(name, _)| twice(name)) {
        return Err(QperfFault::Twice((*name).to_owned()));
    }
    let figures: Vec<(String, f64)> = test.keys.iter().filter_map(|(name, value)| figure(name, value)).collect();
    let get = |name: &str| figures.iter().find(|(known, _)| known == name).map(|(_, value)| *value);
    let raw = |name: &str| test.keys.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
    // The defaults of qperf's manual: 1 byte for latencies, 64 KiB for streams and 32 KiB for datagrams.
    let (kind, pattern, value, shown, default) = match measure {
        "lat" => {
            let half = get("latency_ns").filter(|ns| *ns > 0.0).ok_or(QperfFault::Missing("latency"))?;
            (RunKind::Rr, Pattern::Pingpong, half * 2.0, raw("latency"), 1)
        }
        "bw" => {
            let value = get("recv_bw_bps").or_else(|| get("bw_bps")).ok_or(QperfFault::Missing("bandwidth"))?;
            let default = if transport == "udp" { 32 << 10 } else { 64 << 10 };
            (RunKind::Stream, Pattern::Stream, value, raw("recv_bw").or_else(|| raw("bw")), default)
        }
        _ => return Err(QperfFault::Other),
    };
    let mut spec = Spec { block: default, ..Spec::new(transport, pattern) };
    spec.block = get("msg_size_bytes").and_then(block).unwrap_or(spec.block);
    let elapsed = get("time_ns").map(|seconds| ns(seconds / 1e9)).filter(|ns| *ns > 0);
    spec.stop = elapsed.map_or(spec.stop, Stop::TimeNs);
    let mut row = Row::new(spec, value, test.line, &test.texts.join("; "));
    let count = if measure == "lat" { &mut row.trial.near } else { &mut row.trial.far };
    if let Some(elapsed) = elapsed {
        count.report(Count::ReceivingNs, elapsed);
    }
    if let Some(sender) = get("send_bw_bps") {
        row.figure("sender_rate_bps", sender);
    }
    for (name, value) in &figures {
        row.figure(name, *value);
    }
    if value > 0.0 {
        let printed = shown.and_then(|shown| digits(shown.split_whitespace().next()?));
        row.rounded(printed.map_or(0.0, |printed| resolution(&printed)));
    }
    if let Some((sent, lost)) = get("send_bw_bps").map(|sent| (sent, sent - value))
        && measure == "bw"
        && lost < -0.05 * sent
    {
        return Err(Contradiction::ReceivedRate { received: value, sent }.into());
    }
    Ok((kind, row))
}
