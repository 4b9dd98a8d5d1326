//! The protocol of agents and coordinators, without I/O.
//!
//! A connection starts with eight bytes: [`CONTROL_MAGIC`], or the engine's data hello, so that one port serves both. After
//! that, control is TLS 1.3 with frames ([`frame`]) of JSON ([`message`]). With JSON an older peer can read a newer message and ignore
//! what it does not know. A few messages a trial are far from any measuring path.

pub mod auth;
pub mod fingerprint;
pub mod frame;
pub mod message;

/// The first bytes of a control connection; TLS follows.
pub const CONTROL_MAGIC: &[u8; 8] = b"THRUCTLS";
/// The first bytes of a control connection before protocol 3; frames follow in the clear.
pub const PLAIN_MAGIC: &[u8; 8] = b"THRUCTRL";
/// The label of the keying material that the proofs of the token cover (RFC 8446, 7.5).
pub(crate) const EXPORTER_LABEL: &[u8] = b"EXPORTER-throughline-control";
/// The newest protocol that this build has.
pub const PROTOCOL: u32 = 4;
/// The oldest protocol that this build accepts.
pub const OLDEST_PROTOCOL: u32 = 4;
/// The default port of `thru serve`.
pub const DEFAULT_PORT: u16 = 6280;
/// Extensions of this build's agents. A coordinator does not use what an agent does not list.
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
    USERS,
    FETCH,
    REACH_TOKEN,
    DELAYED_READS,
    OVERLAP_CLOSE,
    ANATOMY,
    JOIN,
    MIX,
    RESPONSIVENESS,
    RESULTS,
];
/// Answers `clock` and `probe-path`.
pub const PATH: &str = "path";
/// Answers `ask-users`.
pub const USERS: &str = "users";
/// Answers `watch`: reports its host without a measurement.
pub const WATCH: &str = "watch";
/// Answers `fetch` and accepts `forget`.
pub const FETCH: &str = "fetch";
/// Answers `issue-reach-token`, and probes and connects to other hosts only with their reachability token.
pub const REACH_TOKEN: &str = "reach-token";
/// Implements `delayed_reads`.
pub const DELAYED_READS: &str = "delayed-reads";
/// Implements `overlap_close`.
pub const OVERLAP_CLOSE: &str = "overlap-close";
/// Implements `anatomy`.
pub const ANATOMY: &str = "anatomy";
/// Grants the machine with a ticket, with which further connections join.
pub const JOIN: &str = "join";
/// Sends datagrams of several sizes (`mix` of a spec).
pub const MIX: &str = "mix";
/// Implements `responsiveness`.
pub const RESPONSIVENESS: &str = "responsiveness";
/// Answers `results` and accepts `stored`.
pub const RESULTS: &str = "results";
/// Most bytes of a file in one `piece`.
pub const PIECE: u64 = 256 << 10;

/// A program version with its protocols, as text: `0.1.0 (protocol 3)`, or `0.1.0 (protocol 3 to 4)`.
pub(crate) fn program(version: &str, oldest: u32, newest: u32) -> String {
    let range = if oldest == newest { newest.to_string() } else { format!("{oldest} to {newest}") };
    format!("{version} (protocol {range})")
}
