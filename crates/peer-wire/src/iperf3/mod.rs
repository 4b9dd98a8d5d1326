//! iperf3's protocol, as versions 3.1 to 3.21 speak it (esnet/iperf): one control connection of single bytes and framed JSON, and
//! data streams that show the control connection's cookie.
//!
//! ```text
//! client                         server
//! cookie, 37 bytes        ->
//!                         <-     9 PARAM_EXCHANGE
//! length, parameters      ->
//!                         <-     10 CREATE_STREAMS
//! streams, one by one     ->
//!                         <-     1 TEST_START, 2 TEST_RUNNING
//!                    (data flows)
//! 4 TEST_END              ->
//!                         <-     13 EXCHANGE_RESULTS
//! length, results         ->
//!                         <-     length, results, 14 DISPLAY_RESULTS
//! 16 IPERF_DONE           ->
//! ```

mod claim;
mod client;
mod cookie;
pub mod datagram;
mod error;
mod fault;
mod json;
mod parameters;
mod results;
mod server;

pub use claim::{LoginClaim, hashed_text};
pub use client::{Action as ClientAction, Client};
pub use cookie::{ALPHABET, COOKIE_BYTES, StreamHello, TestCookie};
pub use error::Iperf3Error;
pub use fault::ServerFault;
pub use parameters::{Offloads, PARAMETERS_LIMIT, Parameters, Protocol};
pub use results::{Omitted, RESULTS_LIMIT, Results, StreamResult, stream_ids};
pub use server::{Action as ServerAction, REFUSAL, Server};

use crate::Peer;

/// iperf3 and the port of its server.
pub const PEER: Peer = Peer { name: "iperf3", port: 5201 };

/// Bytes of the control connection (`iperf_api.h`).
mod byte {
    pub(super) const TEST_START: u8 = 1;
    pub(super) const TEST_RUNNING: u8 = 2;
    pub(super) const TEST_END: u8 = 4;
    pub(super) const PARAM_EXCHANGE: u8 = 9;
    pub(super) const CREATE_STREAMS: u8 = 10;
    pub(super) const SERVER_TERMINATE: u8 = 11;
    pub(super) const CLIENT_TERMINATE: u8 = 12;
    pub(super) const EXCHANGE_RESULTS: u8 = 13;
    pub(super) const DISPLAY_RESULTS: u8 = 14;
    pub(super) const IPERF_DONE: u8 = 16;
    pub(super) const ACCESS_DENIED: u8 = 0xff;
    pub(super) const SERVER_ERROR: u8 = 0xfe;
}
