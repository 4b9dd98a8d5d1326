//! What a fleet and its agents tell each other of the results that the agents keep.

use model::RunHeader;

use super::{End, Fleet};
use crate::proto::RESULTS;
use crate::proto::message::{FromAgent, ToAgent};

/// Most results that are taken: agents cannot fill the memory of this host.
const MOST: usize = 100_000;

impl Fleet {
    /// The agents keep the results of this run until they are stored.
    pub fn keep_results_of(&mut self, header: &RunHeader) {
        self.results.begin(header);
    }

    /// Asks the agents for the results that an earlier part of the run has not stored. They are used in place of new tests. What an agent
    /// that is lost meanwhile has kept is measured again.
    pub async fn recall_results(&mut self) {
        let Some(run) = self.results.run.clone() else { return };
        for (_, end) in self.keeping() {
            // Whoever uses a lost connection next tells of it.
            let _ = end.send(&ToAgent::Results { run: run.clone() }).await;
        }
        let mut found = Vec::new();
        for (host, end) in self.keeping() {
            while let Ok(message) = end.recv("while it sent the results that it had kept").await {
                match message {
                    FromAgent::Result(kept) if kept.of.run == run && found.len() < MOST => found.push((host, *kept)),
                    FromAgent::NoMoreResults => break,
                    _ => {}
                }
            }
        }
        self.results.found = found;
    }

    /// Number of the tests for which a result was used that the agents had kept.
    #[must_use]
    pub fn recalled(&self) -> usize {
        self.results.used
    }

    /// The run is stored: its results are forgotten. An agent that is not reached forgets them in time.
    pub async fn forget_results(&mut self) {
        self.stored(u32::MAX).await;
    }

    /// A step begins whose first test has this number: what was stored long ago is forgotten.
    pub(super) async fn begin_step(&mut self, first: u32) {
        if let Some(below) = self.results.step(first) {
            self.stored(below).await;
        }
    }

    async fn stored(&mut self, below: u32) {
        let Some(run) = self.results.run.clone() else { return };
        for (_, end) in self.keeping() {
            let _ = end.send(&ToAgent::Stored { run: run.clone(), below }).await;
        }
    }

    /// The agents that keep results, by the numbers of their hosts.
    fn keeping(&mut self) -> impl Iterator<Item = (usize, &mut End)> {
        let ends = self.hosts.iter_mut().enumerate().filter_map(|(number, host)| Some((number, host.end.as_mut()?)));
        ends.filter(|(_, end)| end.can(RESULTS))
    }
}
