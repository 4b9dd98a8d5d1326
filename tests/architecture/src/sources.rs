//! Rules over the lines of Rust sources.

/// Lines that a file may have before its tests.
const LONGEST: usize = 599;

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
    broken
}

/// What is before the test module that ends a file.
fn before_tests(source: &str) -> &str {
    source.find("\n#[cfg(test)]\nmod tests {").map_or(source, |end| &source[..=end])
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
}
