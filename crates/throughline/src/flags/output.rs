//! Where results go.

use std::path::PathBuf;

use clap::Args;
use model::Spec;

use crate::failure::Failure;

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

    /// Print the result in another form of `thru export`, such as what iperf3, iperf3-json, netperf, netperf-k, netpipe, nttcp or
    /// rapid would have printed.
    #[arg(id = "as", long = "as", value_name = "FORM", value_parser = form, conflicts_with_all = ["quiet", "live"])]
    pub form: Option<&'static str>,

    /// A name to find the run by.
    #[arg(long, value_parser = crate::values::name)]
    pub name: Option<String>,

    /// The file that keeps runs [default: in the XDG data folder].
    #[arg(long, value_name = "FILE", env = "THRU_STORE")]
    pub store: Option<PathBuf>,

    /// Keep nothing, whatever --store and THRU_STORE say.
    #[arg(long)]
    pub no_store: bool,
}

impl Output {
    /// Refuses what cannot be printed, before anything is measured.
    pub fn check<'a>(&self, kind: &str, specs: impl IntoIterator<Item = &'a Spec>) -> Result<(), Failure> {
        let Some(form) = self.form.and_then(report::format) else { return Ok(()) };
        if self.json.as_deref() == Some(std::path::Path::new("-")) {
            return Err(Failure::usage("--as and --json - both print to standard output: name a file for --json"));
        }
        specs.into_iter().try_for_each(|spec| (form.takes)(kind, spec)).map_err(|what| {
            Failure::usage(format!("--as {} has no form for {what}: leave it out, or use text, csv or json", form.name))
        })
    }
}

/// The name of a form in the registry of formats.
pub fn form(name: &str) -> Result<&'static str, String> {
    report::format(name).map(|format| format.name).ok_or_else(|| {
        let known = report::FORMATS.iter().map(|format| format.name).collect::<Vec<_>>().join(", ");
        format!("'{name}' is no form: there are {known}")
    })
}
