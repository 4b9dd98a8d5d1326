//! The sources of fleets.

use super::hosts::Fleet;
use super::source::{Source, text_of};
use super::{ansible, bus, file, kubernetes, launch, slurm, ssh_config};
use crate::failure::Failure;

/// Every kind, in the order of help. A text without one of these names is the path of a `fleet.toml`.
pub static SOURCES: &[Source] =
    &[ansible::SOURCE, bus::NATS, bus::NATS_TLS, kubernetes::SOURCE, slurm::SOURCE, ssh_config::SOURCE];

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

/// The same, with the agents reached by the names of the hosts over a bus, if there is one.
///
/// # Errors
/// As [`open`]; the text is no bus.
pub fn open_over(named: &str, bus: Option<&str>) -> Result<Fleet, Failure> {
    let fleet = open(named)?;
    match bus {
        Some(bus) => fleet.over_bus(bus),
        None => Ok(fleet),
    }
}
