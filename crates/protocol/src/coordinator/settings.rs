//! Settings of hosts, changed by the coordinator.

use model::{CellSettings, Change, HostSettings, JournalEntry, Reverted, RunSettings, Setting, SettingNow, Spec};
use text::{Text, say};

use super::bounds::one_line;
use super::end::End;
use super::error::DialogueError;
use super::fleet::Fleet;
use super::pair::Pair;
use crate::message::{FromAgent, Obstacle, ToAgent};

impl End {
    /// Changes settings of its host, in the given order, until [`untune`](Self::untune) or the end of this connection. The machine
    /// must have been acquired. Either all settings are changed, or none.
    ///
    /// # Errors
    /// [`DialogueError::Tune`] with the reason. The agent reverts a change that cut the connection.
    pub async fn tune(&self, settings: &[Setting]) -> Result<Vec<Change>, DialogueError> {
        self.tuned(ToAgent::Tune { settings: settings.to_vec(), keep: false }).await
    }

    /// As [`tune`](Self::tune), but until the user reverts them.
    ///
    /// # Errors
    /// As [`tune`](Self::tune).
    pub async fn tune_and_keep(&self, settings: &[Setting]) -> Result<Vec<Change>, DialogueError> {
        self.tuned(ToAgent::Tune { settings: settings.to_vec(), keep: true }).await
    }

    /// Reverts this connection's changes. A value that has changed since is left, with a note.
    ///
    /// # Errors
    /// As [`tune`](Self::tune).
    pub async fn untune(&mut self) -> Result<Vec<Change>, DialogueError> {
        self.applied.clear();
        self.changed.clear();
        self.tuned(ToAgent::Untune).await
    }

    /// Sets `wanted` there, after reverting other settings that this connection has changed before.
    ///
    /// # Errors
    /// As [`tune`](Self::tune).
    pub async fn apply(&mut self, wanted: &[Setting]) -> Result<(), DialogueError> {
        if self.applied == wanted {
            return Ok(());
        }
        if !self.applied.is_empty() {
            self.untune().await?;
        }
        if !wanted.is_empty() {
            self.changed = self.tune(wanted).await?;
        }
        self.applied = wanted.to_vec();
        Ok(())
    }

    /// Settings of its host: those that match the keys and patterns, or the default selection.
    ///
    /// # Errors
    /// As [`tune`](Self::tune).
    pub async fn show(&self, keys: &[String]) -> Result<Vec<SettingNow>, DialogueError> {
        match self.about_settings(ToAgent::Show { keys: keys.to_vec() }).await? {
            FromAgent::Shown { settings } => Ok(settings),
            other => Err(self.unexpected_answer(&other)),
        }
    }

    /// Changes on its host that are not reverted yet.
    ///
    /// # Errors
    /// As [`tune`](Self::tune).
    pub async fn journal(&self) -> Result<Vec<JournalEntry>, DialogueError> {
        match self.about_settings(ToAgent::Journal).await? {
            FromAgent::Journal { entries } => Ok(entries),
            other => Err(self.unexpected_answer(&other)),
        }
    }

    /// Reverts settings that earlier sessions left or kept there: one record of its journal, the records of all network
    /// namespaces, or those of the agent's own.
    ///
    /// # Errors
    /// As [`tune`](Self::tune).
    pub async fn revert(&self, id: Option<String>, all: bool, force: bool) -> Result<Vec<Reverted>, DialogueError> {
        match self.about_settings(ToAgent::Revert { id, all, force }).await? {
            FromAgent::Reverted { sessions } => Ok(sessions),
            other => Err(self.unexpected_answer(&other)),
        }
    }

    async fn tuned(&self, order: ToAgent) -> Result<Vec<Change>, DialogueError> {
        match self.about_settings(order).await? {
            FromAgent::Tuned { changes, confirm: false } => Ok(changes),
            FromAgent::Tuned { changes, confirm: true } => match self.about_settings(ToAgent::Keep).await? {
                FromAgent::Kept => Ok(changes),
                other => Err(self.unexpected_answer(&other)),
            },
            other => Err(self.unexpected_answer(&other)),
        }
    }

    /// The answer to a message about settings.
    async fn about_settings(&self, message: ToAgent) -> Result<FromAgent, DialogueError> {
        self.send(message);
        let answer = |message| match message {
            FromAgent::Untuned { reason, obstacle } => Some(Err(self.untuned(one_line(&reason), obstacle))),
            answer @ (FromAgent::Tuned { .. }
            | FromAgent::Kept
            | FromAgent::Shown { .. }
            | FromAgent::Journal { .. }
            | FromAgent::Reverted { .. }) => Some(Ok(answer)),
            _ => None,
        };
        self.answer("while it changed settings", answer).await?
    }

    fn untuned(&self, reason: impl Into<Text>, obstacle: Obstacle) -> DialogueError {
        DialogueError::Tune { address: self.name.clone(), reason: reason.into(), obstacle }
    }

    fn unexpected_answer(&self, answer: &FromAgent) -> DialogueError {
        self.untuned(format!("the agent sent an unexpected answer: {answer:?}"), Obstacle::Host)
    }

    /// Whether another end is in the same network namespace of the same host.
    fn shares_settings(&self, other: &Self) -> bool {
        self.namespace.is_some() && self.namespace == other.namespace
    }
}

impl Pair {
    /// Sets `settings` at both ends.
    ///
    /// # Errors
    /// As [`End::tune`]; contradicting settings of two ends that share them, or settings of a far end that does not exist.
    pub(super) async fn apply(&mut self, settings: &HostSettings) -> Result<(), DialogueError> {
        let wrong = |address: &str, reason: Text| DialogueError::Tune {
            address: address.into(),
            reason,
            obstacle: Obstacle::Wrong,
        };
        let shared = self.far.as_ref().is_none_or(|far| self.near.shares_settings(far));
        let mut for_far = settings.far.clone();
        if shared {
            // A setting that both ends share is changed once.
            let contradicted =
                |far: &&Setting| settings.near.iter().any(|near| near.key == far.key && near.value != far.value);
            if let Some(setting) = for_far.iter().find(contradicted) {
                let reason =
                    say!("{} has two different values, but both ends share this setting: use one value", setting.key);
                return Err(wrong("this host", reason));
            }
            for_far.retain(|far| !settings.near.contains(far));
        }
        if self.far.is_none() && !for_far.is_empty() {
            let reason = "this transport has no far end: write near:KEY=VALUE".into();
            return Err(wrong("far end", reason));
        }
        self.near.apply(&settings.near).await?;
        match &mut self.far {
            Some(far) => far.apply(&for_far).await,
            None => Ok(()),
        }
    }
}

impl Fleet {
    /// Applies the settings of all specs to the first two hosts, one after the other, then the first's again: an error in the last is
    /// found before the first trial. Returns the changes, if there were any.
    ///
    /// # Errors
    /// As [`End::tune`]; contradicting settings of two ends that share them, or settings of a far end that does not exist.
    pub async fn apply_all(&mut self, specs: &[Spec]) -> Result<Option<RunSettings>, DialogueError> {
        const BOTH: [usize; 2] = [0, 1];
        let Some(first) = specs.first() else { return Ok(None) };
        if specs.iter().all(|spec| spec.settings == first.settings) {
            self.tune(BOTH, false, &first.settings).await?;
            let [near, far] = BOTH.map(|host| self.changes(host));
            let any = !first.settings.is_empty();
            return Ok(any.then_some(RunSettings { near, far, cells: Vec::new() }));
        }
        let mut cells = Vec::new();
        for (spec, cell) in specs.iter().zip(0..) {
            self.tune(BOTH, false, &spec.settings).await?;
            let [near, far] = BOTH.map(|host| self.changes(host));
            cells.push(CellSettings { cell, near, far });
        }
        self.tune(BOTH, false, &first.settings).await?;
        Ok(Some(RunSettings { cells, ..RunSettings::default() }))
    }
}
