//! A look at the host and its path before anything is measured, and the host's clocks.

use std::net::{IpAddr, SocketAddr};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use host::{RealSys, Sys, TrafficSample};
use model::Path;
use tokio::task::JoinHandle;

use super::reach::{is_known, may_be_named};
use super::session::Addresses;
use crate::proto::message::{FromAgent, PathFacts, ReachabilityToken};

/// How long another agent may take to be reached, and to say that it knows a voucher.
const REACH_TOKEN_LIMIT: Duration = Duration::from_secs(2);

/// A look under way, on a thread of its own.
pub(super) struct PathProbe(JoinHandle<PathFacts>);

impl PathProbe {
    /// Looks at the traffic first and only then sends packets of its own, towards `requested` where that may be. `addresses` are
    /// those of the connection that the order came by.
    pub(super) fn start(
        requested: Option<IpAddr>,
        addresses: Addresses,
        reach_token: Option<ReachabilityToken>,
    ) -> Self {
        Self(tokio::task::spawn_blocking(move || {
            let sys = RealSys;
            let probe = TrafficSample::start(&sys);
            std::thread::sleep(Duration::from_nanos(probe.left_ns(&sys)));
            let traffic = probe.finish(&sys);
            let path = requested.or(addresses.peer).map(|peer| {
                if may_look(peer, addresses, reach_token.as_ref()) {
                    host::probe_path(&sys, peer)
                } else {
                    refusal(peer)
                }
            });
            PathFacts { path, traffic }
        }))
    }

    /// What it saw; nothing if its thread ended early. Dropping the future loses nothing.
    pub(super) async fn seen(&mut self) -> PathFacts {
        (&mut self.0).await.unwrap_or_default()
    }
}

/// Whether packets may go to `peer` because a coordinator wants it: a host that is part of its session. These are the coordinator's
/// own, this one, and one whose agent knows the voucher, which only a coordinator has that this agent let in. An order from within
/// this process is the user's own.
fn may_look(peer: IpAddr, addresses: Addresses, reach_token: Option<&ReachabilityToken>) -> bool {
    let Some(coordinator) = addresses.peer else { return true };
    peer.to_canonical() == coordinator.to_canonical()
        || host::capture::is_own(peer)
        || reach_token.is_some_and(|reach_token| {
            may_be_named(peer, addresses.here) && is_known(SocketAddr::new(peer, 0), reach_token, REACH_TOKEN_LIMIT)
        })
}

fn refusal(peer: IpAddr) -> Path {
    let why =
        "path: an agent looks only at its coordinator and where an agent vouches for that address; none did".to_owned();
    Path { peer: peer.to_string(), missing: vec![why], ..Path::default() }
}

/// Both clocks of this host, one right after the other.
pub(super) fn clocks() -> FromAgent {
    let realtime = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    FromAgent::Clock { realtime_ns: realtime.as_nanos() as u64, monotonic_ns: RealSys.now_ns() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_hosts_of_the_session_are_looked_at() {
        let (elsewhere, coordinator) = (IpAddr::from([192, 0, 2, 7]), IpAddr::from([198, 51, 100, 3]));
        let mapped: IpAddr = "::ffff:198.51.100.3".parse().unwrap();
        for (peer, from, may) in [
            (elsewhere, None, true),
            (elsewhere, Some(coordinator), false),
            (coordinator, Some(mapped), true),
            (IpAddr::from([127, 0, 0, 1]), Some(coordinator), true),
        ] {
            assert_eq!(may_look(peer, Addresses { here: None, peer: from }, None), may, "{peer} for {from:?}");
        }
        assert!(refusal(elsewhere).missing[0].contains("vouches"));
    }
}
