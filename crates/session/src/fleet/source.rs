//! Where a fleet comes from: a file of our own, or what a site has already.

use std::io::Read;
use std::path::Path;

use super::{Fleet, ansible, file, kubernetes, launch, slurm, ssh_config};
use crate::failure::Failure;

/// A kind of source, named before a colon: `ansible:hosts.yml`.
pub struct Source {
    /// Its name.
    pub name: &'static str,
    /// What follows the colon, for help.
    pub what: &'static str,
    /// Reads it: the text after the colon.
    pub(super) read: fn(&str) -> Result<Fleet, Failure>,
}

/// Every kind, in the order of help. A text without one of these names is the path of a `fleet.toml`.
pub static SOURCES: &[Source] = &[ansible::SOURCE, kubernetes::SOURCE, slurm::SOURCE, ssh_config::SOURCE];

/// The fleet that a text names.
///
/// # Errors
/// What cannot be read, or is wrong in it.
pub fn open(named: &str) -> Result<Fleet, Failure> {
    let source =
        named.split_once(':').and_then(|(name, rest)| Some((SOURCES.iter().find(|source| source.name == name)?, rest)));
    let fleet = match source {
        Some((source, rest)) => (source.read)(rest)?,
        None => file::read(named, text_of(named)?)?,
    };
    launch::with_started(Fleet { source: named.to_owned(), ..fleet }.checked()?)
}

/// The text of a file; `-` is standard input.
pub(super) fn text_of(path: &str) -> Result<String, Failure> {
    let read = || match path {
        "-" => {
            let mut text = String::new();
            std::io::stdin().read_to_string(&mut text).map(|_| text)
        }
        path => std::fs::read_to_string(path),
    };
    read().map_err(|error| {
        let kinds: Vec<String> = SOURCES.iter().map(|source| format!("{}:", source.name)).collect();
        Failure::usage(format!(
            "cannot read the fleet {path}: {error}; name a fleet.toml, or another source with {}",
            kinds.join(", ")
        ))
    })
}

/// What a program prints.
///
/// # Errors
/// It cannot be run, or fails.
pub(super) fn output_of(program: &str, args: &[&str]) -> Result<String, Failure> {
    let command = || format!("{program} {}", args.join(" "));
    let output = std::process::Command::new(program)
        .args(args)
        .output()
        .map_err(|error| Failure::host(format!("cannot run `{}`: {error}", command())))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(Failure::host(format!("`{}` failed: {}", command(), model::plain(said.trim()))));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

/// Whether a text is the path of a file, or standard input.
pub(super) fn is_file(text: &str) -> bool {
    text == "-" || Path::new(text).is_file()
}
