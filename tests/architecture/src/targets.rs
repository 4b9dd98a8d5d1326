//! Rules over the targets that cargo builds: each takes time to compile and to link.

/// What is wrong with the tests of `package`, whose binaries of tests start at `roots`.
#[must_use]
pub fn check_tests(package: &str, roots: &[String]) -> Option<String> {
    let several = roots.len() > 1;
    several.then(|| format!("{package}: has {} binaries of tests, join them: {}", roots.len(), roots.join(", ")))
}

/// Each of `files` (names of the files and folders beside `root`) that is no module of it: no test in it would run.
#[must_use]
pub fn check_modules(root: &str, source: &str, files: &[String]) -> Vec<String> {
    let modules = files.iter().map(|file| file.trim_end_matches(".rs")).filter(|module| *module != "main");
    let missing = modules.filter(|module| !source.lines().any(|line| line == format!("mod {module};")));
    missing.map(|module| format!("{root}: has no line `mod {module};`")).collect()
}

/// What is wrong if cargo looks for examples in the documents of a crate's sources (`runs`) and there are none, which takes seconds, or
/// if it does not and there are some.
#[must_use]
pub fn check_examples(package: &str, runs: bool, sources: &[String]) -> Option<String> {
    match (runs, sources.iter().any(|source| has_example(source))) {
        (true, false) => {
            Some(format!("{package}: has no examples in its documents, so set `doctest = false` in [lib]"))
        }
        (false, true) => Some(format!("{package}: has an example in its documents, so remove `doctest = false`")),
        _ => None,
    }
}

/// Whether a document in `source` has a block that rustdoc runs or compiles.
fn has_example(source: &str) -> bool {
    let mut open = false;
    source.lines().any(|line| {
        let line = line.trim_start();
        let fence = line.strip_prefix("//!").or_else(|| line.strip_prefix("///"));
        let Some(language) = fence.and_then(|text| text.trim_start().strip_prefix("```")) else { return false };
        open = !open;
        open && matches!(language, "" | "no_run" | "rust" | "should_panic" | "compile_fail")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crates_with_and_without_examples_are_named_if_cargo_does_not_know() {
        let of = |runs, source: &str| check_examples("a", runs, &[source.to_owned()]).is_some();
        let (text, example) = ("/// ```text\n/// a\n/// ```\n", "//! ```\n//! a();\n//! ```\n");
        assert_eq!(
            [of(false, text), of(false, example), of(true, text), of(true, example)],
            [false, true, true, false]
        );
    }

    #[test]
    fn a_second_binary_of_tests_is_named() {
        let roots = |count| vec!["tests/a.rs".to_owned(); count];
        assert_eq!([0, 1, 2].map(|count| check_tests("a", &roots(count)).is_some()), [false, false, true]);
    }

    #[test]
    fn a_file_that_is_no_module_is_named() {
        let files = ["a.rs", "b.rs", "c", "main.rs"].map(str::to_owned);
        assert!(check_modules("tests/all/main.rs", "mod a;\n#[cfg(unix)]\nmod b;\nmod c;\n", &files).is_empty());
        assert_eq!(check_modules("tests/all/main.rs", "mod a;\n// mod b;\n", &files).len(), 2);
    }
}
