//! The path to a peer, probed before it is loaded: route, path MTU, round trips, hops.
//!
//! A probe takes about a quarter of a second on a short path, and some seconds on a long or slow one and where large packets vanish. It
//! sends ten echoes, one packet of the size of the interface's MTU after the other, and up to ninety small datagrams with increasing hop
//! limits, all of them no faster than the path takes them ([`pace`]).

mod echo;
mod error;
mod hops;
mod mtu;
mod pace;
mod ping;
mod route;

use std::net::SocketAddr;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use model::Path;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use self::error::ProbeError;
use self::pace::Pace;
use self::ping::Pinger;
use crate::sys::Sys;

/// Least time for the hops, which come last, on a short path.
const HOPS_LIMIT: Duration = Duration::from_millis(250);

/// Probes the path from this host, in this network namespace, to `peer`, whose port is of no importance. `round_trip` is what is known of
/// it, or zero. What cannot be determined is null, and named with its reason and remedy in [`Path::missing`].
#[must_use]
pub fn probe_path(sys: &dyn Sys, peer: SocketAddr, round_trip: Duration) -> Path {
    let begun = Instant::now();
    let (address, peer) = (peer, peer.ip());
    let mut path = Path { peer: peer.to_string(), ..Path::default() };
    let mut missing = Vec::new();
    path.route = route::to(sys, address).map_err(|source| missing.push(ProbeError::Route { peer, source })).ok();
    let first = path.route.as_ref().and_then(|route| route.interface_mtu);
    let mut pace = Pace::new(begun, round_trip);
    let mut pinger = Pinger::open(address);
    pinger.first(&mut pace);
    let found = mtu::find(address, first, &mut pace);
    let (pinged, walked) = std::thread::scope(|scope| {
        let ping = scope.spawn(|| pinger.rest(&pace));
        let until = pace.until().max(Instant::now() + HOPS_LIMIT + 4 * pace.round_trip());
        let walked = hops::walk(address, &pace, until);
        (ping.join().unwrap_or(Err(ProbeError::EchoThread)), walked)
    });
    path.ping = pinged.map_err(|error| missing.push(error)).ok();
    path.mtu = found.map_err(|error| missing.push(error)).ok();
    let walk = walked.map_err(|error| missing.push(error)).ok();
    missing.extend(walk.as_ref().filter(|walk| !walk.reached).map(|_| ProbeError::LastHop { peer }));
    path.hops = walk.map(|walk| walk.hops);
    path.missing = missing.iter().map(ToString::to_string).collect();
    path.took_ns = begun.elapsed().as_nanos() as u64;
    path
}

/// Waits until a socket has data or an ICMP error; returns whether it has one before `until`.
fn ready(socket: impl AsFd, until: Instant) -> bool {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() {
        return false;
    }
    let mut watched = [PollFd::new(&socket, PollFlags::IN)];
    let Ok(left) = Timespec::try_from(left) else { return false };
    // ICMP errors show as POLLERR, which need not be requested.
    poll(&mut watched, Some(&left)).is_ok_and(|count| count > 0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::RealSys;

    #[test]
    fn loopback_is_one_hop_away_with_the_mtu_of_its_interface() {
        for peer in ["127.0.0.1", "::1"] {
            let peer: std::net::IpAddr = peer.parse().unwrap();
            let path = probe_path(&RealSys, SocketAddr::new(peer, 0), Duration::ZERO);
            let route = path.route.unwrap();
            assert_eq!((route.interface.as_deref(), route.kind.as_deref()), (Some("lo"), Some("local")), "{peer}");
            assert_eq!(route.source, Some(peer.to_string()));
            let mtu = path.mtu.unwrap();
            assert_eq!(mtu.bytes, route.interface_mtu.unwrap().min(65_535), "{peer} by {}", mtu.method);
            assert!(mtu.confirmed, "{mtu:?}");
            let hops = path.hops.unwrap();
            assert_eq!(hops.len(), 1, "{hops:?}");
            assert_eq!((hops[0].hop, hops[0].address.clone()), (1, Some(peer.to_string())));
            if let Some(ping) = path.ping {
                assert_eq!(ping.received, ping.sent);
                assert!(ping.min_ns.unwrap() > 0 && ping.min_ns <= ping.median_ns && ping.median_ns <= ping.max_ns);
            } else {
                assert!(path.missing.iter().any(|what| what.contains("ping_group_range")), "{:?}", path.missing);
            }
        }
    }
}
