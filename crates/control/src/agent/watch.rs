//! Repeated reports of this host to a coordinator that does not measure.

use std::sync::Arc;
use std::time::Duration;

use host::{HostReader, RealSys};
use tokio::time::{Instant, sleep_until};

use super::queue::Watcher;
use super::session_end::SessionEnd;
use crate::proto::message::{FromAgent, ToAgent};
use crate::wire::Wire;

/// Sends reports until the coordinator sends `release`; an error ends the session. They are `interval_ns` apart, or further if
/// `watcher` has a smaller share.
pub(crate) async fn serve(
    wire: &mut Wire<FromAgent, ToAgent>,
    interval_ns: u64,
    watcher: &Watcher,
) -> Result<(), SessionEnd> {
    let mut live = HostReader::start(Arc::new(RealSys));
    let mut last = Instant::now();
    loop {
        let every = Duration::from_nanos(interval_ns).max(watcher.interval());
        let due = last + every;
        tokio::select! {
            () = sleep_until(due) => {
                // Reports that were missed are not made up for.
                last = if due.elapsed() < every { due } else { Instant::now() };
                wire.send(&FromAgent::Watched(Box::new(live.read()))).await?;
            }
            message = wire.recv() => match message? {
                ToAgent::Ping => {}
                ToAgent::Release => return Ok(()),
                _ => return Err(SessionEnd::OutOfOrder { during: "during `watch`" }),
            },
        }
    }
}
