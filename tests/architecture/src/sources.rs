//! Rules over the text of Rust sources.

use crate::lexer::{Token, lex};
use crate::{Rule, Violation};

/// Crates that are pure functions.
const PURE: &[&str] = &["analysis", "report"];
/// What a pure function must not use.
const IMPURE: &[[&str; 2]] = &[["std", "fs"], ["std", "net"], ["Instant", "now"], ["SystemTime", "now"]];
/// Lines that a file may have before its tests.
const LONGEST: usize = 599;

/// Every rule that `source`, at `path` from the root of the workspace, breaks.
#[must_use]
pub fn check(path: &str, source: &str) -> Vec<Violation> {
    let lexed = match lex(source) {
        Ok(lexed) => lexed,
        Err(error) => return vec![Violation::new(Rule::Readable, path, format!("does not parse: {error}"))],
    };
    let mut violations = Vec::new();
    let mut report = |rule, line: usize, what: String| {
        violations.push(Violation::new(rule, format!("{path}:{line}"), what));
    };
    let library = library_of(path);
    if library.is_some_and(|name| PURE.contains(&name)) {
        for [of, what] in IMPURE {
            for line in uses(&lexed.code, of, what) {
                report(Rule::Pure, line, format!("uses {of}::{what}"));
            }
        }
    }
    if library.is_some() {
        for line in uses(&lexed.code, "process", "exit") {
            report(Rule::Exit, line, "uses process::exit; return an error instead".into());
        }
        for line in tags_read_by_serde(&lexed.code) {
            report(Rule::Kind, line, "has a tag that serde reads; begin with #[apply(by_kind!)]".into());
        }
    }
    if !path.split('/').any(|part| part == "sys" || part == "sys.rs") {
        for token in lexed.all.iter().filter(|token| token.text == "unsafe") {
            report(Rule::Unsafe, token.line, "has the word unsafe outside a sys module".into());
        }
    }
    if lexed.lines_before_tests > LONGEST {
        let what =
            format!("has {} lines before its tests; give a part of it a file of its own", lexed.lines_before_tests);
        report(Rule::Length, lexed.lines_before_tests, what);
    }
    violations
}

/// The library that `path` is a source of; `None` for the program, tests, examples and benches.
pub(crate) fn library_of(path: &str) -> Option<&str> {
    let (name, below) = path.strip_prefix("crates/")?.split_once('/')?;
    (below.starts_with("src/") && name != "throughline").then_some(name)
}

/// The lines with the attribute `serde(tag = "...")` of an enum that is not one of `by_kind!`.
fn tags_read_by_serde(tokens: &[Token]) -> Vec<usize> {
    const BEFORE: [&str; 8] = ["by_kind", "!", ")", "]", "#", "[", "serde", "("];
    let is = |at: usize, text: &str| tokens.get(at).is_some_and(|token| token.text == text);
    // Literals are no tokens. A tag that is no literal is in the macro itself.
    let tag = |at: usize| is(at, "tag") && is(at + 1, "=") && (is(at + 2, ",") || is(at + 2, ")"));
    let by_kind = |at: usize| {
        at.checked_sub(BEFORE.len()).is_some_and(|first| BEFORE.iter().zip(first..).all(|(text, at)| is(at, text)))
    };
    (0..tokens.len()).filter(|at| tag(*at) && !by_kind(*at)).map(|at| tokens[at].line).collect()
}

/// The lines on which `of::what` is named, in full or within the braces of an import such as `use of::{a, what}`.
fn uses(tokens: &[Token], of: &str, what: &str) -> Vec<usize> {
    let is = |at: usize, text: &str| tokens.get(at).is_some_and(|token| token.text == text);
    let mut lines = Vec::new();
    for at in (0..tokens.len()).filter(|at| is(*at, of) && is(at + 1, ":") && is(at + 2, ":")) {
        if is(at + 3, what) {
            lines.push(tokens[at + 3].line);
        }
        if is(at + 3, "{") {
            lines.extend(listed(&tokens[at + 3..], what));
        }
    }
    lines
}

/// The lines on which the group that `tokens` starts with lists `what` at its own level.
fn listed(tokens: &[Token], what: &str) -> Vec<usize> {
    let mut lines = Vec::new();
    let mut depth = 0;
    for pair in tokens.windows(2) {
        match pair[0].text.as_str() {
            "{" => depth += 1,
            "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            break;
        }
        if depth == 1 && pair[1].text == what && matches!(pair[0].text.as_str(), "{" | ",") {
            lines.push(pair[1].line);
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rules that `source` breaks at `path`, with their lines.
    fn broken(path: &str, source: &str) -> Vec<(Rule, String)> {
        check(path, source).into_iter().map(|found| (found.rule, found.place)).collect()
    }

    #[test]
    fn pure_crates_touch_no_file_network_or_clock() {
        for source in [
            "use std::fs;",
            "use std::{fmt, fs::File};",
            "use std::{collections::{BTreeMap, fs}, net::IpAddr};",
            "fn a() { std :: fs :: read(1); }",
            "fn a() { Instant::now(); }",
            "fn a() { std::time::SystemTime::now(); }",
        ] {
            for name in PURE {
                let path = format!("crates/{name}/src/a.rs");
                assert_eq!(broken(&path, source), [(Rule::Pure, format!("{path}:1"))], "{source}");
            }
            assert_eq!(broken("crates/host/src/a.rs", source), [], "{source}");
            assert_eq!(broken("crates/report/tests/a.rs", source), [], "{source}");
        }
    }

    #[test]
    fn names_that_are_only_similar_pass() {
        for source in [
            "// std::fs is not used\nconst A: &str = \"std::fs Instant::now()\";",
            "/// Never `std::fs`.\nfn a() {}",
            "fn a(instant: Instant) { instant.now(); }",
            "use std::{collections::{BTreeMap, fs}};",
            "use model::fs;\nuse other::{std, fs};",
            "#[cfg(test)]\nmod tests { use std::fs; }",
        ] {
            assert_eq!(broken("crates/report/src/a.rs", source), [], "{source}");
        }
    }

    #[test]
    fn libraries_do_not_end_the_process() {
        for source in ["fn a() { std::process::exit(1) }", "use std::process::{self, exit};"] {
            let path = "crates/engine/src/a.rs";
            assert_eq!(broken(path, source), [(Rule::Exit, format!("{path}:1"))], "{source}");
            assert_eq!(broken("crates/throughline/src/main.rs", source), []);
        }
        assert_eq!(broken("crates/engine/src/a.rs", "fn a() { process::abort() }"), []);
    }

    #[test]
    fn unsafe_belongs_into_sys() {
        let source = "\nfn a() { unsafe { b() } }";
        for path in
            ["crates/engine/src/a.rs", "crates/engine/src/system.rs", "crates/engine/tests/a.rs", "benches/a.rs"]
        {
            assert_eq!(broken(path, source), [(Rule::Unsafe, format!("{path}:2"))]);
        }
        for path in ["crates/engine/src/sys.rs", "crates/engine/src/transport/sys/a.rs"] {
            assert_eq!(broken(path, source), []);
        }
        assert_eq!(broken("crates/engine/src/a.rs", "#![deny(unsafe_code)] // unsafe"), []);
        // Also in tests.
        assert_eq!(broken("crates/engine/src/a.rs", "#[cfg(test)] mod tests { unsafe fn a() {} }").len(), 1);
    }

    #[test]
    fn enums_with_a_tag_are_read_by_kind() {
        let path = "crates/model/src/a.rs";
        for source in [
            "\n#[serde(tag = \"say\")] enum A {}",
            "#[derive(Deserialize)]\n#[serde(rename_all = \"kebab-case\", tag = \"say\")] enum A {}",
            "#[apply(by_kind!)] #[derive(Debug)]\n#[serde(tag = \"say\", content = \"of\")] enum A {}",
        ] {
            assert_eq!(broken(path, source), [(Rule::Kind, format!("{path}:2"))], "{source}");
        }
        for source in [
            "#[apply(by_kind!)]\n#[serde(tag = \"say\", rename_all = \"kebab-case\")] enum A {}",
            "#[apply(model::by_kind!)] #[serde(tag = \"say\")] enum A {}",
            "fn a() { let tag = \"say\"; }",
            "#[cfg(test)] mod tests { #[serde(tag = \"say\")] enum A {} }",
        ] {
            assert_eq!(broken(path, source), [], "{source}");
        }
        assert_eq!(broken("crates/throughline/src/a.rs", "#[serde(tag = \"say\")] enum A {}"), []);
    }

    #[test]
    fn long_files_are_named_but_not_for_their_tests() {
        let lines = |count| "fn a() {}\n".repeat(count);
        assert_eq!(broken("crates/engine/src/a.rs", &lines(599)), []);
        assert_eq!(broken("crates/engine/src/a.rs", &lines(600))[0].0, Rule::Length);
        let tests = format!("#[cfg(test)]\nmod tests {{\n{}}}\n", lines(300));
        assert_eq!(broken("crates/engine/src/a.rs", &(lines(599) + &tests)), []);
        assert_eq!(broken("crates/engine/src/a.rs", &(lines(600) + &tests))[0].0, Rule::Length);
    }

    #[test]
    fn what_is_no_rust_is_named() {
        assert_eq!(broken("crates/engine/src/a.rs", "fn {")[0].0, Rule::Readable);
    }
}
