//! Where results go.

use std::path::PathBuf;

use clap::Args;

/// Where results go.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Output")]
pub struct Output {
    /// Write the JSON document to a file, or to standard output with `-`.
    #[arg(long, value_name = "FILE|-")]
    pub json: Option<PathBuf>,

    /// Print each event as a line of JSON while it happens.
    #[arg(long, conflicts_with = "quiet")]
    pub live: bool,

    /// Print nothing but errors (and what --json - asks for).
    #[arg(long, short)]
    pub quiet: bool,

    /// A name to find the run by.
    #[arg(long)]
    pub name: Option<String>,

    /// The file that keeps runs [default: in the XDG data folder].
    #[arg(long, value_name = "FILE", env = "THRU_STORE")]
    pub store: Option<PathBuf>,

    /// Keep nothing, whatever --store and THRU_STORE say.
    #[arg(long)]
    pub no_store: bool,
}
