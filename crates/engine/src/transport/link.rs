//! An open connection whose kind of channel no longer matters.

use std::net::SocketAddr;

use model::SocketFacts;

use super::channel::Channel;
use super::flow::{Flow, FlowSetup};
use crate::core::EngineError;

/// An open connection, ready for a machine; its channel type no longer matters.
pub struct Link(Box<dyn IntoFlow>);

/// Turns a channel of some type into a flow.
trait IntoFlow: Send {
    fn into_flow(self: Box<Self>, setup: FlowSetup) -> Result<Box<dyn Flow>, EngineError>;

    fn facts(&self) -> SocketFacts;

    fn answer_handshake(&mut self);
}

struct OpenChannel<C: Channel>(C);

impl<C: Channel> IntoFlow for OpenChannel<C> {
    fn into_flow(self: Box<Self>, setup: FlowSetup) -> Result<Box<dyn Flow>, EngineError> {
        self.0.into_flow(setup)
    }

    fn facts(&self) -> SocketFacts {
        self.0.facts()
    }

    fn answer_handshake(&mut self) {
        self.0.answer_handshake();
    }
}

impl Link {
    /// A link over this channel.
    pub fn of<C: Channel>(channel: C) -> Self {
        Self(Box::new(OpenChannel(channel)))
    }

    pub(crate) fn into_flow(self, setup: FlowSetup) -> Result<Box<dyn Flow>, EngineError> {
        self.0.into_flow(setup)
    }

    /// Answers handshake messages that the other end repeats; call it about every [`RETRY`](super::udp::RETRY) until the trial starts.
    pub fn answer_handshake(&mut self) {
        self.0.answer_handshake();
    }

    /// The addresses of its socket, this end's first; `None` if it has no IP addresses.
    #[must_use]
    pub fn ends(&self) -> Option<[SocketAddr; 2]> {
        let facts = self.0.facts();
        let address = |text: Option<String>| text?.parse().ok();
        Some([address(facts.local)?, address(facts.peer)?])
    }
}
