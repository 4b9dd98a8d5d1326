//! The path probe of an agent before a measurement, and the host's clocks.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use engine::transport::scoped;
use host::{RealSys, Sys, TrafficSample};
use model::Path;
use tokio::task::JoinHandle;

use super::addresses::{Addresses, OVER_BUS};
use super::reach::{Challenges, may_be_named};
use crate::proto::message::{FromAgent, PathFacts, ReachabilityToken};

/// Time limit for another agent to connect and to prove that it knows a reachability token.
const REACH_TOKEN_LIMIT: Duration = Duration::from_secs(2);

/// The longest round trip that a probe waits for.
const MOST_ROUND_TRIP: Duration = Duration::from_secs(30);

/// What is to be probed.
pub(super) struct Probed {
    /// The address; `None` for the one that the coordinator connects from.
    pub(super) peer: Option<IpAddr>,
    /// Those of the control connection.
    pub(super) addresses: Addresses,
    /// The token of the agent there.
    pub(super) reach_token: Option<ReachabilityToken>,
    /// A round trip of the path, as far as it is known.
    pub(super) round_trip: Duration,
    /// The interface of a link-local address.
    pub(super) scope: u32,
}

/// A running path probe, on its own thread.
pub(super) struct PathProbe(JoinHandle<PathFacts>);

impl PathProbe {
    /// Measures the traffic first and only then sends packets, if that is allowed.
    pub(super) fn start(challenges: Challenges, to: Probed) -> Self {
        Self(tokio::task::spawn_blocking(move || {
            let (sys, Probed { peer: requested, addresses, reach_token, round_trip, scope }) = (RealSys, to);
            let probe = TrafficSample::start(&sys);
            std::thread::sleep(Duration::from_nanos(probe.left_ns(&sys)));
            let traffic = probe.finish(&sys);
            let path = requested.or(addresses.peer).filter(|peer| *peer != OVER_BUS).map(|peer| {
                if may_probe(&challenges, peer, addresses, reach_token.as_ref()) {
                    host::probe_path(&sys, scoped(peer, 0, scope), round_trip.min(MOST_ROUND_TRIP))
                } else {
                    refusal(peer)
                }
            });
            PathFacts { path, traffic }
        }))
    }

    /// The result; empty if the thread failed. Dropping the future loses nothing.
    pub(super) async fn result(&mut self) -> PathFacts {
        (&mut self.0).await.unwrap_or_default()
    }
}

/// Whether this agent may send packets to `peer` on a coordinator's request. `peer` must be part of the session: the
/// coordinator's host, this host, or a host whose agent knows the reachability token. A coordinator in this process is the user
/// and may probe any host.
fn may_probe(
    challenges: &Challenges,
    peer: IpAddr,
    addresses: Addresses,
    reach_token: Option<&ReachabilityToken>,
) -> bool {
    let Some(coordinator) = addresses.peer else { return true };
    peer.to_canonical() == coordinator.to_canonical()
        || host::capture::is_own(peer)
        || reach_token.is_some_and(|reach_token| {
            let host = SocketAddr::new(peer, 0);
            may_be_named(peer, addresses.here) && challenges.is_known(coordinator, host, reach_token, REACH_TOKEN_LIMIT)
        })
}

fn refusal(peer: IpAddr) -> Path {
    let why =
        "path: no agent proved a reachability token at this address; an agent probes only its coordinator's host and \
               hosts whose agent proves one"
            .to_owned();
    Path { peer: peer.to_string(), missing: vec![why], ..Path::default() }
}

/// Both clocks of this host, read directly after each other.
pub(super) fn clocks() -> FromAgent {
    FromAgent::Clock { realtime_ns: engine::unix_ns(), monotonic_ns: RealSys.now_ns() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_hosts_of_the_session_are_probed() {
        let (elsewhere, coordinator) = (IpAddr::from([192, 0, 2, 7]), IpAddr::from([198, 51, 100, 3]));
        let mapped: IpAddr = "::ffff:198.51.100.3".parse().unwrap();
        for (peer, from, may) in [
            (elsewhere, None, true),
            (elsewhere, Some(coordinator), false),
            (coordinator, Some(mapped), true),
            (IpAddr::from([127, 0, 0, 1]), Some(coordinator), true),
        ] {
            let addresses = Addresses { peer: from, ..Addresses::default() };
            assert_eq!(may_probe(&Challenges::default(), peer, addresses, None), may, "{peer} for {from:?}");
        }
        assert!(refusal(elsewhere).missing[0].contains("reachability token"));
    }
}
