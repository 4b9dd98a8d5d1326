//! Files that a command writes, and secrets that it reads.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::failure::Failure;

/// Writes a file completely or not at all: on a full disk, the old file stays.
///
/// # Errors
/// The file or its folder cannot be written.
pub fn write(path: &Path, bytes: &[u8]) -> Result<(), Failure> {
    let failed = |error: io::Error| {
        let hint =
            if error.kind() == io::ErrorKind::NotFound { "; its folder does not exist: make it first" } else { "" };
        Failure::output(format!("cannot write {}: {error}{hint}", path.display()))
    };
    // Devices and pipes are not replaced.
    if path.exists() && !path.is_file() {
        return fs::write(path, bytes).map_err(failed);
    }
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(".part");
    let part = path.with_file_name(name);
    let result = fs::write(&part, bytes).and_then(|()| fs::rename(&part, path)).map_err(failed);
    if result.is_err() {
        let _ = fs::remove_file(&part);
    }
    result
}

/// Makes a folder, and those above it, for this user only. One that exists stays as it is.
///
/// # Errors
/// It cannot be made.
pub fn private_folder(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// The text of a file with a secret. Only its owner may be able to read it; a file of root's also its group, as for a daemon. What
/// is no file, such as a pipe, has no such mode.
///
/// # Errors
/// The file cannot be read, or others can read it.
pub fn read_secret(path: &Path) -> io::Result<String> {
    let mut open = File::open(path)?;
    let found = open.metadata()?;
    let mode = found.mode() & 0o777;
    let others = if found.uid() == 0 { 0o037 } else { 0o077 };
    if found.is_file() && mode & others != 0 {
        let why = format!("other users can use it (mode {mode:03o}); chmod 600 it");
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, why));
    }
    let mut text = String::new();
    open.read_to_string(&mut text)?;
    Ok(text)
}

/// Writes a document as JSON, in place.
///
/// # Errors
/// The file cannot be written.
pub fn write_json(path: &Path, document: &impl Serialize) -> Result<(), Failure> {
    let text = model::json::pretty(document).map_err(Failure::other)? + "\n";
    fs::write(path, text).map_err(|error| Failure::output(format!("cannot write {}: {error}", path.display())))
}

/// Checks before the measurement that a file can be written.
///
/// # Errors
/// It cannot be written.
pub fn check_writable(path: &Path) -> Result<(), Failure> {
    let existed = path.exists();
    match fs::OpenOptions::new().append(true).create(true).open(path) {
        Ok(_) => {
            if !existed {
                let _ = fs::remove_file(path);
            }
            Ok(())
        }
        Err(error) => Err(Failure::output(format!(
            "cannot write {}: {error}; use a file in an existing, writable folder",
            path.display()
        ))),
    }
}

/// Writes several files, given by name and bytes. The first goes to `path`, the others beside it under names that begin with its stem.
/// If `path` is a folder, or has no extension and there are several, all go there under their own names; that folder alone is made
/// if needed. Returns their paths.
///
/// # Errors
/// As [`write`].
pub fn write_together(path: &Path, files: Vec<(String, Vec<u8>)>) -> Result<Vec<PathBuf>, Failure> {
    let into_folder = path.is_dir() || (files.len() > 1 && path.extension().is_none());
    if into_folder && !path.is_dir() {
        fs::create_dir(path)
            .map_err(|error| Failure::output(format!("cannot make the folder {}: {error}", path.display())))?;
    }
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let mut written: Vec<PathBuf> = Vec::new();
    for (name, bytes) in files {
        let target = match written.as_slice() {
            _ if into_folder => path.join(name),
            [] => path.to_owned(),
            _ => path.with_file_name(format!("{stem}-{name}")),
        };
        write(&target, &bytes)?;
        written.push(target);
    }
    Ok(written)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn several_files_go_to_a_folder_or_beside_the_first() {
        let folder = tempfile::tempdir().unwrap();
        let two = || ["a.svg", "b.svg"].map(|name| (name.to_owned(), name.as_bytes().to_vec())).to_vec();
        let names = |path: &Path| {
            let written = write_together(path, two()).unwrap();
            assert!(written.iter().all(|path| path.is_file()), "{written:?}");
            written.iter().map(|path| path.strip_prefix(&folder).unwrap().display().to_string()).collect::<Vec<_>>()
        };
        assert_eq!(names(folder.path()), ["a.svg", "b.svg"]);
        assert_eq!(names(&folder.path().join("new")), ["new/a.svg", "new/b.svg"]);
        assert_eq!(names(&folder.path().join("x.svg")), ["x.svg", "x-b.svg"]);
        // A folder above may be a typing error.
        for (path, what) in [("no/x.svg", "its folder does not exist"), ("no/such", "cannot make the folder")] {
            let refused = write_together(&folder.path().join(path), two()).unwrap_err().to_string();
            assert!(refused.contains(what), "{refused}");
        }
        assert!(!folder.path().join("no").exists());
    }
}
