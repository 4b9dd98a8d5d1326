//! The rules, applied to this workspace.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test stops at the first error and prints what it skips"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use architecture::{Violation, circles, flags, imports, modules, sources, text, vocabulary};
use cargo_metadata::MetadataCommand;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn crates() -> Vec<imports::Crate> {
    let metadata = MetadataCommand::new().manifest_path(root().join("Cargo.toml")).no_deps().exec().unwrap();
    let crates = imports::crates(&metadata);
    assert!(crates.iter().any(|found| found.name == "model"), "the workspace's crates were not found: {crates:?}");
    crates
}

fn assert_none(violations: &[Violation]) {
    let list: Vec<String> = violations.iter().map(Violation::to_string).collect();
    assert!(list.is_empty(), "{} violations:\n{}", list.len(), list.join("\n"));
}

/// All files with this ending below `directory`, as paths from the root.
fn files_below(root: &Path, directory: &str, ending: &str, into: &mut Vec<String>) {
    for entry in fs::read_dir(root.join(directory)).unwrap() {
        let entry = entry.unwrap();
        let path = format!("{directory}/{}", entry.file_name().into_string().unwrap());
        if entry.file_type().unwrap().is_dir() {
            if entry.file_name() != "target" {
                files_below(root, &path, ending, into);
            }
        } else if path.ends_with(ending) {
            into.push(path);
        }
    }
}

/// The tracked files; `None` outside of a git checkout.
fn tracked(root: &Path) -> Option<Vec<String>> {
    // The checkout may belong to another user.
    let arguments = ["-c", "safe.directory=*", "ls-files", "-z"];
    let output = Command::new("git").args(arguments).current_dir(root).output().ok()?;
    let list = String::from_utf8(output.stdout).ok()?;
    let files: Vec<String> = list.split('\0').filter(|name| !name.is_empty()).map(str::to_owned).collect();
    (output.status.success() && !files.is_empty()).then_some(files)
}

#[test]
fn crates_import_only_what_the_table_allows() {
    assert_none(&imports::check(&crates()));
}

/// The targets of the workspace: libraries, programs, tests, benches, examples.
fn targets(root: &Path) -> Vec<modules::Target> {
    let metadata = MetadataCommand::new().manifest_path(root.join("Cargo.toml")).no_deps().exec().unwrap();
    let read = |path: &str| fs::read_to_string(root.join(path)).ok();
    let sources = metadata.packages.iter().flat_map(|package| &package.targets).map(|target| &target.src_path);
    let targets: Vec<modules::Target> = sources
        .map(|path| {
            let path = path.as_std_path().canonicalize().unwrap();
            let path = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            modules::target(&path, &read).unwrap_or_else(|violation| panic!("{violation}"))
        })
        .collect();
    let files: usize = targets.iter().map(|target| target.imports.len()).sum();
    assert!(files > 500, "only {files} files were found");
    targets
}

#[test]
fn no_files_import_each_other_in_a_circle() {
    assert_none(&targets(&root()).iter().flat_map(circles::check).collect::<Vec<_>>());
}

#[test]
fn the_engine_imports_down_only() {
    let targets = targets(&root());
    let engine = targets.iter().find(|target| target.imports.contains_key("crates/engine/src/lib.rs")).unwrap();
    assert!(engine.imports.len() > 80, "only {} files of the engine were found", engine.imports.len());
    assert_none(&circles::check_floors(engine));
}

/// The sources of the workspace.
fn all_sources(root: &Path) -> Vec<String> {
    let mut files = Vec::new();
    for directory in ["crates", "tests", "benches", "fuzz", "examples"] {
        if root.join(directory).is_dir() {
            files_below(root, directory, ".rs", &mut files);
        }
    }
    assert!(files.len() > 20, "only {} sources were found", files.len());
    files.sort();
    files
}

#[test]
fn sources_keep_the_rules() {
    let root = root();
    let files = all_sources(&root);
    let violations = files.iter().flat_map(|path| sources::check(path, &fs::read_to_string(root.join(path)).unwrap()));
    assert_none(&violations.collect::<Vec<_>>());
}

#[test]
fn libraries_spell_no_flags() {
    let root = root();
    let files = all_sources(&root);
    let violations = files.iter().flat_map(|path| flags::check(path, &fs::read_to_string(root.join(path)).unwrap()));
    assert_none(&violations.collect::<Vec<_>>());
    assert_none(&flags::unused(|path| fs::read_to_string(root.join(path)).ok()));
}

#[test]
fn no_retired_word_is_used() {
    let root = root();
    let read = |path: &String| fs::read_to_string(root.join(path)).unwrap();
    let mut violations = Vec::new();
    for path in all_sources(&root) {
        violations.extend(vocabulary::check_rust(&path, &read(&path)));
    }
    let mut documents = vec!["README.md".to_owned(), "docs/ARCHITECTURE.md".to_owned()];
    files_below(&root, "docs/manual", ".md", &mut documents);
    for path in documents {
        violations.extend(vocabulary::check_markdown(&path, &read(&path)));
    }
    let mut schemas = Vec::new();
    files_below(&root, "docs/schema", ".json", &mut schemas);
    for path in schemas {
        violations.extend(vocabulary::check_schema(&path, &read(&path)));
    }
    assert_none(&violations);
}

#[test]
fn the_map_names_every_crate() {
    let map = fs::read_to_string(root().join("docs/ARCHITECTURE.md")).unwrap();
    let crates = crates();
    assert_none(&text::check_map(&map, crates.iter().map(|found| found.name.as_str())));
}

#[test]
fn no_tracked_file_names_a_path_of_a_machine() {
    let root = root();
    let Some(files) = tracked(&root) else {
        println!("SKIPPED: no_tracked_file_names_a_path_of_a_machine: this is no git checkout");
        return;
    };
    let mut violations = Vec::new();
    for path in files {
        // Skips files that were deleted but not committed.
        let Ok(bytes) = fs::read(root.join(&path)) else { continue };
        violations.extend(text::check_machine_paths(&path, &String::from_utf8_lossy(&bytes)));
    }
    assert_none(&violations);
}
