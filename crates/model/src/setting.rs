//! Settings of a host that a measurement may change.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ModelError;

/// A value that a host setting is to have.
///
/// A key names the kind first, then the object, then the property. An object may hold dots itself (an address, a VLAN's
/// interface); the property never does, and stands behind the last one.
///
/// | key | what |
/// | --- | --- |
/// | `sysctl.net.ipv4.tcp_rmem` | a file below /proc/sys |
/// | `dev.eth0.mtu`, `.txqueuelen`, `.state` (up or down) | an interface |
/// | `dev.eth0.gso_max_size`, `.gro_max_size`, `.gso_ipv4_max_size`, `.gro_ipv4_max_size` | largest packets within the host (BIG TCP), bytes |
/// | `dev.eth0.ring.rx`, `dev.eth0.coalesce.rx-usecs`, `dev.eth0.queues.combined`, `dev.eth0.offload.tso` | what ethtool -g, -c, -l and -k show |
/// | `dev.eth0.rps.rx-0` | the cores that receive for a queue (RPS), a mask in hex |
/// | `qdisc.eth0` | the root queueing discipline, in the words of tc |
/// | `cc.default`, `cc.cubic.beta` | the default congestion control, a parameter of one |
/// | `route.10.0.0.0/24.initcwnd`, `.initrwnd`, `.quickack`, `.congctl`, `.mtu` | a metric of a route |
/// | `cpu.governor`, `irq.24.affinity` | how the cores are used |
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Setting {
    /// What is set.
    pub key: String,
    /// The value as the kernel's own tools write it.
    pub value: String,
}

impl FromStr for Setting {
    type Err = ModelError;

    /// `KEY=VALUE`; the value may hold spaces and further equals signs.
    fn from_str(text: &str) -> Result<Self, ModelError> {
        match text.split_once('=') {
            Some((key, value)) if !key.trim().is_empty() => {
                Ok(Self { key: key.trim().to_owned(), value: value.trim().to_owned() })
            }
            _ => Err(ModelError::Spec {
                what: format!("'{text}' is no setting"),
                remedy: "write KEY=VALUE, such as dev.eth0.mtu=9000; `thru tune show` lists keys".into(),
            }),
        }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.key, self.value)
    }
}

/// A setting that was changed, as the journal has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// What was set.
    pub key: String,
    /// What it was before.
    pub before: String,
    /// What was asked for.
    pub requested: String,
    /// What was read back.
    pub now: String,
    /// Whether it acts on the whole host and not on its network namespace alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub host_wide: bool,
    /// What is remarkable about it: a value that the kernel rounded, one that could not be put back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A setting as a host has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct SettingNow {
    /// Its key.
    pub key: String,
    /// Its value, as it can be set again.
    pub value: String,
    /// Whether it acts on the whole host and not on its network namespace alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub host_wide: bool,
}

/// Settings that somebody changed and that are not back yet, as the journal on a host's disk has them.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct JournalEntry {
    /// Names it for `thru tune revert`.
    pub id: String,
    /// What its owner does, or did.
    pub command: String,
    /// The owner's process.
    pub pid: u32,
    /// Whether the owner still runs: it puts its settings back itself.
    pub alive: bool,
    /// Whether the owner left its settings on purpose (`thru tune set`).
    pub kept: bool,
    /// When it began, ns since the Unix epoch.
    pub unix_ns: u64,
    /// Number of the network namespace that it acts in.
    pub namespace: u64,
    /// Whether that is the one of who asks.
    pub here: bool,
    /// What was changed and is not back, in the order in which it was changed.
    pub changes: Vec<Change>,
}

/// What was put back of one entry of the journal, or not.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Reverted {
    /// Its name.
    pub id: String,
    /// What its owner did.
    pub command: String,
    /// Each setting, the last changed first: `before` is what it had been set to, `requested` what it was to become again. A note says
    /// why one was not put back.
    pub changes: Vec<Change>,
    /// Why nothing was done, where that is so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Whether nothing is left to put back.
    #[serde(default)]
    pub done: bool,
}

/// What a measurement sets on both hosts before it starts; it is put back after it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct HostSettings {
    /// On the near host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub near: Vec<Setting>,
    /// On the far host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub far: Vec<Setting>,
}

impl HostSettings {
    /// Whether nothing is set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.near.is_empty() && self.far.is_empty()
    }
}

/// What was changed on both hosts for a run, in the order in which it was done.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct RunSettings {
    /// On the near host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub near: Vec<Change>,
    /// On the far host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub far: Vec<Change>,
    /// Where cells differ in their settings: what was changed for each; `near` and `far` are empty then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cells: Vec<CellSettings>,
}

/// What was changed on both hosts for one cell.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct CellSettings {
    /// The cell's number.
    pub cell: u32,
    /// On the near host.
    pub near: Vec<Change>,
    /// On the far host.
    pub far: Vec<Change>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setting_is_split_at_its_first_equals_sign() {
        let setting: Setting = "qdisc.eth0=tbf rate 1gbit a=b".parse().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!((setting.key.as_str(), setting.value.as_str()), ("qdisc.eth0", "tbf rate 1gbit a=b"));
        assert!("dev.eth0.mtu".parse::<Setting>().is_err());
        assert!("=1".parse::<Setting>().is_err());
    }
}
