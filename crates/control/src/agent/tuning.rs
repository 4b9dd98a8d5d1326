//! Settings of this host that a coordinator may change, within the agent's limits.

use std::time::Duration;

use model::{Change, Setting};
use text::{Said, say};

use super::session::Session;
use super::session_end::{HelperLost, SessionEnd};
use crate::helper::{Answer, Client, Request, changes_line};
use crate::proto::message::{FromAgent, Obstacle, ToAgent};

/// How long a coordinator has to confirm that its connection survived a change.
const CONFIRM_LIMIT: Duration = Duration::from_secs(5);

/// Whether and how an agent lets coordinators change settings of the host.
#[derive(Debug, Clone)]
pub struct Tuning {
    /// Whether they may change settings.
    pub allowed: bool,
    /// How long after the loss of a coordinator its settings are reverted.
    pub grace: Duration,
}

/// The answer of an agent to a request that its helper refused.
fn untuned(answer: Answer) -> FromAgent {
    match answer {
        Answer::Refused { reason, obstacle } => FromAgent::Untuned { reason, obstacle },
        _ => FromAgent::Untuned { reason: "the helper sent an unexpected answer".into(), obstacle: Obstacle::Host },
    }
}

impl Session {
    /// Asks the helper, with which the session begins a session of its own at the first request.
    pub(super) async fn ask(&mut self, request: &Request) -> Answer {
        if let Some(lost) = self.lost_helper() {
            (self.helper, self.changed) = (None, false);
            return Answer::host(lost.say());
        }
        if self.helper.is_none() {
            match Client::connect(&self.shared.options.helper).await {
                Ok(client) => self.helper = Some(client),
                Err(error) => {
                    return Answer::host(format!("cannot reach the agent's helper: {error}; restart the agent"));
                }
            }
        }
        match &mut self.helper {
            Some(helper) => helper.ask(request).await,
            None => unreachable!("it was just made"),
        }
    }

    /// Whether the session's changes of the host are lost: the helper that made them was killed.
    pub(super) fn lost_helper(&mut self) -> Option<HelperLost> {
        self.helper.as_mut().is_some_and(Client::has_ended).then_some(HelperLost)
    }

    /// Ends the session, because its settings are put back.
    pub(super) async fn settings_are_lost(&mut self) -> SessionEnd {
        (self.helper, self.changed) = (None, false);
        self.refuse(HelperLost).await
    }

    /// Answers a message about settings.
    pub(super) async fn settings(&mut self, message: ToAgent) -> Result<(), SessionEnd> {
        let answer = match message {
            ToAgent::Tune { settings, keep } => return self.tune(settings, keep).await,
            ToAgent::Untune => FromAgent::Tuned { changes: self.revert().await, confirm: false },
            ToAgent::Show { keys } => match self.ask(&Request::Show { keys }).await {
                Answer::Shown { settings } => FromAgent::Shown { settings },
                other => untuned(other),
            },
            ToAgent::Journal => match self.ask(&Request::Journal).await {
                Answer::Journal { entries } => FromAgent::Journal { entries },
                other => untuned(other),
            },
            ToAgent::Revert { id, all, force } => match self.not_allowed() {
                Some(refusal) => refusal,
                None => match self.ask(&Request::RevertLeft { id, all, force }).await {
                    Answer::Left { sessions } => FromAgent::Reverted { sessions },
                    other => untuned(other),
                },
            },
            // A confirmation that is late or was not expected.
            _ => return Ok(()),
        };
        Ok(self.wire.send(&answer).await?)
    }

    fn not_allowed(&self) -> Option<FromAgent> {
        if self.joined {
            let reason = "this connection joined another one, which manages the settings of the host".into();
            return Some(FromAgent::Untuned { reason, obstacle: Obstacle::Refused });
        }
        (!self.shared.options.tuning.allowed).then(|| FromAgent::Untuned {
            reason: say!("this agent changes no settings: start it with `thru serve --allow-tuning --token-file FILE`"),
            obstacle: Obstacle::Refused,
        })
    }

    async fn tune(&mut self, settings: Vec<Setting>, keep: bool) -> Result<(), SessionEnd> {
        if let Some(refusal) = self.not_allowed() {
            return Ok(self.wire.send(&refusal).await?);
        }
        let command = format!("{} ({})", self.purpose, self.peer);
        let (changes, mark, cuts) = match self.ask(&Request::Tune { command, settings }).await {
            Answer::Tuned { changes, mark, cuts, recovered } => {
                recovered.into_iter().for_each(|line| self.shared.log(&line.into()));
                (changes, mark, cuts)
            }
            other => return Ok(self.wire.send(&untuned(other)).await?),
        };
        self.changed |= !changes.is_empty();
        self.shared.log(&say!("{}: set: {}", self.peer, changes_line(&changes)));
        // A coordinator in this process cannot lose its connection.
        let confirm = cuts && self.addresses.here.is_some();
        if confirm && !self.confirmed(mark, &changes).await? {
            return Ok(());
        }
        if keep {
            match self.ask(&Request::Keep).await {
                Answer::Kept => self.changed = false,
                other => return Ok(self.wire.send(&untuned(other)).await?),
            }
        }
        let answer = if confirm { FromAgent::Kept } else { FromAgent::Tuned { changes, confirm: false } };
        Ok(self.wire.send(&answer).await?)
    }

    /// Whether the coordinator confirms in time that its connection survived. Otherwise the changes since `mark` are reverted.
    async fn confirmed(&mut self, mark: usize, changes: &[Change]) -> Result<bool, SessionEnd> {
        self.wire.send(&FromAgent::Tuned { changes: changes.to_vec(), confirm: true }).await?;
        let confirmation = async {
            loop {
                match self.wire.recv().await? {
                    ToAgent::Keep => return Ok(()),
                    ToAgent::Ping => {}
                    _ => return Err(SessionEnd::OutOfOrder { during: "before the confirmation of a change" }),
                }
            }
        };
        let confirmed = tokio::time::timeout(CONFIRM_LIMIT, confirmation).await;
        if matches!(confirmed, Ok(Ok(()))) {
            return Ok(true);
        }
        if let Answer::Reverted { changes } = self.ask(&Request::Undo { mark }).await {
            self.changed = mark > 0;
            self.shared.log(&say!("{}: not confirmed, reverted: {}", self.peer, changes_line(&changes)));
        }
        if let Ok(Err(over)) = confirmed {
            return Err(over);
        }
        let reason = say!(
            "the change was reverted because it was not confirmed within {} s: it may have cut the control connection",
            CONFIRM_LIMIT.as_secs()
        );
        self.wire.send(&FromAgent::Untuned { reason, obstacle: Obstacle::Host }).await?;
        Ok(false)
    }

    /// Reverts this session's changes.
    async fn revert(&mut self) -> Vec<Change> {
        self.put_back(&Request::Revert).await
    }

    /// Reverts this session's changes and unloads its stacks.
    pub(super) async fn end_helper(&mut self) {
        self.put_back(&Request::End).await;
        self.helper = None;
    }

    async fn put_back(&mut self, request: &Request) -> Vec<Change> {
        self.changed = false;
        let Some(helper) = &mut self.helper else { return Vec::new() };
        let changes = match helper.ask(request).await {
            Answer::Reverted { changes } => changes,
            Answer::Refused { reason, .. } => {
                self.shared.log(&say!("{}: not reverted: {reason}", self.peer));
                Vec::new()
            }
            _ => Vec::new(),
        };
        if !changes.is_empty() {
            self.shared.log(&say!("{}: reverted: {}", self.peer, changes_line(&changes)));
        }
        changes
    }

    /// Waits for the grace period if a lost coordinator has changed settings, then reverts them.
    pub(super) async fn revert_after_grace(&mut self) {
        if self.changed {
            tokio::time::sleep(self.shared.options.tuning.grace).await;
        }
        self.revert().await;
    }
}
