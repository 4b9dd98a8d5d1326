//! What exactly was measured: the state of the tree, and the programs by their bytes.

use std::fs;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use ring::digest::{SHA256, digest};
use serde::{Deserialize, Serialize};

use crate::peer::{self, Tool};

/// The tree that the bench runs in, by git; null without git.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// The commit.
    pub commit: Option<String>,
    /// Whether a file differs from it or is not in it; stored results do not count.
    pub changed: Option<bool>,
}

/// A tool, its version and its programs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ToolVersion {
    /// The tool.
    pub name: String,
    /// Its version number; null if unknown.
    pub version: Option<String>,
    /// The first line that its version flag prints; thru's has the commit. Null if it has no such flag.
    pub says: Option<String>,
    /// Its programs.
    pub programs: Vec<ProgramFile>,
}

/// A program by its bytes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramFile {
    /// Its name.
    pub name: String,
    /// SHA-256 of the file; null if it cannot be read.
    pub sha256: Option<String>,
}

impl Source {
    /// Of the current folder.
    pub fn here() -> Self {
        let git = |arguments: &[&str]| {
            let output = Command::new("git").args(arguments).output().ok().filter(|output| output.status.success())?;
            Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
        };
        Self {
            commit: git(&["rev-parse", "HEAD"]),
            changed: git(&["status", "--porcelain", "--", ":/", ":(top,exclude)benches/results"])
                .map(|list| !list.is_empty()),
        }
    }

    /// The commit, and whether the tree was changed.
    pub fn text(&self) -> String {
        let commit = self.commit.as_deref().unwrap_or("unknown");
        if self.changed == Some(true) { format!("{commit}, changed") } else { commit.to_owned() }
    }

    /// A warning if a program that prints its commit, as `thru 0.1.0 (0ea3a42283b3)`, is of another one.
    pub fn differs(&self, says: &str) -> Option<String> {
        let commit = self.commit.as_deref()?;
        let (_, built) = says.strip_suffix(')')?.rsplit_once('(')?;
        (!commit.starts_with(built)).then(|| format!("the program is {says}, but the tree is at {commit}"))
    }
}

impl ToolVersion {
    /// Of this tool.
    pub fn of(tool: &Tool) -> Self {
        let program = |(name, file): (&'static str, std::path::PathBuf)| ProgramFile {
            name: name.to_owned(),
            sha256: sha256(&file).ok(),
        };
        Self {
            name: tool.peer.name().to_owned(),
            version: tool.version.clone(),
            says: tool.says.clone(),
            programs: peer::files_of(tool).into_iter().map(program).collect(),
        }
    }
}

/// SHA-256 of a file, in hexadecimal.
pub fn sha256(path: &Path) -> Result<String> {
    let bytes = fs::read(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(digest(&SHA256, &bytes).as_ref().iter().map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_of_another_commit_is_noticed() {
        let source = Source { commit: Some("0ea3a42283b3ffff".into()), changed: Some(false) };
        assert_eq!(source.differs("thru 0.1.0 (0ea3a42283b3)"), None);
        let warning = source.differs("thru 0.1.0 (1111a42283b3)").unwrap();
        assert!(warning.contains("(1111a42283b3)") && warning.contains("0ea3a42283b3ffff"), "{warning}");
        assert_eq!(source.differs("thru 0.1.0"), None);
        assert_eq!(Source { commit: None, changed: None }.differs("thru 0.1.0 (1111)"), None);
    }

    #[test]
    fn a_file_has_the_printed_hash() {
        // FIPS 180-2, B.1.
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("abc");
        std::fs::write(&file, "abc").unwrap();
        assert_eq!(sha256(&file).unwrap(), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert!(sha256(&folder.path().join("missing")).is_err());
    }
}
