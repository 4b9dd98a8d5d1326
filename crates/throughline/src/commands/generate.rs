//! `thru generate`: man pages, shell completions and JSON Schemas.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::{fs, io};

use clap::{Args, ValueEnum};
use clap_complete::Shell;
use command::Failure;
use flate2::read::ZlibDecoder;

/// Flags of `thru generate`.
#[derive(Debug, Args)]
#[command(after_help = include_str!("../help/generate.txt").trim_end())]
pub struct GenerateArgs {
    /// What to write.
    #[arg(value_enum)]
    what: What,

    /// The folder to write into.
    folder: PathBuf,
}

/// What can be generated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum What {
    /// One page for `thru` and one for each subcommand.
    Man,
    /// Completions for bash, zsh, fish, elvish and PowerShell.
    Completions,
    /// JSON Schemas of runs, live events, comparisons, self-tests and `thru why`.
    Schema,
}

/// Runs it for the program's `command`.
pub fn run(args: &GenerateArgs, mut command: clap::Command) -> Result<u8, Failure> {
    let failed = |error: io::Error| Failure::output(format!("cannot write into {}: {error}", args.folder.display()));
    fs::create_dir_all(&args.folder).map_err(failed)?;
    match args.what {
        What::Man => {
            command = command.disable_help_subcommand(true);
            command.build();
            pages(&command, &args.folder).map_err(failed)?;
        }
        What::Completions => {
            for shell in Shell::value_variants() {
                clap_complete::generate_to(*shell, &mut command, "thru", &args.folder).map_err(failed)?;
            }
        }
        What::Schema => {
            for (name, text) in schemas().map_err(failed)? {
                fs::write(args.folder.join(format!("{name}.schema.json")), text).map_err(failed)?;
            }
        }
    }
    Ok(0)
}

/// The names of the schemas, in the order of the packed ones.
const SCHEMAS: [&str; 5] = ["run", "event", "comparison", "selftest", "why"];

/// The schemas with their names: before each its length, 32 bits in little endian, as `build.rs` packs them.
fn schemas() -> io::Result<Vec<(&'static str, Vec<u8>)>> {
    let mut packed = ZlibDecoder::new(&include_bytes!(concat!(env!("OUT_DIR"), "/schemas.zlib"))[..]);
    let mut next = |name| {
        let mut length = [0; 4];
        packed.read_exact(&mut length)?;
        let mut text = vec![0; u32::from_le_bytes(length) as usize];
        packed.read_exact(&mut text)?;
        Ok((name, text))
    };
    SCHEMAS.into_iter().map(&mut next).collect()
}

/// Writes the pages of `command` and of all commands below it.
fn pages(command: &clap::Command, folder: &Path) -> io::Result<()> {
    for below in command.get_subcommands().filter(|below| !below.is_hide_set()) {
        pages(below, folder)?;
    }
    let man = clap_mangen::Man::new(command.clone());
    let mut page = Vec::new();
    man.render(&mut page)?;
    fs::write(folder.join(man.get_filename()), as_written(&String::from_utf8_lossy(&page)))
}

/// The page with the text below the options as the help has it: man(1) would fill its lines, and a list of examples
/// be one paragraph.
fn as_written(page: &str) -> String {
    const EXTRA: &str = "\n.SH EXTRA\n";
    let Some((before, rest)) = page.split_once(EXTRA) else { return page.into() };
    let (extra, after) = rest.find("\n.SH ").map_or((rest.trim_end(), "\n"), |end| rest.split_at(end));
    let section = |title, text: &str| format!("\n.SH {title}\n.nf\n{text}\n.fi");
    let sections = match extra.strip_prefix("Examples:\n") {
        None => section("NOTES", extra),
        Some(rest) => match rest.split_once("\n\n") {
            None => section("EXAMPLES", rest),
            Some((examples, notes)) => section("EXAMPLES", examples) + &section("NOTES", notes),
        },
    };
    format!("{before}{sections}{after}")
}
