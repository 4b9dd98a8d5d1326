//! Settings of a host that a measurement may change.

use std::fmt;
use std::str::FromStr;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::ValueError;

/// A key and value of a host setting.
///
/// A key has the kind first, then the object, then the property. An object may contain dots (an address, a VLAN's interface).
/// The property is the part after the last dot.
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
/// | `module.e1000`, `module.e1000.debug` | a module of the kernel (loaded, unloaded), a parameter of one |
/// | `pci.0000:03:00.0.LATENCY_TIMER` | a register of a PCI device, in hex |
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Setting {
    /// The key.
    pub key: String,
    /// The value as the kernel's own tools write it.
    pub value: String,
}

impl FromStr for Setting {
    type Err = ValueError;

    /// `KEY=VALUE`; the value may hold spaces and further equals signs.
    fn from_str(text: &str) -> Result<Self, ValueError> {
        match text.split_once('=') {
            Some((key, value)) if !key.trim().is_empty() => {
                Ok(Self { key: key.trim().to_owned(), value: value.trim().to_owned() })
            }
            _ => Err(ValueError::Setting { text: text.to_owned() }),
        }
    }
}

impl fmt::Display for Setting {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.key, self.value)
    }
}

/// A changed setting, as in the journal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Change {
    /// The key.
    pub key: String,
    /// The value before the change.
    pub before: String,
    /// The requested value.
    pub requested: String,
    /// The value that was read back.
    pub now: String,
    /// Whether it applies to the whole host and not only to its network namespace.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub host_wide: bool,
    /// A remark: the kernel rounded the value, or the setting could not be reverted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// The current value of a setting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct SettingNow {
    /// The key.
    pub key: String,
    /// The value, in a form that can be set again.
    pub value: String,
    /// Whether it applies to the whole host and not only to its network namespace.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub host_wide: bool,
}

/// A journal record: changed settings that have not been reverted.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct JournalEntry {
    /// Its identifier, for `thru tune revert`.
    pub id: String,
    /// The command of its owner.
    pub command: String,
    /// Process id of its owner.
    pub pid: u32,
    /// Whether the owner still runs; it reverts its settings itself.
    pub alive: bool,
    /// Whether the owner kept its settings on purpose (`thru tune set`).
    pub kept: bool,
    /// Time of its start, ns since the Unix epoch.
    pub unix_ns: u64,
    /// Number of its network namespace.
    pub namespace: u64,
    /// Whether that is the reader's own network namespace.
    pub here: bool,
    /// The changes that have not been reverted, in the order in which they were made.
    pub changes: Vec<Change>,
}

/// The result of reverting one journal record.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Reverted {
    /// Identifier of the record.
    pub id: String,
    /// The command of its owner.
    pub command: String,
    /// Each setting, the last change first: `before` is the value that had been set, `requested` the original value. A note says why a
    /// setting was not reverted.
    pub changes: Vec<Change>,
    /// Why nothing was done, if so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
    /// Whether everything is reverted.
    #[serde(default)]
    pub done: bool,
}

/// Settings of both hosts for a measurement; they are reverted after it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct HostSettings {
    /// On the near host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub near: Vec<Setting>,
    /// On the far host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub far: Vec<Setting>,
    /// On the lab's links, see [`LINK_SETTING`].
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub links: Vec<Setting>,
}

/// How the keys of the properties of a lab's links start: `link.rate` on all links, `link.a.b.rate` on the one between the nodes a
/// and b, `link.a.b.forward.rate` in the direction that its topology calls forward.
pub const LINK_SETTING: &str = "link.";

impl HostSettings {
    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.near.is_empty() && self.far.is_empty() && self.links.is_empty()
    }
}

/// The changed settings of both hosts for a run, in the order of the changes.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct RunSettings {
    /// On the near host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub near: Vec<Change>,
    /// On the far host.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub far: Vec<Change>,
    /// If the cells have different settings: the changes for each cell; `near` and `far` are then empty.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cells: Vec<CellSettings>,
}

/// The changed settings of both hosts for one cell.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
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
