//! Every recorded output changed as files are on their way: other line ends, lines around it, cut, doubled, with digits that are broken.
//! A value that a changed file gives without a refusal is one of the file as it was.
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::path::{Path, PathBuf};

use import::{TextReading, read};
use model::Direction;

/// All recorded outputs, by name.
fn files() -> Vec<(String, String)> {
    let folder: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data");
    let names = std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names.into_iter().map(|name| (name.clone(), std::fs::read_to_string(folder.join(name)).unwrap())).collect()
}

/// Each so many-th of a number of places in a file, so that it has at most `most` of them, in `make test` at most half as many.
fn step(places: usize, most: usize) -> usize {
    let thorough = std::env::var_os("THRU_LONG").is_some();
    places / if thorough { most } else { most / 2 } + 1
}

/// A reading; nothing for a text that is in no format.
fn reading(text: &[u8]) -> TextReading {
    read(text, None).unwrap_or_default()
}

/// Pattern, direction and value.
type Value = (String, Direction, f64);

/// The values of a reading, without those whose remark says that they are the sender's.
fn values(reading: &TextReading) -> Vec<Value> {
    let rows = reading.imported.iter().flat_map(|imported| &imported.rows);
    let rows = rows.filter(|row| !row.remarks.iter().any(|remark| remark.contains("a sender's rate")));
    rows.filter_map(|row| Some((row.spec.pattern.to_string(), row.spec.direction, row.trial.value?))).collect()
}

/// Whether two values are the same but for the digits of a sum and of what adds up to it.
fn is_same(a: &Value, b: &Value) -> bool {
    (&a.0, a.1) == (&b.0, b.1) && (a.2 - b.2).abs() <= 0.01 * a.2.max(b.2)
}

/// The values of a changed text that the whole one has not, if nothing is refused.
fn new_values(whole: &[Value], changed: &str) -> Vec<Value> {
    let reading = reading(changed.as_bytes());
    let all = if reading.refused.is_empty() { values(&reading) } else { Vec::new() };
    all.into_iter().filter(|value| !whole.iter().any(|own| is_same(own, value))).collect()
}

/// What the reasons of a reading say, without their lines.
fn reasons(reading: &TextReading) -> Vec<String> {
    reading.refused.iter().map(ToString::to_string).collect()
}

/// What differs between two readings, by the values, the reasons and the number of runs.
fn difference(name: &str, read: &TextReading, whole: &TextReading) -> Option<String> {
    let of = |reading: &TextReading| {
        format!("{} runs, {:?}, refused {:?}", reading.imported.len(), values(reading), reasons(reading))
    };
    let (own, expected) = (of(read), of(whole));
    (own != expected).then(|| format!("{name}: {own} instead of {expected}"))
}

#[track_caller]
fn none(problems: &[String]) {
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn line_ends_and_the_mark_of_the_encoding_change_nothing() {
    let mut problems = Vec::new();
    for (name, text) in files() {
        let whole = reading(text.as_bytes());
        let windows = text.replace("\r\n", "\n").replace('\n', "\r\n");
        let marked = [&[0xef, 0xbb, 0xbf], text.as_bytes()].concat();
        let all = [windows.as_bytes(), &marked, text.trim_end().as_bytes()];
        problems.extend(all.into_iter().filter_map(|changed| difference(&name, &reading(changed), &whole)));
    }
    none(&problems);
}

/// np.out and netperf without heads are numbers alone, so that other lines are refused, and tell whether it is one of them.
const NUMBERS_ALONE: [&str; 1] = ["netpipe372_np.out"];

#[test]
fn lines_around_an_output_do_not_hide_it() {
    let (before, after) = ("host:~$ a command --with options\n3 of 4 done, in 2 min\n\n", "\n\nhost:~$ exit\nlogout\n");
    let files = files().into_iter().filter(|(name, _)| !NUMBERS_ALONE.contains(&name.as_str()));
    let changed = |(name, text): (String, String)| {
        let around = format!("{before}{text}{after}");
        difference(&name, &reading(around.as_bytes()), &reading(text.as_bytes()))
    };
    none(&files.filter_map(changed).collect::<Vec<_>>());
}

/// A test of one interval and one connection is one line, as is the beginning of a longer one.
const ONE_LINE_IS_WHOLE: [&str; 6] = [
    "iperf2_tcp.txt",
    "iperf2_udp.txt",
    "iperf2.csv",
    "iperf2-parallel.csv",
    "iperf2-full-duplex.csv",
    "iperf2-full-duplex-2.1.8.csv",
];

#[test]
fn a_cut_output_has_no_other_value() {
    let mut problems = Vec::new();
    for (name, text) in files().into_iter().filter(|(name, _)| !ONE_LINE_IS_WHOLE.contains(&name.as_str())) {
        let whole = values(&reading(text.as_bytes()));
        let ends: Vec<usize> = text.match_indices('\n').map(|(at, _)| at + 1).collect();
        for end in ends.iter().step_by(step(ends.len(), 60)) {
            let other = new_values(&whole, &text[..*end]);
            if !other.is_empty() {
                let lines = text[..*end].lines().count();
                problems.push(format!("{name} cut after line {lines}: {other:?} instead of {whole:?}"));
            }
        }
    }
    none(&problems);
}

#[test]
fn an_output_and_its_copy_have_no_other_value() {
    let mut problems = Vec::new();
    for (name, text) in files() {
        let whole = reading(text.as_bytes());
        let (twice, known) = (reading(format!("{text}\n{text}").as_bytes()), values(&whole));
        let other: Vec<Value> =
            values(&twice).into_iter().filter(|value| !known.iter().any(|own| is_same(own, value))).collect();
        if !other.is_empty() || twice.imported.len() > 2 * whole.imported.len() {
            problems.push(format!("{name}: {} runs, {other:?} of {known:?}", twice.imported.len()));
        }
    }
    none(&problems);
}

/// The numbers of a text: where they begin and end.
fn numbers(text: &str) -> Vec<(usize, usize)> {
    let bytes = text.as_bytes();
    let part = |at: usize| bytes.get(at).is_some_and(|byte| byte.is_ascii_digit() || *byte == b'.');
    let begins = (0..bytes.len()).filter(|at| bytes[*at].is_ascii_digit() && (*at == 0 || !part(at - 1)));
    begins.map(|at| (at, (at..=bytes.len()).find(|end| !part(*end)).unwrap_or(bytes.len()))).collect()
}

#[test]
fn a_number_that_is_none_gives_no_other_value() {
    let mut problems = Vec::new();
    for (name, text) in files() {
        let whole = values(&reading(text.as_bytes()));
        let all = numbers(&text);
        for (begin, end) in all.iter().step_by(step(all.len(), 40)) {
            let other = new_values(&whole, &format!("{}-nan{}", &text[..*begin], &text[*end..]));
            if !other.is_empty() {
                let line = text[..*begin].matches('\n').count() + 1;
                let number = &text[*begin..*end];
                problems.push(format!("{name}, '{number}' in line {line}: {other:?} of {whole:?}"));
            }
        }
    }
    none(&problems);
}

/// Formats that have commas of their own.
const COMMAS: [&str; 7] = [
    "iperf2.csv",
    "iperf2-parallel.csv",
    "iperf2-full-duplex.csv",
    "iperf2-full-duplex-2.1.8.csv",
    "mtr.csv",
    "2002-systems.csv",
    "netperf27_TCP_RR_o.csv",
];

#[test]
fn decimal_commas_are_no_other_numbers() {
    let mut problems = Vec::new();
    for (name, text) in files().into_iter().filter(|(name, _)| !COMMAS.contains(&name.as_str())) {
        let whole = values(&reading(text.as_bytes()));
        let mut changed: Vec<char> = text.chars().collect();
        for at in 1..changed.len().saturating_sub(1) {
            if changed[at] == '.' && changed[at - 1].is_ascii_digit() && changed[at + 1].is_ascii_digit() {
                changed[at] = ',';
            }
        }
        let other = new_values(&whole, &changed.into_iter().collect::<String>());
        if !other.is_empty() {
            problems.push(format!("{name}: {other:?} of {whole:?}"));
        }
    }
    none(&problems);
}
