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

#[cfg(test)]
mod tests {
    use super::*;

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
