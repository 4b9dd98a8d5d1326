//! Files that a command writes, and secrets that it reads.

use std::fs::{self, DirBuilder, File};
use std::io::{self, Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use serde::Serialize;
use tempfile::NamedTempFile;

use crate::failure::Failure;

/// Writes a file completely or not at all: on a full disk, the old file stays. A link is replaced, not followed: in a folder to
/// which others may write, it can be theirs.
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
    let mut part = part(path).map_err(failed)?;
    part.as_file_mut().write_all(bytes).map_err(failed)?;
    part.persist(path).map(drop).map_err(|refused| failed(refused.error))
}

/// A new file in the folder of `path`, which takes its place when it is complete.
fn part(path: &Path) -> io::Result<NamedTempFile> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // Its mode is that of any new file.
    tempfile::Builder::new().make_in(folder, |name| File::create_new(name))
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

/// Writes a document as JSON.
///
/// # Errors
/// As [`write()`].
pub fn write_json(path: &Path, document: &impl Serialize) -> Result<(), Failure> {
    let text = serde_json::to_string_pretty(document)? + "\n";
    write(path, text.as_bytes())
}

/// Checks before the measurement that a file can be written.
///
/// # Errors
/// It cannot be written.
pub fn check_writable(path: &Path) -> Result<(), Failure> {
    let tried = match path.exists() {
        true => fs::OpenOptions::new().append(true).open(path).map(drop),
        false => part(path).map(drop),
    };
    tried.map_err(|error| {
        Failure::output(format!("cannot write {}: {error}; use a file in an existing, writable folder", path.display()))
    })
}

/// What [`write_together`] puts before the names of the files beside the first.
#[must_use]
pub fn beside(path: &Path) -> String {
    if path.is_dir() || path.extension().is_none() {
        return String::new();
    }
    format!("{}-", path.file_stem().unwrap_or_default().to_string_lossy())
}

/// Writes several files, given by name and bytes: the first to `path`, the others next to it, with its stem before their names.
/// If `path` is a folder, or has no extension and there are several, all go there under their own names; that folder alone is made
/// if needed. Returns their paths.
///
/// # Errors
/// As [`write()`].
pub fn write_together(path: &Path, files: Vec<(String, Vec<u8>)>) -> Result<Vec<PathBuf>, Failure> {
    let into_folder = path.is_dir() || (files.len() > 1 && path.extension().is_none());
    if into_folder && !path.is_dir() {
        fs::create_dir(path)
            .map_err(|error| Failure::output(format!("cannot make the folder {}: {error}", path.display())))?;
    }
    let beside = beside(path);
    let mut written: Vec<PathBuf> = Vec::new();
    for (name, bytes) in files {
        let target = match written.as_slice() {
            _ if into_folder => path.join(name),
            [] => path.to_owned(),
            _ => path.with_file_name(format!("{beside}{name}")),
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
    fn links_that_others_planted_are_not_followed() {
        use std::os::unix::fs::symlink;
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("victim"), "secret").unwrap();
        symlink(at("victim"), at("r.html.part")).unwrap();
        write(&at("r.html"), b"report").unwrap();
        symlink(at("victim"), at("linked.json")).unwrap();
        write_json(&at("linked.json"), &"report").unwrap();
        // One that points nowhere yet makes no file there.
        symlink(at("nowhere"), at("new.html")).unwrap();
        check_writable(&at("new.html")).unwrap();
        write(&at("new.html"), b"report").unwrap();
        assert_eq!(fs::read_to_string(at("victim")).unwrap(), "secret");
        assert!(!at("nowhere").exists());
        for name in ["r.html", "linked.json", "new.html"] {
            let found = fs::symlink_metadata(at(name)).unwrap();
            assert!(found.is_file(), "{name}");
            assert_eq!(found.mode() & 0o777, fs::metadata(at("victim")).unwrap().mode() & 0o777, "{name}: as any file");
        }
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 5, "and nothing else is left");
    }

    #[test]
    fn a_file_that_cannot_be_written_is_refused_before_the_measurement_and_left_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        fs::write(at("old"), "old").unwrap();
        check_writable(&at("old")).unwrap();
        check_writable(&at("new")).unwrap();
        assert_eq!((fs::read_to_string(at("old")).unwrap().as_str(), at("new").exists()), ("old", false));
        let refused = check_writable(&at("no/such")).unwrap_err().to_string();
        assert!(
            refused.ends_with("No such file or directory (os error 2); use a file in an existing, writable folder")
        );
        assert!(check_writable(folder.path()).is_err(), "a folder");
    }

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
