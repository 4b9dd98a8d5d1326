//! The hosts of a run, connected.

use std::rc::Rc;

use engine::transport::{scope_of, transport};
use model::{EventSink, Family, RunHeader, RunSettings, Spec};
use protocol::coordinator::{BothPaths, Conducted, DialogueError, End, Fleet, Member as Reachable, RunOrder};
use schedule::Between;
use text::{Said, Text};
use tokio::sync::watch;

use super::agent_end::{AgentEnd, Discard};
use super::greeting::AgentFacts;
use super::lines::Lines;
use super::path_probe::note_path;
use super::program::FarProgram;
use super::reached::Reached;
use super::{Cancel, methods};
use crate::{Access, ControlError};

/// Connected agents and other programs, by number.
pub struct ConnectedFleet {
    fleet: Fleet,
    lines: Lines,
    /// What is known of each agent; `None` for another program, and for a host that did not answer.
    facts: Vec<Option<AgentFacts>>,
}

/// A host of a run as it was reached.
pub struct Member(MemberKind);

enum MemberKind {
    Agent(Box<AgentEnd>),
    Program(Box<dyn FarProgram>),
    Lost(Box<Reached>, String, Text),
}

impl Member {
    /// An agent.
    #[must_use]
    pub fn agent(end: AgentEnd) -> Self {
        Self(MemberKind::Agent(Box::new(end)))
    }

    /// Another program, as the far end only.
    pub fn program(program: impl FarProgram + 'static) -> Self {
        Self(MemberKind::Program(Box::new(program)))
    }

    /// An agent that did not answer at `host` for this reason; it is tried again.
    #[must_use]
    pub fn lost(name: &str, host: &str, access: Access, family: Family, why: &ControlError) -> Self {
        let reached = Reached::Not { host: host.to_owned(), access: Rc::new(access), family };
        Self(MemberKind::Lost(Box::new(reached), name.to_owned(), why.say()))
    }
}

impl ConnectedFleet {
    /// A fleet of reached hosts; `purpose` is for their logs.
    #[must_use]
    pub fn new(members: Vec<Member>, purpose: &str) -> Self {
        let (mut lines, mut facts) = (Lines::new(), Vec::with_capacity(members.len()));
        let mut reachable = Vec::with_capacity(members.len());
        for (number, Member(member)) in members.into_iter().enumerate() {
            let (of, member) = match member {
                MemberKind::Agent(end) => {
                    let (end, facts, reached) = end.move_to(&mut lines);
                    lines.reached.insert(number, reached);
                    (Some(facts), Reachable::Agent(Box::new(end)))
                }
                MemberKind::Program(program) => {
                    lines.programs.insert(number, program);
                    (None, Reachable::Program)
                }
                MemberKind::Lost(reached, name, why) => {
                    lines.reached.insert(number, *reached);
                    (None, Reachable::Lost(name, why))
                }
            };
            facts.push(of);
            reachable.push(member);
        }
        let fleet = Fleet::new(lines.outside(), reachable, purpose);
        Self { fleet, lines, facts }
    }

    /// What is known of the agent with that number.
    #[must_use]
    pub fn facts(&self, host: usize) -> Option<&AgentFacts> {
        self.facts.get(host)?.as_ref()
    }

    /// Has a dialogue with the agents.
    ///
    /// # Errors
    /// That of the dialogue.
    pub async fn talk<T>(
        &mut self,
        dialogue: impl AsyncFnOnce(&mut Fleet) -> Result<T, DialogueError>,
    ) -> Result<T, ControlError> {
        let (_run, mut never) = watch::channel(false);
        self.talk_unless(&mut never, dialogue).await
    }

    /// As [`talk`](Self::talk), but the user may end it.
    async fn talk_unless<T>(
        &mut self,
        cancel: &mut Cancel,
        dialogue: impl AsyncFnOnce(&mut Fleet) -> Result<T, DialogueError>,
    ) -> Result<T, ControlError> {
        let outcome = self.lines.perform(dialogue(&mut self.fleet), &mut Discard, cancel).await;
        outcome.map_err(|error| self.lines.error(error))
    }

    /// Waits until this coordinator has all machines; `queued` gets the busy one and its number of clients in front.
    ///
    /// # Errors
    /// If a connection is lost or a host refuses.
    pub async fn acquire(&mut self, queued: impl FnMut(&str, u32)) -> Result<(), ControlError> {
        self.talk(async |fleet| fleet.acquire(queued).await).await
    }

    /// Applies the settings of all specs to the first two hosts, one after the other, then the first's again. Returns the changes.
    ///
    /// # Errors
    /// Settings that cannot be changed.
    pub async fn apply_all(&mut self, specs: &[Spec]) -> Result<Option<RunSettings>, ControlError> {
        self.talk(async |fleet| fleet.apply_all(specs).await).await
    }

    /// Chooses the send method of a spec with `--engine auto` between these hosts.
    ///
    /// # Errors
    /// A lost connection, an interrupt, or no method that works.
    pub async fn choose_engine(
        &mut self,
        hosts: [usize; 2],
        spec: &mut Spec,
        cancel: &mut Cancel,
    ) -> Result<(), ControlError> {
        let transport = transport(spec.transport.as_str())?;
        let between = Between { hosts, single_ended: transport.capabilities().single_ended };
        let methods = methods(transport);
        let chosen = self.talk_unless(cancel, async |fleet| fleet.choose_engine(between, spec, &methods).await).await;
        spec.engine = chosen?;
        Ok(())
    }

    /// Reverts all settings. Returns a line for each one that had changed meanwhile, and is left.
    ///
    /// # Errors
    /// A host that is lost, or cannot revert.
    pub async fn untune(&mut self) -> Result<Vec<Text>, ControlError> {
        self.talk(async |fleet| fleet.untune().await).await
    }

    /// Lets two hosts measure their traffic and probe the path to each other, and writes the results into `header`. `spec` has the data
    /// addresses.
    ///
    /// # Errors
    /// If a connection is lost.
    pub async fn probe_path(
        &mut self,
        hosts: [usize; 2],
        header: &mut RunHeader,
        spec: &Spec,
    ) -> Result<(), ControlError> {
        let control = self.fleet.end(hosts[1]).and_then(End::address);
        let scope = spec.far.data_at.or(control).as_ref().map_or(0, scope_of);
        let probed = self.talk(async |fleet| fleet.probe_path(hosts, spec, scope).await).await?;
        let BothPaths { clocks, facts: [outbound, back] } = probed;
        header.clocks = clocks;
        if let Some(facts) = outbound {
            note_path(facts, &mut header.near, &mut header.path_outbound);
        }
        if let Some(facts) = back {
            note_path(facts, &mut header.far, &mut header.path_return);
        }
        Ok(())
    }

    /// The agents keep the results of this run until they are stored. Those of an earlier part of it that the coordinator has not stored
    /// are used in place of new tests if it is `resumed`. Returns a line for the user about each agent whose results could not be read:
    /// these tests are measured again.
    pub async fn keep_results_of(&mut self, header: &RunHeader, resumed: bool) -> Vec<Text> {
        let recall = async |fleet: &mut Fleet| {
            fleet.keep_results_of(header);
            Ok(if resumed { fleet.recall_results().await } else { Vec::new() })
        };
        self.talk(recall).await.unwrap_or_default()
    }

    /// Number of the tests for which a result was used that the agents had kept.
    #[must_use]
    pub fn recalled(&self) -> usize {
        self.fleet.recalled()
    }

    /// The run is stored: its results are forgotten. An agent that is not reached forgets them in time.
    pub async fn forget_results(&mut self) {
        let forgotten = self.talk(async |fleet| {
            fleet.forget_results();
            Ok(())
        });
        let _ = forgotten.await;
    }

    /// Carries out a run. After an error as well, the sink gets an outcome for each cell that has a trial, and the ending; all settings
    /// are reverted. Returns the error, and a line for each setting that had changed meanwhile.
    pub async fn run(
        &mut self,
        order: RunOrder,
        sink: &mut dyn EventSink,
        cancel: &mut Cancel,
    ) -> (Option<ControlError>, Vec<Text>) {
        let conducted = self.lines.perform(self.fleet.conduct(order), sink, cancel).await;
        let Conducted { result, left } = conducted;
        (result.err().map(|error| self.lines.error(error)), left)
    }

    /// Reverts all settings and releases the machines, but stays connected.
    ///
    /// # Errors
    /// If a connection is lost.
    pub async fn release_machines(&mut self) -> Result<(), ControlError> {
        self.talk(async |fleet| fleet.release_machines().await).await
    }

    /// Releases all machines and closes the connections.
    pub async fn release(mut self) {
        let released = self.talk(async |fleet| {
            fleet.release();
            Ok(())
        });
        let _ = released.await;
    }
}
