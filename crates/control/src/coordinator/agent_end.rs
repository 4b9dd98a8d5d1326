//! A coordinator's connection to one agent.

use std::net::SocketAddr;

use model::{Event, EventSink, SinkError};
use protocol::coordinator::{DialogueError, End};
use tokio::sync::watch;

use super::greeting::{AgentFacts, Greeted, Target};
use super::lines::Lines;
use super::reached::Reached;
use crate::ControlError;

/// An agent that has accepted this coordinator.
pub struct AgentEnd {
    /// What is known of it.
    pub facts: AgentFacts,
    end: End,
    lines: Lines,
    reached: Reached,
}

impl AgentEnd {
    /// Connects to an agent and authenticates.
    ///
    /// # Errors
    /// It is not reached, or one side does not accept the other.
    pub async fn connect(target: Target<'_>) -> Result<Self, ControlError> {
        let (mut lines, greeted) = (Lines::new(), Greeted::connect(target).await?);
        let reached = greeted.reached.clone();
        let (end, facts) = lines.connect(greeted);
        Ok(Self { facts, end, lines, reached })
    }

    /// Identifier of the agent's process.
    #[must_use]
    pub fn instance(&self) -> &str {
        &self.end.instance
    }

    /// The agent's address; `None` within this process.
    #[must_use]
    pub fn address(&self) -> Option<SocketAddr> {
        self.end.address()
    }

    /// The same connection as one of several; nothing must have been said over it.
    pub(super) fn move_to(mut self, lines: &mut Lines) -> (End, AgentFacts, Reached) {
        (self.lines.move_to(&self.end, lines), self.facts, self.reached)
    }

    /// "this host", or host and port.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.end.name
    }

    /// Has a dialogue with it.
    ///
    /// # Errors
    /// That of the dialogue.
    pub async fn talk<T>(
        &mut self,
        dialogue: impl AsyncFnOnce(&mut End) -> Result<T, DialogueError>,
    ) -> Result<T, ControlError> {
        let (_run, mut never) = watch::channel(false);
        let outcome = self.lines.perform(dialogue(&mut self.end), &mut Discard, &mut never).await;
        outcome.map_err(|error| self.lines.error(error))
    }

    /// Releases the machine and closes the connection.
    pub async fn release(self) {
        let Self { end, mut lines, .. } = self;
        let (_run, mut never) = watch::channel(false);
        lines.perform(async { end.release() }, &mut Discard, &mut never).await;
    }
}

/// Discards what is shown outside a run.
pub(super) struct Discard;

impl EventSink for Discard {
    fn event(&mut self, _: &Event) -> Result<(), SinkError> {
        Ok(())
    }
}
