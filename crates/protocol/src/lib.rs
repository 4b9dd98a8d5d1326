//! The protocol of agents and coordinators, without I/O, clock or threads.
//!
//! A connection starts with eight bytes: [`CONTROL_MAGIC`], or the engine's data hello, so that one port serves both. After
//! that, control is TLS 1.3 with frames ([`frame`]) of JSON ([`message`]). A few messages a trial are far from any measuring path.

pub mod agent;
pub mod frame;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
pub mod hello;
pub mod message;
pub mod pass;
pub mod worker_message;

/// The first bytes of a control connection; TLS follows.
pub const CONTROL_MAGIC: &[u8; 8] = b"THRUCTLS";
/// The protocol of this build. Both sides need the same one.
pub const PROTOCOL: u32 = 1;
/// The default port of `thru serve`.
pub const DEFAULT_PORT: u16 = 6280;
/// Most bytes of a file in one `piece`.
pub const PIECE: u64 = 256 << 10;

/// A program version with its protocol, as text: `0.1.0 (protocol 1)`.
#[must_use]
pub fn program(version: &str, protocol: u32) -> String {
    format!("{version} (protocol {protocol})")
}
