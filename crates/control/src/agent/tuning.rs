//! Settings of this host that a coordinator may change, under the agent's rules.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use host::tune::{self, Allowance, Fault, Journal, RealBackend, TuneError, Tuner, Which};
use model::{Change, Setting};

use super::session::{Over, Session};
use crate::proto::message::{FromAgent, Obstacle, ToAgent};

/// How long a coordinator has to confirm that its connection outlived a change.
const CONFIRM_LIMIT: Duration = Duration::from_secs(5);

/// What an agent lets coordinators do to its host's settings.
#[derive(Debug, Clone)]
pub struct Tuning {
    /// Whether they may change any.
    pub allowed: bool,
    /// Which they may read and, if so, change.
    pub allowance: Allowance,
    /// The journal's directory, where it is not the usual one.
    pub journal: Option<PathBuf>,
    /// How long after a coordinator was lost its settings are put back.
    pub grace: Duration,
}

/// Puts back what killed owners of this host have left; a line for each session.
///
/// # Errors
/// The journal cannot be read.
pub fn recover(journal: &Journal) -> Result<Vec<String>, TuneError> {
    let found = tune::recover(journal, &RealBackend)?;
    Ok(found
        .iter()
        .map(|found| format!("put back what '{}' left: {}", found.command, reported(&found.changes)))
        .collect())
}

/// Changes as one line for people.
#[must_use]
pub fn reported(changes: &[Change]) -> String {
    let one = |change: &Change| match &change.note {
        Some(note) => format!("{} is {} ({note})", change.key, change.now),
        None => format!("{} is {}", change.key, change.now),
    };
    changes.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// An answer that says why nothing was done.
fn untuned(error: &TuneError) -> FromAgent {
    let obstacle = match error.fault() {
        Fault::Wrong => Obstacle::Wrong,
        Fault::Refused => Obstacle::Refused,
        Fault::Busy => Obstacle::Busy,
        Fault::Host => Obstacle::Host,
    };
    FromAgent::Untuned { reason: error.to_string(), obstacle }
}

impl Session {
    /// Answers a message about settings.
    pub(super) async fn settings(&mut self, message: ToAgent) -> Result<(), Over> {
        let answer = match message {
            ToAgent::Tune { settings, keep } => return self.tune(settings, keep).await,
            ToAgent::Untune => {
                let changes = self.put_back().await;
                FromAgent::Tuned { changes, confirm: false }
            }
            ToAgent::Show { keys } => {
                let allowance = self.allowance();
                let shown = aside(move || tune::show(&RealBackend, &keys, &allowance)).await;
                shown.map_or_else(|error| untuned(&error), |settings| FromAgent::Shown { settings })
            }
            ToAgent::Journal => {
                let (journal, allowance) = (self.shared.options.tuning.journal.clone(), self.allowance());
                let entries = aside(move || tune::entries(&Journal::open(journal.as_deref())?, &allowance)).await;
                entries.map_or_else(|error| untuned(&error), |entries| FromAgent::Journal { entries })
            }
            ToAgent::Revert { id, all, force } => match self.not_allowed() {
                Some(refusal) => refusal,
                None => {
                    let (journal, allowance) = (self.shared.options.tuning.journal.clone(), self.allowance());
                    let which = match (id, all) {
                        (Some(id), _) => Which::One(id),
                        (None, true) => Which::All,
                        (None, false) => Which::Here,
                    };
                    let done = aside(move || {
                        tune::revert(&Journal::open(journal.as_deref())?, &RealBackend, &which, force, &allowance)
                    });
                    done.await.map_or_else(|error| untuned(&error), |sessions| FromAgent::Reverted { sessions })
                }
            },
            // A confirmation that came too late, or that nobody waits for.
            _ => return Ok(()),
        };
        self.wire.send(&answer).await
    }

    fn allowance(&self) -> Allowance {
        self.shared.options.tuning.allowance.clone()
    }

    fn not_allowed(&self) -> Option<FromAgent> {
        (!self.shared.options.tuning.allowed).then(|| FromAgent::Untuned {
            reason: "this agent changes no settings: start it with `thru serve --allow-tuning --token-file FILE`"
                .into(),
            obstacle: Obstacle::Refused,
        })
    }

    async fn tune(&mut self, settings: Vec<Setting>, keep: bool) -> Result<(), Over> {
        if let Some(refusal) = self.not_allowed() {
            return self.wire.send(&refusal).await;
        }
        let tuner = match self.tuner.take() {
            Some(tuner) => Ok(tuner),
            None => self.new_tuner().await,
        };
        let mut tuner = match tuner {
            Ok(tuner) => tuner,
            Err(error) => return self.wire.send(&untuned(&error)).await,
        };
        let (tuner, mark, changed, cuts) = aside(move || {
            let (mark, cuts) = (tuner.mark(), tuner.cuts(&settings));
            let changed = tuner.tune(&settings);
            (tuner, mark, changed, cuts)
        })
        .await;
        self.tuner = Some(tuner);
        let changes = match changed {
            Ok(changes) => changes,
            Err(error) => return self.wire.send(&untuned(&error)).await,
        };
        self.shared.log(&format!("{}: set: {}", self.peer, reported(&changes)));
        // Within one process nothing can be cut.
        let confirm = cuts && self.addresses.here.is_some();
        if confirm && !self.confirmed(mark, &changes).await? {
            return Ok(());
        }
        if keep && let Some(tuner) = &mut self.tuner {
            if let Err(error) = tuner.keep() {
                return self.wire.send(&untuned(&error)).await;
            }
            self.tuner = None;
        }
        self.wire.send(&if confirm { FromAgent::Kept } else { FromAgent::Tuned { changes, confirm: false } }).await
    }

    /// Whether the coordinator says in time that it still hears us. If it does not, what was changed since `mark` is put back.
    async fn confirmed(&mut self, mark: usize, changes: &[Change]) -> Result<bool, Over> {
        self.wire.send(&FromAgent::Tuned { changes: changes.to_vec(), confirm: true }).await?;
        let confirmation = async {
            loop {
                match self.wire.recv().await {
                    Ok(ToAgent::Keep) => return Ok(()),
                    Ok(ToAgent::Ping) => {}
                    Ok(_) => return Err("spoke out of turn while a change waited for its confirmation".to_owned()),
                    Err(over) => return Err(over),
                }
            }
        };
        let heard = tokio::time::timeout(CONFIRM_LIMIT, confirmation).await;
        if matches!(heard, Ok(Ok(()))) {
            return Ok(true);
        }
        if let Some(mut tuner) = self.tuner.take() {
            let (tuner, back) = aside(move || {
                let back = tuner.revert_to(mark);
                (tuner, back)
            })
            .await;
            self.tuner = Some(tuner);
            self.shared.log(&format!("{}: not confirmed, put back: {}", self.peer, reported(&back)));
        }
        if let Ok(Err(over)) = heard {
            return Err(over);
        }
        let reason = format!("it was not confirmed within {} s, so it was put back", CONFIRM_LIMIT.as_secs());
        self.wire.send(&FromAgent::Untuned { reason, obstacle: Obstacle::Host }).await?;
        Ok(false)
    }

    /// A tuner, once what others have left is back.
    async fn new_tuner(&self) -> Result<Tuner, TuneError> {
        let journal = self.shared.options.tuning.journal.clone();
        let (command, allowance) = (format!("{} ({})", self.purpose, self.peer), self.allowance());
        let (tuner, log) = aside(move || {
            let journal = Journal::open(journal.as_deref())?;
            let log = recover(&journal)?;
            Ok((Tuner::new(Arc::new(RealBackend), journal, command, Duration::ZERO).within(allowance), log))
        })
        .await?;
        log.iter().for_each(|line| self.shared.log(line));
        Ok(tuner)
    }

    /// Puts back what this session has changed.
    pub(super) async fn put_back(&mut self) -> Vec<Change> {
        let Some(mut tuner) = self.tuner.take() else { return Vec::new() };
        let back = aside(move || tuner.revert()).await;
        if !back.is_empty() {
            self.shared.log(&format!("{}: put back: {}", self.peer, reported(&back)));
        }
        back
    }

    /// Puts back what a coordinator that was lost has changed, some time later.
    pub(super) async fn put_back_after_grace(&mut self) {
        if self.tuner.as_ref().is_some_and(|tuner| tuner.mark() > 0) {
            tokio::time::sleep(self.shared.options.tuning.grace).await;
        }
        self.put_back().await;
    }
}

/// Does what waits for disks and programs beside the connection, whose pings go on.
async fn aside<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}
