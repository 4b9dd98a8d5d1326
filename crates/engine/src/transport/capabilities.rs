//! What a transport can do.

use model::Spec;

/// What a transport can do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Capabilities {
    /// Keeps message boundaries and may lose messages.
    pub datagram: bool,
    /// Has a file descriptor to wait on, so that one thread can serve many flows.
    pub pollable: bool,
    /// Has no second end, only the active side.
    pub single_ended: bool,
    /// Its connections can arrive through the agent's one port.
    pub shared_port: Option<SharedPort>,
    /// The largest block in bytes.
    pub max_block: u64,
    /// The smallest block of a stream in bytes: datagrams carry a sequence number.
    pub min_stream_block: u64,
    /// Can open a connection for each transaction.
    pub reconnects: bool,
    /// Its receivers can delay reads while payload arrives quickly.
    pub delays_reads: bool,
    /// The kernel stamps the departure and the arrival of its packets.
    pub stamps: bool,
}

impl Capabilities {
    /// Capabilities of a stream socket between two hosts; the transports state how they differ.
    pub const STREAM: Self = Self {
        datagram: false,
        pollable: true,
        single_ended: false,
        shared_port: None,
        max_block: Spec::MAX_BLOCK,
        min_stream_block: 1,
        reconnects: false,
        delays_reads: false,
        stamps: false,
    };

    /// Whether it carries a stream of bytes between two ends.
    #[must_use]
    pub const fn is_stream_between_two(&self) -> bool {
        !self.datagram && !self.single_ended
    }
}

/// The agent's shared sockets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SharedPort {
    /// The TCP port.
    Tcp,
    /// The UDP port of the same number.
    Udp,
}
