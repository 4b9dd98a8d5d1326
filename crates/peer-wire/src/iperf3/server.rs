//! The server's end of the control connection.

use super::error::Iperf3Error;
use super::fault::ServerFault;
use super::parameters::{PARAMETERS_LIMIT, Parameters};
use super::results::{RESULTS_LIMIT, Results};
use super::{PEER, byte};
use crate::framing::{Framed, each, framed};
use crate::{Turn, WireError, WireProblem};

/// A busy server's only message to a client before it closes the connection; also to a stream with a wrong
/// cookie.
pub const REFUSAL: [u8; 1] = [byte::ACCESS_DENIED];

/// What the server's driver must do.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Check the client's request, open the listener, then call [`Server::accept`] or [`Server::refuse`].
    Requested(Box<Parameters>),
    /// The client's test is over: count, close the streams, then call [`Server::exchange`].
    End,
    /// The client's results have arrived: call [`Server::results`] with this end's.
    ProgramResults(Results),
    /// The client stopped early: close everything.
    Terminated,
    /// The session is complete: close the connection.
    Done,
}

#[derive(Debug, Clone)]
enum Step {
    Parameters(Framed),
    Checking,
    Streams,
    Running,
    Ending,
    ProgramResults(Framed),
    OwnResults,
    Last,
    Done,
    Failed,
}

impl Step {
    fn name(&self) -> &'static str {
        match self {
            Self::Parameters(_) => "while reading the parameters",
            Self::Checking => "while checking the parameters",
            Self::Streams => "while the streams were opened",
            Self::Running => "while data flowed",
            Self::Ending => "while the streams were closed",
            Self::ProgramResults(_) => "while reading the client's results",
            Self::OwnResults => "before our results were sent",
            Self::Last => "while waiting for IPERF_DONE",
            Self::Done => "after the end",
            Self::Failed => "after an error",
        }
    }
}

/// The control connection of a server, from its cookie on (see [`super::StreamHello`]).
#[derive(Debug, Clone)]
pub struct Server {
    step: Step,
    streams: u32,
}

impl Server {
    /// A control connection after its cookie; `turn` receives the request for parameters.
    pub fn open(turn: &mut Turn<Action>) -> Self {
        turn.send.push(byte::PARAM_EXCHANGE);
        Self { step: Step::Parameters(Framed::new(PARAMETERS_LIMIT)), streams: 0 }
    }

    /// Processes received bytes. After an error `turn` may contain a message for the client.
    ///
    /// # Errors
    /// The client's invalid message.
    pub fn receive(&mut self, input: &[u8], turn: &mut Turn<Action>) -> Result<(), WireError> {
        each(input, |rest| self.take(rest, turn)).inspect_err(|_| self.step = Step::Failed)
    }

    fn take(&mut self, input: &mut &[u8], turn: &mut Turn<Action>) -> Result<(), WireError> {
        let name = self.step.name();
        match &mut self.step {
            Step::Parameters(parameters) => {
                let json = parameters.take(input).map_err(|what| {
                    send_error(ServerFault::Parameters, turn);
                    PEER.error(name, what)
                })?;
                let Some(json) = json else { return Ok(()) };
                let requested = Parameters::from_json(&json).map_err(|what| {
                    send_error(what.fault(), turn);
                    PEER.error(name, what)
                })?;
                self.streams = requested.streams();
                turn.actions.push(Action::Requested(Box::new(requested)));
                self.step = Step::Checking;
                return Ok(());
            }
            Step::ProgramResults(results) => {
                let Some(json) = results.take(input).map_err(|what| PEER.error(name, what))? else { return Ok(()) };
                let peer_results = Results::from_json(&json, self.streams).map_err(|what| {
                    send_error(ServerFault::Results, turn);
                    PEER.error(name, what)
                })?;
                turn.actions.push(Action::ProgramResults(peer_results));
                self.step = Step::OwnResults;
                return Ok(());
            }
            Step::Done | Step::Failed => {
                return Err(PEER.error(name, WireProblem::Unexpected { bytes: input.len() }));
            }
            _ => {}
        }
        let Some((&said, rest)) = input.split_first() else { return Ok(()) };
        *input = rest;
        match (&self.step, said) {
            (_, byte::CLIENT_TERMINATE) => {
                turn.actions.push(Action::Terminated);
                self.step = Step::Done;
            }
            (Step::Running, byte::TEST_END) => {
                turn.actions.push(Action::End);
                self.step = Step::Ending;
            }
            (Step::Last, byte::IPERF_DONE) => {
                turn.actions.push(Action::Done);
                self.step = Step::Done;
            }
            _ => return Err(PEER.error(name, Iperf3Error::Byte { byte: said })),
        }
        Ok(())
    }

    /// The listener for the streams is ready.
    ///
    /// # Errors
    /// Where no parameters are pending.
    pub fn accept(&mut self, turn: &mut Turn<Action>) -> Result<(), WireError> {
        self.go(matches!(self.step, Step::Checking), Step::Streams, &[byte::CREATE_STREAMS], turn)
    }

    /// Refuses the client with a fault; further messages are errors.
    pub fn refuse(&mut self, fault: ServerFault, turn: &mut Turn<Action>) {
        send_error(fault, turn);
        self.step = Step::Done;
    }

    /// This process stops: tells the client.
    pub fn terminate(&mut self, turn: &mut Turn<Action>) {
        turn.send.push(byte::SERVER_TERMINATE);
        self.step = Step::Done;
    }

    /// All streams are open.
    ///
    /// # Errors
    /// Where no streams were expected.
    pub fn start(&mut self, turn: &mut Turn<Action>) -> Result<(), WireError> {
        let ready = matches!(self.step, Step::Streams);
        self.go(ready, Step::Running, &[byte::TEST_START, byte::TEST_RUNNING], turn)
    }

    /// The streams are counted and closed.
    ///
    /// # Errors
    /// Where the client has not ended the test.
    pub fn exchange(&mut self, turn: &mut Turn<Action>) -> Result<(), WireError> {
        let next = Step::ProgramResults(Framed::new(RESULTS_LIMIT));
        self.go(matches!(self.step, Step::Ending), next, &[byte::EXCHANGE_RESULTS], turn)
    }

    /// Sends this end's results, after [`Action::ProgramResults`].
    ///
    /// # Errors
    /// Where the client's results have not arrived.
    pub fn results(&mut self, results: &Results, turn: &mut Turn<Action>) -> Result<(), WireError> {
        let mut bytes = Vec::new();
        framed(&results.to_json(), &mut bytes);
        bytes.push(byte::DISPLAY_RESULTS);
        self.go(matches!(self.step, Step::OwnResults), Step::Last, &bytes, turn)
    }

    fn go(&mut self, ready: bool, next: Step, say: &[u8], turn: &mut Turn<Action>) -> Result<(), WireError> {
        if !ready {
            return Err(PEER.error(self.step.name(), WireProblem::NotServersTurn));
        }
        turn.send.extend_from_slice(say);
        self.step = next;
        Ok(())
    }

    /// Checks that the connection may end here.
    ///
    /// # Errors
    /// Where the session is not complete. A client may close after it has received the results.
    pub fn ended(&self) -> Result<(), WireError> {
        match &self.step {
            Step::Last | Step::Done => Ok(()),
            step => Err(PEER.error(step.name(), WireProblem::Closed { end: "client" })),
        }
    }
}

fn send_error(fault: ServerFault, turn: &mut Turn<Action>) {
    turn.send.push(byte::SERVER_ERROR);
    turn.send.extend_from_slice(&fault.number().to_be_bytes());
    turn.send.extend_from_slice(&0_u32.to_be_bytes());
}
