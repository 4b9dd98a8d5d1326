//! Captures that an agent stores until their coordinator has fetched them.

use std::fs::OpenOptions;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use rustix::fs::OFlags;

use protocol::PIECE;
use protocol::message::FilePiece;

/// Most unfetched files of one session: a coordinator that never fetches must not fill this host's disk.
const MAX_FILES: usize = 4;

/// Files of one session. Its coordinator can read these and no others. They are removed on its request, or with the session.
#[derive(Debug, Default)]
pub(super) struct SessionCaptures(Vec<PathBuf>);

/// A session has as many unfetched files as it may have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{MAX_FILES} captures of this session are still to be fetched, which is the limit")]
pub(super) struct Unfetched;

impl SessionCaptures {
    /// Adds a file that is about to be created.
    pub(super) fn add(&mut self, file: &Path) -> Result<(), Unfetched> {
        if self.0.len() >= MAX_FILES {
            return Err(Unfetched);
        }
        self.0.push(file.to_owned());
        Ok(())
    }

    /// At most [`PIECE`] bytes of a file, starting at `from`.
    pub(super) async fn piece(&self, file: String, from: u64) -> FilePiece {
        let Some(path) = self.find(&file).map(|at| self.0[at].clone()) else {
            let missing = Some("this session has no capture with that name".into());
            return FilePiece { file, from, missing, ..FilePiece::default() };
        };
        let read = tokio::task::spawn_blocking(move || read(&path, from)).await;
        match read.unwrap_or_else(|error| Err(io::Error::other(error))) {
            Ok((size, bytes)) => FilePiece { file, from, size, data: BASE64_STANDARD.encode(bytes), missing: None },
            Err(error) => {
                let missing = Some(format!("cannot read {file}: {error}").into());
                FilePiece { file, from, missing, ..FilePiece::default() }
            }
        }
    }

    /// Removes a file, or leaves it in place for good.
    pub(super) fn forget(&mut self, file: &str, keep: bool) {
        if let Some(at) = self.find(file) {
            let path = self.0.swap_remove(at);
            if !keep {
                remove(&path);
            }
        }
    }

    /// Removes all files.
    pub(super) fn clear(&mut self) {
        self.0.drain(..).for_each(|path| remove(&path));
    }

    fn find(&self, file: &str) -> Option<usize> {
        self.0.iter().position(|path| path.display().to_string() == file)
    }
}

impl Drop for SessionCaptures {
    fn drop(&mut self) {
        self.clear();
    }
}

/// A failure is ignored: a capture that could not start has no file.
fn remove(path: &Path) {
    let _ = std::fs::remove_file(path);
}

/// Size of a file, and its bytes from `from` on. A symbolic link in its place is not followed.
fn read(path: &Path, from: u64) -> io::Result<(u64, Vec<u8>)> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
    let mut file = OpenOptions::new().read(true).custom_flags(flags).open(path)?;
    let metadata = file.metadata()?;
    if !metadata.is_file() {
        return Err(io::Error::other("it is no longer a regular file"));
    }
    file.seek(SeekFrom::Start(from))?;
    let mut bytes = Vec::new();
    file.take(PIECE).read_to_end(&mut bytes)?;
    Ok((metadata.len(), bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(session_captures: &SessionCaptures, file: &Path, from: u64) -> FilePiece {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(session_captures.piece(file.display().to_string(), from))
    }

    #[test]
    fn a_session_reads_its_own_files_in_pieces_and_no_others() {
        let folder = tempfile::tempdir().unwrap();
        let (own, other) = (folder.path().join("own"), folder.path().join("other"));
        let bytes: Vec<u8> = (0..PIECE + 1_000).map(|at| at as u8).collect();
        for path in [&own, &other] {
            std::fs::write(path, &bytes).unwrap();
        }
        let mut session_captures = SessionCaptures::default();
        session_captures.add(&own).unwrap();
        let mut received = Vec::new();
        for from in [0, PIECE, 2 * PIECE] {
            let piece = request(&session_captures, &own, from);
            assert_eq!((piece.from, piece.size, piece.missing), (from, bytes.len() as u64, None));
            received.extend(BASE64_STANDARD.decode(piece.data).unwrap());
        }
        assert_eq!(received, bytes);
        let dots = folder.path().join("./own");
        for path in [&other, &dots, Path::new("/etc/passwd")] {
            let refused = request(&session_captures, path, 0);
            assert!(
                refused.missing.unwrap().plain().contains("this session has no capture") && refused.data.is_empty()
            );
        }
        session_captures.forget(other.to_str().unwrap(), false);
        assert!(other.exists());
        drop(session_captures);
        assert!(!own.exists(), "an unfetched file is removed with its session");
    }

    #[test]
    fn a_symbolic_link_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let (own, secret) = (folder.path().join("own"), folder.path().join("secret"));
        std::fs::write(&secret, "secret").unwrap();
        std::os::unix::fs::symlink(&secret, &own).unwrap();
        let mut session_captures = SessionCaptures::default();
        session_captures.add(&own).unwrap();
        assert!(request(&session_captures, &own, 0).missing.is_some());
        session_captures.forget(own.to_str().unwrap(), false);
        assert!(secret.exists() && !own.is_symlink());
    }

    #[test]
    fn files_are_kept_on_request_and_few_may_be_unfetched() {
        let folder = tempfile::tempdir().unwrap();
        let own = folder.path().join("own");
        std::fs::write(&own, "packets").unwrap();
        let mut session_captures = SessionCaptures::default();
        session_captures.add(&own).unwrap();
        session_captures.forget(own.to_str().unwrap(), true);
        drop(session_captures);
        assert!(own.exists());
        let mut session_captures = SessionCaptures::default();
        for number in 0..MAX_FILES {
            session_captures.add(&folder.path().join(number.to_string())).unwrap();
        }
        assert_eq!(session_captures.add(&own), Err(Unfetched));
    }
}
