//! Settings of the two hosts, as the coordinator orders them.

use model::{CellSettings, Change, HostSettings, JournalEntry, Reverted, RunSettings, Setting, SettingNow, Spec};

use super::{End, Pair};
use crate::ControlError;
use crate::proto::message::{FromAgent, Obstacle, ToAgent};

impl End {
    /// Changes settings of its host, in the given order, until [`untune`](Self::untune) or the end of this connection; the machine
    /// must have been acquired. All of them are changed, or none.
    ///
    /// # Errors
    /// [`ControlError::Tune`] says what stood in the way; a change that cut the connection is put back by the agent.
    pub async fn tune(&mut self, settings: &[Setting]) -> Result<Vec<Change>, ControlError> {
        self.tuned(&ToAgent::Tune { settings: settings.to_vec(), keep: false }).await
    }

    /// As [`tune`](Self::tune), but for good: until they are reverted by hand.
    ///
    /// # Errors
    /// As [`tune`](Self::tune).
    pub async fn tune_and_keep(&mut self, settings: &[Setting]) -> Result<Vec<Change>, ControlError> {
        self.tuned(&ToAgent::Tune { settings: settings.to_vec(), keep: true }).await
    }

    /// Puts back what this connection has changed; a value that somebody else has changed since is left, with a note.
    ///
    /// # Errors
    /// As [`tune`](Self::tune).
    pub async fn untune(&mut self) -> Result<Vec<Change>, ControlError> {
        self.applied.clear();
        self.changed.clear();
        self.tuned(&ToAgent::Untune).await
    }

    /// Makes `wanted` what this connection has set there: puts back what it had set before, if that was something else.
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

    /// Settings of its host: those that keys and patterns name, or the usual ones.
    ///
    /// # Errors
    /// As [`tune`](Self::tune).
    pub async fn show(&mut self, keys: &[String]) -> Result<Vec<SettingNow>, ControlError> {
        match self.answer(&ToAgent::Show { keys: keys.to_vec() }).await? {
            FromAgent::Shown { settings } => Ok(settings),
            other => Err(self.surprise(&other)),
        }
    }

    /// What was changed on its host and is not back.
    ///
    /// # Errors
    /// As [`tune`](Self::tune).
    pub async fn journal(&mut self) -> Result<Vec<JournalEntry>, ControlError> {
        match self.answer(&ToAgent::Journal).await? {
            FromAgent::Journal { entries } => Ok(entries),
            other => Err(self.surprise(&other)),
        }
    }

    /// Puts back what others have left there or kept: one entry of its journal, those of all network namespaces, or those of its
    /// own.
    ///
    /// # Errors
    /// As [`tune`](Self::tune).
    pub async fn revert(&mut self, id: Option<String>, all: bool, force: bool) -> Result<Vec<Reverted>, ControlError> {
        match self.answer(&ToAgent::Revert { id, all, force }).await? {
            FromAgent::Reverted { sessions } => Ok(sessions),
            other => Err(self.surprise(&other)),
        }
    }

    /// Ends when the agent is lost, and says how; until then it takes the agent's signs of life.
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
                other => Err(self.surprise(&other)),
            },
            other => Err(self.surprise(&other)),
        }
    }

    /// The answer to a message about settings.
    async fn answer(&mut self, message: &ToAgent) -> Result<FromAgent, ControlError> {
        if !self.capabilities.iter().any(|name| name == "tune") {
            let reason = format!("thru {} knows no settings: update it there", self.version);
            return Err(self.untuned(reason, Obstacle::Refused));
        }
        self.send(message).await?;
        loop {
            match self.recv("while it changed settings").await? {
                FromAgent::Untuned { reason, obstacle } => return Err(self.untuned(reason, obstacle)),
                answer @ (FromAgent::Tuned { .. }
                | FromAgent::Kept
                | FromAgent::Shown { .. }
                | FromAgent::Journal { .. }
                | FromAgent::Reverted { .. }) => return Ok(answer),
                // What is left of a trial that was given up.
                _ => {}
            }
        }
    }

    fn untuned(&self, reason: String, obstacle: Obstacle) -> ControlError {
        ControlError::Tune { address: self.name.clone(), reason, obstacle }
    }

    fn surprise(&self, answer: &FromAgent) -> ControlError {
        self.untuned(format!("it answered something else: {answer:?}"), Obstacle::Host)
    }
}

impl Pair {
    /// Makes `settings` what is set at both ends.
    ///
    /// # Errors
    /// As [`End::tune`]; settings that contradict each other where both ends share them, or settings of a far end that is not there.
    pub async fn apply(&mut self, settings: &HostSettings) -> Result<(), ControlError> {
        let wrong =
            |address: &str, reason| ControlError::Tune { address: address.into(), reason, obstacle: Obstacle::Wrong };
        let shared = self.far.as_ref().is_none_or(|far| self.near.shares_settings(far));
        let mut for_far = settings.far.clone();
        if shared {
            // What both ends share is set once.
            let contradicted =
                |far: &&Setting| settings.near.iter().any(|near| near.key == far.key && near.value != far.value);
            if let Some(setting) = for_far.iter().find(contradicted) {
                let reason = format!("{} is to be two things at once: both ends share it", setting.key);
                return Err(wrong("this host", reason));
            }
            for_far.retain(|far| !settings.near.contains(far));
        }
        if self.far.is_none() && !for_far.is_empty() {
            let reason = "this transport has one end only: write near:KEY=VALUE".into();
            return Err(wrong("far end", reason));
        }
        self.near.apply(&settings.near).await?;
        match &mut self.far {
            Some(far) => far.apply(&for_far).await,
            None => Ok(()),
        }
    }

    /// Applies the settings of all specs one after the other and leaves the first's: a mistake in the last is found before the first
    /// trial. What was changed, where anything was.
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

    /// What is changed at both ends now.
    fn changed(&self, cell: u32) -> CellSettings {
        let far = self.far.as_ref().map_or_else(Vec::new, |far| far.changed.clone());
        CellSettings { cell, near: self.near.changed.clone(), far }
    }

    /// Puts back what was set at both ends. What was not put back, each with the end's name.
    pub async fn put_back(&mut self) -> Vec<String> {
        let mut said = Vec::new();
        for end in std::iter::once(&mut self.near).chain(self.far.as_mut()) {
            if end.applied.is_empty() {
                continue;
            }
            match end.untune().await {
                Ok(changes) => {
                    let noted = changes.iter().filter_map(|change| Some((change, change.note.as_ref()?)));
                    said.extend(noted.map(|(change, note)| format!("{}: {}: {note}", end.name, change.key)));
                }
                Err(error) => said.push(format!("{error}; the agent there puts its settings back itself")),
            }
        }
        said
    }
}

impl End {
    /// Whether another end is in the same network namespace of the same host.
    fn shares_settings(&self, other: &Self) -> bool {
        let known = self.namespace.is_some() && self.inventory.boot_id.is_some();
        known && self.namespace == other.namespace && self.inventory.boot_id == other.inventory.boot_id
    }
}
