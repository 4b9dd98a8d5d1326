//! The rules, applied to this workspace.

#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    reason = "a test stops at the first error and prints what it skips"
)]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use architecture::{circles, layers, modules, sources, targets};
use cargo_metadata::{Metadata, MetadataCommand};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap()
}

fn metadata() -> Metadata {
    MetadataCommand::new().manifest_path(root().join("Cargo.toml")).no_deps().exec().unwrap()
}

fn assert_none(broken: &[String]) {
    assert!(broken.is_empty(), "CONTRIBUTING.md, \"Rules that a tool holds\":\n{}", broken.join("\n"));
}

/// What git says about the tracked files; `None` outside of a checkout. It may belong to another user.
fn git(arguments: &[&str]) -> Option<Output> {
    let mut git = Command::new("git");
    git.args(["-c", "safe.directory=*"]).args(arguments).current_dir(root());
    git.output().ok().filter(|output| output.status.code() != Some(128))
}

#[test]
fn crates_import_only_what_the_table_allows() {
    let crates = layers::dependencies(&metadata());
    assert!(crates.iter().any(|(name, _)| name == "model"), "the workspace's crates were not found: {crates:?}");
    assert_none(&layers::check(&fs::read_to_string(root().join("docs/ARCHITECTURE.md")).unwrap(), &crates));
}

/// The targets of the workspace: libraries, programs, tests, benches, examples.
fn targets(root: &Path) -> Vec<modules::Target> {
    let read = |path: &str| fs::read_to_string(root.join(path)).ok();
    let metadata = metadata();
    let sources = metadata.packages.iter().flat_map(|package| &package.targets).map(|target| &target.src_path);
    let targets: Vec<modules::Target> = sources
        .map(|path| {
            let path = path.as_std_path().canonicalize().unwrap();
            let path = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
            modules::target(&path, &read).unwrap_or_else(|broken| panic!("{broken}"))
        })
        .collect();
    let files: usize = targets.iter().map(|target| target.imports.len()).sum();
    assert!(files > 500, "only {files} files were found");
    targets
}

#[test]
fn no_files_import_each_other_in_a_circle_and_the_engine_imports_down_only() {
    let targets = targets(&root());
    let engine = targets.iter().find(|target| target.imports.contains_key("crates/engine/src/lib.rs")).unwrap();
    assert!(engine.imports.len() > 80, "only {} files of the engine were found", engine.imports.len());
    let circles = targets.iter().flat_map(circles::check);
    assert_none(&circles.chain(circles::check_floors(engine)).collect::<Vec<_>>());
}

#[test]
fn sources_keep_the_rules() {
    let listed = git(&["ls-files", "*.rs"]);
    let Some(list) = listed else {
        println!("SKIPPED: sources_keep_the_rules: this is no git checkout");
        return;
    };
    let list = String::from_utf8(list.stdout).unwrap();
    assert!(list.lines().count() > 500, "only {} sources were found", list.lines().count());
    // Skips files that were deleted but not committed.
    let sources = list.lines().filter_map(|path| Some((path, fs::read_to_string(root().join(path)).ok()?)));
    assert_none(&sources.flat_map(|(path, source)| sources::check(path, &source)).collect::<Vec<_>>());
}

#[test]
fn each_crate_has_one_binary_of_tests_with_all_its_files() {
    let root = root();
    let mut broken = Vec::new();
    let mut several = 0;
    for package in metadata().packages {
        let roots: Vec<PathBuf> = package
            .targets
            .iter()
            .filter(|target| target.is_test())
            .map(|target| target.src_path.clone().into())
            .collect();
        let names: Vec<String> =
            roots.iter().map(|path| path.strip_prefix(&root).unwrap().display().to_string()).collect();
        broken.extend(targets::check_tests(&package.name, &names));
        for (path, name) in roots.iter().zip(&names).filter(|(_, name)| name.ends_with("/main.rs")) {
            let beside = fs::read_dir(path.parent().unwrap()).unwrap().map(|entry| entry.unwrap().path());
            let files: Vec<String> = beside
                .filter(|path| {
                    path.extension().is_some_and(|extension| extension == "rs") || path.join("mod.rs").exists()
                })
                .map(|path| path.file_name().unwrap().to_str().unwrap().to_owned())
                .collect();
            broken.extend(targets::check_modules(name, &fs::read_to_string(path).unwrap(), &files));
            several += 1;
        }
    }
    assert!(several >= 10, "only {several} binaries of several files were found");
    assert_none(&broken);
}

#[test]
fn cargo_knows_which_crates_have_examples() {
    let mut broken = Vec::new();
    for package in metadata().packages {
        for library in package.targets.iter().filter(|target| target.is_lib() || target.is_proc_macro()) {
            let folder = Path::new(library.src_path.as_std_path()).parent().unwrap().to_owned();
            let sources: Vec<String> = files(&folder).iter().map(|path| fs::read_to_string(path).unwrap()).collect();
            broken.extend(targets::check_examples(&package.name, library.doctest, &sources));
        }
    }
    assert_none(&broken);
}

/// The sources in a folder and its folders.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let sources = files.into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "rs"));
    sources.chain(folders.iter().flat_map(|folder| self::files(folder))).collect()
}

#[test]
fn no_tracked_file_names_a_path_of_a_machine() {
    // The folders in two parts, so that this file does not break the rule itself.
    let pattern = format!("(^|[^[:alnum:]._~/$}})*>-])/({}|{})/", ["wor", "k"].concat(), ["roo", "t"].concat());
    match git(&["grep", "-I", "-n", "-E", &pattern]) {
        Some(found) => {
            assert_none(&String::from_utf8_lossy(&found.stdout).lines().map(str::to_owned).collect::<Vec<_>>());
        }
        None => println!("SKIPPED: no_tracked_file_names_a_path_of_a_machine: this is no git checkout"),
    }
}
