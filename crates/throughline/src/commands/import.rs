//! `thru import`: results of other tools, as runs in the store.

use std::fmt::Write as _;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser};
use flate2::read::MultiGzDecoder;
use import::{Format, Refused, Source};
use model::{Event, Run};
use sha2::{Digest, Sha256};
use store::Recorder;

use session::Failure;
use session::setup::open_store;

/// The largest file that is read, bytes.
const MOST_BYTES: u64 = 256 << 20;

/// Flags of `thru import`.
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  thru import np.out --name before
  thru import results/*.txt
  thru report before last -o both.html

Each listing in a file becomes a run. Lines that cannot be read are reported with their numbers; the
rest is stored and the exit code is 1.")]
pub struct ImportArgs {
    /// The files to import, plain or compressed with gzip.
    #[arg(required = true, value_name = "FILE")]
    files: Vec<PathBuf>,

    /// The format of all files [default: detected].
    #[arg(long, value_name = "FORMAT", value_parser = PossibleValuesParser::new(import::FORMATS.iter().map(possible)))]
    format: Option<String>,

    /// Name of the runs; `-2`, `-3` ... is added from the second on [default: the file name].
    #[arg(long, value_parser = session::values::name)]
    name: Option<String>,

    /// Database file of the runs [default: throughline/runs.sqlite in $XDG_DATA_HOME or ~/.local/share].
    #[arg(long, value_name = "FILE", env = "THRU_STORE")]
    store: Option<PathBuf>,
}

/// Runs it.
pub fn run(args: &ImportArgs) -> Result<u8, Failure> {
    let format = args.format.as_deref().and_then(import::format);
    let store = open_store(args.store.as_deref())?;
    let mut recorder = store.recorder()?;
    let (mut runs, mut refusals) = (0_u32, 0);
    for path in &args.files {
        let shown = path.display();
        let contents = contents(path).and_then(|bytes| Ok((unpacked(&bytes)?, bytes)));
        let (text, bytes) = match contents {
            Ok(contents) => contents,
            Err(reason) => {
                errln!("thru: {shown}: {reason}");
                refusals += 1;
                continue;
            }
        };
        let reading = match import::read(text.as_deref().unwrap_or(&bytes), format) {
            Ok(reading) => reading,
            Err(Refused { reason, .. }) => {
                errln!("thru: {shown}: {reason}");
                refusals += 1;
                continue;
            }
        };
        for Refused { line, reason } in &reading.refused {
            errln!("thru: {shown}:{line}: {reason}");
        }
        refusals += reading.refused.len();
        let sha256 = Sha256::digest(&bytes).iter().fold(String::new(), |mut text, byte| {
            // Writing to a String cannot fail.
            let _ = write!(text, "{byte:02x}");
            text
        });
        for (index, imported) in (1..).zip(reading.imported) {
            let source = source(args, path, &sha256, [index, runs])?;
            runs += 1;
            let run = import::assemble(imported, &source, &reading.refused);
            keep(&mut recorder, &run)?;
            outln!("{}", line(&run));
        }
    }
    match (runs, refusals) {
        (0, _) => Err(Failure::other("nothing was imported")),
        (_, 0) => Ok(0),
        (_, 1) => Err(Failure::other("1 part was refused; the rest is in the store")),
        (_, count) => Err(Failure::other(format!("{count} parts were refused; the rest is in the store"))),
    }
}

/// A format as `--format` takes it.
fn possible(format: &Format) -> PossibleValue {
    PossibleValue::new(format.name).help(format.help)
}

fn contents(path: &Path) -> Result<Vec<u8>, String> {
    let facts = std::fs::metadata(path).map_err(|error| format!("cannot be read: {error}"))?;
    if !facts.is_file() {
        return Err("is not a regular file".into());
    }
    if facts.len() > MOST_BYTES {
        return Err(format!("has {} bytes; the limit is 256 MiB: split it", facts.len()));
    }
    std::fs::read(path).map_err(|error| format!("cannot be read: {error}"))
}

/// The contents of a file that gzip compressed (RFC 1952), as flent's are; `None` for any other file.
fn unpacked(bytes: &[u8]) -> Result<Option<Vec<u8>>, String> {
    if !bytes.starts_with(&[0x1f, 0x8b]) {
        return Ok(None);
    }
    let mut text = Vec::new();
    let read = MultiGzDecoder::new(bytes).take(MOST_BYTES + 1).read_to_end(&mut text);
    match read {
        Ok(_) if text.len() as u64 <= MOST_BYTES => Ok(Some(text)),
        Ok(_) => Err("has more than 256 MiB of data after decompression: decompress it and split it".into()),
        Err(error) => Err(format!("is a damaged gzip file: {error}")),
    }
}

/// Id and name of a run: the listing `index` (from 1) of its file, and run `number` (from 0) of this import.
fn source(args: &ImportArgs, path: &Path, sha256: &str, [index, number]: [u32; 2]) -> Result<Source, Failure> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos() as u64);
    let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let name = match &args.name {
        Some(name) if number == 0 => name.clone(),
        Some(name) => format!("{name}-{}", number + 1),
        None if index > 1 => format!("{file}-{index}"),
        None => file.clone(),
    };
    // The last digits tell the runs of one import from each other; they count up from a value that the file determines.
    let entropy = u16::from_str_radix(sha256.get(..4).unwrap_or("0"), 16).map_err(Failure::other)?;
    Ok(Source {
        id: store::new_run_id(now, entropy.wrapping_add(number as u16)),
        name: Some(name),
        command: std::env::args().collect(),
        file,
        sha256: sha256.to_owned(),
        imported_unix_ns: now,
    })
}

/// Stores a run as the events that a measurement would have given.
fn keep(recorder: &mut Recorder, run: &Run) -> Result<(), Failure> {
    recorder.record(&Event::Run(run.header.clone()))?;
    for pass in &run.passes {
        recorder.record(&Event::Pass(pass.clone()))?;
    }
    for outcome in &run.outcomes {
        for trial in &outcome.trials {
            recorder.record(&Event::Trial(trial.clone()))?;
        }
        recorder.record(&Event::Outcome(outcome.clone()))?;
    }
    for finding in &run.findings {
        recorder.record(&Event::Finding(finding.clone()))?;
    }
    if let Some(advice) = &run.advice {
        recorder.record(&Event::Advice(advice.clone()))?;
    }
    if let Some(ending) = &run.ending {
        recorder.record(&Event::End(ending.clone()))?;
    }
    Ok(())
}

/// One line about a stored run.
fn line(run: &Run) -> String {
    let header = &run.header;
    let version = &header.tool.near_version;
    // A run of this program has a version without a name.
    let tool = if header.origin.is_some() { version.clone() } else { format!("thru {version}") };
    let rows: usize = run.outcomes.iter().map(|outcome| outcome.trials.len()).sum();
    let name = header.name.as_deref().unwrap_or_default();
    let cells = run.outcomes.len();
    let plural = |count: usize| if count == 1 { "" } else { "s" };
    format!(
        "{}  {name}: {} by {tool}, {rows} measurement{} in {cells} cell{}",
        header.id,
        header.kind,
        plural(rows),
        plural(cells)
    )
}
