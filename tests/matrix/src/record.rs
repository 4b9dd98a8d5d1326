//! A measured path in a file: the path and the run's document, packed.

use std::fs::{self, File};
use std::io::{BufReader, BufWriter};
use std::path::{Path as FilePath, PathBuf};

use anyhow::{Context, Result};
use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;
use model::Run;
use serde::{Deserialize, Serialize};

use crate::path::Path;

/// Ending of the files.
const ENDING: &str = ".json.gz";

/// A path and its measurement.
#[derive(Debug, Serialize, Deserialize)]
pub struct Record {
    /// What was produced.
    pub path: Path,
    /// What `thru` recorded.
    pub run: Run,
}

/// The file of a path.
pub fn file(folder: &FilePath, path: &Path) -> PathBuf {
    folder.join(format!("{}-{:04}{ENDING}", path.seed, path.index))
}

/// Writes a record beside its file and renames it, so that a stopped run leaves no half.
pub fn write(folder: &FilePath, record: &Record) -> Result<()> {
    let file = file(folder, &record.path);
    let beside = file.with_extension("part");
    let whole = || -> Result<()> {
        let mut packed = GzEncoder::new(BufWriter::new(File::create(&beside)?), Compression::default());
        serde_json::to_writer(&mut packed, record)?;
        packed.finish()?.into_inner().map_err(std::io::IntoInnerError::into_error)?.sync_all()?;
        Ok(fs::rename(&beside, &file)?)
    };
    whole().with_context(|| format!("cannot write {}", file.display()))
}

/// Reads a record.
pub fn read(file: &FilePath) -> Result<Record> {
    let whole = || -> Result<Record> {
        Ok(serde_json::from_reader(BufReader::new(GzDecoder::new(BufReader::new(File::open(file)?))))?)
    };
    whole().with_context(|| format!("cannot read {}", file.display()))
}

/// The records of a folder, by seed and number.
pub fn files(folder: &FilePath) -> Result<Vec<PathBuf>> {
    let entries = fs::read_dir(folder).with_context(|| format!("cannot read the folder {}", folder.display()))?;
    let mut files: Vec<PathBuf> = entries.map(|entry| Ok(entry?.path())).collect::<Result<_>>()?;
    files.retain(|file| file.to_string_lossy().ends_with(ENDING));
    files.sort();
    Ok(files)
}
