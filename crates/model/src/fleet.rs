//! The state of a fleet's hosts.

use std::collections::BTreeMap;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::Text;

/// Who measures at an agent.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default)]
pub struct MachineUser {
    /// What it measures, as its command says.
    pub purpose: String,
    /// Its address, or its network; null from agents without a token.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    /// Since when it has the machine, ns.
    pub for_ns: u64,
}

/// What a look at one host of a fleet found. What could not be read is null.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default)]
pub struct HostCheck {
    /// Its name in the fleet.
    pub name: String,
    /// The address of its agent.
    pub control: String,
    /// The address for data; null for that of the agent.
    pub data: Option<String>,
    /// Its labels.
    pub labels: BTreeMap<String, String>,
    /// Why it cannot take part; null if it can.
    pub error: Option<Text>,
    /// The exit code of that error.
    pub code: Option<u8>,
    /// The program's version there.
    pub version: Option<String>,
    /// Kernel release.
    pub kernel: Option<String>,
    /// Time until the agent had answered to everything, ns.
    pub elapsed_ns: Option<u64>,
    /// Shortest round trip on the control connection, ns.
    pub rtt_ns: Option<u64>,
    /// Its clock (CLOCK_REALTIME) less this host's, ns.
    pub clock_offset_ns: Option<i64>,
    /// Largest error of that, ns.
    pub clock_error_ns: Option<u64>,
    /// The interface with the data address.
    pub interface: Option<String>,
    /// MTU of that interface, bytes.
    pub mtu: Option<u32>,
    /// Speed of that interface, Mbit/s.
    pub speed_mbps: Option<u32>,
    /// Processors online.
    pub cores: Option<u32>,
    /// Load average over the last minute.
    pub load: Option<f64>,
    /// Who measures there; null from agents that do not tell.
    pub users: Option<Vec<MachineUser>>,
    /// Clients that wait for its machine.
    pub waiting: Option<u32>,
    /// What differs from the other hosts, or would disturb a measurement.
    pub remarks: Vec<String>,
}
