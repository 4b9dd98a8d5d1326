//! The protocol of agents and coordinators, without I/O, clock or threads.
//!
//! A connection starts with eight bytes: [`CONTROL_MAGIC`], or the engine's data hello, so that one port serves both. After
//! that, control is TLS 1.3 with frames ([`frame`]) of JSON ([`message`]). A few messages a trial are far from any measuring path.

pub mod agent;
pub mod coordinator;
pub mod frame;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
pub mod hello;
pub mod line;
pub mod message;
pub mod pass;
pub mod worker_message;

use std::path::{Path, PathBuf};

use model::Role;

/// The first bytes of a control connection; TLS follows.
pub const CONTROL_MAGIC: &[u8; 8] = b"THRUCTLS";
/// The protocol of this build. Both sides need the same one.
pub const PROTOCOL: u32 = 1;
/// The default port of `thru serve`.
pub const DEFAULT_PORT: u16 = 6280;
/// Most bytes of a file in one `piece`.
pub const PIECE: u64 = 256 << 10;

/// The file of a capture that was begun at a time, ns since the Unix epoch, with a number that no other one has.
#[must_use]
pub fn capture_file(folder: &Path, role: Role, trial: u32, (begun_unix_ns, number): (u64, u64)) -> PathBuf {
    let (seconds, mark) = (begun_unix_ns / 1_000_000_000, number & 0xff_ffff);
    let end = match role {
        Role::Active => "near",
        Role::Passive => "far",
    };
    folder.join(format!("thru-{seconds}-{mark:06x}-trial{}-{end}.pcapng", trial.saturating_add(1)))
}

/// A program version with its protocol, as text: `0.1.0 (protocol 1)`.
#[must_use]
pub fn program(version: &str, protocol: u32) -> String {
    format!("{version} (protocol {protocol})")
}
