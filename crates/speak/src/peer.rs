//! The supported programs.

/// A supported program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Peer {
    /// Its name in options and messages.
    pub name: &'static str,
    /// The default port of its server: TCP, except for stamp.
    pub port: u16,
}

/// All of them. A new protocol needs a module and a line here.
pub const PEERS: &[Peer] = &[
    crate::iperf2::PEER,
    crate::iperf3::PEER,
    crate::netperf::PEER,
    crate::netpipe::PEER,
    crate::nttcp::PEER,
    crate::nuttcp::PEER,
    crate::stamp::PEER,
];

/// The program called `name`.
#[must_use]
pub fn peer(name: &str) -> Option<&'static Peer> {
    PEERS.iter().find(|peer| peer.name == name)
}
