//! Repeated reports of this host to a coordinator that does not measure.

use std::sync::Arc;
use std::time::Duration;

use host::{Live, RealSys};
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use crate::proto::message::{FromAgent, ToAgent};
use crate::wire::Wire;

/// Shortest interval of the reports: reading the counters takes time, and others may measure here.
const MIN_INTERVAL: Duration = Duration::from_millis(100);

/// Sends reports until the coordinator sends `release`; an error ends the session.
pub(crate) async fn serve(wire: &mut Wire<FromAgent, ToAgent>, interval_ns: u64) -> Result<(), String> {
    let every = Duration::from_nanos(interval_ns).max(MIN_INTERVAL);
    let mut live = Live::start(Arc::new(RealSys));
    let mut due = interval_at(Instant::now() + every, every);
    due.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = due.tick() => wire.send(&FromAgent::Watched(Box::new(live.read()))).await?,
            message = wire.recv() => match message? {
                ToAgent::Ping => {}
                ToAgent::Release => return Ok(()),
                _ => return Err("a message is out of order during `watch`".into()),
            },
        }
    }
}
