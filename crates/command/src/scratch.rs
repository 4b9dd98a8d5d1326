//! Folders for sockets between processes of this machine. They are removed with their owner, or by the next owner of the same user if
//! it was killed.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io;
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use host::process::runs;
use rustix::fs::{AtFlags, Dir, Mode, OFlags, open, openat, unlinkat};
use rustix::process::geteuid;
use tempfile::TempDir;

/// A folder, with the lock that shows others that it is in use.
#[derive(Debug)]
pub struct Scratch {
    folder: TempDir,
    _lock: File,
}

/// Prefix of a folder's name; the process number of its owner and random letters follow.
const PREFIX: &str = "thru-";
/// Number of random letters.
const LETTERS: usize = 6;

impl Scratch {
    /// A new folder in the folder for temporary files. Folders of this user's killed processes are removed first.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn new() -> io::Result<Self> {
        Self::within(&std::env::temp_dir())
    }

    /// As [`new`](Self::new), or in /tmp if the folder for temporary files is closed to the user that this process has become.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn anywhere() -> io::Result<Self> {
        Self::new().or_else(|_| Self::within(Path::new("/tmp")))
    }

    fn within(parent: &Path) -> io::Result<Self> {
        remove_stale(parent);
        let prefix = format!("{PREFIX}{}-", std::process::id());
        let folder = tempfile::Builder::new().prefix(&prefix).rand_bytes(LETTERS).tempdir_in(parent)?;
        let lock = File::from(open(folder.path(), FOLDER, Mode::empty())?);
        lock.lock()?;
        Ok(Self { folder, _lock: lock })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}

/// Opens a folder, and nothing else that may have its name: no link is followed, and no pipe waited for.
const FOLDER: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::NONBLOCK).union(OFlags::CLOEXEC);
/// Most files that are removed from a folder at once.
const MOST_FILES: usize = 4_096;

/// Removes the folders of this user's killed processes. Errors are ignored.
///
/// Others may write to `parent` as well. A folder is opened once, and what is asked and removed is that folder's: another one that
/// takes its name meanwhile keeps its files.
fn remove_stale(parent: &Path) {
    let Ok(within) = open(parent, OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC, Mode::empty()) else { return };
    for entry in fs::read_dir(parent).into_iter().flatten().flatten() {
        let name = entry.file_name();
        if name.to_str().and_then(owner).is_some_and(|owner| !runs(owner)) {
            let _ = remove_left(&within, &name);
        }
    }
}

/// Removes a folder that belongs to this user and whose lock is free: an owner in another container holds it. It has files only; one
/// with a folder in it stays.
fn remove_left(parent: &OwnedFd, name: &OsStr) -> io::Result<()> {
    let folder = File::from(openat(parent, name, FOLDER, Mode::empty())?);
    if folder.metadata()?.uid() != geteuid().as_raw() {
        return Ok(());
    }
    folder.try_lock()?;
    for file in Dir::read_from(&folder)?.take(MOST_FILES) {
        // Not the folder itself and the one above it, nor folders that others put there.
        let _ = unlinkat(&folder, file?.file_name(), AtFlags::empty());
    }
    Ok(unlinkat(parent, name, AtFlags::REMOVEDIR)?)
}

/// The process number in the name of a folder, if it is a name that this program makes.
fn owner(name: &str) -> Option<u32> {
    let (number, letters) = name.strip_prefix(PREFIX)?.split_once('-')?;
    let good = letters.len() == LETTERS && letters.bytes().all(|letter| letter.is_ascii_alphanumeric());
    number.parse().ok().filter(|_| good && number.bytes().all(|digit| digit.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Above the largest number that a process can have (proc_sys_kernel(5), pid_max).
    const NO_PROCESS: u32 = 4_194_305;

    #[test]
    fn an_owner_that_has_ended_and_was_not_waited_for_owns_nothing() {
        let parent = tempfile::tempdir().unwrap();
        let mut owner = std::process::Command::new("sleep").arg("60").spawn().unwrap();
        let folder = parent.path().join(format!("thru-{}-abc123", owner.id()));
        fs::create_dir(&folder).unwrap();
        drop(Scratch::within(parent.path()).unwrap());
        assert!(folder.exists(), "its owner runs");
        owner.kill().unwrap();
        while runs(owner.id()) {
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        drop(Scratch::within(parent.path()).unwrap());
        assert!(Path::new("/proc").join(owner.id().to_string()).exists() && !folder.exists());
        owner.wait().unwrap();
    }

    #[test]
    fn a_new_owner_removes_only_folders_of_killed_owners() {
        let parent = tempfile::tempdir().unwrap();
        let make = |name: String| {
            let path = parent.path().join(name);
            fs::create_dir(&path).unwrap();
            fs::write(path.join("sock"), "").unwrap();
            path
        };
        let left = make(format!("thru-{NO_PROCESS}-abc123"));
        let held = make(format!("thru-{NO_PROCESS}-abc124"));
        let lock = File::open(&held).unwrap();
        lock.lock().unwrap();
        let others = [
            make("thru-1-abc123".into()),
            make(format!("thru-{NO_PROCESS}-abc12")),
            make(format!("thru-test-{NO_PROCESS}-abc123")),
            make(format!("thru-{NO_PROCESS}-abc/..x23").replace('/', "_")),
            make("thru-abc123".into()),
        ];
        let linked = parent.path().join(format!("thru-{NO_PROCESS}-linked"));
        std::os::unix::fs::symlink(&others[0], &linked).unwrap();
        let own = Scratch::within(parent.path()).unwrap();
        assert!(!left.exists());
        assert!(held.exists() && linked.exists() && others.iter().all(|path| path.join("sock").exists()));
        let path = own.path().to_owned();
        let second = Scratch::within(parent.path()).unwrap();
        assert!(path.exists(), "its owner lives");
        drop((own, second));
        assert!(!path.exists());
    }

    #[test]
    fn folders_of_other_users_are_theirs() {
        if !geteuid().is_root() {
            println!("SKIPPED: folders_of_other_users_are_theirs: needs root to give a folder away");
            return;
        }
        let parent = tempfile::tempdir().unwrap();
        let theirs = parent.path().join(format!("thru-{NO_PROCESS}-abc123"));
        fs::create_dir(&theirs).unwrap();
        std::os::unix::fs::chown(&theirs, Some(12_345), Some(12_345)).unwrap();
        drop(Scratch::within(parent.path()).unwrap());
        assert!(theirs.exists());
    }

    #[test]
    fn what_takes_the_name_of_a_folder_is_neither_waited_for_nor_followed() {
        let parent = tempfile::tempdir().unwrap();
        let [folder, target] = ["folder", "target"].map(|name| parent.path().join(name));
        fs::create_dir_all(folder.join("1/2/3")).unwrap();
        fs::create_dir(&target).unwrap();
        fs::write(folder.join("sock"), "").unwrap();
        fs::write(target.join("sock"), "").unwrap();
        std::os::unix::fs::symlink(&target, parent.path().join("link")).unwrap();
        let fifo = parent.path().join("fifo");
        rustix::fs::mknodat(rustix::fs::CWD, &fifo, rustix::fs::FileType::Fifo, Mode::RUSR, 0).unwrap();
        let within = OwnedFd::from(File::open(parent.path()).unwrap());
        for name in ["fifo", "link", "folder"] {
            assert!(remove_left(&within, OsStr::new(name)).is_err(), "{name}");
        }
        assert!(fifo.exists() && target.join("sock").exists());
        // No tree is walked, however deep.
        assert!(folder.join("1/2/3").exists() && !folder.join("sock").exists());
    }
}
