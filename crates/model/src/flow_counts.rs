//! The counts of one connection of a running trial.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Datagrams that arrived since the start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct DatagramReading {
    /// Datagrams up to the highest number that arrived.
    pub numbers: u64,
    /// Datagrams that arrived, without duplicates.
    pub received: u64,
    /// Jitter (RFC 3550), ns; of several connections their mean. Null if the datagrams carry no times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter_ns: Option<u64>,
}

/// The counts of one connection at one end since the start of the trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct FlowCounts {
    /// Time since this end started, ns.
    pub at_ns: u64,
    /// Payload bytes sent.
    pub bytes_sent: u64,
    /// Payload bytes received.
    pub bytes_received: u64,
    /// What arrived of numbered datagrams; null if nothing did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub datagrams: Option<DatagramReading>,
}
