//! The pcapng file of a capture (IETF draft-ietf-opsawg-pcapng), with times in nanoseconds.

use std::borrow::Cow;
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use pcap_file::pcapng::PcapNgWriter;
use pcap_file::pcapng::blocks::enhanced_packet::EnhancedPacketBlock;
use pcap_file::pcapng::blocks::interface_description::{InterfaceDescriptionBlock, InterfaceDescriptionOption};
use pcap_file::{DataLink, PcapError};

/// Bytes that are buffered before they are written.
const BUFFER_BYTES: usize = 256 << 10;

/// A file that grows by whole blocks: what could not be written entirely is cut off again, so that the file stays
/// readable.
pub(super) struct PacketFile {
    path: PathBuf,
    file: File,
    writer: PcapNgWriter<Vec<u8>>,
    interface: String,
    snaplen: u32,
    begun: bool,
    written: u64,
    limit: u64,
    /// Buffered packets, and those in the file, with their bytes on the wire.
    buffered: (u64, u64),
    pub(super) packets: u64,
    pub(super) bytes: u64,
}

impl PacketFile {
    /// Creates the file, for this user only; it must not exist. It may grow to `limit` bytes.
    pub(super) fn create(path: &Path, interface: &str, snaplen: u32, limit: u64) -> io::Result<Self> {
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
        Ok(Self {
            path: path.to_owned(),
            file,
            writer: PcapNgWriter::new(Vec::with_capacity(2 * BUFFER_BYTES)).map_err(plain)?,
            interface: interface.to_owned(),
            snaplen,
            begun: false,
            written: 0,
            limit,
            buffered: (0, 0),
            packets: 0,
            bytes: 0,
        })
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Adds a packet of the given link type; all have the link type of the first one.
    pub(super) fn add(&mut self, link: DataLink, at: Duration, length: u32, data: &[u8]) -> io::Result<()> {
        self.begin(link)?;
        let packet = EnhancedPacketBlock {
            interface_id: 0,
            timestamp: at,
            original_len: length,
            data: Cow::Borrowed(data),
            options: Vec::new(),
        };
        self.writer.write_pcapng_block(packet).map_err(plain)?;
        self.buffered = (self.buffered.0 + 1, self.buffered.1 + u64::from(length));
        if self.writer.get_ref().len() >= BUFFER_BYTES { self.flush() } else { Ok(()) }
    }

    /// Writes the buffer. A file without packets still names its interface.
    pub(super) fn finish(&mut self) -> io::Result<()> {
        self.begin(DataLink::ETHERNET)?;
        self.flush()
    }

    fn begin(&mut self, linktype: DataLink) -> io::Result<()> {
        if std::mem::replace(&mut self.begun, true) {
            return Ok(());
        }
        let name = InterfaceDescriptionOption::IfName(self.interface.clone().into());
        // Times count in units of 10^-9 s.
        let options = vec![name, InterfaceDescriptionOption::IfTsResol(9)];
        let interface = InterfaceDescriptionBlock { linktype, snaplen: self.snaplen, options };
        self.writer.write_pcapng_block(interface).map(|_| ()).map_err(plain)
    }

    fn flush(&mut self) -> io::Result<()> {
        let buffered = self.writer.get_mut();
        let whole = self.written + buffered.len() as u64;
        let result = if whole > self.limit {
            Err(io::Error::new(io::ErrorKind::QuotaExceeded, format!("the file would exceed {} bytes", self.limit)))
        } else {
            self.file.write_all(buffered)
        };
        buffered.clear();
        let (packets, bytes) = std::mem::take(&mut self.buffered);
        match result {
            Ok(()) => {
                self.written = whole;
                self.packets += packets;
                self.bytes += bytes;
            }
            // A file can be made shorter even if the disk is full; if that fails, its last packet is truncated.
            Err(_) => drop(self.file.set_len(self.written)),
        }
        result
    }
}

fn plain(error: PcapError) -> io::Error {
    match error {
        PcapError::IoError(error) => error,
        other => io::Error::other(other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use pcap_file::pcapng::{Block, PcapNgReader};

    use super::*;

    fn blocks(path: &Path) -> Vec<Block<'static>> {
        let mut reader = PcapNgReader::new(File::open(path).unwrap()).unwrap();
        let mut blocks = Vec::new();
        while let Some(block) = reader.next_block() {
            blocks.push(block.unwrap().into_owned());
        }
        blocks
    }

    #[test]
    fn packets_come_back_with_their_times_and_lengths() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.pcapng");
        let mut file = PacketFile::create(&path, "eth7", 96, u64::MAX).unwrap();
        let at = Duration::new(1_795_293_478, 123_456_789);
        for size in 0..3_000_u32 {
            file.add(DataLink::ETHERNET, at + Duration::from_nanos(size.into()), 70_000, &[7; 96]).unwrap();
        }
        file.finish().unwrap();
        assert_eq!((file.packets, file.bytes), (3_000, 3_000 * 70_000));
        let blocks = blocks(&path);
        let Block::InterfaceDescription(interface) = &blocks[0] else { panic!("{:?}", blocks[0]) };
        assert_eq!((interface.linktype, interface.snaplen), (DataLink::ETHERNET, 96));
        assert_eq!(interface.options[0], InterfaceDescriptionOption::IfName("eth7".into()));
        let Block::EnhancedPacket(last) = &blocks[3_000] else { panic!("{:?}", blocks[3_000]) };
        assert_eq!(last.timestamp, at + Duration::from_nanos(2_999));
        assert_eq!((last.original_len, last.data.len(), blocks.len()), (70_000, 96, 3_001));
        assert!(PacketFile::create(&path, "eth7", 96, u64::MAX).is_err(), "no file is overwritten");
        let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&path).unwrap().permissions());
        assert_eq!(mode & 0o777, 0o600);
    }

    #[test]
    fn a_file_that_cannot_grow_holds_whole_packets_and_no_more_than_it_counts() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.pcapng");
        let mut file = PacketFile::create(&path, "lo", 96, 600 << 10).unwrap();
        let full = loop {
            if let Err(error) = file.add(DataLink::RAW, Duration::ZERO, 100, &[1; 96]) {
                break error;
            }
        };
        assert!(full.to_string().contains("614400 bytes"), "{full}");
        let found = blocks(&path).iter().filter(|block| matches!(block, Block::EnhancedPacket(_))).count() as u64;
        assert!(found > 0 && found == file.packets && file.bytes == found * 100, "{found} of {}", file.packets);
    }

    #[test]
    fn a_full_disk_is_reported() {
        // /dev/full answers every write with ENOSPC.
        let mut file = PacketFile {
            file: OpenOptions::new().write(true).open("/dev/full").unwrap(),
            ..PacketFile::create(&tempfile::tempdir().unwrap().keep().join("a"), "lo", 96, u64::MAX).unwrap()
        };
        let error = file.finish().unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::StorageFull, "{error}");
        std::fs::remove_dir_all(file.path().parent().unwrap()).unwrap();
    }
}
