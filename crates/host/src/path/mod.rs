//! The path to a peer, probed before it is loaded: route, path MTU, round trips, hops.
//!
//! A probe takes about a quarter of a second on a short path and at most about a second on any. It sends ten echoes, a
//! few datagrams of the size of the interface's MTU, and ninety small ones with increasing hop limits.

mod echo;
mod hops;
mod mtu;
mod ping;
mod route;

use std::net::IpAddr;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use model::Path;
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::sys::Sys;

/// Time limit of a probe, from its start.
const LIMIT: Duration = Duration::from_millis(1_000);
/// Part of it for the search of the path MTU; hops come after it.
const MTU_LIMIT: Duration = Duration::from_millis(450);

/// Probes the path from this host, in this network namespace, to `peer`. What cannot be determined is null, and named
/// with its reason and remedy in [`Path::missing`].
#[must_use]
pub fn probe_path(sys: &dyn Sys, peer: IpAddr) -> Path {
    let begun = Instant::now();
    let mut path = Path { peer: peer.to_string(), ..Path::default() };
    match route::to(sys, peer) {
        Ok(route) => path.route = Some(route),
        Err(error) => path.missing.push(format!("route: rtnetlink reports none to {peer}: {error}")),
    }
    let first = path.route.as_ref().and_then(|route| route.interface_mtu);
    let (pinged, (found, walked)) = std::thread::scope(|scope| {
        let ping = scope.spawn(|| ping::ping(peer, begun + LIMIT));
        let found = mtu::find(peer, first, begun + MTU_LIMIT);
        let walked = hops::walk(peer, begun + LIMIT);
        (ping.join().unwrap_or_else(|_| Err("ping: its thread ended early".into())), (found, walked))
    });
    match pinged {
        Ok(ping) => path.ping = Some(ping),
        Err(reason) => path.missing.push(reason),
    }
    match found {
        Ok(mtu) => path.mtu = Some(mtu),
        Err(reason) => path.missing.push(reason),
    }
    match walked {
        Ok(walk) => {
            path.missing.extend(
                (!walk.reached).then(|| {
                    format!("last hop: {peer} did not answer UDP to closed ports in time: a firewall drops it")
                }),
            );
            path.hops = Some(walk.hops);
        }
        Err(reason) => path.missing.push(reason),
    }
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
            let peer: IpAddr = peer.parse().unwrap();
            let path = probe_path(&RealSys, peer);
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
