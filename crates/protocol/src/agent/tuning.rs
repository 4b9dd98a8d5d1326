//! Settings of the host that a session has changed, within the agent's rules.

use std::time::Duration;

use model::{Change, Setting};
use text::{Text, say};

use super::action::{Action, NotTuned, Tuned};
use super::{Rules, Time};
use crate::message::{FromAgent, Obstacle};

/// How long a coordinator has to confirm that its connection survived a change.
const CONFIRM_LIMIT: Duration = Duration::from_secs(5);

/// What a session has changed.
#[derive(Debug, Default)]
pub(super) struct Tuning {
    /// Whether it has changes that are not reverted and do not stay.
    pub(super) changed: bool,
    /// Whether the changes of the last request are to stay.
    keep: bool,
    pub(super) unconfirmed: Option<Unconfirmed>,
    /// Changes that are being kept, with whether they were confirmed.
    keeping: Option<(Vec<Change>, bool)>,
}

/// Changes that wait for their confirmation.
#[derive(Debug)]
pub(super) struct Unconfirmed {
    mark: usize,
    changes: Vec<Change>,
    pub(super) until: Time,
}

/// Why a session may change nothing.
pub(super) fn not_allowed(rules: &Rules, joined: bool) -> Option<FromAgent> {
    let refused = |reason| FromAgent::Untuned { reason, obstacle: Obstacle::Refused };
    if joined {
        return Some(refused("this connection joined another one, which manages the settings of the host".into()));
    }
    (!rules.allows_tuning).then(|| {
        refused(say!("this agent changes no settings: start it with `thru serve --allow-tuning --token-file FILE`"))
    })
}

impl Tuning {
    pub(super) fn tune(&mut self, command: String, settings: Vec<Setting>, keep: bool, actions: &mut Vec<Action>) {
        self.keep = keep;
        actions.push(Action::Tune { command, settings });
    }

    /// Settings were changed. `confirms`: a change may cut the coordinator's connection.
    pub(super) fn tuned(
        &mut self,
        now: Time,
        result: Result<Tuned, NotTuned>,
        confirms: bool,
        actions: &mut Vec<Action>,
    ) {
        let Tuned { changes, mark, cuts } = match result {
            Ok(tuned) => tuned,
            Err(error) => return self.untuned(error, actions),
        };
        self.changed |= !changes.is_empty();
        if cuts && confirms {
            actions.push(send(FromAgent::Tuned { changes: changes.clone(), confirm: true }));
            self.unconfirmed = Some(Unconfirmed { mark, changes, until: now + CONFIRM_LIMIT });
        } else {
            self.settle(changes, false, actions);
        }
    }

    /// The coordinator's connection has survived a change.
    pub(super) fn confirm(&mut self, actions: &mut Vec<Action>) {
        if let Some(Unconfirmed { changes, .. }) = self.unconfirmed.take() {
            self.settle(changes, true, actions);
        }
    }

    /// A change that is in force stays until it is reverted, or for good.
    fn settle(&mut self, changes: Vec<Change>, confirmed: bool, actions: &mut Vec<Action>) {
        if self.keep {
            self.keeping = Some((changes, confirmed));
            actions.push(Action::KeepChanges);
        } else {
            actions.push(send(settled(changes, confirmed)));
        }
    }

    /// The changes stay for good.
    pub(super) fn kept(&mut self, result: Result<(), NotTuned>, actions: &mut Vec<Action>) {
        let Some((changes, confirmed)) = self.keeping.take() else { return };
        match result {
            Ok(()) => {
                self.changed = false;
                actions.push(send(settled(changes, confirmed)));
            }
            Err(error) => self.untuned(error, actions),
        }
    }

    /// Changes that were not confirmed are reverted.
    pub(super) fn undo(&mut self, actions: &mut Vec<Action>) {
        if let Some(Unconfirmed { mark, .. }) = self.unconfirmed.take() {
            self.changed = mark > 0;
            actions.push(Action::Undo { mark });
        }
    }

    fn untuned(&mut self, NotTuned { reason, obstacle, lost }: NotTuned, actions: &mut Vec<Action>) {
        self.changed &= !lost;
        actions.push(send(FromAgent::Untuned { reason, obstacle }));
    }
}

/// What a coordinator is told whose change was reverted.
pub(super) fn not_confirmed() -> FromAgent {
    let seconds = CONFIRM_LIMIT.as_secs();
    let reason: Text = say!(
        "the change was reverted because it was not confirmed within {seconds} s: it may have cut the control connection"
    );
    FromAgent::Untuned { reason, obstacle: Obstacle::Host }
}

fn settled(changes: Vec<Change>, confirmed: bool) -> FromAgent {
    if confirmed { FromAgent::Kept } else { FromAgent::Tuned { changes, confirm: false } }
}

fn send(message: FromAgent) -> Action {
    Action::Send(Box::new(message))
}
