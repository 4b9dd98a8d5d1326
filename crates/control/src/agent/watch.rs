//! How this host does, told to a coordinator that does not measure.

use std::sync::Arc;
use std::time::Duration;

use host::{Live, RealSys};
use tokio::time::{Instant, MissedTickBehavior, interval_at};

use crate::proto::message::{FromAgent, ToAgent};
use crate::wire::Wire;

/// The shortest distance of two answers: reading takes its time, and others measure here.
const LEAST: Duration = Duration::from_millis(100);

/// Answers until the coordinator has seen enough; an error says why the session is over.
pub(crate) async fn serve(wire: &mut Wire<FromAgent, ToAgent>, interval_ns: u64) -> Result<(), String> {
    let every = Duration::from_nanos(interval_ns).max(LEAST);
    let mut live = Live::start(Arc::new(RealSys));
    let mut due = interval_at(Instant::now() + every, every);
    due.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = due.tick() => wire.send(&FromAgent::Watched(Box::new(live.read()))).await?,
            message = wire.recv() => match message? {
                ToAgent::Ping => {}
                ToAgent::Release => return Ok(()),
                _ => return Err("spoke out of turn while it watched".into()),
            },
        }
    }
}
