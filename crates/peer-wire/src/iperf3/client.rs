//! The client's end of the control connection.

use super::cookie::TestCookie;
use super::error::Iperf3Error;
use super::parameters::Parameters;
use super::results::{RESULTS_LIMIT, Results};
use super::{PEER, byte};
use crate::framing::{Fixed, Framed, each, framed};
use crate::{Turn, WireError, WireProblem};

/// What the client's driver must do.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Open the data streams, one after another, each with the cookie.
    OpenStreams,
    /// All streams are open: move the data and call [`Client::end`] when the test is over.
    Run,
    /// Give the results of this end to [`Client::results`].
    Results,
    /// The server's results have arrived.
    ProgramResults(Results),
    /// The session is complete: close the connections.
    Done,
}

#[derive(Debug, Clone)]
enum Step {
    Greeting,
    Accepting,
    Streams,
    Starting,
    Running,
    Ending,
    OwnResults,
    ProgramResults(Framed),
    Display,
    Done,
    Refused(Fixed<8>),
    Failed,
}

impl Step {
    fn name(&self) -> &'static str {
        match self {
            Self::Greeting => "while waiting for PARAM_EXCHANGE",
            Self::Accepting => "while waiting for CREATE_STREAMS",
            Self::Streams => "while waiting for TEST_START",
            Self::Starting => "while waiting for TEST_RUNNING",
            Self::Running => "while data flowed",
            Self::Ending => "while waiting for EXCHANGE_RESULTS",
            Self::OwnResults => "before our results were sent",
            Self::ProgramResults(_) => "while reading the server's results",
            Self::Display => "while waiting for DISPLAY_RESULTS",
            Self::Done => "after the end",
            Self::Refused(_) => "while reading the server's error",
            Self::Failed => "after an error",
        }
    }
}

/// The control connection of a client.
#[derive(Debug, Clone)]
pub struct Client {
    step: Step,
    parameters: Parameters,
}

impl Client {
    /// Opens a control connection; `turn` receives the cookie to send.
    pub fn open(cookie: &TestCookie, parameters: Parameters, turn: &mut Turn<Action>) -> Self {
        turn.send.extend_from_slice(cookie.bytes());
        Self { step: Step::Greeting, parameters }
    }

    /// Processes received bytes.
    ///
    /// # Errors
    /// The server's invalid message, or why it refused.
    pub fn receive(&mut self, input: &[u8], turn: &mut Turn<Action>) -> Result<(), WireError> {
        each(input, |rest| self.take(rest, turn)).inspect_err(|_| self.step = Step::Failed)
    }

    fn take(&mut self, input: &mut &[u8], turn: &mut Turn<Action>) -> Result<(), WireError> {
        let name = self.step.name();
        match &mut self.step {
            Step::ProgramResults(results) => {
                let Some(json) = results.take(input).map_err(|what| PEER.error(name, what))? else { return Ok(()) };
                let peer_results =
                    Results::from_json(&json, self.parameters.streams()).map_err(|what| PEER.error(name, what))?;
                turn.actions.push(Action::ProgramResults(peer_results));
                self.step = Step::Display;
                return Ok(());
            }
            Step::Refused(words) => {
                return if words.take(input).is_some() { Err(refusal(words.so_far())) } else { Ok(()) };
            }
            Step::Done | Step::Failed => {
                return Err(PEER.error(name, WireProblem::Unexpected { bytes: input.len() }));
            }
            _ => {}
        }
        let Some((&said, rest)) = input.split_first() else { return Ok(()) };
        *input = rest;
        match (&self.step, said) {
            (_, byte::ACCESS_DENIED) => return Err(PEER.error(name, Iperf3Error::Busy)),
            (_, byte::SERVER_TERMINATE) => return Err(PEER.error(name, Iperf3Error::Stopped)),
            (_, byte::SERVER_ERROR) => self.step = Step::Refused(Fixed::new()),
            (Step::Greeting, byte::PARAM_EXCHANGE) => {
                framed(&self.parameters.to_json(), &mut turn.send);
                self.step = Step::Accepting;
            }
            (Step::Accepting, byte::CREATE_STREAMS) => {
                turn.actions.push(Action::OpenStreams);
                self.step = Step::Streams;
            }
            (Step::Streams, byte::TEST_START) => self.step = Step::Starting,
            (Step::Starting, byte::TEST_RUNNING) => {
                turn.actions.push(Action::Run);
                self.step = Step::Running;
            }
            (Step::Ending, byte::EXCHANGE_RESULTS) => {
                turn.actions.push(Action::Results);
                self.step = Step::OwnResults;
            }
            (Step::Display, byte::DISPLAY_RESULTS) => {
                turn.send.push(byte::IPERF_DONE);
                turn.actions.push(Action::Done);
                self.step = Step::Done;
            }
            _ => return Err(PEER.error(name, Iperf3Error::Byte { byte: said })),
        }
        Ok(())
    }

    /// Ends the test.
    ///
    /// # Errors
    /// Where the test is not running.
    pub fn end(&mut self, turn: &mut Turn<Action>) -> Result<(), WireError> {
        if !matches!(self.step, Step::Running) {
            return Err(PEER.error(self.step.name(), Iperf3Error::NotRunning));
        }
        turn.send.push(byte::TEST_END);
        self.step = Step::Ending;
        Ok(())
    }

    /// Sends this end's results, after [`Action::Results`].
    ///
    /// # Errors
    /// Where the server has not requested them.
    pub fn results(&mut self, results: &Results, turn: &mut Turn<Action>) -> Result<(), WireError> {
        if !matches!(self.step, Step::OwnResults) {
            return Err(PEER.error(self.step.name(), Iperf3Error::NotWaiting));
        }
        framed(&results.to_json(), &mut turn.send);
        self.step = Step::ProgramResults(Framed::new(RESULTS_LIMIT));
        Ok(())
    }

    /// Whether the server considers all streams open.
    #[must_use]
    pub fn is_started(&self) -> bool {
        matches!(self.step, Step::Starting | Step::Running)
    }

    /// The user stops the test: tells the server, which then expects nothing more.
    pub fn terminate(&mut self, turn: &mut Turn<Action>) {
        turn.send.push(byte::CLIENT_TERMINATE);
        self.step = Step::Done;
    }

    /// Checks that the connection may end here.
    ///
    /// # Errors
    /// Where the session is not complete.
    pub fn ended(&self) -> Result<(), WireError> {
        match &self.step {
            Step::Done => Ok(()),
            // Version 3.12 leaves the system's error number out of some refusals.
            Step::Refused(words) => Err(refusal(words.so_far())),
            // Servers with users before 3.14 name no reason.
            step @ Step::Accepting => Err(PEER.error(step.name(), self.closed_before_streams())),
            step => Err(PEER.error(step.name(), WireProblem::Closed { end: "server" })),
        }
    }

    fn closed_before_streams(&self) -> Iperf3Error {
        if self.parameters.token.is_some() { Iperf3Error::Login } else { Iperf3Error::NoLogin }
    }
}

/// A server's error: iperf3's number, then the system's.
fn refusal(words: &[u8]) -> WireError {
    let word = |at: usize| words.get(at..).and_then(<[u8]>::first_chunk).map(|word| u32::from_be_bytes(*word));
    let errno = word(4).map(|errno| errno as i32);
    let what = word(0).map_or(Iperf3Error::RefusedSilently, |number| Iperf3Error::Refused { number, errno });
    PEER.error("while reading the server's error", what)
}
