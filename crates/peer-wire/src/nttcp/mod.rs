//! nttcp 1.47's protocol: lines over a control connection, data over a connection or datagrams of its own, without frames.
//!
//! ```text
//! local                                   remote
//! options, one line                 ->
//!        <- or -> dataport: PORT, from whoever receives
//!            (data, from the transmitter to the receiver)
//!                                   <-   its statistics, and verbose lines with -v
//! ```
//!
//! No session of the real program was at hand: this follows a reading of its source and three published logs, and is judged by our own
//! pair alone.

mod datagrams;
mod error;
mod local;
mod options;
mod pattern;
mod remote;
mod statistics;

pub use datagrams::{Datagrams, MARK_BYTES, Seen};
pub use error::NttcpError;
pub use local::{Action as LocalAction, Local};
pub use options::{OPTIONS_LIMIT, Options};
pub use pattern::{DEFAULT_SEED, PayloadPattern};
pub use remote::{Action as RemoteAction, Remote};
pub use statistics::{DEFAULT_FORMAT, SEPARATED_FORMAT, Statistics, StatisticsFormat};

use crate::Peer;

/// nttcp and the port of its service, to which inetd listened.
pub const PEER: Peer = Peer { name: "nttcp", port: 5037 };

/// The first port that a receiver tries for its data socket.
pub const FIRST_DATA_PORT: u16 = 5038;

/// The port of a line `dataport: PORT`; an error if it is invalid, which means that the peer failed.
fn data_port(line: &str) -> Option<Result<u16, NttcpError>> {
    let number = line.strip_prefix("dataport: ")?.trim();
    let port = number.parse::<i64>().ok().and_then(|port| u16::try_from(port).ok()).filter(|port| *port > 0);
    Some(port.ok_or_else(|| NttcpError::NoDataSocket { port: number.into() }))
}

/// The line that names a receiver's port.
fn write_port(port: u16, into: &mut Vec<u8>) {
    into.extend_from_slice(format!("dataport: {port}\n").as_bytes());
}
