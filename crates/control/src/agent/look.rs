//! A look at the host and its path before anything is measured, and the host's clocks.

use std::net::IpAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use host::{RealSys, Sys, TrafficLook};
use tokio::task::JoinHandle;

use crate::proto::message::{FromAgent, Looked};

/// A look under way, on a thread of its own.
pub(super) struct Look(JoinHandle<Looked>);

impl Look {
    /// Looks at the traffic first and only then sends packets of its own.
    pub(super) fn start(peer: Option<IpAddr>) -> Self {
        Self(tokio::task::spawn_blocking(move || {
            let sys = RealSys;
            let look = TrafficLook::start(&sys);
            std::thread::sleep(Duration::from_nanos(look.left_ns(&sys)));
            let traffic = look.finish(&sys);
            Looked { path: peer.map(|peer| host::look_at(&sys, peer)), traffic }
        }))
    }

    /// What it saw; nothing if its thread ended early. Dropping the future loses nothing.
    pub(super) async fn seen(&mut self) -> Looked {
        (&mut self.0).await.unwrap_or_default()
    }
}

/// Both clocks of this host, one right after the other.
pub(super) fn clocks() -> FromAgent {
    let realtime = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    FromAgent::Clock { realtime_ns: realtime.as_nanos() as u64, monotonic_ns: RealSys.now_ns() }
}
