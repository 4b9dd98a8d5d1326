//! An entry point for coverage-guided tests of what names many hosts. Only for `fuzz/`.

use std::path::Path;

use crate::sources::{ansible, file, kubernetes, slurm, ssh_config};
use plan::fleet::Room;
use plan::fleet::hostlist;

/// A text in the form that its first byte names; the rest of the first line selects hosts.
///
/// # Panics
/// If a fleet is larger than the bounds, or has a host that ssh would take for an option.
pub fn fleet(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let (first, text) = text.split_once('\n').unwrap_or_default();
    let (form, selection) = first.split_at(first.chars().next().map_or(0, char::len_utf8));
    let fleet = match form {
        "a" => ansible::parse(text).ok(),
        "k" => kubernetes::parse(&[text.to_owned()]).ok(),
        "s" => slurm::parse(text).ok(),
        // Another file with the same text.
        "h" => ssh_config::parse(text, Path::new("config"), &|_| Some(text.to_owned())).ok(),
        _ => file::read("fleet.toml", text.to_owned()).ok(),
    };
    let Some(fleet) = fleet.and_then(|fleet| fleet.checked().ok()) else { return };
    let mut room = Room::default();
    for host in &fleet.hosts {
        assert!(room.host(host).is_ok() || form == "k" || form == "h", "a pattern makes more than is allowed");
        assert!(host.ssh.iter().chain([&host.name]).all(|text| hostlist::no_option(text).is_ok()), "{host:?}");
    }
    if let Ok(chosen) = fleet.select(selection) {
        assert!(!chosen.is_empty());
    }
}

#[cfg(test)]
mod tests {
    #[test]
    fn every_input_of_the_corpus_is_survived() {
        corpus::inputs("fleet").unwrap().iter().for_each(|input| super::fleet(input));
    }
}
