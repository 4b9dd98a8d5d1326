//! Settings of the two hosts, changed by the coordinator.

use model::{CellSettings, Change, HostSettings, JournalEntry, Reverted, RunSettings, Setting, SettingNow, Spec};
use text::{Text, say};

use super::bounds::one_line;
use super::{AgentEnd, Pair};
use crate::ControlError;
use protocol::message::{FromAgent, Obstacle, ToAgent};

impl AgentEnd {
    /// Changes settings of its host, in the given order, until [`untune`](Self::untune) or the end of this connection. The machine
    /// must have been acquired. Either all settings are changed, or none.
    ///
    /// # Errors
    /// [`ControlError::Tune`] with the reason. The agent reverts a change that cut the connection.
    pub async fn tune(&mut self, settings: &[Setting]) -> Result<Vec<Change>, ControlError> {
        self.tuned(&ToAgent::Tune { settings: settings.to_vec(), keep: false }).await
    }

    /// As [`tune`](Self::tune), but until the user reverts them.
    ///
    /// # Errors
    /// As [`tune`](Self::tune).
    pub async fn tune_and_keep(&mut self, settings: &[Setting]) -> Result<Vec<Change>, ControlError> {
        self.tuned(&ToAgent::Tune { settings: settings.to_vec(), keep: true }).await
    }

    /// Reverts this connection's changes. A value that has changed since is left, with a note.
    ///
    /// # Errors
    /// As [`tune`](Self::tune).
    pub async fn untune(&mut self) -> Result<Vec<Change>, ControlError> {
        self.applied.clear();
        self.changed.clear();
        self.tuned(&ToAgent::Untune).await
    }

    /// Sets `wanted` there, after reverting other settings that this connection has changed before.
    ///
    /// # Errors
    /// As [`tune`](Self::tune).
    pub async fn apply(&mut self, wanted: &[Setting]) -> Result<(), ControlError> {
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
    pub async fn show(&mut self, keys: &[String]) -> Result<Vec<SettingNow>, ControlError> {
        match self.answer(&ToAgent::Show { keys: keys.to_vec() }).await? {
            FromAgent::Shown { settings } => Ok(settings),
            other => Err(self.unexpected_answer(&other)),
        }
    }

    /// Changes on its host that are not reverted yet.
    ///
    /// # Errors
    /// As [`tune`](Self::tune).
    pub async fn journal(&mut self) -> Result<Vec<JournalEntry>, ControlError> {
        match self.answer(&ToAgent::Journal).await? {
            FromAgent::Journal { entries } => Ok(entries),
            other => Err(self.unexpected_answer(&other)),
        }
    }

    /// Reverts settings that earlier sessions left or kept there: one record of its journal, the records of all network
    /// namespaces, or those of the agent's own.
    ///
    /// # Errors
    /// As [`tune`](Self::tune).
    pub async fn revert(&mut self, id: Option<String>, all: bool, force: bool) -> Result<Vec<Reverted>, ControlError> {
        match self.answer(&ToAgent::Revert { id, all, force }).await? {
            FromAgent::Reverted { sessions } => Ok(sessions),
            other => Err(self.unexpected_answer(&other)),
        }
    }

    /// Waits until the connection to the agent is lost and returns the error. Reads the agent's pings meanwhile.
    pub async fn lost_contact(&mut self) -> ControlError {
        loop {
            if let Err(error) = self.recv("while its settings were held").await {
                return error;
            }
        }
    }

    async fn tuned(&mut self, order: &ToAgent) -> Result<Vec<Change>, ControlError> {
        match self.answer(order).await? {
            FromAgent::Tuned { changes, confirm: false } => Ok(changes),
            FromAgent::Tuned { changes, confirm: true } => match self.answer(&ToAgent::Keep).await? {
                FromAgent::Kept => Ok(changes),
                other => Err(self.unexpected_answer(&other)),
            },
            other => Err(self.unexpected_answer(&other)),
        }
    }

    /// The answer to a message about settings.
    async fn answer(&mut self, message: &ToAgent) -> Result<FromAgent, ControlError> {
        self.send(message).await?;
        loop {
            match self.recv("while it changed settings").await? {
                FromAgent::Untuned { reason, obstacle } => return Err(self.untuned(one_line(&reason), obstacle)),
                answer @ (FromAgent::Tuned { .. }
                | FromAgent::Kept
                | FromAgent::Shown { .. }
                | FromAgent::Journal { .. }
                | FromAgent::Reverted { .. }) => return Ok(answer),
                // A late message of an abandoned trial.
                _ => {}
            }
        }
    }

    fn untuned(&self, reason: impl Into<Text>, obstacle: Obstacle) -> ControlError {
        ControlError::Tune { address: self.name.clone(), reason: reason.into(), obstacle }
    }

    fn unexpected_answer(&self, answer: &FromAgent) -> ControlError {
        self.untuned(format!("the agent sent an unexpected answer: {answer:?}"), Obstacle::Host)
    }
}

impl Pair {
    /// Sets `settings` at both ends.
    ///
    /// # Errors
    /// As [`AgentEnd::tune`]; contradicting settings of two ends that share them, or settings of a far end that does not exist.
    pub async fn apply(&mut self, settings: &HostSettings) -> Result<(), ControlError> {
        let wrong = |address: &str, reason: Text| ControlError::Tune {
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

    /// Applies the settings of all specs one after the other, then the first's again: an error in the last is found before the
    /// first trial. Returns the changes, if there were any.
    ///
    /// # Errors
    /// As [`apply`](Self::apply).
    pub async fn apply_all(&mut self, specs: &[Spec]) -> Result<Option<RunSettings>, ControlError> {
        let Some(first) = specs.first() else { return Ok(None) };
        if specs.iter().all(|spec| spec.settings == first.settings) {
            self.apply(&first.settings).await?;
            let CellSettings { near, far, .. } = self.changed(0);
            let any = !first.settings.is_empty();
            return Ok(any.then_some(RunSettings { near, far, cells: Vec::new() }));
        }
        let mut cells = Vec::new();
        for (spec, cell) in specs.iter().zip(0..) {
            self.apply(&spec.settings).await?;
            cells.push(self.changed(cell));
        }
        self.apply(&first.settings).await?;
        Ok(Some(RunSettings { cells, ..RunSettings::default() }))
    }

    /// The current changes at both ends.
    fn changed(&self, cell: u32) -> CellSettings {
        let far = self.far.as_ref().map_or_else(Vec::new, |far| far.changed.clone());
        CellSettings { cell, near: self.near.changed.clone(), far }
    }

    /// Reverts the settings of both ends. Returns a line for each setting that was not reverted, with the end's name.
    pub async fn put_back(&mut self) -> Vec<Text> {
        let mut failures = Vec::new();
        for end in std::iter::once(&mut self.near).chain(self.far.as_mut()) {
            if end.applied.is_empty() {
                continue;
            }
            match end.untune().await {
                Ok(changes) => {
                    let noted = changes.iter().filter_map(|change| Some((change, change.note.as_ref()?)));
                    failures.extend(noted.map(|(change, note)| say!("{}: {}: {note}", end.name, change.key)));
                }
                Err(error) => failures.push(say!("{error}; the agent there reverts its settings itself")),
            }
        }
        failures
    }
}

impl AgentEnd {
    /// Whether another end is in the same network namespace of the same host.
    fn shares_settings(&self, other: &Self) -> bool {
        let known = self.namespace.is_some() && self.inventory.boot_id.is_some();
        known && self.namespace == other.namespace && self.inventory.boot_id == other.inventory.boot_id
    }
}
