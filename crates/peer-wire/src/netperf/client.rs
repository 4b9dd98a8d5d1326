//! netperf's end of the control connection.

use super::PEER;
use super::block::{BLOCK_BYTES, Block};
use super::error::{NOT_SUPPORTED, NetperfError};
use super::omni::{Counted, Flags, OmniRequest, Ready};
use crate::framing::{Fixed, each};
use crate::{Turn, WireError, WireProblem};

/// What the client's driver must do.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// The server is ready: move the data.
    Run(Ready),
    /// The test is over; these are the server's counts. OmniRequest another with [`Client::ask`], or close.
    Counted(Counted),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Idle,
    Ready,
    Counted,
    Failed,
}

/// The control connection of a client.
#[derive(Debug, Clone)]
pub struct Client {
    step: Step,
    flags: Flags,
    block: Fixed<BLOCK_BYTES>,
}

impl Client {
    /// A new control connection with its first test.
    pub fn open(request: &OmniRequest, turn: &mut Turn<Action>) -> Self {
        turn.send.extend_from_slice(&request.to_block().0);
        Self { step: Step::Ready, flags: request.flags, block: Fixed::new() }
    }

    /// Another test over the same connection.
    ///
    /// # Errors
    /// Where the previous one has not ended.
    pub fn ask(&mut self, request: &OmniRequest, turn: &mut Turn<Action>) -> Result<(), WireError> {
        if self.step != Step::Idle {
            return Err(PEER.error(self.name(), NetperfError::NotEnded));
        }
        *self = Self::open(request, turn);
        Ok(())
    }

    /// Processes received bytes.
    ///
    /// # Errors
    /// The server's invalid message, or why it refused.
    pub fn receive(&mut self, input: &[u8], turn: &mut Turn<Action>) -> Result<(), WireError> {
        each(input, |rest| self.take(rest, turn)).map_err(|what| {
            let error = PEER.error(self.name(), what);
            self.step = Step::Failed;
            error
        })
    }

    fn take(&mut self, input: &mut &[u8], turn: &mut Turn<Action>) -> Result<(), WireProblem> {
        if matches!(self.step, Step::Idle | Step::Failed) {
            return Err(WireProblem::Unexpected { bytes: input.len() });
        }
        let Some(bytes) = self.block.take(input) else { return Ok(()) };
        self.block = Fixed::new();
        let block = Block(bytes);
        // The type of an answer is not reliable: netserver may send it byte-swapped.
        match block.word(4) {
            0 => {}
            NOT_SUPPORTED => return Err(NetperfError::NotKnown.into()),
            number => return Err(NetperfError::Refused { number }.into()),
        }
        if self.step == Step::Ready {
            turn.actions.push(Action::Run(Ready::from_block(&block)?));
            self.step = Step::Counted;
        } else {
            turn.actions.push(Action::Counted(Counted::from_block(&block, self.flags)?));
            self.step = Step::Idle;
        }
        Ok(())
    }

    /// Checks that the connection may end here.
    ///
    /// # Errors
    /// Where the session is not complete.
    pub fn ended(&self) -> Result<(), WireError> {
        let closed = || PEER.error(self.name(), WireProblem::Closed { end: "server" });
        if self.step == Step::Idle { Ok(()) } else { Err(closed()) }
    }

    fn name(&self) -> &'static str {
        match self.step {
            Step::Idle => "after a test",
            Step::Ready => "while waiting for the server to be ready",
            Step::Counted => "while waiting for what the server counted",
            Step::Failed => "after an error",
        }
    }
}
