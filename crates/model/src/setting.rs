//! Settings of a host that a measurement may change.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A value that a host setting is to have.
///
/// A key names the kind first, then the object, then the property: `sysctl.net.ipv4.tcp_rmem`, `dev.eth0.mtu`,
/// `dev.eth0.txqueuelen`, `dev.eth0.ring.rx`, `dev.eth0.coalesce.rx-usecs`, `dev.eth0.offload.tso`, `dev.eth0.queues.combined`,
/// `dev.eth0.gso_max_size`, `qdisc.eth0`, `cc.cubic.beta`, `route.10.0.0.0/24.initcwnd`, `cpu.governor`, `irq.24.affinity`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
pub struct Setting {
    /// What is set.
    pub key: String,
    /// The value as the kernel's own tools write it.
    pub value: String,
}

/// A setting that was changed, as the journal has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Change {
    /// What was set.
    pub key: String,
    /// What it was before.
    pub before: String,
    /// What was asked for.
    pub asked: String,
    /// What was read back.
    pub now: String,
    /// Whether it acts on the whole host and not on its network namespace alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub host_wide: bool,
}
