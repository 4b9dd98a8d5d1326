//! The files of a full run: the record, and beside it what each tool printed.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde::{Deserialize, Serialize};

use crate::process::Ended;
use crate::provenance;

/// The raw documents of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Archived {
    /// A file beside the record: JSON lines, compressed with gzip, one for each run of a client.
    pub file: String,
    /// Its SHA-256.
    pub sha256: String,
}

/// A line of the raw documents.
#[derive(Debug, Serialize)]
struct Line<'a> {
    work: &'a str,
    tool: &'a str,
    /// From 1.
    round: u32,
    code: Option<i32>,
    elapsed_ns: u64,
    stdout: &'a str,
    stderr: &'a str,
    /// The text of the result file, for tools that write one.
    result: &'a str,
}

/// The measurement that a document belongs to.
#[derive(Debug, Clone, Copy)]
pub struct Turn<'a> {
    /// The work's id.
    pub work: &'a str,
    /// The tool's name.
    pub tool: &'a str,
    /// From 0.
    pub round: u32,
}

/// The two files of a run, made at its start; no run writes to those of another.
#[derive(Debug)]
pub struct Archive {
    record: PathBuf,
    raw: PathBuf,
    lines: GzEncoder<File>,
}

impl Archive {
    /// Takes the first free name of `stem`, `stem-2`, `stem-3` ... in `folder`, and makes the file of raw documents.
    pub fn create(folder: &Path, stem: &str) -> Result<Self> {
        fs::create_dir_all(folder).with_context(|| format!("cannot make {}", folder.display()))?;
        for number in 1.. {
            let name = if number == 1 { stem.to_owned() } else { format!("{stem}-{number}") };
            let (record, raw) = (folder.join(format!("{name}.json")), folder.join(format!("{name}.raw.jsonl.gz")));
            if record.exists() {
                continue;
            }
            match OpenOptions::new().write(true).create_new(true).open(&raw) {
                Ok(file) => return Ok(Self { record, raw, lines: GzEncoder::new(file, Compression::best()) }),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => return Err(error).with_context(|| format!("cannot write {}", raw.display())),
            }
        }
        anyhow::bail!("no free name in {}", folder.display())
    }

    /// Keeps what a client printed.
    pub fn keep(&mut self, turn: Turn<'_>, ended: &Ended, result: &str) -> Result<()> {
        let line = Line {
            work: turn.work,
            tool: turn.tool,
            round: turn.round + 1,
            code: ended.report.code,
            elapsed_ns: ended.report.elapsed_ns,
            stdout: &ended.stdout,
            stderr: &ended.stderr,
            result,
        };
        let mut text = serde_json::to_vec(&line)?;
        text.push(b'\n');
        self.lines.write_all(&text).with_context(|| format!("cannot write {}", self.raw.display()))
    }

    /// Ends the file of raw documents; returns the path for the record and what it says of that file.
    pub fn finish(self) -> Result<(PathBuf, Archived)> {
        self.lines.finish().with_context(|| format!("cannot write {}", self.raw.display()))?;
        let file = self.raw.file_name().unwrap_or_default().to_string_lossy().into_owned();
        Ok((self.record, Archived { file, sha256: provenance::sha256(&self.raw)? }))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn what_a_tool_printed_is_kept_whole() {
        let folder = tempfile::tempdir().unwrap();
        let mut archive = Archive::create(&folder.path().join("new"), "run").unwrap();
        let mut ended = Ended { stdout: "1\n\"2\"\n".into(), stderr: "µ".into(), ..Ended::default() };
        for round in 0..2 {
            ended.report.code = Some(7);
            archive.keep(Turn { work: "udp", tool: "bare", round }, &ended, "{}").unwrap();
        }
        let (record, archived) = archive.finish().unwrap();
        assert_eq!(record.file_name().unwrap(), "run.json");
        let file = File::open(record.with_file_name(&archived.file)).unwrap();
        let mut text = String::new();
        flate2::read::GzDecoder::new(file).read_to_string(&mut text).unwrap();
        let lines: Vec<serde_json::Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(lines.len(), 2);
        assert_eq!(lines[1]["round"], 2);
        assert_eq!((&lines[0]["stdout"], &lines[0]["code"]), (&"1\n\"2\"\n".into(), &7.into()));
    }

    #[test]
    fn a_second_run_of_the_same_minute_has_a_name_of_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let stem = |archive: Archive| archive.finish().unwrap().0.file_name().unwrap().to_owned();
        assert_eq!(stem(Archive::create(folder.path(), "run").unwrap()), "run.json");
        // The first run left no record yet.
        assert_eq!(stem(Archive::create(folder.path(), "run").unwrap()), "run-2.json");
        fs::write(folder.path().join("run-3.json"), "{}").unwrap();
        assert_eq!(stem(Archive::create(folder.path(), "run").unwrap()), "run-4.json");
    }
}
