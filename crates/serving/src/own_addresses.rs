//! The addresses of this host, for the people who connect to it.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};

use host::sys::{RealSys, Sys};
use protocol::DEFAULT_PORT;

/// The addresses at which other hosts may reach an agent that listens there, as they write them. Those of interfaces with a default
/// route come first, and IPv4 before IPv6.
pub(crate) fn reachable(listening: &[SocketAddr]) -> Vec<String> {
    let port = listening.first().map_or(DEFAULT_PORT, SocketAddr::port);
    let own = RealSys.addresses().unwrap_or_default();
    let is_local = |ip: &IpAddr| match ip {
        IpAddr::V4(v4) => v4.is_link_local(),
        IpAddr::V6(v6) => v6.is_unicast_link_local(),
    };
    let at = |ip: IpAddr| match (ip, port) {
        (_, DEFAULT_PORT) => ip.to_string(),
        (ip, port) => SocketAddr::new(ip, port).to_string(),
    };
    let covers = |ip: &IpAddr| {
        listening.iter().any(|own| own.ip() == *ip || own.ip().is_unspecified() && own.is_ipv4() == ip.is_ipv4())
    };
    let mut found: Vec<IpAddr> = own.iter().map(|own| own.address).filter(|ip| covers(ip) && !is_local(ip)).collect();
    // Loopback is what a host without a network has.
    found.sort_by_key(|ip| (ip.is_loopback(), !is_preferred(ip), ip.is_ipv6()));
    if found.iter().any(|ip| !ip.is_loopback()) {
        found.retain(|ip| !ip.is_loopback());
    }
    found.into_iter().map(at).collect()
}

/// Whether packets to other networks leave from this address. Nothing is sent.
fn is_preferred(ip: &IpAddr) -> bool {
    // Addresses for documentation (RFC 5737, RFC 3849), which only the default route leads to.
    let (any, elsewhere): (IpAddr, SocketAddr) = match ip {
        IpAddr::V4(_) => (Ipv4Addr::UNSPECIFIED.into(), ([192, 0, 2, 1], 9).into()),
        IpAddr::V6(_) => (Ipv6Addr::UNSPECIFIED.into(), ([0x2001, 0xdb8, 0, 0, 0, 0, 0, 1], 9).into()),
    };
    let source = UdpSocket::bind((any, 0)).and_then(|socket| {
        socket.connect(elsewhere)?;
        socket.local_addr()
    });
    source.is_ok_and(|source| source.ip() == *ip)
}
