//! A plan: one experiment with its factors, as its file describes it.
//!
//! Levels and fields are the texts of the file, with the names of the flags (`sndbuf` is `--sndbuf`), so that tables and
//! findings show them as they were written. The run's header has the [`Spec`](crate::Spec)s of the cells.

use std::collections::BTreeMap;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{HostSettings, PlanTraffic, Setting};

/// An experiment: what is fixed, what is varied, and when it ends.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default)]
pub struct Plan {
    /// Its title, for display.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// The question that it answers, for display.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// SHA-256 of the file with its variables filled in, in hex: a run can only be resumed with the same plan.
    pub digest: String,
    /// The values of its variables.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub vars: BTreeMap<String, String>,
    /// The fields that all cells share, by flag; with `near.` or `far.` in front of an option of one end.
    pub base: BTreeMap<String, String>,
    /// The factors.
    pub factors: Vec<Factor>,
    /// How levels make cells.
    pub design: Design,
    /// The cells of a list: the levels of each, by factor.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub list: Vec<BTreeMap<String, String>>,
    /// The near hosts, one after the other; empty for this machine.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub from: Vec<String>,
    /// The far hosts, one after the other; empty for transports within one host.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub to: Vec<String>,
    /// The labels of the hosts of a fleet, such as `rack`, by host and label.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub labels: BTreeMap<String, BTreeMap<String, String>>,
    /// The label that groups hosts into clusters; by default the first of [`Plan::PLACES`] that a host has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cluster: Option<String>,
    /// The pairs of hosts that are measured, the near one first; empty for every pair of `from` and `to`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub pairs: Vec<[String; 2]>,
    /// Labels of which each value has at most one test at a time: the tests of its hosts.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub one_per: Vec<String>,
    /// Labels of which each value has at most one test at a time that leaves it: those over its uplink.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub one_per_uplink: Vec<String>,
    /// Which hosts send at the same time; null for one test per host at a time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub traffic: Option<PlanTraffic>,
    /// Most tests of one host at the same time, where all are light: their rates are bounded. Null for one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub light: Option<u32>,
    /// Settings of the hosts that all cells share.
    #[serde(skip_serializing_if = "HostSettings::is_empty")]
    pub settings: HostSettings,
    /// Requirements before a cell is measured.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub require: Option<Require>,
    /// Length of the discarded trial before each trial, ns; null for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warmup_ns: Option<u64>,
    /// How often what stands out of a mesh is tested again at its end; null for never.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retests: Option<u32>,
    /// When the last of these tests has to be over, ns since the Unix epoch: before a watch's next turn. Null for no such time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retests_until_unix_ns: Option<u64>,
    /// When the plan is repeated; null for once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Every>,
    /// The lab that it was measured in; null for other hosts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lab: Option<PlanLab>,
}

/// The lab of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default)]
pub struct PlanLab {
    /// A topology that comes with the program, or a file.
    pub topology: String,
    /// The values of its variables.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub vars: BTreeMap<String, String>,
    /// Settings that exist once per machine: they apply to all hosts of the lab and to the machine, while the lab is up.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub host_wide: Vec<Setting>,
}

/// A factor of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default)]
pub struct Factor {
    /// Its name in tables.
    pub name: String,
    /// The kind of `key`.
    pub kind: FactorKind,
    /// A flag's name, a setting's key, or a key of the inventory; for sets the factor's own name.
    pub key: String,
    /// The end that it applies to.
    pub end: PlanEnd,
    /// Its levels, in the order of the file; empty for an observed factor, whose levels come from the hosts.
    pub levels: Vec<String>,
    /// For a factor of sets: the fields and settings of each level, by key.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub sets: BTreeMap<String, BTreeMap<String, String>>,
    /// Expensive to change: it is varied in the outer loop.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub expensive: bool,
    /// Its levels are measured at the same time, each in every trial: groups of flows.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub together: bool,
}

impl Plan {
    /// Labels that say where a host stands, from near to far.
    pub const PLACES: [&str; 9] = ["rack", "switch", "row", "room", "zone", "site", "region", "datacenter", "type"];

    /// The label that groups the hosts into clusters; `None` if no host has one.
    #[must_use]
    pub fn cluster_label(&self) -> Option<&str> {
        let has = |label: &&str| self.labels.values().any(|labels| labels.contains_key(*label));
        self.cluster.as_deref().or_else(|| Self::PLACES.into_iter().find(has))
    }

    /// The cluster of a host.
    #[must_use]
    pub fn cluster_of(&self, host: &str) -> Option<&str> {
        self.labels.get(host)?.get(self.cluster_label()?).map(String::as_str)
    }

    /// What two tests must not share at the same time, beside their hosts: the label and its value, for a test between these hosts.
    #[must_use]
    pub fn shared(&self, hosts: [&str; 2]) -> Vec<[String; 2]> {
        let value = |host: &str, label: &String| self.labels.get(host)?.get(label).cloned();
        let mut shared = Vec::new();
        let all = self
            .one_per
            .iter()
            .map(|label| (label, false))
            .chain(self.one_per_uplink.iter().map(|label| (label, true)));
        for (label, leaving) in all {
            let values = hosts.map(|host| value(host, label));
            if leaving && values[0] == values[1] {
                continue;
            }
            for value in values.into_iter().flatten() {
                let one = [label.clone(), value];
                if !shared.contains(&one) {
                    shared.push(one);
                }
            }
        }
        shared
    }
}

impl Factor {
    /// The factor whose levels are the near ends.
    pub const FROM: &str = "from";
    /// The factor whose levels are the far ends.
    pub const TO: &str = "to";
    /// The field of a cell's near host, in place of the plan's.
    pub const FROM_FIELD: &str = "from";
    /// The field of a cell's far host, in place of the plan's.
    pub const TO_FIELD: &str = "host";
    /// The factor whose levels are the block sizes of curves.
    pub const SIZES: &str = "block";
    /// The factor whose levels are groups of flows.
    pub const GROUP: &str = "group";
}

impl Plan {
    /// The factor whose levels are measured at the same time, if there is one.
    #[must_use]
    pub fn groups(&self) -> Option<&Factor> {
        self.factors.iter().find(|factor| factor.together)
    }
}

/// The kind of a factor's key.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum FactorKind {
    /// A field of the spec, by its flag.
    #[default]
    Field,
    /// A setting of the host.
    Setting,
    /// Several fields and settings together: a level is the name of a set of them.
    Set,
    /// A property of the host that is only a label.
    Observed,
    /// The block sizes of curves. The sizes of one curve are measured over the same connections, so they are not combined with
    /// other levels.
    Sizes,
    /// Sets of pairs of hosts that are measured at the same time: a level is a number of senders or receivers, or the number of a
    /// permutation or cut.
    Traffic,
}

impl FactorKind {
    /// Whether its levels are combined into cells.
    #[must_use]
    pub fn makes_cells(self) -> bool {
        matches!(self, Self::Field | Self::Setting | Self::Set | Self::Traffic)
    }
}

/// The end that a part of a plan applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum PlanEnd {
    /// The near end.
    Near,
    /// The far end.
    Far,
    /// Both ends.
    #[default]
    Both,
}

impl PlanEnd {
    /// Every choice with its name in a file.
    pub const NAMES: [(&'static str, Self); 3] = [("near", Self::Near), ("far", Self::Far), ("both", Self::Both)];

    /// Whether the near end and the far end are meant.
    #[must_use]
    pub fn ends(self) -> [bool; 2] {
        [self != Self::Far, self != Self::Near]
    }
}

/// How levels are combined into cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Design {
    /// Every combination of levels.
    #[default]
    Factorial,
    /// The listed cells.
    List,
    /// The first levels of all factors together, then the second ones, and so on.
    Zip,
}

impl Design {
    /// Every design with its name in a file.
    pub const NAMES: [(&'static str, Self); 3] =
        [("factorial", Self::Factorial), ("list", Self::List), ("zip", Self::Zip)];
}

/// Requirements at both ends before a cell is measured.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default)]
pub struct Require {
    /// Minimum of memory available for new work, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub free_memory_bytes: Option<u64>,
    /// Maximum of the load average over the last minute.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load: Option<f64>,
    /// Maximum of other traffic, sent and received over all interfaces but loopback, bit/s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub foreign_bps: Option<u64>,
    /// How long to wait for the requirements, ns.
    pub wait_ns: u64,
    /// What happens if they are not met in that time.
    pub otherwise: Otherwise,
}

/// What happens if a cell's requirements are not met.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Otherwise {
    /// The cell is skipped in this round and gets a verdict.
    #[default]
    Skip,
    /// The run ends.
    End,
}

impl Otherwise {
    /// Every choice with its name in a file.
    pub const NAMES: [(&'static str, Self); 2] = [("skip", Self::Skip), ("end", Self::End)];
}

/// When a plan is repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Every {
    /// Time from the start of one repetition to the start of the next, ns.
    pub every_ns: u64,
    /// Time from the start of the first repetition to the latest start of the last one, ns.
    pub for_ns: u64,
}

impl Every {
    /// Number of repetitions, at least 1.
    #[must_use]
    pub fn times(self) -> u64 {
        self.for_ns.checked_div(self.every_ns).unwrap_or(0) + 1
    }
}

/// The state of a host before a cell, if the plan has requirements.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default)]
pub struct Conditions {
    /// Memory available for new work, bytes; null if the source is missing.
    pub free_memory_bytes: Option<u64>,
    /// Load average over the last minute; null if the source is missing.
    pub load: Option<f64>,
    /// Traffic of all interfaces but loopback without a measurement, bit/s; null if the source is missing.
    pub foreign_bps: Option<f64>,
}

/// One reading of a host's state; two of them give [`Conditions`].
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default)]
pub struct HostReading {
    /// Time of the reading by the host's monotonic clock, ns.
    pub at_ns: u64,
    /// Memory available for new work, bytes.
    pub free_memory_bytes: Option<u64>,
    /// Load average over the last minute.
    pub load: Option<f64>,
    /// Bytes sent and received by all interfaces but loopback.
    pub passed_bytes: Option<u64>,
}

impl HostReading {
    /// The state between an earlier reading and this one.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Conditions {
        let ns = self.at_ns.saturating_sub(earlier.at_ns);
        let bytes = self.passed_bytes.zip(earlier.passed_bytes).map(|(now, then)| now.saturating_sub(then));
        Conditions {
            free_memory_bytes: self.free_memory_bytes,
            load: self.load,
            foreign_bps: bytes.filter(|_| ns > 0).map(|bytes| bytes as f64 * 8e9 / ns as f64),
        }
    }
}

impl Require {
    /// The requirements that are not met, in words with both numbers; empty if all are met. A value that could not be read counts
    /// as met; it is null in the pass.
    #[must_use]
    pub fn unmet(&self, found: &Conditions) -> Vec<String> {
        let mut unmet = Vec::new();
        if let (Some(wanted), Some(free)) = (self.free_memory_bytes, found.free_memory_bytes)
            && free < wanted
        {
            let mib = |bytes: u64| bytes >> 20;
            unmet.push(format!("{} MiB of memory are free, {} MiB are required", mib(free), mib(wanted)));
        }
        if let (Some(most), Some(load)) = (self.load, found.load)
            && load > most
        {
            unmet.push(format!("the load is {load:.2}, the maximum is {most}"));
        }
        if let (Some(most), Some(foreign)) = (self.foreign_bps, found.foreign_bps)
            && foreign > most as f64
        {
            let rate = crate::units::bits_per_second;
            unmet.push(format!("other traffic is {}, the maximum is {}", rate(foreign), rate(most as f64)));
        }
        unmet
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unmet_requirements_have_both_numbers_and_unknown_values_count_as_met() {
        let require = Require {
            free_memory_bytes: Some(2 << 30),
            load: Some(1.0),
            foreign_bps: Some(1_000_000),
            ..Require::default()
        };
        assert_eq!(require.unmet(&Conditions::default()), Vec::<String>::new());
        let bad = Conditions { free_memory_bytes: Some(1 << 30), load: Some(2.5), foreign_bps: Some(5e6) };
        let said = require.unmet(&bad);
        assert_eq!(said.len(), 3, "{said:?}");
        assert!(
            said[0].contains("1024 MiB") && said[1].contains("2.50") && said[2].contains("5.00 Mbit/s"),
            "{said:?}"
        );
        let good = Conditions { free_memory_bytes: Some(2 << 30), load: Some(1.0), foreign_bps: Some(1e6) };
        assert!(require.unmet(&good).is_empty());
    }

    #[test]
    fn traffic_is_the_difference_of_two_readings() {
        let reading = |at_ns, passed_bytes| HostReading { at_ns, passed_bytes, ..HostReading::default() };
        let conditions = reading(2_000_000_000, Some(1_500)).since(&reading(1_000_000_000, Some(500)));
        assert_eq!(conditions.foreign_bps, Some(8_000.0));
        assert_eq!(reading(2, None).since(&reading(1, Some(5))).foreign_bps, None);
    }

    #[test]
    fn tests_share_the_racks_of_their_hosts_or_the_uplinks_that_they_use() {
        let labels = |rack: &str| BTreeMap::from([("rack".to_owned(), rack.to_owned())]);
        let hosts = [("a", "r1"), ("b", "r1"), ("c", "r2")];
        let plan = |one_per: &[&str], one_per_uplink: &[&str]| Plan {
            labels: hosts.iter().map(|(host, rack)| ((*host).to_owned(), labels(rack))).collect(),
            one_per: one_per.iter().map(ToString::to_string).collect(),
            one_per_uplink: one_per_uplink.iter().map(ToString::to_string).collect(),
            ..Plan::default()
        };
        let shown = |plan: &Plan, hosts| plan.shared(hosts).into_iter().map(|[_, value]| value).collect::<Vec<_>>();
        let (racks, uplinks) = (plan(&["rack"], &[]), plan(&[], &["rack"]));
        assert_eq!((shown(&racks, ["a", "b"]), shown(&uplinks, ["a", "b"])), (vec!["r1".to_owned()], vec![]));
        assert_eq!(shown(&racks, ["a", "c"]), ["r1", "r2"]);
        assert_eq!(shown(&uplinks, ["a", "c"]), ["r1", "r2"]);
        assert_eq!(shown(&uplinks, ["a", "elsewhere"]), ["r1"], "a host without the label is beyond the uplink");
    }

    #[test]
    fn a_day_of_quarters_has_97_starts() {
        let minute = 60_000_000_000;
        assert_eq!(Every { every_ns: 15 * minute, for_ns: 24 * 60 * minute }.times(), 97);
        assert_eq!(Every { every_ns: 15 * minute, for_ns: 14 * minute }.times(), 1);
    }

    #[test]
    fn ends_are_near_far_or_both() {
        assert_eq!(PlanEnd::NAMES.map(|(_, end)| end.ends()), [[true, false], [false, true], [true, true]]);
    }
}
