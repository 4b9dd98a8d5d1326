//! Folders for sockets between processes of this machine: gone with their owner, or with the next one where that was killed.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use tempfile::TempDir;

/// A folder, with the lock by which others know that it is in use.
#[derive(Debug)]
pub struct Scratch {
    folder: TempDir,
    _lock: File,
}

/// What a folder's name begins with; its owner's process number follows, and letters by chance.
const PREFIX: &str = "thru-";
/// How many letters by chance.
const LETTERS: usize = 6;

impl Scratch {
    /// A new one in the folder for temporary files, out of which those of owners that were killed are taken first.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn new() -> io::Result<Self> {
        Self::within(&std::env::temp_dir())
    }

    fn within(place: &Path) -> io::Result<Self> {
        sweep(place);
        let prefix = format!("{PREFIX}{}-", std::process::id());
        let folder = tempfile::Builder::new().prefix(&prefix).rand_bytes(LETTERS).tempdir_in(place)?;
        let lock = File::open(folder.path())?;
        lock.lock()?;
        Ok(Self { folder, _lock: lock })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Removes what killed owners left. What cannot be removed is no reason not to go on.
fn sweep(place: &Path) {
    for entry in fs::read_dir(place).into_iter().flatten().flatten() {
        if entry.file_name().to_str().and_then(owner).is_some_and(|owner| is_left(&entry.path(), owner)) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

/// The process number in a folder's name, if it is one of ours.
fn owner(name: &str) -> Option<u32> {
    let (number, letters) = name.strip_prefix(PREFIX)?.split_once('-')?;
    let good = letters.len() == LETTERS && letters.bytes().all(|letter| letter.is_ascii_alphanumeric());
    number.parse().ok().filter(|_| good && number.bytes().all(|digit| digit.is_ascii_digit()))
}

/// Whether a folder is this user's and its owner no more: there is no such process, and nobody holds its lock, which also one in
/// another container would.
fn is_left(folder: &Path, owner: u32) -> bool {
    let ours = |facts: fs::Metadata| facts.is_dir() && facts.uid() == rustix::process::geteuid().as_raw();
    fs::symlink_metadata(folder).is_ok_and(ours)
        && !Path::new("/proc").join(owner.to_string()).exists()
        && File::open(folder).is_ok_and(|folder| folder.try_lock().is_ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Above the largest number that a process can have (proc_sys_kernel(5), pid_max).
    const NOBODY: u32 = 4_194_305;

    #[test]
    fn a_new_owner_takes_away_what_killed_ones_left_and_nothing_else() {
        let place = tempfile::tempdir().unwrap();
        let make = |name: String| {
            let path = place.path().join(name);
            fs::create_dir(&path).unwrap();
            fs::write(path.join("sock"), "").unwrap();
            path
        };
        let left = make(format!("thru-{NOBODY}-abc123"));
        let held = make(format!("thru-{NOBODY}-abc124"));
        let lock = File::open(&held).unwrap();
        lock.lock().unwrap();
        let others = [
            make("thru-1-abc123".into()),
            make(format!("thru-{NOBODY}-abc12")),
            make(format!("thru-test-{NOBODY}-abc123")),
            make(format!("thru-{NOBODY}-abc/..x23").replace('/', "_")),
            make("thru-abc123".into()),
        ];
        let linked = place.path().join(format!("thru-{NOBODY}-linked"));
        std::os::unix::fs::symlink(&others[0], &linked).unwrap();
        let own = Scratch::within(place.path()).unwrap();
        assert!(!left.exists());
        assert!(held.exists() && linked.exists() && others.iter().all(|path| path.join("sock").exists()));
        let path = own.path().to_owned();
        let second = Scratch::within(place.path()).unwrap();
        assert!(path.exists(), "its owner lives");
        drop((own, second));
        assert!(!path.exists());
    }
}
