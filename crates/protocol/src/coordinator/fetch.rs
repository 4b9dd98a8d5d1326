//! Copies captures of agents on other hosts to this host after their trial, so that both ends' files are in one folder.

use std::path::{Path, PathBuf};
use std::time::Duration;

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use model::{BothEnds, ByteSize, Event, Phase, Role, Spec};
use text::{Said, Text, say};

use super::bounds::one_line;
use super::end::End;
use super::error::{DialogueError, seconds};
use super::event::{Action, Answer};
use super::pair::Pair;
use super::work::{Disk, Work};
use crate::message::{FilePiece, FromAgent, ToAgent};
use crate::{PIECE, capture_file};

/// Outstanding requests for pieces, so that a long path is not idle between two.
const PIECES_AHEAD: u64 = 8;
/// Time limit for one piece.
const PIECE_LIMIT: Duration = Duration::from_secs(10);
/// Interval of the progress reports.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(500);

/// A copied file.
#[derive(Debug)]
struct Copied {
    /// Bytes that were copied.
    bytes: u64,
    /// Size of the original.
    size: u64,
    /// Why the rest was not copied.
    cut: Option<FetchError>,
}

/// Why a file is not copied, or not all of it.
#[derive(Debug, thiserror::Error, Said)]
enum FetchError {
    /// The copy cannot be written.
    #[error("cannot write {}: {}", path.display(), why.plain())]
    Write { path: PathBuf, why: Text },
    /// The user wants to stop.
    #[error("interrupted")]
    Interrupted,
    /// The agent is lost, or refuses.
    #[error(transparent)]
    Agent(#[from] DialogueError),
    /// The agent sends nothing.
    #[error("the agent sent nothing for {}", seconds(*waited))]
    Silent { waited: Duration },
    /// The agent does not have it, in its words.
    #[error("{}", _0.plain())]
    Missing(Text),
    /// The bytes of a piece cannot be read.
    #[error("the agent sent invalid Base64: {0}")]
    Base64(#[from] base64::DecodeError),
    /// A piece does not belong to the file as it was.
    #[error("the file changed while it was fetched")]
    Changed,
    /// It is larger than what is fetched.
    #[error("use `--fetch {size}` to fetch all of it")]
    Large { size: u64 },
}

impl Pair {
    /// Copies the captures of agents on other hosts into the capture's folder, and writes into their results where they are,
    /// or why they were not copied. A failure is not an error of the trial.
    pub(super) async fn fetch(&self, trial: u32, spec: &Spec, results: &mut BothEnds) {
        let Some(wanted) = &spec.capture else { return };
        let Some(most) = wanted.fetch_bytes else { return };
        let folder = PathBuf::from(wanted.folder.as_deref().unwrap_or("."));
        let mut beside: Option<PathBuf> = None;
        let ends = [(Some(&self.near), Role::Active), (self.far.as_ref(), Role::Passive)];
        for ((end, role), result) in ends.into_iter().zip([Some(&mut results.near), results.far.as_mut()]) {
            let (Some(end), Some(capture)) = (end, result.and_then(|result| result.host.capture.as_mut())) else {
                continue;
            };
            let Some(there) = capture.file.clone() else { continue };
            // The capture of an agent in this process is already here.
            if end.address.is_none() {
                beside = Some(there.into());
                continue;
            }
            let here =
                local_path(&folder, beside.as_deref(), role, trial, (end.outside().unix_ns(), end.outside().random()));
            let name = if role == Role::Active { "near" } else { "far" };
            let progress = |bytes: u64, size: u64, left_ns: Option<u64>| {
                let activity = say!("fetching the {name} end's packets, {} of {}", ByteSize(bytes), ByteSize(size));
                let phase = Phase { activity, cells_done: 0, cells: 1, remaining_ns: left_ns };
                end.outside().act(Action::Show(Box::new(Event::Phase(phase))));
            };
            let copied = end.copy_file(&there, &here, most, progress).await;
            // The agent removes the file itself if this is lost.
            end.send(ToAgent::Forget { file: there, keep: copied.is_err() });
            match copied {
                Ok(copied) => {
                    capture.file = Some(here.display().to_string());
                    capture.fetched_bytes = Some(copied.bytes);
                    capture.not_fetched = copied.cut.map(|why| {
                        let (some, all) = (ByteSize(copied.bytes), ByteSize(copied.size));
                        format!("fetched the first {some} of {all}, the rest is lost: {why}")
                    });
                    beside = Some(here);
                }
                Err(why) => capture.not_fetched = Some(format!("not fetched from {}: {why}", end.name)),
            }
        }
    }
}

impl End {
    /// Copies the agent's file `there` to `here`. If it has more than `most` bytes, only whole pcapng blocks are kept.
    ///
    /// # Errors
    /// Nothing was copied.
    async fn copy_file(
        &self,
        there: &str,
        here: &Path,
        most: u64,
        progress: impl Fn(u64, u64, Option<u64>),
    ) -> Result<Copied, FetchError> {
        self.disk(here, Disk::Create(here.to_owned())).await?;
        let begun = self.outside().now();
        let mut reported = begun;
        let (mut requested, mut bytes, mut size) = (0, 0, None::<u64>);
        let ended = loop {
            // The first piece has the size of the file.
            let end = size.map_or(1, |size| size.min(most));
            if let Some(size) = size.filter(|_| bytes >= end) {
                break Ok(size);
            }
            while requested < end.min(bytes + PIECES_AHEAD * PIECE) {
                self.send(ToAgent::Fetch { file: there.to_owned(), from: requested });
                requested += PIECE;
            }
            let arrived = self.piece(there, bytes).await.and_then(|piece| Ok((content(&piece, size)?, piece.size)));
            let mut content = match arrived {
                Ok((content, of)) => {
                    size.get_or_insert(of);
                    content
                }
                Err(error) => break Err(error),
            };
            content.truncate(usize::try_from(most - bytes).unwrap_or(usize::MAX));
            bytes += content.len() as u64;
            if let Err(error) = self.disk(here, Disk::Append(here.to_owned(), content)).await {
                let _ = self.disk(here, Disk::Remove(here.to_owned())).await;
                return Err(error);
            }
            let (now, all) = (self.outside().now(), size.unwrap_or(bytes));
            if now.saturating_sub(reported) >= PROGRESS_INTERVAL {
                reported = now;
                let took = now.saturating_sub(begun).as_nanos() as f64;
                let left = took * (all.min(most) - bytes) as f64 / bytes.max(1) as f64;
                progress(bytes, all, Some(left as u64));
            }
        };
        let (size, cut) = match (ended, size) {
            (Ok(size), _) if bytes >= size => return Ok(Copied { bytes, size, cut: None }),
            (Ok(size), _) => (size, FetchError::Large { size }),
            (Err(error), Some(size)) => (size, error),
            (Err(error), None) => {
                let _ = self.disk(here, Disk::Remove(here.to_owned())).await;
                return Err(error);
            }
        };
        let bytes = self.disk(here, Disk::Shorten(here.to_owned())).await?;
        Ok(Copied { bytes, size, cut: Some(cut) })
    }

    /// The piece of that file that starts at `from`; late pieces of an earlier fetch are skipped.
    async fn piece(&self, file: &str, from: u64) -> Result<FilePiece, FetchError> {
        let of = |message| match message {
            FromAgent::Piece(piece) if piece.file == file && piece.from == from => Some(piece),
            _ => None,
        };
        let answer = self.outside().within(PIECE_LIMIT, self.answer("while it sent a capture", of));
        match self.outside().unless_stopped(answer).await {
            Some(Some(piece)) => Ok(piece?),
            Some(None) => Err(FetchError::Silent { waited: PIECE_LIMIT }),
            None => Err(FetchError::Interrupted),
        }
    }

    /// Does something with the file at `path`. Returns a number of bytes.
    async fn disk(&self, path: &Path, what: Disk) -> Result<u64, FetchError> {
        match self.outside().ask(Work::Disk(what)).await {
            Answer::Bytes(bytes) => Ok(bytes),
            Answer::Failed(fault) => Err(FetchError::Write { path: path.to_owned(), why: fault.said }),
            _ => Ok(0),
        }
    }
}

/// The bytes of a piece, if it fits a file of that size.
fn content(piece: &FilePiece, size: Option<u64>) -> Result<Vec<u8>, FetchError> {
    if let Some(why) = &piece.missing {
        return Err(FetchError::Missing(one_line(why)));
    }
    let content = BASE64_STANDARD.decode(&piece.data)?;
    let left = piece.size.saturating_sub(piece.from);
    if size.is_some_and(|size| size != piece.size) || content.len() as u64 != left.min(PIECE) {
        return Err(FetchError::Changed);
    }
    Ok(content)
}

/// The path for an agent's capture: next to the other end's file and with its name, or with a new name.
fn local_path(folder: &Path, beside: Option<&Path>, role: Role, trial: u32, made: (u64, u64)) -> PathBuf {
    let other = beside.and_then(Path::to_str).and_then(|path| path.strip_suffix("-near.pcapng"));
    match (other, role) {
        (Some(stem), Role::Passive) => PathBuf::from(format!("{stem}-far.pcapng")),
        _ => {
            let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
            capture_file(&folder, role, trial, made)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unexpected_piece_is_an_error() {
        let piece = |size, from, bytes: &[u8]| FilePiece {
            size,
            from,
            data: BASE64_STANDARD.encode(bytes),
            ..FilePiece::default()
        };
        assert_eq!(content(&piece(3, 0, b"abc"), None).unwrap(), b"abc");
        assert_eq!(content(&piece(PIECE + 2, PIECE, b"de"), Some(PIECE + 2)).unwrap(), b"de");
        for wrong in [piece(4, 0, b"abc"), piece(2, 0, b"abc"), piece(9, 9, b"x")] {
            assert!(content(&wrong, None).unwrap_err().to_string().contains("changed"), "{wrong:?}");
        }
        assert!(content(&piece(3, 0, b"abc"), Some(4)).unwrap_err().to_string().contains("changed"));
        let data = "no Base64!".to_owned();
        assert!(content(&FilePiece { data, ..piece(1, 0, b"") }, None).unwrap_err().to_string().contains("Base64"));
        let missing = Some("no such file".into());
        assert_eq!(content(&FilePiece { missing, ..piece(1, 0, b"") }, None).unwrap_err().to_string(), "no such file");
    }

    #[test]
    fn both_ends_files_have_one_name() {
        let beside = Path::new("/x/thru-1-aa-trial3-near.pcapng");
        let far = local_path(Path::new("/y"), Some(beside), Role::Passive, 2, (0, 0));
        assert_eq!(far, Path::new("/x/thru-1-aa-trial3-far.pcapng"));
        let alone = local_path(Path::new("/y"), None, Role::Passive, 2, (0, 0));
        assert!(alone.starts_with("/y") && alone.to_str().unwrap().ends_with("-trial3-far.pcapng"));
    }
}
