//! Every flag that a text names exists.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use clap::Command;

use crate::habits::{IPERF3, NETPERF};

/// Flags in our texts that `thru` does not have, each with its program.
const OTHERS: &[(&str, &str)] = &[
    ("allow-run-as-root", "mpirun"),
    ("bounceback", "iperf2"),
    ("csv", "mtr"),
    ("example", "cargo"),
    ("exclusive", "sbatch"),
    ("features", "cargo"),
    ("full-duplex", "iperf2"),
    ("headless", "chromium"),
    ("histograms", "iperf2"),
    ("host", "mpirun"),
    ("list", "ansible-inventory"),
    ("map-by", "mpirun"),
    ("markdown", "scripts/bench.sh"),
    ("no-default-features", "cargo"),
    ("nocapture", "cargo test"),
    ("nodelist", "srun"),
    ("nodes", "srun"),
    ("noheader", "sinfo"),
    ("ntasks-per-node", "srun"),
    ("overlap", "srun"),
    ("oversubscribe", "mpirun"),
    ("partition", "sinfo"),
    ("peer", "scripts/bench.sh"),
    ("plan", "scripts/bench.sh"),
    ("print-to-pdf", "chromium"),
    ("privileged", "docker"),
    ("release", "cargo"),
    ("selector", "kubectl"),
    ("system", "sysctl"),
    ("test", "cargo test"),
    ("test-threads", "cargo test"),
    ("wad", "a former name, which names the new one"),
    ("work", "scripts/bench.sh"),
];

/// The long options of all commands, without their dashes.
fn options() -> BTreeSet<String> {
    fn collect(command: &Command, into: &mut BTreeSet<String>) {
        into.extend(command.get_arguments().filter_map(|arg| arg.get_long()).map(str::to_owned));
        command.get_subcommands().for_each(|one| collect(one, into));
    }
    let mut names = BTreeSet::new();
    collect(&crate::args::command(), &mut names);
    names
}

/// The long options of the programs whose options `thru` knows, without their dashes.
fn of_others() -> BTreeSet<String> {
    let names = [IPERF3, NETPERF].into_iter().flatten().flat_map(|row| row.names);
    names.filter_map(|name| name.strip_prefix("--")).map(str::to_owned).collect()
}

/// All files with this ending below a folder of the workspace, or the file itself, with their text.
fn texts(place: &str, ending: &str) -> Vec<(PathBuf, String)> {
    let mut open = vec![Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(place)];
    let mut texts = Vec::new();
    while let Some(path) = open.pop() {
        if path.is_dir() {
            open.extend(fs::read_dir(&path).unwrap().map(|entry| entry.unwrap().path()));
        } else if path.extension().is_some_and(|found| found == ending) {
            let text = fs::read_to_string(&path).unwrap();
            texts.push((path, text));
        }
    }
    assert!(!texts.is_empty(), "{place} has no files that end with {ending}");
    texts
}

/// The sources of all crates without their tests and comments.
fn sources(place: &str) -> Vec<(PathBuf, String)> {
    let is_test = |path: &Path| {
        let part = |part: &std::ffi::OsStr| {
            ["tests", "tests.rs", "benches", "testdata", "build.rs", "examples"].iter().any(|name| part == *name)
        };
        path.iter().any(part)
    };
    let code = |text: &str| {
        let before = text.split("#[cfg(test)]\nmod tests").next().unwrap_or_default();
        let lines = before.lines().filter(|line| !line.trim_start().starts_with("//"));
        lines.map(|line| line.split(" // ").next().unwrap_or_default()).collect::<Vec<_>>().join("\n")
    };
    texts(place, "rs").into_iter().filter(|(path, _)| !is_test(path)).map(|(path, text)| (path, code(&text))).collect()
}

/// The names that follow `mark` in a text, where no letter, digit or dash precedes it.
fn named<'a>(text: &'a str, mark: &'a str) -> impl Iterator<Item = &'a str> {
    let free = |at: usize| !text[..at].ends_with(|before: char| before.is_alphanumeric() || before == '-');
    text.match_indices(mark).filter(move |(at, _)| free(*at)).filter_map(move |(at, _)| {
        let name = &text[at + mark.len()..];
        let end = name.find(|c: char| !(c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'));
        let name = &name[..end.unwrap_or(name.len())];
        name.starts_with(|c: char| c.is_ascii_lowercase()).then_some(name)
    })
}

#[test]
fn every_flag_that_a_text_names_exists() {
    let options = &options() | &of_others();
    let mut all = sources("crates");
    all.extend(texts("crates/throughline/src/help", "txt"));
    all.extend(texts("README.md", "md"));
    all.extend(texts("docs/manual", "md"));
    let (mut unknown, mut used) = (Vec::new(), Vec::new());
    for (path, text) in &all {
        for name in named(text, "--") {
            if let Some((other, _)) = OTHERS.iter().find(|(other, _)| *other == name) {
                used.push(*other);
            } else if !options.contains(name) && !matches!(name, "help" | "version") {
                unknown.push(format!("{}: --{name}", path.display()));
            }
        }
    }
    assert!(unknown.is_empty(), "flags that thru does not have:\n{}", unknown.join("\n"));
    let unused: Vec<_> = OTHERS.iter().filter(|(other, _)| !used.contains(other)).collect();
    assert!(unused.is_empty(), "no text has these flags: {unused:?}");
}
