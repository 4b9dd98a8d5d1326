//! Libraries name options as `flows 4`; only the program knows that a user types --flows 4.

use crate::lexer::strings_of_code;
use crate::sources::library_of;
use crate::{Rule, Violation};

/// Sources that hold flags, with the flags and the reason. A flag of `*` stands for all.
const ALLOWED: &[(&str, &[&str], &str)] = &[
    ("crates/analysis/src/advice/persistent.rs", &["--nodelay", "--set"], "composes a command of thru to paste"),
    ("crates/report/src/formats/answer/longer.rs", &["*"], "composes a command of thru to paste"),
    ("crates/session/src/config.rs", &["--until-input-ends"], "a flag of processes that thru starts itself"),
    ("crates/session/src/own.rs", &["*"], "starts thru itself"),
    ("crates/session/src/selftest/delay.rs", &["*"], "starts thru itself"),
    ("crates/session/src/selftest/link.rs", &["*"], "starts thru itself"),
    ("crates/session/src/selftest/beside.rs", &["*"], "starts thru itself"),
    ("crates/session/src/selftest/anatomy.rs", &["*"], "starts thru itself"),
    ("crates/session/src/selftest/loss.rs", &["*"], "starts thru itself"),
    ("crates/session/src/selftest/one_way.rs", &["*"], "starts thru itself"),
    ("crates/session/src/selftest/pacing.rs", &["*"], "starts thru itself"),
    ("crates/session/src/selftest/unshaped.rs", &["*"], "starts thru itself"),
    ("crates/session/src/selftest/rate.rs", &["*"], "starts thru itself"),
    ("crates/control/src/agent/pool.rs", &["--memory", "--tasks"], "starts thru itself"),
    ("crates/session/src/serving/rights.rs", &["*"], "starts thru itself"),
    ("crates/session/src/launch/mpi.rs", &["--anywhere"], "starts thru itself"),
    ("crates/session/src/launch/pvm.rs", &["--pvm"], "starts thru itself"),
    ("crates/session/src/plan/read.rs", &["--lab", "--var"], "errors about a plan are shown as they are"),
    ("crates/session/src/source.rs", &["--var"], "errors about a plan are shown as they are"),
    ("crates/session/src/topology/read.rs", &["--var"], "the same values, in a topology"),
    ("crates/session/src/running_lab.rs", &["*"], "starts thru itself"),
    ("crates/session/src/fleet/ansible.rs", &["--list"], "a flag of ansible-inventory"),
    ("crates/session/src/fleet/kubernetes.rs", &["--selector", "--output"], "flags of kubectl"),
    ("crates/session/src/fleet/slurm.rs", &["--noheader", "--partition", "--format"], "flags of sinfo"),
    ("crates/session/src/fleet/launch/batch.rs", &["*"], "flags of srun and mpirun, and starts thru itself"),
    ("crates/session/src/fleet/launch/ssh.rs", &["--listen", "--token-file", "--version"], "starts thru itself"),
    ("crates/lab/src/error.rs", &["--privileged", "--device"], "flags of docker run"),
];

/// Every flag in a string of a library's source at `path` from the root of the workspace, outside of its tests.
#[must_use]
pub fn check(path: &str, source: &str) -> Vec<Violation> {
    if library_of(path).is_none() || path.split('/').any(|part| matches!(part, "tests" | "tests.rs")) {
        return Vec::new();
    }
    let strings = match strings_of_code(source) {
        Ok(strings) => strings,
        Err(error) => return vec![Violation::new(Rule::Readable, path, format!("does not parse: {error}"))],
    };
    let found =
        strings.iter().flat_map(|string| flags_of(&string.text).into_iter().map(move |flag| (string.line, flag)));
    found
        .filter(|(_, flag)| !is_allowed(path, flag))
        .map(|(line, flag)| {
            let what = format!("spells the flag {flag}; write `{}`, with its value inside the backticks", &flag[2..]);
            Violation::new(Rule::Flags, format!("{path}:{line}"), what)
        })
        .collect()
}

/// The entries of the list of allowed flags that no source needs.
#[must_use]
pub fn unused(read: impl Fn(&str) -> Option<String>) -> Vec<Violation> {
    let needed = |path: &str, flag: &str| {
        let strings = read(path).and_then(|source| strings_of_code(&source).ok()).unwrap_or_default();
        strings.iter().flat_map(|string| flags_of(&string.text)).any(|found| flag == "*" || flag == found)
    };
    let entries = ALLOWED.iter().flat_map(|(path, flags, _)| flags.iter().map(move |flag| (*path, *flag)));
    entries
        .filter(|(path, flag)| !needed(path, flag))
        .map(|(path, flag)| {
            Violation::new(Rule::Flags, path, format!("is allowed {flag} but has none: shorten the list"))
        })
        .collect()
}

fn is_allowed(path: &str, flag: &str) -> bool {
    ALLOWED.iter().any(|(of, flags, _)| *of == path && flags.iter().any(|allowed| *allowed == "*" || *allowed == flag))
}

/// The flags in a text: two dashes that no letter, digit or dash precedes, and a name.
fn flags_of(text: &str) -> Vec<&str> {
    let starts = text.match_indices("--").map(|(at, _)| at);
    // A command of `thru` in backticks is to be pasted: it has its flags.
    let in_command = |at: usize| {
        let open = text[..at].matches('`').count() % 2 == 1;
        open && text[..at].rsplit('`').next().is_some_and(|before| before.split(' ').any(|word| word == "thru"))
    };
    starts
        .filter(|at| !in_command(*at))
        .filter(|at| !text[..*at].ends_with(|before: char| before.is_alphanumeric() || before == '-'))
        .filter_map(|at| {
            let name = &text[at + 2..];
            let ends = |c: char| !(c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
            let length = name.find(ends).unwrap_or(name.len());
            name.starts_with(|c: char| c.is_ascii_lowercase()).then(|| &text[at..at + 2 + length])
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(path: &str, source: &str) -> Vec<String> {
        check(path, source).into_iter().map(|found| found.place).collect()
    }

    #[test]
    fn a_flag_in_a_message_of_a_library_is_found() {
        for source in
            ["fn a() { b(\"use --flows 4\") }", "const A: &str = \"(--rate)\";", "fn a() { f!(\"--cc={x}\") }"]
        {
            assert_eq!(found("crates/model/src/a.rs", source), ["crates/model/src/a.rs:1"], "{source}");
            assert_eq!(found("crates/throughline/src/a.rs", source), [""; 0]);
            assert_eq!(found("crates/model/tests/a.rs", source), [""; 0]);
            assert_eq!(found("crates/model/src/a/tests.rs", source), [""; 0]);
        }
        assert_eq!(found("crates/model/src/a.rs", "fn a() {\n b(\"x \\\n --a and --b\") }").len(), 2);
    }

    #[test]
    fn names_tests_and_comments_pass() {
        for source in [
            "fn a() { b(\"use `flows 4`\") }",
            "/// Set by --flows.\nfn a() {} // --rate",
            "fn a() { b(\"a--b -- --{name} ---\") }",
            "#[cfg(test)]\nmod tests { const A: &str = \"--flows\"; }",
        ] {
            assert_eq!(found("crates/model/src/a.rs", source), [""; 0], "{source}");
        }
    }

    #[test]
    fn the_list_of_allowed_flags_is_exact() {
        let source = "fn a() { b(\"--privileged --other\") }";
        assert_eq!(check("crates/lab/src/error.rs", source).len(), 1);
        let left = unused(|path| (path == "crates/lab/src/error.rs").then(|| source.to_owned()));
        assert!(
            left.iter().any(|it| it.what.contains("--device"))
                && !left.iter().any(|it| it.what.contains("--privileged"))
        );
    }
}
