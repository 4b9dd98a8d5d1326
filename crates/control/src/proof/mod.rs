//! How agents and coordinators prove who they are: by their keys, a token, or the code of an invitation.

pub mod auth;
pub mod code;
pub mod fingerprint;

/// The label of the keying material that the proofs of the token cover (RFC 8446, 7.5).
pub(crate) const EXPORTER_LABEL: &[u8] = b"EXPORTER-throughline-control";
