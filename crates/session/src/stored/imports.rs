//! Results of other tools as runs in the store.

use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

use command::setup::recorder;
use command::{Failure, config};
use flate2::read::MultiGzDecoder;
use import::{ImportFormat, ListingSource};
use model::Run;
use ring::digest::{SHA256, digest};
use store::StoreError;
use thiserror::Error;

/// The largest file that is read, MiB.
const MOST_MIB: u64 = 256;
/// The same in bytes.
const MOST_BYTES: u64 = MOST_MIB << 20;

/// Which files to import, and how.
#[derive(Debug)]
pub struct ImportRequest<'a> {
    /// The files, plain or compressed with gzip.
    pub files: &'a [PathBuf],
    /// The format of all files; `None` to detect it.
    pub format: Option<&'static ImportFormat>,
    /// Name of the runs; a number is added from the second on. Without it, the name of the file.
    pub name: Option<&'a str>,
    /// The database of runs; `None` is the default one.
    pub store: Option<&'a Path>,
}

/// What became of a file or a part of it.
#[derive(Debug)]
pub enum ImportEvent<'a> {
    /// A file was refused, or a line of it.
    Refused {
        /// The file.
        file: &'a Path,
        /// The line; `None` for the file.
        line: Option<u32>,
        /// Why.
        reason: &'a str,
    },
    /// A listing is stored as a run.
    Stored(&'a Run),
}

/// Reads the files and stores their listings.
///
/// # Errors
/// Nothing or not all was imported; the store cannot be written.
pub fn import(request: &ImportRequest<'_>, mut tell: impl FnMut(ImportEvent<'_>)) -> Result<(), Failure> {
    let mut recorder = recorder(request.store)?;
    let mut ids = Ids::new()?;
    let (mut runs, mut refusals) = (0_u32, 0);
    for file in request.files {
        let Contents { sha256, reading } = match read(file, request.format) {
            Ok(contents) => contents,
            Err(error) => {
                tell(ImportEvent::Refused { file, line: None, reason: &error.to_string() });
                refusals += 1;
                continue;
            }
        };
        for refused in &reading.refused {
            tell(ImportEvent::Refused { file, line: Some(refused.line), reason: &refused.to_string() });
        }
        refusals += reading.refused.len();
        for (index, imported) in (1..).zip(reading.imported) {
            let source = source(request.name, file, &sha256, [index, runs], &mut ids);
            runs += 1;
            let mut run = import::assemble(imported, &source, &reading.refused);
            while let Err(error) = recorder.record_run(&run) {
                // Another program used this id in the same second.
                let StoreError::IdTaken { .. } = error else { return Err(error.into()) };
                run.header.id = ids.next(engine::unix_ns());
            }
            recorder.summarise(&report::summary(&run))?;
            tell(ImportEvent::Stored(&run));
        }
    }
    recorder.sync()?;
    match (runs, refusals) {
        (0, _) => Err(Failure::other("nothing was imported")),
        (_, 0) => Ok(()),
        (_, 1) => Err(Failure::other("1 part was refused; the rest is in the store")),
        (_, count) => Err(Failure::other(format!("{count} parts were refused; the rest is in the store"))),
    }
}

/// Why a file is refused.
#[derive(Debug, Error)]
enum FileError {
    #[error("cannot be read: {0}")]
    Unreadable(#[from] io::Error),
    #[error("is not a regular file")]
    NotRegular,
    #[error("has {bytes} bytes; the limit is {MOST_MIB} MiB: split it")]
    Large { bytes: u64 },
    #[error("has more than {MOST_MIB} MiB of data after decompression: decompress it and split it")]
    LargeUnpacked,
    #[error("is a damaged gzip file: {0}")]
    Damaged(io::Error),
    #[error(transparent)]
    Refused(#[from] import::Refused),
}

/// A file that was read.
struct Contents {
    /// The digest of the file as it is, in hexadecimal digits.
    sha256: String,
    reading: import::TextReading,
}

fn read(file: &Path, format: Option<&ImportFormat>) -> Result<Contents, FileError> {
    let bytes = bytes_of(file)?;
    let text = unpacked(&bytes)?;
    let reading = import::read(text.as_deref().unwrap_or(&bytes), format)?;
    Ok(Contents { sha256: hex::encode(digest(&SHA256, &bytes)), reading })
}

fn bytes_of(file: &Path) -> Result<Vec<u8>, FileError> {
    let facts = std::fs::metadata(file)?;
    if !facts.is_file() {
        return Err(FileError::NotRegular);
    }
    if facts.len() > MOST_BYTES {
        return Err(FileError::Large { bytes: facts.len() });
    }
    Ok(std::fs::read(file)?)
}

/// The contents of a file that gzip compressed (RFC 1952), as flent's are; `None` for any other file.
fn unpacked(bytes: &[u8]) -> Result<Option<Vec<u8>>, FileError> {
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return Ok(None);
    }
    let mut text = Vec::new();
    let read = MultiGzDecoder::new(bytes).take(MOST_BYTES + 1).read_to_end(&mut text);
    match read {
        Ok(_) if text.len() as u64 <= MOST_BYTES => Ok(Some(text)),
        Ok(_) => Err(FileError::LargeUnpacked),
        Err(error) => Err(FileError::Damaged(error)),
    }
}

/// The ids of the runs of one import: their last digits count up from a random value, so that no two are equal.
struct Ids(u16);

impl Ids {
    fn new() -> Result<Self, Failure> {
        Ok(Self(u16::from_be_bytes(engine::random().map_err(Failure::other)?)))
    }

    fn next(&mut self, unix_ns: u64) -> String {
        self.0 = self.0.wrapping_add(1);
        store::new_run_id(unix_ns, self.0)
    }
}

/// Id and name of a run: the listing `index` (from 1) of its file, and run `number` (from 0) of this import.
fn source(name: Option<&str>, file: &Path, sha256: &str, [index, number]: [u32; 2], ids: &mut Ids) -> ListingSource {
    let now = engine::unix_ns();
    let file = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let name = match name {
        Some(name) if number == 0 => name.to_owned(),
        Some(name) => format!("{name}-{}", number + 1),
        None if index > 1 => format!("{file}-{index}"),
        None => file.clone(),
    };
    ListingSource {
        id: ids.next(now),
        name: Some(name),
        command: config::words(),
        file,
        sha256: sha256.to_owned(),
        imported_unix_ns: now,
    }
}

#[cfg(test)]
mod tests {
    use model::{Cell, Outcome, Trial};
    use store::Store;

    use super::*;

    #[test]
    fn a_value_of_a_table_takes_less_than_a_kilobyte() {
        const HOSTS: usize = 60;
        let folder = tempfile::tempdir().unwrap();
        let [table, file] = ["m.csv", "runs.sqlite"].map(|name| folder.path().join(name));
        let row = |from: usize| {
            let value = |to: usize| if from == to { ",".to_owned() } else { format!(",{}.{from}", 900 + to) };
            format!("host{from}{}\n", (0..HOSTS).map(value).collect::<String>())
        };
        let head: String = (0..HOSTS).map(|host| format!(",host{host}")).collect();
        std::fs::write(&table, format!("Mbit/s{head}\n{}", (0..HOSTS).map(row).collect::<String>())).unwrap();
        let mut imported = None;
        let request = ImportRequest { files: &[table], format: None, name: None, store: Some(&file) };
        import(&request, |event| match event {
            ImportEvent::Stored(run) => imported = Some(run.clone()),
            ImportEvent::Refused { reason, .. } => panic!("{reason}"),
        })
        .unwrap();
        let loaded = Store::open(&file).unwrap().load("last").unwrap();
        assert_eq!((Some(&loaded.run), &loaded.damaged[..]), (imported.as_ref(), &[][..]));
        let (values, bytes) = (HOSTS * (HOSTS - 1), std::fs::metadata(&file).unwrap().len() as usize);
        assert!(bytes < 1_000 * values, "{} bytes for a value", bytes / values);
        // What they have in common is in memory once, and what few have is not part of each.
        let trials: Vec<&Trial> = loaded.run.outcomes.iter().flat_map(|outcome| &outcome.trials).collect();
        assert_eq!(trials.len(), values);
        assert!(trials.iter().all(|one| one.near.is_same(&trials[0].near) && one.far.is_same(&trials[0].far)));
        let spec = &loaded.run.header.cells[0].spec;
        assert!(loaded.run.outcomes.iter().all(|outcome| outcome.spec.is_same(spec)));
        let each = size_of::<Cell>() + size_of::<Outcome>() + size_of::<Trial>();
        assert!(each <= 1_600, "{each} bytes of memory for a value, without what is elsewhere");
    }
}
