//! Why a part of the path is not known.

use std::io;
use std::net::IpAddr;

/// What could not be found out about the path, and why.
#[derive(Debug, thiserror::Error)]
pub(super) enum ProbeError {
    /// The kernel has no route.
    #[error("route: the kernel has none to {peer}: {source}")]
    Route {
        /// Where it should lead.
        peer: IpAddr,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The kernel gives no socket for the packets that find the path MTU.
    #[error("path MTU: cannot open a UDP socket: {0}")]
    MtuSocket(#[source] io::Error),
    /// The peer answers no packet, and the kernel does not know the path MTU.
    #[error("path MTU: {peer} answers neither echoes nor UDP, and the kernel has no value: {source}")]
    Mtu {
        /// The peer.
        peer: IpAddr,
        /// The kernel's answer.
        source: io::Error,
    },
    /// Neither this process nor the program ping can send echoes.
    #[error(
        "ping: neither thru ({0}) nor the program ping can open an ICMP socket: widen \
            net.ipv4.ping_group_range, or give thru CAP_NET_RAW (setcap cap_net_raw+ep)"
    )]
    EchoSocket(#[source] io::Error),
    /// The kernel sends no echo.
    #[error("ping: cannot send echoes to {peer}: {source}")]
    Echo {
        /// The peer.
        peer: IpAddr,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The thread that sends the echoes panicked.
    #[error("ping: its thread ended early")]
    EchoThread,
    /// The kernel sends no datagram with a hop limit.
    #[error("hops: cannot send probes: {0}")]
    Hops(#[from] io::Error),
    /// No router answers.
    #[error("hops: no router on the path to {peer} answered in time; a firewall may drop ICMP")]
    NoHop {
        /// The peer.
        peer: IpAddr,
    },
    /// Routers answer, and the peer does not.
    #[error("last hop: {peer} did not answer UDP to closed ports in time: a firewall drops it")]
    LastHop {
        /// The peer.
        peer: IpAddr,
    },
}
