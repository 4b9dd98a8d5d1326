//! netperf 2.6 and 2.7's control connection: blocks of 656 bytes both ways, of which this speaks the tests of the OMNI kind. All
//! tests of a default build since 2.5 are of it, whatever name they go by, but for TCP_SENDFILE, which is a classic TCP_STREAM. Data goes over connections of its own, without frames.
//!
//! ```text
//! netperf: OMNI (97), what to do   ->
//!                                  <-   98, the data port, or an error
//!                             (data flows)
//!                                  <-   98, what netserver counted
//! ```

mod block;
mod classic;
mod client;
mod error;
mod omni;
mod server;

pub use block::{BLOCK_BYTES, Block};
pub use client::{Action as ClientAction, Client};
pub use error::{NOT_SUPPORTED, NetperfError};
pub use omni::{Counted, Cpu, Flags, OmniRequest, Ready, SendingEnd, Served};
pub use server::{Action as ServerAction, Server};

use crate::Peer;

/// netperf and the port of its server.
pub const PEER: Peer = Peer { name: "netperf", port: 12_865 };

/// Types of blocks (`netsh.h` and `netlib.h`).
mod kind {
    pub(super) const DEBUG_ON: u32 = 1;
    pub(super) const DEBUG_OFF: u32 = 2;
    pub(super) const DEBUG_OK: u32 = 3;
    pub(super) const CPU_CALIBRATE: u32 = 5;
    pub(super) const PASSPHRASE: u32 = 6;
    pub(super) const TCP_STREAM: u32 = 10;
    pub(super) const TCP_STREAM_DONE: u32 = 11;
    pub(super) const OMNI: u32 = 97;
    pub(super) const OMNI_DONE: u32 = 98;
    pub(super) const SYSTEM: u32 = 600;
    pub(super) const SYSTEM_DONE: u32 = 601;
}
