//! The supported programs.

use crate::peer::Peer;

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
