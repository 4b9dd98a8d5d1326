//! Where a fleet comes from: a file of our own, or what a site has already.

use std::io::Read;
use std::path::Path;

use command::Failure;
use plan::Fleet;

/// A kind of source, named before a colon: `ansible:hosts.yml`.
pub struct FleetSource {
    /// Its name.
    pub name: &'static str,
    /// What follows the colon, for help.
    pub what: &'static str,
    /// Reads it: the text after the colon.
    pub(super) read: fn(&str) -> Result<Fleet, Failure>,
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
        Failure::usage(format!(
            "cannot read the fleet {path}: {error}; name a fleet.toml, two or more hosts, or another source \
             (see `thru mesh --help`)"
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
pub(crate) fn is_file(text: &str) -> bool {
    text == "-" || Path::new(text).is_file()
}
