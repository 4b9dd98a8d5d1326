//! The stored objects match their sources.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a test stops at the first surprise")]

use std::path::Path;
use std::process::{Command, Stdio};

use stacks::STACKS;

fn has(program: &str) -> bool {
    Command::new(program).arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

#[test]
fn the_sources_make_the_objects_that_are_kept() {
    let test = "the_sources_make_the_objects_that_are_kept";
    if !has("clang") || !has("llvm-strip") {
        println!("SKIPPED: {test}: no clang or llvm-strip");
        return;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let made = tempfile::tempdir().unwrap();
    let script = Command::new(root.join("scripts/stacks.sh")).arg(made.path()).output().unwrap();
    assert!(script.status.success(), "{}", String::from_utf8_lossy(&script.stderr));
    let kept = root.join("crates/stacks/objects");
    let read = |folder: &Path, name: &str| std::fs::read(folder.join(name)).unwrap();
    let same_compiler = read(made.path(), "COMPILER") == read(&kept, "COMPILER");
    for stack in STACKS {
        let name = format!("{}.bpf.o", stack.name);
        let (new, old) = (read(made.path(), &name), read(&kept, &name));
        if same_compiler {
            assert!(new == old, "{name} is not what its source makes: run `make stacks`");
        } else {
            // Another compiler generates other instructions; the object's own description stays the same.
            assert_eq!(names(&new), names(&old), "{name} is not what its source makes: run `make stacks`");
        }
    }
}

/// The texts of an object's sections for parameters and for the structure that is registered.
fn names(object: &[u8]) -> Vec<String> {
    let texts = object.split(|byte| !byte.is_ascii_graphic()).filter(|text| text.len() >= 3);
    let mut texts: Vec<String> = texts
        .filter_map(|text| std::str::from_utf8(text).ok())
        .filter(|text| text.starts_with("bpf_") || text.contains("_cong_avoid") || text.contains("_ssthresh"))
        .map(str::to_owned)
        .collect();
    texts.sort();
    texts.dedup();
    texts
}
