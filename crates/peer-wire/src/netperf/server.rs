//! netserver's end of the control connection.

use super::block::{BLOCK_BYTES, Block};
use super::error::{NOT_SUPPORTED, NetperfError};
use super::omni::{CPU_RATE, Counted, OmniRequest, Ready, Served};
use super::{PEER, classic, kind};
use crate::framing::{Fixed, each};
use crate::{Turn, WireError, WireProblem};

/// The system that clients are told of: this program, and nothing about its host.
const SYSTEM: &str = concat!("|thru|", env!("CARGO_PKG_VERSION"), "|unknown|unknown");

/// EINVAL, for values that cannot be: netserver passes the system's numbers on.
const INVALID: u32 = 22;

/// What the server's driver must do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Open a data socket, then call [`Server::ready`] or [`Server::refuse`].
    Requested(OmniRequest),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Idle,
    Preparing,
    Running,
    Failed,
}

/// The control connection of a server, which runs one test after another.
#[derive(Debug, Clone)]
pub struct Server {
    step: Step,
    served: Served,
    block: Fixed<BLOCK_BYTES>,
    /// The host's number of CPUs; 0 if they were not counted.
    cpus: u32,
}

impl Default for Server {
    fn default() -> Self {
        Self { step: Step::Idle, served: Served::Omni, block: Fixed::new(), cpus: 0 }
    }
}

impl Server {
    /// One at a host with this many CPUs.
    #[must_use]
    pub fn with_cpus(self, cpus: u32) -> Self {
        Self { cpus, ..self }
    }

    /// Processes received bytes. After an error `turn` may contain a message for the client.
    ///
    /// # Errors
    /// The client's invalid message.
    pub fn receive(&mut self, input: &[u8], turn: &mut Turn<Action>) -> Result<(), WireError> {
        each(input, |rest| self.take(rest, turn)).map_err(|what| {
            let error = PEER.error(self.name(), what);
            self.step = Step::Failed;
            error
        })
    }

    fn take(&mut self, input: &mut &[u8], turn: &mut Turn<Action>) -> Result<(), WireProblem> {
        if self.step != Step::Idle {
            return Err(WireProblem::Unexpected { bytes: input.len() });
        }
        let Some(bytes) = self.block.take(input) else { return Ok(()) };
        self.block = Fixed::new();
        let block = Block(bytes);
        match block.word(0) {
            requested @ (kind::OMNI | kind::TCP_STREAM) => {
                let request =
                    if requested == kind::OMNI { OmniRequest::from_block(&block) } else { classic::request(&block) };
                match request {
                    Ok(request) => {
                        self.served = request.served;
                        turn.actions.push(Action::Requested(request));
                        self.step = Step::Preparing;
                    }
                    Err(what) => {
                        send_error(INVALID, turn);
                        return Err(what.into());
                    }
                }
            }
            kind::DEBUG_ON | kind::DEBUG_OFF => turn.send.extend_from_slice(&Block::new(kind::DEBUG_OK).0),
            // REM_CPU: netserver takes the ticks of a second for the rate of a CPU.
            kind::CPU_CALIBRATE => {
                let mut block = Block::new(kind::CPU_CALIBRATE);
                block.put(8, CPU_RATE.to_bits());
                block.put(12, self.cpus);
                turn.send.extend_from_slice(&block.0);
            }
            // netperf 2.6 asks for system, release, machine and version, after a character that separates them.
            kind::SYSTEM => {
                let mut block = Block::new(kind::SYSTEM_DONE);
                block.put_text(8, BLOCK_BYTES - 8, SYSTEM);
                turn.send.extend_from_slice(&block.0);
            }
            // An unrequested passphrase gets no answer.
            kind::PASSPHRASE => {}
            unknown => {
                send_error(NOT_SUPPORTED, turn);
                return Err(NetperfError::OmniRequest { number: unknown }.into());
            }
        }
        Ok(())
    }

    /// The data socket is open.
    ///
    /// # Errors
    /// Where no request is pending.
    pub fn ready(&mut self, ready: &Ready, turn: &mut Turn<Action>) -> Result<(), WireError> {
        let block = match self.served {
            Served::Omni => ready.to_block(),
            Served::Classic => classic::ready(ready),
        };
        self.go(Step::Preparing, Step::Running, &block, turn)
    }

    /// The test is over and the data socket closed.
    ///
    /// # Errors
    /// Where no data flowed.
    pub fn counted(&mut self, counted: &Counted, turn: &mut Turn<Action>) -> Result<(), WireError> {
        let block = match self.served {
            Served::Omni => counted.to_block(),
            Served::Classic => classic::counted(counted),
        };
        self.go(Step::Running, Step::Idle, &block, turn)
    }

    /// The test cannot be done: `number` is an errno or [`NOT_SUPPORTED`]. netperf then ends.
    pub fn refuse(&mut self, number: u32, turn: &mut Turn<Action>) {
        send_error(number, turn);
        self.step = Step::Failed;
    }

    fn go(&mut self, from: Step, to: Step, block: &Block, turn: &mut Turn<Action>) -> Result<(), WireError> {
        if self.step != from {
            return Err(PEER.error(self.name(), WireProblem::NotServersTurn));
        }
        turn.send.extend_from_slice(&block.0);
        self.step = to;
        Ok(())
    }

    /// Checks that the connection may end here.
    ///
    /// # Errors
    /// Where a request or a test was cut off.
    pub fn ended(&self) -> Result<(), WireError> {
        match self.block.so_far().len() {
            0 if self.step == Step::Idle => Ok(()),
            0 => Err(PEER.error(self.name(), WireProblem::Closed { end: "client" })),
            have => Err(PEER.error(self.name(), WireProblem::CutOff { have, of: BLOCK_BYTES })),
        }
    }

    fn name(&self) -> &'static str {
        match self.step {
            Step::Idle => "while reading a request",
            Step::Preparing => "while preparing the test",
            Step::Running => "while data flowed",
            Step::Failed => "after an error",
        }
    }
}

fn send_error(number: u32, turn: &mut Turn<Action>) {
    let mut block = Block::new(kind::OMNI_DONE);
    block.put(4, number);
    turn.send.extend_from_slice(&block.0);
}
