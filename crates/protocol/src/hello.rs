//! The first message of each side.

use serde::{Deserialize, Serialize};

/// The first message of each side.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The protocol that the side has.
    pub protocol: u32,
    /// Its program's version.
    pub version: String,
    /// Its random number, in hex.
    pub nonce: String,
    /// Agents: a random identifier of the process, which distinguishes two agents from two connections to one.
    #[serde(default)]
    pub instance: String,
    /// Coordinators: whether it has the code of an invitation, and no token.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub has_code: bool,
    /// Agents: whether it recognizes the coordinator's key, and needs no proof.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub knows_key: bool,
    /// Agents: whether the coordinator must prove the token.
    #[serde(default)]
    pub wants_token: bool,
    /// Agents with a token: their own proof, HMAC in hex.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mac: Option<String>,
}
