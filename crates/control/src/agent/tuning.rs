//! Settings of this host that a coordinator changes: its helper does what [`protocol::agent`] decides.

use std::time::Duration;

use model::{Change, Setting};
use protocol::agent::{HelperLost, NotTuned, Tuned};
use protocol::message::{FromAgent, Obstacle, ToAgent};
use text::{Said, say};

use super::session::Session;
use crate::helper::{Answer, Client, Request, changes_line};

/// Whether and how an agent lets coordinators change settings of the host.
#[derive(Debug, Clone)]
pub struct Tuning {
    /// Whether they may change settings.
    pub allowed: bool,
    /// How long after the loss of a coordinator its settings are reverted.
    pub grace: Duration,
}

/// Why the helper did not do what it was asked for.
fn not_tuned(answer: Answer) -> NotTuned {
    match answer {
        Answer::Refused { reason, obstacle } => NotTuned { reason, obstacle, lost: false },
        _ => {
            let reason = "the helper sent an unexpected answer".into();
            NotTuned { reason, obstacle: Obstacle::Host, lost: false }
        }
    }
}

fn untuned(answer: Answer) -> FromAgent {
    let NotTuned { reason, obstacle, .. } = not_tuned(answer);
    FromAgent::Untuned { reason, obstacle }
}

impl Session {
    /// Asks the helper, with which the session begins a session of its own at the first request.
    pub(super) async fn ask(&mut self, request: &Request) -> Answer {
        if let Some(lost) = self.lost_helper() {
            self.helper = None;
            return Answer::host(lost.say());
        }
        let helper = match &mut self.helper {
            Some(helper) => helper,
            none => match Client::connect(&self.shared.options.helper).await {
                Ok(client) => none.insert(client),
                Err(error) => {
                    return Answer::host(format!("cannot reach the agent's helper: {error}; restart the agent"));
                }
            },
        };
        helper.ask(request).await
    }

    /// Whether the session's changes of the host are lost: the helper that made them was killed.
    pub(super) fn lost_helper(&mut self) -> Option<HelperLost> {
        self.helper.as_mut().is_some_and(Client::has_ended).then_some(HelperLost)
    }

    /// The answer to a message about settings that changes none, or none of this session's.
    pub(super) async fn settings(&mut self, message: ToAgent) -> Option<FromAgent> {
        Some(match message {
            ToAgent::Show { keys } => match self.ask(&Request::Show { keys }).await {
                Answer::Shown { settings } => FromAgent::Shown { settings },
                other => untuned(other),
            },
            ToAgent::Journal => match self.ask(&Request::Journal).await {
                Answer::Journal { entries } => FromAgent::Journal { entries },
                other => untuned(other),
            },
            ToAgent::Revert { id, all, force } => match self.ask(&Request::RevertLeft { id, all, force }).await {
                Answer::Left { sessions } => FromAgent::Reverted { sessions },
                other => untuned(other),
            },
            _ => return None,
        })
    }

    /// Changes settings.
    pub(super) async fn tune(&mut self, command: String, settings: Vec<Setting>) -> Result<Tuned, NotTuned> {
        let lost = self.lost_helper().is_some();
        match self.ask(&Request::Tune { command, settings }).await {
            Answer::Tuned { changes, mark, cuts, recovered } => {
                recovered.into_iter().for_each(|line| self.shared.log(&line.into()));
                self.shared.log(&say!("{}: set: {}", self.peer, changes_line(&changes)));
                Ok(Tuned { changes, mark, cuts })
            }
            other => Err(NotTuned { lost, ..not_tuned(other) }),
        }
    }

    /// Reverts the changes after the first `mark`: they were not confirmed.
    pub(super) async fn undo(&mut self, mark: usize) {
        if let Answer::Reverted { changes } = self.ask(&Request::Undo { mark }).await {
            self.shared.log(&say!("{}: not confirmed, reverted: {}", self.peer, changes_line(&changes)));
        }
    }

    /// Lets the session's changes stay.
    pub(super) async fn keep_changes(&mut self) -> Result<(), NotTuned> {
        match self.ask(&Request::Keep).await {
            Answer::Kept => Ok(()),
            other => Err(not_tuned(other)),
        }
    }

    /// Reverts this session's changes.
    pub(super) async fn revert(&mut self) -> Vec<Change> {
        self.put_back(&Request::Revert).await
    }

    /// Reverts this session's changes and unloads its stacks.
    pub(super) async fn end_helper(&mut self) {
        self.put_back(&Request::End).await;
        self.helper = None;
    }

    async fn put_back(&mut self, request: &Request) -> Vec<Change> {
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
}
