//! A plan: one experiment with its factors, as a file describes it.
//!
//! Levels and fields are the texts of the file, in the words of the command line (`sndbuf` is what `--sndbuf` takes), so that
//! tables and findings say them as they were written. [`Spec`](crate::Spec)s of the cells stand in the run's header.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{HostSettings, Setting};

/// An experiment: what is held fixed, what is varied, and when it is enough.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Plan {
    /// What it is about, for people.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub title: Option<String>,
    /// What it is to answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub question: Option<String>,
    /// SHA-256 of the file with its variables filled in, in hex: a run is resumed with the same plan only.
    pub digest: String,
    /// The values of its variables.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub vars: BTreeMap<String, String>,
    /// What all cells share, by the names of the flags; `near.` and `far.` before an option of one end.
    pub base: BTreeMap<String, String>,
    /// What is varied.
    pub factors: Vec<Factor>,
    /// How levels make cells.
    pub design: Design,
    /// The cells of a list: each a level by the name of its factor.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub list: Vec<BTreeMap<String, String>>,
    /// Hosts that the near end is in turn; empty for this machine.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub from: Vec<String>,
    /// Hosts that the far end is in turn; empty for transports within one host.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub to: Vec<String>,
    /// Settings of the hosts that all cells share.
    #[serde(skip_serializing_if = "HostSettings::is_empty")]
    pub settings: HostSettings,
    /// What must hold before a cell.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub require: Option<Require>,
    /// Length of the trial before each that counts, which is thrown away, ns; null for none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub warmup_ns: Option<u64>,
    /// Times at which the whole is repeated; null for once.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schedule: Option<Every>,
    /// The lab that it was measured in; null on hosts that were there before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lab: Option<PlanLab>,
}

/// The lab of a plan.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct PlanLab {
    /// A topology that comes with the program, or a file.
    pub topology: String,
    /// The values of its variables.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub vars: BTreeMap<String, String>,
    /// Settings that a machine has only one of: for all hosts of the lab, and all else on the machine, while the lab stands.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub host_wide: Vec<Setting>,
}

/// Something that a plan varies.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Factor {
    /// What tables call it.
    pub name: String,
    /// What kind of thing `key` is.
    pub kind: FactorKind,
    /// A flag's name, a setting's key, or a key of the inventory; of sets the factor's own name.
    pub key: String,
    /// The end that it is of.
    pub end: PlanEnd,
    /// Its levels, in the order of the file; empty for an observed one, whose levels the hosts say.
    pub levels: Vec<String>,
    /// Of a factor of sets: what each level stands for, fields and settings by their keys.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub sets: BTreeMap<String, BTreeMap<String, String>>,
    /// Costly to change: it is varied in the outer loop.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub expensive: bool,
}

impl Factor {
    /// The factor whose levels are the near ends.
    pub const FROM: &str = "from";
    /// The factor whose levels are the far ends.
    pub const TO: &str = "to";
    /// The factor whose levels are the block sizes of curves.
    pub const SIZES: &str = "block";
}

/// What a factor's key names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum FactorKind {
    /// A field of the spec, by its flag.
    #[default]
    Field,
    /// A setting of the host.
    Setting,
    /// Several fields and settings at once: a level is the name of a set of them.
    Set,
    /// A fact of the host that only labels.
    Observed,
    /// The block sizes of curves: those of one curve are measured one after the other over the same connections, so they are no
    /// combinations of levels.
    Sizes,
}

impl FactorKind {
    /// Whether its levels are combined to cells.
    #[must_use]
    pub fn makes_cells(self) -> bool {
        matches!(self, Self::Field | Self::Setting | Self::Set)
    }
}

/// Which end something of a plan is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum PlanEnd {
    /// The near one.
    Near,
    /// The far one.
    Far,
    /// Both.
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

/// How levels make cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Design {
    /// Every combination of levels.
    #[default]
    Factorial,
    /// The cells that are listed.
    List,
    /// The first levels of all factors together, the second ones, and so on.
    Zip,
}

impl Design {
    /// Every design with its name in a file.
    pub const NAMES: [(&'static str, Self); 3] =
        [("factorial", Self::Factorial), ("list", Self::List), ("zip", Self::Zip)];
}

/// What must hold at both ends before a cell is measured.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Require {
    /// Memory available for new work at least, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub free_memory_bytes: Option<u64>,
    /// Load average over the last minute at most.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub load: Option<f64>,
    /// What others send and receive over all interfaces but loopback at most, bit/s.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub foreign_bps: Option<u64>,
    /// How long to wait for it, ns.
    pub wait_ns: u64,
    /// What happens when it does not come to hold.
    pub otherwise: Otherwise,
}

/// What happens to a cell whose preconditions do not hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Otherwise {
    /// It has no trial in this block, and a verdict.
    #[default]
    Skip,
    /// The run ends.
    End,
}

impl Otherwise {
    /// Every choice with its name in a file.
    pub const NAMES: [(&'static str, Self); 2] = [("skip", Self::Skip), ("end", Self::End)];
}

/// Times at which a plan is repeated.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Every {
    /// From the start of one repetition to that of the next, ns.
    pub every_ns: u64,
    /// From the start of the first to the latest start of the last, ns.
    pub for_ns: u64,
}

impl Every {
    /// How often the plan is repeated, at least once.
    #[must_use]
    pub fn times(self) -> u64 {
        self.for_ns.checked_div(self.every_ns).unwrap_or(0) + 1
    }
}

/// What a host was like before a cell, as far as a plan asks.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Conditions {
    /// Memory available for new work, bytes; null where the source is missing.
    pub free_memory_bytes: Option<u64>,
    /// Load average over the last minute; null where the source is missing.
    pub load: Option<f64>,
    /// What passed all interfaces but loopback while nothing was measured, bit/s; null where the source is missing.
    pub foreign_bps: Option<f64>,
}

/// What a host says of itself when it is asked for its conditions; two of them make [`Conditions`].
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct HostReading {
    /// Moment of the reading on the host's monotonic clock, ns.
    pub at_ns: u64,
    /// Memory available for new work, bytes.
    pub free_memory_bytes: Option<u64>,
    /// Load average over the last minute.
    pub load: Option<f64>,
    /// Bytes that all interfaces but loopback have sent and received.
    pub passed_bytes: Option<u64>,
}

impl HostReading {
    /// The conditions between an earlier reading and this one.
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
    /// What does not hold, in words with both numbers; empty where all holds. What could not be read cannot be judged and
    /// counts as held: it stands as null in the pass.
    #[must_use]
    pub fn unmet(&self, found: &Conditions) -> Vec<String> {
        let mut unmet = Vec::new();
        if let (Some(wanted), Some(free)) = (self.free_memory_bytes, found.free_memory_bytes)
            && free < wanted
        {
            let mib = |bytes: u64| bytes >> 20;
            unmet.push(format!("{} MiB of memory are free, {} MiB are wanted", mib(free), mib(wanted)));
        }
        if let (Some(most), Some(load)) = (self.load, found.load)
            && load > most
        {
            unmet.push(format!("the load is {load:.2}, at most {most} is wanted"));
        }
        if let (Some(most), Some(foreign)) = (self.foreign_bps, found.foreign_bps)
            && foreign > most as f64
        {
            let rate = crate::units::bits_per_second;
            unmet.push(format!("others have {} of traffic, at most {} is wanted", rate(foreign), rate(most as f64)));
        }
        unmet
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_hold_is_said_with_both_numbers_and_what_is_not_known_is_not_judged() {
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
    fn traffic_is_what_passed_between_two_readings() {
        let reading = |at_ns, passed_bytes| HostReading { at_ns, passed_bytes, ..HostReading::default() };
        let conditions = reading(2_000_000_000, Some(1_500)).since(&reading(1_000_000_000, Some(500)));
        assert_eq!(conditions.foreign_bps, Some(8_000.0));
        assert_eq!(reading(2, None).since(&reading(1, Some(5))).foreign_bps, None);
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
