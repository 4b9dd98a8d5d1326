//! The sources of fleets.

use super::source::{FleetSource, is_file, text_of};
use super::{ansible, bus, file, kubernetes, listed, slurm, ssh_config};
use crate::launch;
use command::{Failure, host_aliases};
use plan::{Fleet, FleetHost};

/// Every kind, in the order of help. A text without one of these names is the path of a `fleet.toml`.
pub static SOURCES: &[FleetSource] =
    &[listed::SOURCE, ansible::SOURCE, bus::NATS, bus::NATS_TLS, kubernetes::SOURCE, slurm::SOURCE, ssh_config::SOURCE];

/// The source that a text names, and what follows its name.
fn of(named: &str) -> Option<(&'static FleetSource, &str)> {
    let (name, rest) = named.split_once(':')?;
    Some((SOURCES.iter().find(|source| source.name == name)?, rest))
}

/// The fleet that a text names.
///
/// # Errors
/// What cannot be read, or is wrong in it.
pub fn open(named: &str) -> Result<Fleet, Failure> {
    let fleet = match of(named) {
        Some((source, rest)) => (source.read)(rest)?,
        None => file::read(named, text_of(named)?)?,
    };
    let mut fleet = Fleet { source: named.to_owned(), ..fleet }.checked()?;
    fleet.hosts.iter_mut().for_each(with_alias);
    launch::with_started(fleet)
}

/// Adds what the user's file has of a host; what the fleet says itself stays.
fn with_alias(host: &mut FleetHost) {
    let Some(alias) = host_aliases::of(&host.control) else { return };
    host.control = host_aliases::address(&host.control);
    host.token_file = host.token_file.take().or_else(|| alias.token_file.clone());
    host.key = host.key.or(alias.key);
}

/// The same, with the agents reached by the names of the hosts over a bus, if there is one.
///
/// # Errors
/// As [`open`]; the text is no bus.
pub fn open_over(named: &str, bus: Option<&str>) -> Result<Fleet, Failure> {
    let fleet = open(named)?;
    match bus {
        Some(bus) => Ok(fleet.over_bus(bus)?),
        None => Ok(fleet),
    }
}

/// The fleet that the words of a command line name: a file or a source, or its hosts.
///
/// # Errors
/// Several words, of which one is a file or a source.
pub fn named(words: &[String]) -> Result<String, Failure> {
    let is_fleet = |word: &String| of(word).is_some() || is_file(word);
    match words {
        [one] if is_fleet(one) || !one.contains([',', '[']) || one.contains('/') => Ok(one.clone()),
        several => match several.iter().find(|word| several.len() > 1 && is_fleet(word)) {
            Some(fleet) => {
                Err(Failure::usage(format!("'{fleet}' is already a whole fleet: give it alone, or name hosts instead")))
            }
            None => Ok(format!("{}:{}", listed::SOURCE.name, several.join(","))),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hosts_are_named_by_words_commas_and_ranges() {
        let of = |words: &[&str]| named(&words.iter().map(ToString::to_string).collect::<Vec<_>>());
        for (words, expected) in [
            (&["a", "b:7000", "c"][..], "hosts:a,b:7000,c"),
            (&["a,b"], "hosts:a,b"),
            (&["node[1-3]"], "hosts:node[1-3]"),
            (&["slurm:node[1-3]"], "slurm:node[1-3]"),
            (&["missing.toml"], "missing.toml"),
            (&["fleets/a,b.toml"], "fleets/a,b.toml"),
        ] {
            assert_eq!(of(words).unwrap(), expected);
        }
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = file.path().display().to_string();
        assert_eq!(of(&[&path]).unwrap(), path);
        let refused = of(&[&path, "a"]).unwrap_err().to_string();
        assert!(refused.contains("is already a whole fleet: give it alone"), "{refused}");
    }
}
