//! nuttcp's protocol as version 6.1.2 speaks it: lines over a control connection, data over connections or datagrams of its own.
//!
//! ```text
//! client                          server
//! HELO nuttcp vVERSION     ->
//!                          <-     HELO nuttcp vVERSION
//! buflen = 65536, ...      ->
//!                          <-     OK vVERSION, or KO
//!        (data, from the transmitter to the receiver, who listens on `port`)
//!                          <-     a line for each interval, and DONE, if the client sends and has -i
//!                          <-     what the server counted, as text, and the end
//! ```
//!
//! Streams of TCP are plain bytes. Over UDP, marks of four bytes stand before (`BOD0`, `BOD1`) and after (`EOD0` to `EOD4`) the data.

mod client;
mod error;
mod marks;
mod options;
mod report;
mod server;

pub use client::{Action as ClientAction, Client};
pub use error::NuttcpError;
pub use marks::{PathMark, count_sent, mark, sent_so_far};
pub use options::{MOST_WINDOW, NO_RATE, Options};
pub use report::{INTERIM_END, Interim, Report, Windows};
pub use server::{Action as ServerAction, Server};

use crate::Peer;

/// nuttcp and the port of its server.
pub const PEER: Peer = Peer { name: "nuttcp", port: 5000 };

/// The version that we send.
const VERSION: &str = "6.1.2";
/// The longest line that is read, bytes; the client's of options has some 350.
const LINE_LIMIT: usize = 1023;

/// The greeting of both sides, with its LF.
fn hello() -> String {
    format!("HELO nuttcp v{VERSION}\n")
}

/// Checks the other side's greeting.
fn greeted(line: String) -> Result<(), NuttcpError> {
    if line.starts_with("HELO nuttcp v") { Ok(()) } else { Err(NuttcpError::Greeting { line }) }
}
