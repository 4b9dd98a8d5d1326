//! Changes settings, holds them for a time, and restores them.

use std::sync::Arc;
use std::time::Duration;

use command::signals::CaughtSignals;
use command::{Failure, setup};
use control::ControlError;
use control::coordinator::AgentEnd;
use host::tune::{RealBackend, TuneFault, Tuner};
use model::{Change, Setting, SettingNow};
use protocol::coordinator::DialogueError;
use protocol::message::Obstacle;
use tokio::time::{Instant, sleep, sleep_until};

use super::place::TuningPlace;

/// Interval between two attempts to change a setting that another session holds.
const RETRY_INTERVAL: Duration = Duration::from_millis(200);

/// A request to change settings. If one cannot be changed, none is.
#[derive(Debug)]
pub struct TuneRequest {
    /// The settings.
    pub settings: Vec<Setting>,
    /// How long they are held. Without it they are kept on this host, and held until a signal on another one.
    pub duration: Option<Duration>,
    /// Whether another host keeps them.
    pub keep: bool,
    /// How long to wait for a setting that another session holds.
    pub wait: Duration,
}

/// What became of a request.
#[derive(Debug)]
pub struct Changed {
    /// The changes.
    pub changes: Vec<Change>,
    /// Whether they last.
    pub ending: Lasting,
}

/// Whether changes last.
#[derive(Debug)]
pub enum Lasting {
    /// They are kept; on this host with the ID of the journal's entry, if anything was changed.
    Kept(Option<String>),
    /// They have been restored, with these values.
    Restored(Vec<Change>),
}

impl TuneRequest {
    /// What would change. Another host is only asked for the present values.
    ///
    /// # Errors
    /// A setting is wrong or cannot be changed; the host is not reached, or does not show one of them.
    pub fn preview(&self, place: &TuningPlace<'_>) -> Result<Vec<Change>, Failure> {
        if place.host.is_some() {
            let planned = |(now, setting): (SettingNow, &Setting)| Change {
                key: now.key,
                before: now.value.clone(),
                requested: setting.value.clone(),
                now: now.value,
                host_wide: now.host_wide,
                note: None,
            };
            let present = self.present(place, "preview of tune set")?;
            return Ok(present.into_iter().zip(&self.settings).map(planned).collect());
        }
        let tuner =
            Tuner::new(Arc::new(RealBackend), place.journal()?, setup::command_line().join(" "), Duration::ZERO);
        Ok(tuner.preview(&self.settings)?)
    }

    /// The present values of the settings at another host; `purpose` is shown in its queue.
    ///
    /// # Errors
    /// The host is not reached, or does not show one of them.
    fn present(&self, place: &TuningPlace<'_>, purpose: &str) -> Result<Vec<SettingNow>, Failure> {
        let keys: Vec<String> = self.settings.iter().map(|setting| setting.key.clone()).collect();
        place.show(&keys, purpose)
    }

    /// Changes the settings, and restores them after their time or at a signal unless they are kept. `held` gets the changes
    /// before the time begins.
    ///
    /// # Errors
    /// A setting is wrong, cannot be changed or is held by another session for too long; the host is not reached or lost.
    pub fn make(&self, place: &TuningPlace<'_>, held: impl Fn(&[Change])) -> Result<Changed, Failure> {
        // From here on no signal ends this process in the middle of a change.
        let mut signals = CaughtSignals::catch()?;
        match place.host {
            None => self.on_this_host(place, &mut signals, held),
            Some(host) => setup::runtime()?.block_on(async {
                let mut end = tokio::select! {
                    reached = place.reach(host, "tune set") => reached?,
                    _ = signals.next() => return Err(DialogueError::Interrupted.into()),
                };
                let changed = self.at_agent(&mut end, &mut signals, held).await;
                end.release().await;
                changed
            }),
        }
    }

    fn on_this_host(
        &self,
        place: &TuningPlace<'_>,
        signals: &mut CaughtSignals,
        held: impl Fn(&[Change]),
    ) -> Result<Changed, Failure> {
        let journal = place.recovered_journal()?;
        let mut tuner = Tuner::new(Arc::new(RealBackend), journal, setup::command_line().join(" "), Duration::ZERO);
        let runtime = setup::runtime()?;
        let changes = runtime.block_on(self.change_when_free(signals, async || {
            // Preview first: if another session holds one of them, none is changed.
            let changed = tuner.preview(&self.settings).and_then(|_| tuner.tune(&self.settings));
            let busy = changed.as_ref().is_err_and(|error| error.fault() == TuneFault::Busy);
            (changed.map_err(Failure::from), busy)
        }))?;
        let Some(duration) = self.duration else {
            return Ok(Changed { changes, ending: Lasting::Kept(tuner.keep()?) });
        };
        held(&changes);
        runtime.block_on(async {
            tokio::select! {
                () = sleep(duration) => {}
                _ = signals.next() => {}
            }
        });
        Ok(Changed { changes, ending: Lasting::Restored(tuner.revert()) })
    }

    async fn at_agent(
        &self,
        end: &mut AgentEnd,
        signals: &mut CaughtSignals,
        held: impl Fn(&[Change]),
    ) -> Result<Changed, Failure> {
        let change = async || {
            let changed = if self.keep {
                end.talk(async |end| end.tune_and_keep(&self.settings).await).await
            } else {
                end.talk(async |end| end.tune(&self.settings).await).await
            };
            let busy =
                matches!(changed, Err(ControlError::Dialogue(DialogueError::Tune { obstacle: Obstacle::Busy, .. })));
            (changed.map_err(Failure::from), busy)
        };
        let changes = self.change_when_free(signals, change).await?;
        if self.keep {
            return Ok(Changed { changes, ending: Lasting::Kept(None) });
        }
        held(&changes);
        let end_of_time = self.duration.map(|duration| Instant::now() + duration);
        let time = async {
            match end_of_time {
                Some(time) => sleep_until(time).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = time => {}
            _ = signals.next() => {}
            lost = end.talk(async |end| Err::<(), _>(end.lost_contact().await)) => lost?,
        }
        Ok(Changed { changes, ending: Lasting::Restored(end.talk(async |end| end.untune().await).await?) })
    }

    /// Repeats a change while another session holds a setting, until it succeeds, the wait is over or a signal comes. `change`
    /// also returns whether a setting is held.
    async fn change_when_free(
        &self,
        signals: &mut CaughtSignals,
        mut change: impl AsyncFnMut() -> (Result<Vec<Change>, Failure>, bool),
    ) -> Result<Vec<Change>, Failure> {
        let deadline = Instant::now() + self.wait;
        loop {
            let (changed, busy) = change().await;
            if !busy || Instant::now() >= deadline {
                return changed;
            }
            tokio::select! {
                () = sleep(RETRY_INTERVAL) => {}
                _ = signals.next() => return Err(DialogueError::Interrupted.into()),
            }
        }
    }
}
