//! What a fleet and its agents exchange about the results that the agents keep.

use model::RunHeader;
use text::{Said, Text, say};

use super::bounds::{self, one_line};
use super::end::End;
use super::fleet::Fleet;
use crate::message::{FromAgent, ToAgent};

/// Most bytes of results that are taken of an agent, which cannot fill the memory of this host: more than one keeps.
const MOST: usize = 80 << 20;

impl Fleet {
    /// The agents keep the results of this run until they are stored.
    pub fn keep_results_of(&mut self, header: &RunHeader) {
        self.results.begin(header);
    }

    /// Asks the agents for the results that an earlier part of the run has not stored. They are used in place of new tests. Returns a
    /// line for the user about each agent whose results could not be read: these tests are measured again.
    pub async fn recall_results(&mut self) -> Vec<Text> {
        let Some(run) = self.results.run.clone() else { return Vec::new() };
        // The next use of a lost connection reports it.
        self.keeping().for_each(|(_, end)| end.send(ToAgent::Results { run: run.clone() }));
        let (mut found, mut unread) = (Vec::new(), Vec::new());
        for (host, end) in self.keeping() {
            let name = end.name.clone();
            end.accept_up_to(bounds::ANSWER);
            let before = end.seen().received_bytes;
            let why = loop {
                match end.next_answer("while it sent its kept results").await {
                    Ok(FromAgent::Result(_)) if end.seen().received_bytes - before > MOST => {
                        break Some("it sent more than an agent keeps".into());
                    }
                    Ok(FromAgent::Result(kept)) if kept.of.run == run => found.push((host, *kept)),
                    Ok(FromAgent::NoMoreResults { unread }) => break unread,
                    Ok(_) => {}
                    Err(error) => break Some(error.say()),
                }
            };
            unread.extend(why.map(|why| {
                say!("{name}: cannot use the results that it kept, so their tests run again: {}", one_line(&why))
            }));
        }
        self.results.found = found;
        unread
    }

    /// Number of the tests for which a result was used that the agents had kept.
    #[must_use]
    pub fn recalled(&self) -> usize {
        self.results.used
    }

    /// The run is stored: its results are forgotten. An agent that is not reached forgets them in time.
    pub fn forget_results(&self) {
        self.stored(u32::MAX);
    }

    /// A step begins whose first test has this number: what was stored long ago is forgotten.
    pub(super) fn begin_step(&mut self, first: u32) {
        if let Some(below) = self.results.step(self.outside.now(), first) {
            self.stored(below);
        }
    }

    fn stored(&self, below: u32) {
        let Some(run) = &self.results.run else { return };
        self.keeping().for_each(|(_, end)| end.send(ToAgent::Stored { run: run.clone(), below }));
    }

    /// The agents that keep results, by the numbers of their hosts.
    fn keeping(&self) -> impl Iterator<Item = (usize, &End)> {
        self.hosts.iter().enumerate().filter_map(|(number, host)| Some((number, host.end.as_ref()?)))
    }
}
