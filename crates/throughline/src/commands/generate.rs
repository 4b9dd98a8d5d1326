//! `thru generate`: man pages, shell completions and JSON Schemas.

use std::fs;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use clap_complete::Shell;

use session::Failure;

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
    let failed =
        |error: std::io::Error| Failure::output(format!("cannot write into {}: {error}", args.folder.display()));
    fs::create_dir_all(&args.folder).map_err(failed)?;
    match args.what {
        What::Man => clap_mangen::generate_to(command, &args.folder).map_err(failed)?,
        What::Completions => {
            for shell in Shell::value_variants() {
                clap_complete::generate_to(*shell, &mut command, "thru", &args.folder).map_err(failed)?;
            }
        }
        What::Schema => {
            for (name, schema) in model::schema::all() {
                let text = serde_json::to_string_pretty(&schema).map_err(Failure::other)? + "\n";
                fs::write(args.folder.join(format!("{name}.schema.json")), text).map_err(failed)?;
            }
        }
    }
    Ok(0)
}
