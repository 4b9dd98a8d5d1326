//! Who is on a bus.

use std::net::IpAddr;

use serde::{Deserialize, Serialize};

/// How an agent is reached beside the bus. It is told by the agent, and nothing depends on its truth: what measures proves itself over
/// the streams.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Contact {
    /// Its address for data: the one from which it reaches the bus.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub address: Option<IpAddr>,
    /// Its port for data.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub port: Option<u16>,
    /// The version of its program.
    #[serde(default)]
    pub version: String,
    /// The fingerprint of its key.
    #[serde(default)]
    pub key: String,
}

/// A host that is on the bus.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Present {
    /// Its name.
    pub name: String,
    /// How it is reached.
    pub contact: Contact,
}
