//! What this agent's end of trials measured stays here until the coordinator has stored it: one that dies before that, or whose disk is
//! full, finds it when it continues.

use std::collections::HashMap;
use std::error::Error;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::sync::OwnedMutexGuard;
use tokio::task::{JoinError, spawn_blocking};
use tokio::time::timeout;

use super::session::Session;
use crate::connection_end::ConnectionEnd;
use crate::wire::SILENCE_LIMIT;
use model::EndResult;
use protocol::frame::encode;
use protocol::message::{FromAgent, KeptResult, Prepare};

/// Longest result that is kept, bytes.
const MOST: usize = 4 << 20;
/// Longest name of a run, bytes: twice a digest.
const LONGEST_RUN: usize = 64;

/// Keeps results on a disk.
pub trait KeepResults: Send + Sync {
    /// Keeps the result of a run's trial with that number. It is on the disk when this returns.
    ///
    /// # Errors
    /// It cannot be written.
    fn keep(&self, run: &str, trial: u32, result: &[u8]) -> Result<(), KeptResultsError>;

    /// The oldest result of a run after the one with that number, with its own number; 0 is before the first one.
    ///
    /// # Errors
    /// It cannot be read.
    fn after(&self, run: &str, number: i64) -> Result<Option<(i64, Vec<u8>)>, KeptResultsError>;

    /// Removes the results of a run's trials with numbers below `below`.
    ///
    /// # Errors
    /// They cannot be removed.
    fn forget(&self, run: &str, below: u32) -> Result<(), KeptResultsError>;
}

/// Kept results cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeptResultsError {
    /// By an error of the disk, or of what keeps them there.
    #[error(transparent)]
    Storage(Box<dyn Error + Send + Sync>),
    /// The thread that waits for the disk panicked.
    #[error(transparent)]
    Thread(#[from] JoinError),
}

impl KeptResultsError {
    /// An error of the disk, or of what keeps results there.
    pub fn storage(error: impl Error + Send + Sync + 'static) -> Self {
        Self::Storage(Box::new(error))
    }
}

impl Session {
    /// Keeps a result, if its coordinator requests that and it is whole. Without a place for it, or if it cannot be written, the
    /// coordinator has the only one, as ever.
    pub(super) async fn keep_result(&mut self, prepare: &Prepare, done: &EndResult) {
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
        if let Err(error) = blocking(move || results.keep(&run, trial, &bytes)).await {
            self.shared.log(&error.to_string().into());
        }
    }

    /// Sends the results of a run that are kept.
    pub(super) async fn results(&mut self, run: String) -> Result<(), ConnectionEnd> {
        let unread = match self.shared.options.results.clone() {
            Some(results) => self.send_results(&results, &run).await?,
            None => None,
        };
        let unread = unread.map(|error| error.to_string().into());
        if let Some(reason) = &unread {
            self.log(reason);
        }
        self.send(&FromAgent::NoMoreResults { unread }).await
    }

    /// Forgets the results of a run's trials below this number: its coordinator has stored them.
    pub(super) async fn forget_results(&mut self, run: String, below: u32) {
        let Some(results) = self.shared.options.results.clone() else { return };
        if let Err(error) = blocking(move || results.forget(&run, below)).await {
            self.log(&error.to_string().into());
        }
    }

    /// Sends the results of a run one by one, each when there is room for it. An address gets those of one request at a time. Returns
    /// why the rest cannot be read, if it cannot.
    async fn send_results(
        &mut self,
        results: &Arc<dyn KeepResults>,
        run: &str,
    ) -> Result<Option<KeptResultsError>, ConnectionEnd> {
        let _turn = self.shared.results_turns.next(self.source()).await;
        let mut last = 0;
        loop {
            let (results, run) = (results.clone(), run.to_owned());
            let NextResult { number, frame } = match blocking(move || result_after(&*results, &run, last)).await {
                Ok(Some(next)) => next,
                Ok(None) => return Ok(None),
                Err(error) => return Ok(Some(error)),
            };
            last = number;
            if let Some(frame) = frame {
                let sent = timeout(SILENCE_LIMIT, self.wire.send_frame(frame)).await;
                sent.map_err(|_| ConnectionEnd::Unread { waited: SILENCE_LIMIT })??;
            }
        }
    }
}

/// A result that is sent next.
struct NextResult {
    number: i64,
    /// Its message; none for one of another version, which this one does not know.
    frame: Option<Vec<u8>>,
}

fn result_after(results: &dyn KeepResults, run: &str, last: i64) -> Result<Option<NextResult>, KeptResultsError> {
    let Some((number, bytes)) = results.after(run, last)? else { return Ok(None) };
    let kept = str::from_utf8(&bytes).ok().and_then(|text| serde_json::from_str::<KeptResult>(text).ok());
    let frame = kept.and_then(|kept| encode(&FromAgent::Result(Box::new(kept))).ok());
    Ok(Some(NextResult { number, frame }))
}

/// Requests of each address, one at a time.
#[derive(Default)]
pub(super) struct Turns(Mutex<HashMap<Option<IpAddr>, Arc<tokio::sync::Mutex<()>>>>);

impl Turns {
    /// Waits for the turn of a request from `source`; it ends when it is dropped.
    async fn next(&self, source: Option<IpAddr>) -> OwnedMutexGuard<()> {
        let turns = {
            let mut turns = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            // Without those that nobody has or waits for.
            turns.retain(|_, turn| Arc::strong_count(turn) > 1);
            turns.entry(source).or_default().clone()
        };
        turns.lock_owned().await
    }
}

/// Disks are waited for elsewhere: meanwhile this thread serves other connections.
async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, KeptResultsError> + Send + 'static,
) -> Result<T, KeptResultsError> {
    spawn_blocking(work).await?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_one_turn_at_a_time_and_others_do_not_wait_for_it() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (turns, [one, other]) = (Turns::default(), ["192.0.2.1", "192.0.2.2"].map(|text| text.parse().ok()));
            let first = turns.next(one).await;
            let second = turns.next(one);
            tokio::pin!(second);
            tokio::select! {
                biased;
                _ = &mut second => panic!("two turns at once"),
                _ = turns.next(other) => {}
            }
            drop(first);
            drop(second.await);
            drop(turns.next(None).await);
            assert_eq!(turns.0.lock().unwrap().len(), 1, "what nobody has is forgotten");
        });
    }
}
