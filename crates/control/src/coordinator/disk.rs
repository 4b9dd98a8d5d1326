//! Files that a coordinator writes on this host: copies of captures.

use std::fs::{File, OpenOptions};
use std::io::{self, BufReader, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;

use protocol::coordinator::Disk;

/// Does something with a file. Returns the bytes that it has now, where that matters.
pub(super) fn work(what: &Disk) -> io::Result<u64> {
    match what {
        Disk::Create(path) => {
            path.parent().map_or(Ok(()), std::fs::create_dir_all)?;
            OpenOptions::new().write(true).create_new(true).mode(0o600).open(path).map(|_| 0)
        }
        Disk::Append(path, bytes) => {
            OpenOptions::new().append(true).open(path)?.write_all(bytes)?;
            Ok(bytes.len() as u64)
        }
        Disk::Shorten(path) => shorten(path),
        Disk::Remove(path) => std::fs::remove_file(path).map(|()| 0),
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
}
