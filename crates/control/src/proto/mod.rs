//! What agents and coordinators say to each other, without I/O.
//!
//! A connection opens with eight bytes: [`CONTROL_MAGIC`], or the engine's data hello, so that one port serves both. After
//! that, control is frames ([`frame`]) of JSON ([`message`]). JSON keeps an old peer able to read a newer one's message as far
//! as it understands it; the rate is a few messages a trial, far from any measuring path.

pub mod auth;
pub mod frame;
pub mod message;

/// The first bytes of a control connection.
pub const CONTROL_MAGIC: &[u8; 8] = b"THRUCTRL";
/// The protocol that this build speaks best.
pub const PROTOCOL: u32 = 1;
/// The oldest protocol that it still speaks.
pub const OLDEST_PROTOCOL: u32 = 1;
/// The port of `thru serve` unless told otherwise.
pub const DEFAULT_PORT: u16 = 6280;
/// What this build's agents can do beyond protocol 1; a peer that lacks one is told before it is asked for it.
pub const CAPABILITIES: &[&str] = &[
    "processes",
    "series",
    "cpu",
    "tune",
    "conditions",
    "observe",
    WATCH,
    "capture",
    "drain",
    "stacks",
    PATH,
    FETCH,
    VOUCH,
    DELAYED_READS,
    OVERLAP_CLOSE,
];
/// Answers `clock` and `look-at`.
pub const PATH: &str = "path";
/// The capability of an agent that tells how its host does without a measurement.
pub const WATCH: &str = "watch";
/// Answers `fetch` and takes `forget`.
pub const FETCH: &str = "fetch";
/// Answers `vouch`, and looks and connects only where it may.
pub const VOUCH: &str = "vouch";
/// Knows `delayed_reads`, and reads plainly without it.
pub const DELAYED_READS: &str = "delayed-reads";
/// Knows `overlap_close`, and closes a connection before the next one opens without it.
pub const OVERLAP_CLOSE: &str = "overlap-close";
/// The most bytes of a file that one `piece` holds.
pub const PIECE: u64 = 256 << 10;
