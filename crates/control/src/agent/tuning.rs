//! Settings of this host that a coordinator may change, within the agent's limits.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use host::tune::{self, Allowance, Fault, Journal, RealBackend, TuneError, Tuner, Which};
use model::{Change, Setting};

use super::session::{EndReason, Session};
use crate::proto::message::{FromAgent, Obstacle, ToAgent};

/// How long a coordinator has to confirm that its connection survived a change.
const CONFIRM_LIMIT: Duration = Duration::from_secs(5);

/// Which settings of the host an agent lets coordinators read and change.
#[derive(Debug, Clone)]
pub struct Tuning {
    /// Whether they may change settings.
    pub allowed: bool,
    /// The settings that they may read and, if allowed, change.
    pub allowance: Allowance,
    /// The journal's directory, if it is not the default one.
    pub journal: Option<PathBuf>,
    /// How long after the loss of a coordinator its settings are reverted.
    pub grace: Duration,
}

/// Reverts the settings that killed processes on this host have left; one line for each journal record.
///
/// # Errors
/// The journal cannot be read.
pub fn recover(journal: &Journal) -> Result<Vec<String>, TuneError> {
    let found = tune::recover(journal, &RealBackend)?;
    Ok(found
        .iter()
        .map(|found| format!("reverted the settings that '{}' left: {}", found.command, changes_line(&found.changes)))
        .collect())
}

/// Changes as one line of text.
#[must_use]
pub fn changes_line(changes: &[Change]) -> String {
    let one = |change: &Change| match &change.note {
        Some(note) => format!("{} is {} ({note})", change.key, change.now),
        None => format!("{} is {}", change.key, change.now),
    };
    changes.iter().map(one).collect::<Vec<_>>().join(", ")
}

/// The answer for a failed request.
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
    pub(super) async fn settings(&mut self, message: ToAgent) -> Result<(), EndReason> {
        let answer = match message {
            ToAgent::Tune { settings, keep } => return self.tune(settings, keep).await,
            ToAgent::Untune => {
                let changes = self.revert().await;
                FromAgent::Tuned { changes, confirm: false }
            }
            ToAgent::Show { keys } => {
                let allowance = self.allowance();
                let shown = blocking(move || tune::show(&RealBackend, &keys, &allowance)).await;
                shown.map_or_else(|error| untuned(&error), |settings| FromAgent::Shown { settings })
            }
            ToAgent::Journal => {
                let (journal, allowance) = (self.shared.options.tuning.journal.clone(), self.allowance());
                let entries = blocking(move || tune::entries(&Journal::open(journal.as_deref())?, &allowance)).await;
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
                    let done = blocking(move || {
                        tune::revert(&Journal::open(journal.as_deref())?, &RealBackend, &which, force, &allowance)
                    });
                    done.await.map_or_else(|error| untuned(&error), |sessions| FromAgent::Reverted { sessions })
                }
            },
            // A confirmation that is late or was not expected.
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

    async fn tune(&mut self, settings: Vec<Setting>, keep: bool) -> Result<(), EndReason> {
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
        let (tuner, mark, changed, cuts) = blocking(move || {
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
        self.shared.log(&format!("{}: set: {}", self.peer, changes_line(&changes)));
        // A coordinator in this process cannot lose its connection.
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

    /// Whether the coordinator confirms in time that its connection survived. Otherwise the changes since `mark` are reverted.
    async fn confirmed(&mut self, mark: usize, changes: &[Change]) -> Result<bool, EndReason> {
        self.wire.send(&FromAgent::Tuned { changes: changes.to_vec(), confirm: true }).await?;
        let confirmation = async {
            loop {
                match self.wire.recv().await {
                    Ok(ToAgent::Keep) => return Ok(()),
                    Ok(ToAgent::Ping) => {}
                    Ok(_) => return Err("a message is out of order before the confirmation of a change".to_owned()),
                    Err(over) => return Err(over),
                }
            }
        };
        let confirmed = tokio::time::timeout(CONFIRM_LIMIT, confirmation).await;
        if matches!(confirmed, Ok(Ok(()))) {
            return Ok(true);
        }
        if let Some(mut tuner) = self.tuner.take() {
            let (tuner, reverted) = blocking(move || {
                let reverted = tuner.revert_to(mark);
                (tuner, reverted)
            })
            .await;
            self.tuner = Some(tuner);
            self.shared.log(&format!("{}: not confirmed, reverted: {}", self.peer, changes_line(&reverted)));
        }
        if let Ok(Err(over)) = confirmed {
            return Err(over);
        }
        let reason = format!(
            "the change was reverted because it was not confirmed within {} s: it may have cut the control connection",
            CONFIRM_LIMIT.as_secs()
        );
        self.wire.send(&FromAgent::Untuned { reason, obstacle: Obstacle::Host }).await?;
        Ok(false)
    }

    /// A new tuner, after the settings that killed processes left were reverted.
    async fn new_tuner(&self) -> Result<Tuner, TuneError> {
        let journal = self.shared.options.tuning.journal.clone();
        let (command, allowance) = (format!("{} ({})", self.purpose, self.peer), self.allowance());
        let (tuner, log) = blocking(move || {
            let journal = Journal::open(journal.as_deref())?;
            let log = recover(&journal)?;
            Ok((Tuner::new(Arc::new(RealBackend), journal, command, Duration::ZERO).within(allowance), log))
        })
        .await?;
        log.iter().for_each(|line| self.shared.log(line));
        Ok(tuner)
    }

    /// Reverts this session's changes.
    pub(super) async fn revert(&mut self) -> Vec<Change> {
        let Some(mut tuner) = self.tuner.take() else { return Vec::new() };
        let reverted = blocking(move || tuner.revert()).await;
        if !reverted.is_empty() {
            self.shared.log(&format!("{}: reverted: {}", self.peer, changes_line(&reverted)));
        }
        reverted
    }

    /// Reverts the changes of a lost coordinator after the grace period.
    pub(super) async fn revert_after_grace(&mut self) {
        if self.tuner.as_ref().is_some_and(|tuner| tuner.mark() > 0) {
            tokio::time::sleep(self.shared.options.tuning.grace).await;
        }
        self.revert().await;
    }
}

/// Runs blocking work on another thread, so that pings continue.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(result) => result,
        Err(error) => std::panic::resume_unwind(error.into_panic()),
    }
}
