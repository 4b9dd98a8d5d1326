//! Rules over the lines of Rust sources.

/// Lines that a file may have before its tests.
const LONGEST: usize = 599;

/// Sources of libraries that spell flags: they start `thru` itself or another program, or compose a command to paste.
const WITH_FLAGS: &[&str] = &[
    "crates/analysis/src/advice/persistent.rs",
    "crates/control/src/agent/pool.rs",
    "crates/engine/src/transport/launched/",
    "crates/lab/src/error.rs",
    "crates/options/src/end_options.rs",
    "crates/options/src/given.rs",
    "crates/report/src/formats/answer/repeat.rs",
    "crates/session/src/config.rs",
    "crates/session/src/fleet/",
    "crates/session/src/launch/",
    "crates/session/src/own.rs",
    "crates/session/src/plan/read.rs",
    "crates/session/src/running_lab.rs",
    "crates/session/src/selftest/",
    "crates/session/src/serving/rights.rs",
    "crates/session/src/source.rs",
    "crates/session/src/topology/read.rs",
];

/// Every rule that `source`, at `path` from the root of the workspace, breaks.
#[must_use]
pub fn check(path: &str, source: &str) -> Vec<String> {
    let mut broken = Vec::new();
    let code = before_tests(source);
    let lines = code.lines().count();
    if lines > LONGEST {
        broken.push(format!("{path}: has {lines} lines before its tests; give a part of it a file of its own"));
    }
    let is = |folder: &str| path.split('/').any(|part| part.strip_suffix(".rs").unwrap_or(part) == folder);
    // The compiler denies unsafe code where nothing allows it.
    let allowing =
        source.lines().filter(|line| line.trim_start().starts_with("#") && line.contains("allow(unsafe_code"));
    if !is("sys") {
        broken.extend(
            allowing.map(|line| format!("{path}: allows unsafe code outside of a sys module: {}", line.trim())),
        );
    }
    let library = path.starts_with("crates/") && path.contains("/src/") && !path.starts_with("crates/throughline/");
    if library && !is("tests") && !WITH_FLAGS.iter().any(|with| path.starts_with(with)) {
        for (number, line) in (1..).zip(code.lines()) {
            broken.extend(flag(line).map(|flag| {
                format!(
                    "{path}:{number}: spells the flag {flag}; write `{}`, with its value inside the backticks",
                    &flag[2..]
                )
            }));
        }
    }
    broken
}

/// What is before the test module that ends a file.
fn before_tests(source: &str) -> &str {
    source.find("\n#[cfg(test)]\nmod tests {").map_or(source, |end| &source[..=end])
}

/// The first flag in a line of code: two dashes that no letter, digit or dash precedes, and a name. Comments may name flags, and so may a
/// command of `thru` in backticks, which is to be pasted.
fn flag(line: &str) -> Option<&str> {
    let line = line.split("// ").next().unwrap_or(line);
    if line.trim_start().starts_with("//") || line.contains("`thru ") {
        return None;
    }
    line.match_indices("--").find_map(|(at, _)| {
        let name = &line[at + 2..];
        let length =
            name.find(|c: char| !(c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')).unwrap_or(name.len());
        let begins = !line[..at].ends_with(|before: char| before.is_alphanumeric() || before == '-');
        (begins && name.starts_with(|c: char| c.is_ascii_lowercase())).then(|| &line[at..at + 2 + length])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn broken(path: &str, source: &str) -> usize {
        check(path, source).len()
    }

    #[test]
    fn long_files_are_named_but_not_for_their_tests() {
        let lines = |count| "fn a() {}\n".repeat(count);
        let tests = format!("\n#[cfg(test)]\nmod tests {{\n{}}}\n", lines(300));
        for (source, count) in [(lines(599), 0), (lines(600), 1), (lines(598) + &tests, 0), (lines(600) + &tests, 1)] {
            assert_eq!(broken("crates/engine/src/a.rs", &source), count);
        }
    }

    #[test]
    fn unsafe_code_belongs_into_sys() {
        let source = "#![allow(unsafe_code, reason = \"calls the kernel\")]";
        for path in
            ["crates/engine/src/a.rs", "crates/engine/src/system.rs", "crates/engine/tests/a.rs", "benches/a.rs"]
        {
            assert_eq!(broken(path, source), 1, "{path}");
        }
        for path in ["crates/engine/src/sys.rs", "crates/engine/src/transport/sys/a.rs"] {
            assert_eq!(broken(path, source), 0, "{path}");
        }
    }

    #[test]
    fn a_flag_in_a_message_of_a_library_is_found() {
        for source in
            ["fn a() { b(\"use --flows 4\") }", "const A: &str = \"(--rate)\";", "fn a() {\n b(\"x \\\n --a\") }"]
        {
            assert_eq!(broken("crates/model/src/a.rs", source), 1, "{source}");
            for path in ["crates/throughline/src/a.rs", "crates/model/tests/a.rs", "crates/model/src/a/tests.rs"] {
                assert_eq!(broken(path, source), 0, "{path}");
            }
        }
        for source in [
            "fn a() { b(\"use `flows 4`\") }",
            "/// Set by --flows.\nfn a() {} // --rate",
            "fn a() { b(\"try `thru stream --flows 4`\") }",
            "fn a() { b(\"a--b -- --{name} ---\") }",
            "\n#[cfg(test)]\nmod tests { const A: &str = \"--flows\"; }",
        ] {
            assert_eq!(broken("crates/model/src/a.rs", source), 0, "{source}");
        }
    }
}
