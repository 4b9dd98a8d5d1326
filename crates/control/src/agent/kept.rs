//! Captures that wait at this agent until their coordinator has fetched them.

use std::fs::OpenOptions;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use rustix::fs::OFlags;

use crate::proto::PIECE;
use crate::proto::message::Piece;

/// Files that one session may leave unfetched: a coordinator that never fetches must not fill this host's disk.
const MOST: usize = 4;

/// Files of one session. Its coordinator can read these and no others; they go when it is done with them, or with the session.
#[derive(Debug, Default)]
pub(super) struct Kept(Vec<PathBuf>);

impl Kept {
    /// Takes a file into its care that is about to be made.
    pub(super) fn add(&mut self, file: &Path) -> Result<(), String> {
        if self.0.len() >= MOST {
            return Err(format!("{MOST} captures of this session wait to be fetched already"));
        }
        self.0.push(file.to_owned());
        Ok(())
    }

    /// The bytes of one of them from `from` on, [`PIECE`] at most.
    pub(super) async fn piece(&self, file: String, from: u64) -> Piece {
        let Some(path) = self.find(&file).map(|at| self.0[at].clone()) else {
            let missing = Some("no capture of this session has that name".to_owned());
            return Piece { file, from, missing, ..Piece::default() };
        };
        let read = tokio::task::spawn_blocking(move || read(&path, from)).await;
        match read.unwrap_or_else(|error| Err(io::Error::other(error))) {
            Ok((size, bytes)) => Piece { file, from, size, data: BASE64_STANDARD.encode(bytes), missing: None },
            Err(error) => {
                let missing = Some(format!("{file} cannot be read: {error}"));
                Piece { file, from, missing, ..Piece::default() }
            }
        }
    }

    /// Removes one of them, or leaves it where it is for good.
    pub(super) fn forget(&mut self, file: &str, keep: bool) {
        if let Some(at) = self.find(file) {
            let path = self.0.swap_remove(at);
            if !keep {
                remove(&path);
            }
        }
    }

    /// Removes all.
    pub(super) fn clear(&mut self) {
        self.0.drain(..).for_each(|path| remove(&path));
    }

    fn find(&self, file: &str) -> Option<usize> {
        self.0.iter().position(|path| path.display().to_string() == file)
    }
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.clear();
    }
}

/// A capture that could not begin has left no file.
fn remove(path: &Path) {
    let _ = std::fs::remove_file(path);
}

/// Size of a file, and its bytes from `from` on. What somebody has put in its place is not followed elsewhere.
fn read(path: &Path, from: u64) -> io::Result<(u64, Vec<u8>)> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let mut file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is no file any more"));
    }
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(PIECE).read_to_end(&mut bytes)?;
    Ok((metadata.len(), bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ask(kept: &Kept, file: &Path, from: u64) -> Piece {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(kept.piece(file.display().to_string(), from))
    }

    #[test]
    fn a_session_reads_its_own_files_in_pieces_and_no_others() {
        let folder = tempfile::tempdir().unwrap();
        let (own, other) = (folder.path().join("own"), folder.path().join("other"));
        let bytes: Vec<u8> = (0..PIECE + 1_000).map(|at| at as u8).collect();
        for path in [&own, &other] {
            std::fs::write(path, &bytes).unwrap();
        }
        let mut kept = Kept::default();
        kept.add(&own).unwrap();
        let mut back = Vec::new();
        for from in [0, PIECE, 2 * PIECE] {
            let piece = ask(&kept, &own, from);
            assert_eq!((piece.from, piece.size, piece.missing), (from, bytes.len() as u64, None));
            back.extend(BASE64_STANDARD.decode(piece.data).unwrap());
        }
        assert_eq!(back, bytes);
        let dots = folder.path().join("./own");
        for path in [&other, &dots, Path::new("/etc/passwd")] {
            let refused = ask(&kept, path, 0);
            assert!(refused.missing.unwrap().contains("no capture of this session") && refused.data.is_empty());
        }
        kept.forget(other.to_str().unwrap(), false);
        assert!(other.exists());
        drop(kept);
        assert!(!own.exists(), "what was not fetched goes with its session");
    }

    #[test]
    fn a_link_in_a_files_place_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (own, secret) = (folder.path().join("own"), folder.path().join("secret"));
        std::fs::write(&secret, "secret").unwrap();
        std::os::unix::fs::symlink(&secret, &own).unwrap();
        let mut kept = Kept::default();
        kept.add(&own).unwrap();
        assert!(ask(&kept, &own, 0).missing.is_some());
        kept.forget(own.to_str().unwrap(), false);
        assert!(secret.exists() && !own.is_symlink());
    }

    #[test]
    fn files_are_kept_where_that_was_asked_for_and_few_wait() {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("own");
        std::fs::write(&own, "packets").unwrap();
        let mut kept = Kept::default();
        kept.add(&own).unwrap();
        kept.forget(own.to_str().unwrap(), true);
        drop(kept);
        assert!(own.exists());
        let mut kept = Kept::default();
        for number in 0..MOST {
            kept.add(&folder.path().join(number.to_string())).unwrap();
        }
        assert!(kept.add(&own).unwrap_err().contains("wait to be fetched"));
    }
}
