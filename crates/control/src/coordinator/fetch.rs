//! Copies captures of agents on other hosts to this host after their trial, so that both ends' files are in one folder.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use model::{BothEnds, ByteSize, Event, EventSink, Phase, Role, Spec};
use text::{Said, Text, say};
use tokio::time::timeout;

use super::bounds::one_line;
use super::pass::cancelled;
use super::{AgentEnd, Cancel, Pair};
use crate::ControlError;
use crate::agent::packets;
use crate::connection_end::seconds;
use protocol::PIECE;
use protocol::message::{FilePiece, FromAgent, ToAgent};

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
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
    /// The user wants to stop.
    #[error("interrupted")]
    Interrupted,
    /// The agent is lost, or refuses.
    #[error(transparent)]
    Agent(#[from] ControlError),
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
    pub(super) async fn fetch(
        &mut self,
        trial: u32,
        spec: &Spec,
        results: &mut BothEnds,
        sink: &mut dyn EventSink,
        cancel: &mut Cancel,
    ) {
        let Some(wanted) = &spec.capture else { return };
        let Some(most) = wanted.fetch_bytes else { return };
        let folder = PathBuf::from(wanted.folder.as_deref().unwrap_or("."));
        let mut beside: Option<PathBuf> = None;
        let ends = [(Some(&mut self.near), Role::Active), (self.far.as_mut(), Role::Passive)];
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
            let here = local_path(&folder, beside.as_deref(), role, trial);
            let name = if role == Role::Active { "near" } else { "far" };
            let progress = |bytes: u64, size: u64, left_ns: Option<u64>| {
                let activity = say!("fetching the {name} end's packets, {} of {}", ByteSize(bytes), ByteSize(size));
                // The phase is for the progress display only; a sink that fails reports it at the trial.
                let _ = sink.event(&Event::Phase(Phase { activity, cells_done: 0, cells: 1, remaining_ns: left_ns }));
            };
            let copied = end.copy_file(&there, &here, most, progress, cancel).await;
            let keep = copied.is_err();
            if end.send(&ToAgent::Forget { file: there, keep }).await.is_err() {
                // The next message over this connection reports the loss; the agent removes the file itself.
                capture.file = None;
            }
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

impl AgentEnd {
    /// Copies the agent's file `there` to `here`. If it has more than `most` bytes, only whole pcapng blocks are kept.
    ///
    /// # Errors
    /// Nothing was copied.
    async fn copy_file(
        &mut self,
        there: &str,
        here: &Path,
        most: u64,
        mut progress: impl FnMut(u64, u64, Option<u64>),
        cancel: &mut Cancel,
    ) -> Result<Copied, FetchError> {
        let unwritten = |source| FetchError::Write { path: here.to_owned(), source };
        here.parent().map_or(Ok(()), std::fs::create_dir_all).map_err(unwritten)?;
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(here).map_err(unwritten)?;
        let (begun, mut reported) = (Instant::now(), Instant::now());
        let (mut requested, mut bytes, mut size) = (0, 0, None::<u64>);
        let ended = loop {
            // The first piece has the size of the file.
            let end = size.map_or(1, |size| size.min(most));
            if let Some(size) = size.filter(|_| bytes >= end) {
                break Ok(size);
            }
            let arrival = async {
                while requested < end.min(bytes + PIECES_AHEAD * PIECE) {
                    self.send(&ToAgent::Fetch { file: there.to_owned(), from: requested }).await?;
                    requested += PIECE;
                }
                self.piece(there, bytes).await
            };
            let arrival = tokio::select! {
                arrival = timeout(PIECE_LIMIT, arrival) => arrival,
                () = cancelled(cancel) => break Err(FetchError::Interrupted),
            };
            let piece = match arrival {
                Ok(Ok(piece)) => piece,
                Ok(Err(error)) => break Err(error.into()),
                Err(_) => break Err(FetchError::Silent { waited: PIECE_LIMIT }),
            };
            match content(&piece, size) {
                Ok(content) => {
                    let content = &content[..content.len().min(usize::try_from(most - bytes).unwrap_or(usize::MAX))];
                    if let Err(error) = file.write_all(content) {
                        drop(std::fs::remove_file(here));
                        return Err(unwritten(error));
                    }
                    bytes += content.len() as u64;
                }
                Err(error) => break Err(error),
            }
            let all = *size.get_or_insert(piece.size);
            if reported.elapsed() >= PROGRESS_INTERVAL {
                reported = Instant::now();
                let left = begun.elapsed().as_nanos() as f64 * (all.min(most) - bytes) as f64 / bytes.max(1) as f64;
                progress(bytes, all, Some(left as u64));
            }
        };
        drop(file);
        let (size, cut) = match (ended, size) {
            (Ok(size), _) if bytes >= size => return Ok(Copied { bytes, size, cut: None }),
            (Ok(size), _) => (size, FetchError::Large { size }),
            (Err(error), Some(size)) => (size, error),
            (Err(error), None) => {
                drop(std::fs::remove_file(here));
                return Err(error);
            }
        };
        Ok(Copied { bytes: shorten(here).map_err(unwritten)?, size, cut: Some(cut) })
    }

    /// The piece of that file that starts at `from`; late pieces of an earlier fetch are skipped.
    async fn piece(&mut self, file: &str, from: u64) -> Result<FilePiece, ControlError> {
        loop {
            match self.recv("while it sent a capture").await? {
                FromAgent::Piece(piece) if piece.file == file && piece.from == from => return Ok(piece),
                _ => {}
            }
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
fn local_path(folder: &Path, beside: Option<&Path>, role: Role, trial: u32) -> PathBuf {
    let other = beside.and_then(Path::to_str).and_then(|path| path.strip_suffix("-near.pcapng"));
    match (other, role) {
        (Some(stem), Role::Passive) => PathBuf::from(format!("{stem}-far.pcapng")),
        _ => {
            let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
            packets::file(&folder, role, trial)
        }
    }
}

/// Cuts a file to its whole blocks, so that it can be read. Returns its new length.
fn shorten(path: &Path) -> io::Result<u64> {
    let whole = whole_blocks(BufReader::new(File::open(path)?), path.metadata()?.len())?;
    OpenOptions::new().write(true).open(path)?.set_len(whole)?;
    Ok(whole)
}

/// The length of the whole blocks at the start of a pcapng file of `size` bytes. A block starts with its type and its length
/// (IETF draft-ietf-opsawg-pcapng, section 3.1), in the byte order of the section header.
fn whole_blocks(mut file: impl Read, size: u64) -> io::Result<u64> {
    const HEADER: u64 = 12;
    const SECTION: u32 = 0x0a0d_0d0a;
    const MAGIC: u32 = 0x1a2b_3c4d;
    let (mut at, mut big) = (0, false);
    while at + HEADER <= size {
        let mut header = [[0; 4]; 3];
        for field in &mut header {
            file.read_exact(field)?;
        }
        if u32::from_le_bytes(header[0]) == SECTION {
            big = u32::from_be_bytes(header[2]) == MAGIC;
        }
        let length = u64::from(if big { u32::from_be_bytes(header[1]) } else { u32::from_le_bytes(header[1]) });
        if length < HEADER || at + length > size {
            break;
        }
        at += length;
        io::copy(&mut file.by_ref().take(length - HEADER), &mut io::sink())?;
    }
    Ok(at)
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    /// A block of that type with that body.
    fn block(kind: u32, body: &[u8], bytes: fn(u32) -> [u8; 4]) -> Vec<u8> {
        let length = bytes(12 + body.len() as u32);
        [&bytes(kind)[..], &length, body, &length].concat()
    }

    #[test]
    fn a_cut_file_ends_with_its_last_whole_block() {
        for bytes in [u32::to_le_bytes, u32::to_be_bytes] {
            let section = block(0x0a0d_0d0a, &[&bytes(0x1a2b_3c4d)[..], &[0; 12]].concat(), bytes);
            let packet = block(6, &[7; 100], bytes);
            let file = [section.clone(), packet.clone(), packet.clone()].concat();
            let ends = [0, section.len(), section.len() + packet.len(), file.len()];
            for cut in 0..=file.len() {
                let whole = whole_blocks(Cursor::new(&file[..cut]), cut as u64).unwrap();
                let expected = ends.iter().rfind(|end| **end <= cut).unwrap();
                assert_eq!(whole, *expected as u64, "{cut} of {}", file.len());
            }
        }
        // An impossible length ends the file.
        let wrong = block(6, &[], |_| [0; 4]);
        assert_eq!(whole_blocks(Cursor::new(&wrong), wrong.len() as u64).unwrap(), 0);
    }

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
        let far = local_path(Path::new("/y"), Some(beside), Role::Passive, 2);
        assert_eq!(far, Path::new("/x/thru-1-aa-trial3-far.pcapng"));
        let alone = local_path(Path::new("/y"), None, Role::Passive, 2);
        assert!(alone.starts_with("/y") && alone.to_str().unwrap().ends_with("-trial3-far.pcapng"));
    }
}
