//! The path probe of an agent before a measurement, and the host's clocks.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use host::{RealSys, Sys, TrafficSample};
use model::Path;
use tokio::task::JoinHandle;

use protocol::message::{FromAgent, PathFacts};

/// The longest round trip that a probe waits for.
const MOST_ROUND_TRIP: Duration = Duration::from_secs(30);

/// What is to be probed besides this host's traffic.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Probed {
    /// Nothing: the coordinator has no address.
    Nothing,
    /// A host of the session.
    Host(SocketAddr),
    /// A host to which this agent sends nothing.
    Refused(IpAddr),
}

/// A running path probe, on its own thread.
pub(super) struct PathProbe(JoinHandle<PathFacts>);

impl PathProbe {
    /// Measures the traffic first and only then sends packets. `round_trip` is one of the path, as far as it is known.
    pub(super) fn start(to: Probed, round_trip: Duration) -> Self {
        Self(tokio::task::spawn_blocking(move || {
            let sys = RealSys;
            let probe = TrafficSample::start(&sys);
            std::thread::sleep(Duration::from_nanos(probe.left_ns(&sys)));
            let traffic = probe.finish(&sys);
            let path = match to {
                Probed::Nothing => None,
                Probed::Host(peer) => Some(host::probe_path(&sys, peer, round_trip.min(MOST_ROUND_TRIP))),
                Probed::Refused(peer) => Some(refusal(peer)),
            };
            PathFacts { path, traffic }
        }))
    }

    /// The result; empty if the thread failed. Dropping the future loses nothing.
    pub(super) async fn result(&mut self) -> PathFacts {
        (&mut self.0).await.unwrap_or_default()
    }
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
    fn a_refused_probe_says_what_is_missing() {
        assert!(refusal(IpAddr::from([192, 0, 2, 7])).missing[0].contains("reachability token"));
    }
}
