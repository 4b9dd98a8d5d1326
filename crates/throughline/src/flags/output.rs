//! Where results go.

use crate::registries::UnknownFormat;
use std::path::PathBuf;

use clap::Args;
use command::Failure;
use model::{RunKind, Spec};
use session::{Hosts, Request, Work};

use crate::registries;

/// Where results go.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Output")]
pub struct Output {
    /// Write the JSON document to FILE; `-`, or the flag alone, writes to standard output.
    #[arg(long, value_name = "FILE|-", num_args = 0..=1, default_missing_value = "-")]
    pub json: Option<PathBuf>,

    /// Print each event as a line of JSON as it happens.
    #[arg(long, conflicts_with = "quiet")]
    pub live: bool,

    /// Show the measurement full-screen while it runs; q ends it, r starts it again.
    #[arg(long, conflicts_with_all = ["quiet", "live"])]
    pub tui: bool,

    /// Print only errors (and the document with --json -).
    #[arg(long, short)]
    pub quiet: bool,

    /// Print the whole report: hosts, cores, cost, sampling notes, all caveats.
    #[arg(long, short, conflicts_with_all = ["quiet", "live"])]
    pub verbose: bool,

    #[arg(id = "as", long = "as", value_name = "FORMAT", help = registries::form_help(), value_parser = form,
          conflicts_with_all = ["quiet", "live"])]
    form: Option<&'static str>,

    /// Short for --as iperf3-json.
    #[arg(short = 'J', conflicts_with_all = ["as", "quiet", "live"])]
    iperf3_json: bool,

    /// Name of the run in the store [default: none].
    #[arg(long, value_parser = options::values::name)]
    pub name: Option<String>,

    /// Database file of the runs [default: throughline/runs.sqlite in $XDG_DATA_HOME or ~/.local/share].
    #[arg(long, value_name = "FILE", env = "THRU_STORE")]
    pub store: Option<PathBuf>,

    /// Do not store the run, even if --store or THRU_STORE is set.
    #[arg(long)]
    pub no_store: bool,
}

impl Output {
    /// The run of `work`, kept as the flags say.
    pub fn request(&self, kind: RunKind, hosts: Hosts, work: Work) -> Request {
        Request {
            kind,
            name: self.name.clone(),
            hosts,
            expected: Vec::new(),
            unstored: self.no_store,
            store: self.store.clone(),
            exit: at_once,
            work,
        }
    }

    /// The format of the result, if one was requested.
    pub fn form(&self) -> Option<&'static str> {
        self.form.or(self.iperf3_json.then_some("iperf3-json"))
    }

    /// Whether the document goes to standard output.
    pub fn is_document(&self) -> bool {
        self.json.as_deref() == Some(std::path::Path::new("-"))
    }

    /// Whether standard output is for people.
    pub fn is_text(&self) -> bool {
        !self.quiet && !self.live && !self.is_document() && self.form().is_none_or(|form| form == "text")
    }

    /// Refuses a format that cannot show the result, before the measurement.
    pub fn check<'a>(&self, kind: RunKind, specs: impl IntoIterator<Item = &'a Spec>) -> Result<(), Failure> {
        let Some(form) = self.form().and_then(report::format) else { return Ok(()) };
        if self.is_document() {
            return Err(Failure::usage("--as and --json - both write to standard output: give --json a file name"));
        }
        specs.into_iter().try_for_each(|spec| (form.takes)(kind, spec)).map_err(|what| {
            Failure::usage(format!("--as {} cannot show {what}: omit it, or use text, csv or json", form.name))
        })
    }
}

/// Ends this process, as at the second signal. Settings are restored by another one.
#[allow(clippy::disallowed_methods, reason = "this is the program")]
pub fn at_once() -> ! {
    tui::restore();
    session::tuning::settle::restore_after_exit();
    std::process::exit(i32::from(command::failure::INTERRUPTED))
}

/// The name of a format in the registry.
pub fn form(name: &str) -> Result<&'static str, UnknownFormat> {
    registries::format(name).map(|format| format.name)
}
