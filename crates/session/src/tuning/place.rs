//! Whose settings: those of this host, with its journal, or those of an agent's host.

use std::path::Path;

use command::{Failure, setup};
use control::coordinator::{AgentEnd, Target};
use control::helper::recover;
use host::tune::{self, Allowance, Journal, RealBackend, TuneError, Which};
use model::{Family, JournalEntry, Reverted, SettingNow};
use protocol::coordinator::{DialogueError, End};
use protocol::message::Obstacle;

/// A host whose settings are shown or changed.
#[derive(Clone, Copy)]
pub struct TuningPlace<'a> {
    /// The agent's host; `None` is this one.
    pub host: Option<&'a str>,
    /// The folder of this host's journal; `None` is the default one.
    pub journal: Option<&'a Path>,
    /// File with the token of the agent.
    pub token_file: Option<&'a Path>,
    /// Gets each line that must be seen.
    pub note: &'a dyn Fn(&str),
}

impl TuningPlace<'_> {
    /// The settings that match keys and patterns; without any, the usual ones. `purpose` is shown in the queue of another host.
    ///
    /// # Errors
    /// A key is unknown, or the host is not reached.
    pub fn show(&self, keys: &[String], purpose: &str) -> Result<Vec<SettingNow>, Failure> {
        match self.host {
            None => Ok(tune::show(&RealBackend, keys, &Allowance::All)?),
            Some(host) => self.at(host, purpose, async |end| end.show(keys).await),
        }
    }

    /// Which of the settings the host has, in order.
    ///
    /// # Errors
    /// The host is not reached, or does not show one of them.
    pub(super) fn has(&self, keys: &[String], purpose: &str) -> Result<Vec<bool>, Failure> {
        let Some(host) = self.host else {
            let shown = |key| match tune::show(&RealBackend, std::slice::from_ref(key), &Allowance::All) {
                Ok(_) => Ok(true),
                Err(TuneError::Unknown { .. }) => Ok(false),
                Err(other) => Err(other.into()),
            };
            return keys.iter().map(shown).collect();
        };
        self.at(host, purpose, async |end| {
            let mut known = Vec::new();
            for key in keys {
                known.push(match end.show(std::slice::from_ref(key)).await {
                    Ok(_) => true,
                    Err(DialogueError::Tune { obstacle: Obstacle::Wrong, .. }) => false,
                    Err(other) => return Err(other),
                });
            }
            Ok(known)
        })
    }

    /// The changes that are not restored yet.
    ///
    /// # Errors
    /// The journal cannot be read, or the host is not reached.
    pub fn entries(&self) -> Result<Vec<JournalEntry>, Failure> {
        match self.host {
            None => Ok(tune::entries(&self.journal()?, &Allowance::All)?),
            Some(host) => self.at(host, "tune journal", async |end| end.journal().await),
        }
    }

    /// Restores an entry of the journal, `all` of them, or those of this network namespace. With `force`, values that somebody
    /// else has changed since, too.
    ///
    /// # Errors
    /// The journal cannot be read, there is no such entry, or the host is not reached.
    pub fn revert(&self, which: Option<&str>, force: bool) -> Result<Vec<Reverted>, Failure> {
        let Some(host) = self.host else {
            let which = match which {
                None => Which::Here,
                Some("all") => Which::All,
                Some(id) => Which::One(id.to_owned()),
            };
            return Ok(tune::revert(&self.journal()?, &RealBackend, &which, force, &Allowance::All)?);
        };
        let id = which.filter(|which| *which != "all").map(str::to_owned);
        self.at(host, "tune revert", async |end| end.revert(id, which == Some("all"), force).await)
    }

    /// The journal of this host, as it is.
    pub(super) fn journal(&self) -> Result<Journal, Failure> {
        Ok(Journal::open(self.journal)?)
    }

    /// The journal of this host, after what a killed owner left is restored.
    pub(super) fn recovered_journal(&self) -> Result<Journal, Failure> {
        let journal = self.journal()?;
        recover(&journal)?.iter().for_each(|line| (self.note)(line));
        Ok(journal)
    }

    /// Connects to an agent, waits for its machine, and does `work` with it.
    fn at<T>(
        &self,
        host: &str,
        purpose: &str,
        work: impl AsyncFnOnce(&mut End) -> Result<T, DialogueError>,
    ) -> Result<T, Failure> {
        setup::runtime()?.block_on(async {
            let mut end = self.reach(host, purpose).await?;
            let result = end.talk(work).await;
            end.release().await;
            Ok(result?)
        })
    }

    /// Connects to an agent and waits for its machine.
    pub(super) async fn reach(&self, host: &str, purpose: &str) -> Result<AgentEnd, Failure> {
        let access = setup::access(self.token_file)?;
        let mut end = AgentEnd::connect(Target::Remote { host, access: &access, family: Family::Any }).await?;
        end.facts.note.iter().for_each(|line| (self.note)(line));
        let queued = |ahead| (self.note)(&format!("{host} is busy: {ahead} ahead in the queue"));
        end.talk(async |end| end.acquire(purpose, queued).await).await?;
        Ok(end)
    }
}
