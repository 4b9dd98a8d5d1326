//! The `thru` binary under test.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The program under test: `THRU_BIN`, or the binary that cargo builds from this workspace in the profile of the tests.
///
/// # Panics
/// It cannot be built.
pub fn thru() -> &'static Path {
    static THRU: OnceLock<PathBuf> = OnceLock::new();
    THRU.get_or_init(|| match std::env::var_os("THRU_BIN") {
        Some(path) => PathBuf::from(path).canonicalize().expect("THRU_BIN names a program"),
        None => build(),
    })
}

/// Root of the workspace.
///
/// # Panics
/// The sources do not exist.
#[must_use]
pub fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the workspace")
}

/// Cargo passes the path of a binary only to tests of its own package. For other packages, this builds it and reads the path.
fn build() -> PathBuf {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let mut command = Command::new(cargo);
    command.current_dir(workspace()).args(["build", "--locked", "--package", "throughline", "--bin", "thru"]);
    // Variables of this package would change the environment of build scripts (ring's) and cause a full rebuild.
    for (name, _) in
        std::env::vars().filter(|(name, _)| name.starts_with("CARGO_PKG_") || name.starts_with("CARGO_MANIFEST_"))
    {
        command.env_remove(name);
    }
    command.arg("--message-format=json-render-diagnostics");
    if !cfg!(debug_assertions) {
        command.arg("--release");
    }
    let output = command.output().expect("cargo starts");
    assert!(output.status.success(), "thru cannot be built:\n{}", String::from_utf8_lossy(&output.stderr));
    let messages = String::from_utf8(output.stdout).expect("cargo prints UTF-8");
    messages
        .lines()
        .filter_map(|line| serde_json::from_str::<serde_json::Value>(line).ok())
        .filter(|message| message["target"]["name"] == "thru" && message["profile"]["test"] == false)
        .find_map(|message| Some(PathBuf::from(message["executable"].as_str()?)))
        .expect("cargo names the program that it built")
}
