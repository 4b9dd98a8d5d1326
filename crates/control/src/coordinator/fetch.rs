//! Captures of agents elsewhere, brought to this host after their trial so that both ends' files lie beside each other.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use model::{ByteSize, Event, EventSink, Phase, Role, Spec};
use tokio::time::timeout;

use super::pass::cancelled;
use super::{Cancel, End, Pair};
use crate::ControlError;
use crate::agent::packets;
use crate::proto::message::{Done, FromAgent, Piece, ToAgent};
use crate::proto::{FETCH, PIECE};

/// Pieces that are asked for before the first of them has come: a long path is not idle between two.
const AHEAD: u64 = 8;
/// How long an agent may take for a piece.
const PIECE_LIMIT: Duration = Duration::from_secs(10);
/// How often progress is told.
const SAY_EVERY: Duration = Duration::from_millis(500);

/// What came of a file.
#[derive(Debug)]
struct Brought {
    /// Bytes that are here.
    bytes: u64,
    /// Bytes there were.
    size: u64,
    /// Why the rest is not here.
    cut: Option<String>,
}

impl Pair {
    /// Brings what agents elsewhere have captured in a pass into the capture's folder, and says in `done` (near, far) where it is
    /// then, or why not. Nothing that goes wrong here is the trial's fault: it is not an error.
    pub(super) async fn fetch(
        &mut self,
        trial: u32,
        spec: &Spec,
        done: [&mut Done; 2],
        sink: &mut dyn EventSink,
        cancel: &mut Cancel,
    ) {
        let Some(wanted) = &spec.capture else { return };
        let Some(most) = wanted.fetch_bytes else { return };
        let folder = PathBuf::from(wanted.folder.as_deref().unwrap_or("."));
        let mut beside: Option<PathBuf> = None;
        let ends = [(Some(&mut self.near), Role::Active), (self.far.as_mut(), Role::Passive)];
        for ((end, role), done) in ends.into_iter().zip(done) {
            let (Some(end), Some(capture)) = (end, &mut done.host.capture) else { continue };
            let Some(there) = capture.file.clone() else { continue };
            // What an agent within this process captured is here already.
            if end.address.is_none() {
                beside = Some(there.into());
                continue;
            }
            if !end.can(FETCH) {
                let why = format!("thru {} on {} cannot send it; it stays there", end.version, end.name);
                capture.not_fetched = Some(why);
                continue;
            }
            let here = place(&folder, beside.as_deref(), role, trial);
            let name = if role == Role::Active { "near" } else { "far" };
            let said = |bytes: u64, size: u64, left_ns: Option<u64>| {
                let doing = format!("fetching the {name} end's packets, {} of {}", ByteSize(bytes), ByteSize(size));
                // For people alone; a sink that fails will say so at the trial.
                let _ = sink.event(&Event::Phase(Phase {
                    activity: doing,
                    cells_done: 0,
                    cells: 1,
                    remaining_ns: left_ns,
                }));
            };
            let brought = end.bring(&there, &here, most, said, cancel).await;
            let keep = brought.is_err();
            if end.send(&ToAgent::Forget { file: there, keep }).await.is_err() {
                // Whatever speaks over this connection next will say that it is lost; the agent removes the file by itself.
                capture.file = None;
            }
            match brought {
                Ok(brought) => {
                    capture.file = Some(here.display().to_string());
                    capture.fetched_bytes = Some(brought.bytes);
                    capture.not_fetched = brought.cut.map(|why| {
                        let (some, all) = (ByteSize(brought.bytes), ByteSize(brought.size));
                        format!("the first {some} of {all} were fetched and the rest is gone: {why}")
                    });
                    beside = Some(here);
                }
                Err(why) => capture.not_fetched = Some(format!("not fetched from {}: {why}", end.name)),
            }
        }
    }
}

impl End {
    /// Copies the agent's file `there` to `here`, at most so many bytes of it and then whole blocks only. An error says why there is
    /// nothing here.
    async fn bring(
        &mut self,
        there: &str,
        here: &Path,
        most: u64,
        mut say: impl FnMut(u64, u64, Option<u64>),
        cancel: &mut Cancel,
    ) -> Result<Brought, String> {
        let unwritten = |error: io::Error| format!("cannot write {}: {error}", here.display());
        here.parent().map_or(Ok(()), std::fs::create_dir_all).map_err(unwritten)?;
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(here).map_err(unwritten)?;
        let (begun, mut reported) = (Instant::now(), Instant::now());
        let (mut requested, mut bytes, mut size) = (0, 0, None::<u64>);
        let mut cut = None;
        loop {
            // The first piece tells how large the file is.
            let end = size.map_or(1, |size| size.min(most));
            if size.is_some() && bytes >= end {
                break;
            }
            let came = async {
                while requested < end.min(bytes + AHEAD * PIECE) {
                    self.send(&ToAgent::Fetch { file: there.to_owned(), from: requested }).await?;
                    requested += PIECE;
                }
                self.piece(there, bytes).await
            };
            let came = tokio::select! {
                came = timeout(PIECE_LIMIT, came) => came,
                () = cancelled(cancel) => {
                    cut = Some("interrupted".to_owned());
                    break;
                }
            };
            let piece = match came {
                Ok(Ok(piece)) => piece,
                Ok(Err(error)) => {
                    cut = Some(error.to_string());
                    break;
                }
                Err(_) => {
                    cut = Some(format!("its agent sent nothing for {} s", PIECE_LIMIT.as_secs()));
                    break;
                }
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
                Err(why) => {
                    cut = Some(why);
                    break;
                }
            }
            let all = *size.get_or_insert(piece.size);
            if reported.elapsed() >= SAY_EVERY {
                reported = Instant::now();
                let left = begun.elapsed().as_nanos() as f64 * (all.min(most) - bytes) as f64 / bytes.max(1) as f64;
                say(bytes, all, Some(left as u64));
            }
        }
        drop(file);
        match (size, cut) {
            (Some(size), None) if bytes >= size => Ok(Brought { bytes, size, cut: None }),
            (Some(size), cut) => {
                let bytes = shorten(here).map_err(unwritten)?;
                let cut = cut.unwrap_or_else(|| format!("--fetch {size} brings all"));
                Ok(Brought { bytes, size, cut: Some(cut) })
            }
            (None, cut) => {
                drop(std::fs::remove_file(here));
                Err(cut.unwrap_or_default())
            }
        }
    }

    /// The piece of that file that begins there; what an earlier fetch left under way is passed over.
    async fn piece(&mut self, file: &str, from: u64) -> Result<Piece, ControlError> {
        loop {
            match self.recv("while it sent its capture").await? {
                FromAgent::Piece(piece) if piece.file == file && piece.from == from => return Ok(piece),
                _ => {}
            }
        }
    }
}

/// What a piece holds, if it is what was asked for of a file of that size.
fn content(piece: &Piece, size: Option<u64>) -> Result<Vec<u8>, String> {
    if let Some(why) = &piece.missing {
        return Err(why.clone());
    }
    let content = BASE64_STANDARD.decode(&piece.data).map_err(|error| format!("its agent sent no Base64: {error}"))?;
    let left = piece.size.saturating_sub(piece.from);
    if size.is_some_and(|size| size != piece.size) || content.len() as u64 != left.min(PIECE) {
        return Err("the file changed while it was fetched".into());
    }
    Ok(content)
}

/// Where a capture of an agent goes: beside the other end's, with its name, or under one of its own.
fn place(folder: &Path, beside: Option<&Path>, role: Role, trial: u32) -> PathBuf {
    let other = beside.and_then(Path::to_str).and_then(|path| path.strip_suffix("-near.pcapng"));
    match (other, role) {
        (Some(stem), Role::Passive) => PathBuf::from(format!("{stem}-far.pcapng")),
        _ => {
            let folder = std::path::absolute(folder).unwrap_or_else(|_| folder.to_owned());
            packets::file(&folder, role, trial)
        }
    }
}

/// Cuts a file down to its whole blocks, so that it can be read. Its length then.
fn shorten(path: &Path) -> io::Result<u64> {
    let whole = whole_blocks(BufReader::new(File::open(path)?), path.metadata()?.len())?;
    OpenOptions::new().write(true).open(path)?.set_len(whole)?;
    Ok(whole)
}

/// The length of the whole blocks at the beginning of a pcapng file of `size` bytes. A block begins with its type and its length
/// (IETF draft-ietf-opsawg-pcapng, section 3.1), in the order of bytes that the section header tells.
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

    /// A block of that type with a body of so many bytes.
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
        // Lengths that cannot be end it.
        let wrong = block(6, &[], |_| [0; 4]);
        assert_eq!(whole_blocks(Cursor::new(&wrong), wrong.len() as u64).unwrap(), 0);
    }

    #[test]
    fn a_piece_that_was_not_asked_for_is_told() {
        let piece =
            |size, from, bytes: &[u8]| Piece { size, from, data: BASE64_STANDARD.encode(bytes), ..Piece::default() };
        assert_eq!(content(&piece(3, 0, b"abc"), None).unwrap(), b"abc");
        assert_eq!(content(&piece(PIECE + 2, PIECE, b"de"), Some(PIECE + 2)).unwrap(), b"de");
        for wrong in [piece(4, 0, b"abc"), piece(2, 0, b"abc"), piece(9, 9, b"x")] {
            assert!(content(&wrong, None).unwrap_err().contains("changed"), "{wrong:?}");
        }
        assert!(content(&piece(3, 0, b"abc"), Some(4)).unwrap_err().contains("changed"));
        let data = "no Base64!".to_owned();
        assert!(content(&Piece { data, ..piece(1, 0, b"") }, None).unwrap_err().contains("Base64"));
        let missing = Some("it is gone".to_owned());
        assert_eq!(content(&Piece { missing, ..piece(1, 0, b"") }, None).unwrap_err(), "it is gone");
    }

    #[test]
    fn both_ends_files_have_one_name() {
        let beside = Path::new("/x/thru-1-aa-trial3-near.pcapng");
        let far = place(Path::new("/y"), Some(beside), Role::Passive, 2);
        assert_eq!(far, Path::new("/x/thru-1-aa-trial3-far.pcapng"));
        let alone = place(Path::new("/y"), None, Role::Passive, 2);
        assert!(alone.starts_with("/y") && alone.to_str().unwrap().ends_with("-trial3-far.pcapng"));
    }
}
