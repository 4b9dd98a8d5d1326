//! What this agent's end of trials measured stays here until the coordinator has stored it: one that dies before that, or whose disk is
//! full, finds it when it continues.

use tokio::task::spawn_blocking;

use super::session::{EndReason, Session};
use crate::proto::message::{Done, FromAgent, KeptResult, Prepare, ToAgent};

/// Longest result that is kept, bytes.
const MOST: usize = 4 << 20;
/// Longest name of a run, bytes: twice a digest.
const LONGEST_RUN: usize = 64;

/// Keeps results on a disk.
pub trait KeepResults: Send + Sync {
    /// Keeps the result of a run's trial with that number. It is on the disk when this returns.
    ///
    /// # Errors
    /// It cannot be written, with the reason.
    fn keep(&self, run: &str, trial: u32, result: &[u8]) -> Result<(), String>;

    /// The results of a run, the oldest first.
    ///
    /// # Errors
    /// They cannot be read, with the reason.
    fn of(&self, run: &str) -> Result<Vec<Vec<u8>>, String>;

    /// Removes the results of a run's trials with numbers below `below`.
    ///
    /// # Errors
    /// They cannot be removed, with the reason.
    fn forget(&self, run: &str, below: u32) -> Result<(), String>;
}

impl Session {
    /// Keeps a result, if its coordinator requests that and it is whole. Without a place for it, or if it cannot be written, the
    /// coordinator has the only one, as ever.
    pub(super) async fn keep_result(&self, prepare: &Prepare, done: &Done) {
        let Some((of, results)) = prepare.keep.as_ref().zip(self.shared.options.results.clone()) else { return };
        let whole = done.failure.is_none() && done.tallies.len() == prepare.legs.len();
        // The file of a capture is removed when the coordinator leaves.
        if !whole
            || of.run.len() > LONGEST_RUN
            || done.tallies.iter().any(|tally| tally.cut_short)
            || done.host.capture.is_some()
        {
            return;
        }
        let (of, trial) = (of.clone(), prepare.trial);
        let run = of.run.clone();
        let kept = KeptResult { of, trial, role: prepare.role, done: done.clone() };
        let Some(bytes) = serde_json::to_vec(&kept).ok().filter(|bytes| bytes.len() <= MOST) else { return };
        if let Err(reason) = blocking(move || results.keep(&run, trial, &bytes)).await {
            self.shared.log(&reason);
        }
    }

    /// Answers what a coordinator says of the results that are kept.
    pub(super) async fn results(&mut self, message: ToAgent) -> Result<(), EndReason> {
        let results = self.shared.options.results.clone();
        match (message, results) {
            (ToAgent::Results { run }, results) => {
                let found = match results {
                    Some(results) => blocking(move || results.of(&run)).await,
                    None => Ok(Vec::new()),
                };
                let found = found.unwrap_or_else(|reason| {
                    self.shared.log(&reason);
                    Vec::new()
                });
                // One that another version has written is not known to this one.
                let read = |bytes: Vec<u8>| model::json::read::<KeptResult>(str::from_utf8(&bytes).ok()?).ok();
                for kept in found.into_iter().filter_map(read) {
                    self.wire.send(&FromAgent::Result(Box::new(kept))).await?;
                }
                self.wire.send(&FromAgent::NoMoreResults).await?;
            }
            (ToAgent::Stored { run, below }, Some(results)) => {
                if let Err(reason) = blocking(move || results.forget(&run, below)).await {
                    self.shared.log(&reason);
                }
            }
            _ => {}
        }
        Ok(())
    }
}

/// Disks are waited for elsewhere: meanwhile this thread serves other connections.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> Result<T, String> + Send + 'static) -> Result<T, String> {
    spawn_blocking(work).await.unwrap_or_else(|error| Err(error.to_string()))
}
