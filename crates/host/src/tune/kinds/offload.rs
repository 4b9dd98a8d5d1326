//! Offloads of an interface: the output of ethtool -k.

use std::io;

use super::{Control, Kind, Knob, of_device};
use crate::tune::backend::Backend;
use crate::tune::error::SettingValueError;

/// `dev.NAME.offload.tso`.
pub(crate) struct Offload;

/// ethtool's short names, and the kernel's features of each (ethtool(8); linux/net/ethtool/common.c).
const SHORT: [(&str, &[&str]); 9] = [
    ("gro", &["rx-gro"]),
    ("gso", &["tx-generic-segmentation"]),
    ("lro", &["rx-lro"]),
    ("rx", &["rx-checksum"]),
    ("sg", &["tx-scatter-gather", "tx-scatter-gather-fraglist"]),
    (
        "tso",
        &[
            "tx-tcp-segmentation",
            "tx-tcp-ecn-segmentation",
            "tx-tcp-mangleid-segmentation",
            "tx-tcp6-segmentation",
            "tx-tcp-accecn-segmentation",
        ],
    ),
    (
        "tx",
        &["tx-checksum-ipv4", "tx-checksum-ip-generic", "tx-checksum-ipv6", "tx-checksum-fcoe-crc", "tx-checksum-sctp"],
    ),
    ("rxvlan", &["rx-vlan-hw-parse"]),
    ("txvlan", &["tx-vlan-hw-insert"]),
];

/// One offload of an interface: one or more features with one short name.
struct Feature {
    device: String,
    names: Vec<String>,
}

impl Kind for Offload {
    fn forms(&self) -> &'static [(&'static str, &'static str)] {
        &[("dev.eth0.offload.tso", "on or off (also gso, gro, lro, tx, rx, sg, and the kernel's own names)")]
    }

    fn setting(&self, key: &str) -> Option<Knob> {
        let (device, name) = of_device(key, "offload")?;
        let short = SHORT.iter().find(|(short, _)| *short == name).map(|(_, names)| *names);
        let names: Vec<String> =
            short.map_or_else(|| vec![name.to_owned()], |names| names.iter().map(|name| (*name).into()).collect());
        let leases = names.iter().map(|name| format!("dev.{device}.offload.{name}")).collect();
        Some(Knob::new(key, Feature { device: device.into(), names })?.leasing(leases))
    }

    fn keys(&self, backend: &dyn Backend) -> Vec<String> {
        let mut keys = Vec::new();
        for device in backend.devices().unwrap_or_default() {
            let features = backend.features(&device).unwrap_or_default();
            let can = |name: &str| features.iter().any(|feature| feature.changeable && feature.name == name);
            let short = SHORT.iter().filter(|(_, names)| names.iter().any(|name| can(name)));
            keys.extend(short.map(|(name, _)| format!("dev.{device}.offload.{name}")));
        }
        keys
    }
}

impl Feature {
    /// The features that can be changed, and whether each is on.
    fn states(&self, backend: &dyn Backend) -> io::Result<Vec<(String, bool)>> {
        let features = backend.features(&self.device)?;
        let ours: Vec<_> = features.into_iter().filter(|feature| self.names.contains(&feature.name)).collect();
        if ours.is_empty() {
            return Err(io::ErrorKind::NotFound.into());
        }
        Ok(ours.into_iter().filter(|feature| feature.changeable).map(|one| (one.name, one.active)).collect())
    }
}

/// `on`, `off`, or each feature separately if they differ.
fn words(states: &[(String, bool)]) -> String {
    let word = |on: bool| if on { "on" } else { "off" };
    match states {
        [(_, first), rest @ ..] if rest.iter().all(|(_, on)| on == first) => word(*first).into(),
        _ => states.iter().map(|(name, on)| format!("{name}:{}", word(*on))).collect::<Vec<_>>().join(" "),
    }
}

impl Control for Feature {
    fn read(&self, backend: &dyn Backend) -> io::Result<String> {
        let states = self.states(backend)?;
        if states.is_empty() {
            return Err(io::Error::other("this device cannot change it (ethtool -k says [fixed])"));
        }
        Ok(words(&states))
    }

    fn write(&self, backend: &dyn Backend, value: &str) -> io::Result<()> {
        let states = self.states(backend)?;
        let wanted: Vec<(String, bool)> = match value {
            "on" | "off" => states.into_iter().map(|(name, _)| (name, value == "on")).collect(),
            list => list
                .split_whitespace()
                .filter_map(|part| part.rsplit_once(':'))
                .map(|(name, word)| (name.to_owned(), word == "on"))
                .collect(),
        };
        backend.set_features(&self.device, &wanted)
    }

    fn check(&self, value: &str) -> Result<(), SettingValueError> {
        let each = |part: &str| {
            part.rsplit_once(':').is_some_and(|(name, word)| {
                self.names.iter().any(|known| known == name) && ["on", "off"].contains(&word)
            })
        };
        if ["on", "off"].contains(&value) || (!value.is_empty() && value.split_whitespace().all(each)) {
            Ok(())
        } else {
            Err(SettingValueError::Form { expected: "on or off" })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn features_that_differ_are_listed_one_by_one() {
        let states = |on: [bool; 2]| vec![("a".to_owned(), on[0]), ("b".to_owned(), on[1])];
        assert_eq!(words(&states([true, true])), "on");
        assert_eq!(words(&states([true, false])), "a:on b:off");
    }
}
