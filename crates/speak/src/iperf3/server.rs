//! The server's end of the control connection.

use super::fault::Fault;
use super::parameters::{PARAMETERS_LIMIT, Parameters};
use super::results::{RESULTS_LIMIT, Results};
use super::{byte, error};
use crate::intake::{Framed, each, framed};
use crate::{SpeakError, Turn};

/// All that a server says to a client that it cannot serve now, before it closes the connection; also to a stream whose
/// cookie is wrong.
pub const REFUSAL: [u8; 1] = [byte::ACCESS_DENIED];

/// What the server's driver has to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Weigh what the client asks for, open the listener, then call [`Server::accept`] or [`Server::refuse`].
    Requested(Box<Parameters>),
    /// The client's test is over: count, close the streams, then call [`Server::exchange`].
    End,
    /// The client's results are there: call [`Server::results`] with this end's.
    Theirs(Results),
    /// The client stopped early: close everything.
    Terminated,
    /// All is said: close the connection.
    Done,
}

#[derive(Debug, Clone)]
enum Step {
    Parameters(Framed),
    Weighing,
    Streams,
    Running,
    Ending,
    TheirResults(Framed),
    OurResults,
    Last,
    Done,
    Failed,
}

impl Step {
    fn name(&self) -> &'static str {
        match self {
            Self::Parameters(_) => "while reading the parameters",
            Self::Weighing => "while the parameters were weighed",
            Self::Streams => "while the streams were opened",
            Self::Running => "while data flowed",
            Self::Ending => "while the streams were closed",
            Self::TheirResults(_) => "while reading the client's results",
            Self::OurResults => "while our results were due",
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
    /// A control connection whose cookie has come; `turn` gets the request for parameters.
    pub fn open(turn: &mut Turn<Action>) -> Self {
        turn.send.push(byte::PARAM_EXCHANGE);
        Self { step: Step::Parameters(Framed::new(PARAMETERS_LIMIT)), streams: 0 }
    }

    /// Takes what arrived. Where the client is to be told what was wrong, `turn` has the bytes for it even then.
    ///
    /// # Errors
    /// What the client said wrong.
    pub fn receive(&mut self, input: &[u8], turn: &mut Turn<Action>) -> Result<(), SpeakError> {
        each(input, |rest| self.take(rest, turn)).inspect_err(|_| self.step = Step::Failed)
    }

    fn take(&mut self, input: &mut &[u8], turn: &mut Turn<Action>) -> Result<(), SpeakError> {
        let name = self.step.name();
        match &mut self.step {
            Step::Parameters(parameters) => {
                let refused = |what| (Fault::Parameters, what);
                let requested = match parameters.take(input).map_err(refused) {
                    Ok(None) => return Ok(()),
                    Ok(Some(json)) => Parameters::from_json(&json),
                    Err(refused) => Err(refused),
                };
                let requested = requested.map_err(|(fault, what)| {
                    say(fault, turn);
                    error(name, what)
                })?;
                self.streams = requested.streams();
                turn.actions.push(Action::Requested(Box::new(requested)));
                self.step = Step::Weighing;
                return Ok(());
            }
            Step::TheirResults(results) => {
                let refused = |what| error(name, what);
                let Some(json) = results.take(input).map_err(refused)? else { return Ok(()) };
                let theirs = Results::from_json(&json, self.streams).map_err(|what| {
                    say(Fault::Results, turn);
                    error(name, what)
                })?;
                turn.actions.push(Action::Theirs(theirs));
                self.step = Step::OurResults;
                return Ok(());
            }
            Step::Done | Step::Failed => return Err(error(name, format!("{} more bytes came", input.len()))),
            _ => {}
        }
        let (&said, rest) = input.split_first().ok_or_else(|| error(name, "nothing came"))?;
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
            _ => return Err(error(name, format!("byte {said} came"))),
        }
        Ok(())
    }

    /// The listener for the streams is ready.
    ///
    /// # Errors
    /// Where no parameters wait for an answer.
    pub fn accept(&mut self, turn: &mut Turn<Action>) -> Result<(), SpeakError> {
        self.go(matches!(self.step, Step::Weighing), Step::Streams, &[byte::CREATE_STREAMS], turn)
    }

    /// The client is not served: it is told why, and nothing more is taken from it.
    pub fn refuse(&mut self, fault: Fault, turn: &mut Turn<Action>) {
        say(fault, turn);
        self.step = Step::Done;
    }

    /// This process is told to stop: so is the client.
    pub fn terminate(&mut self, turn: &mut Turn<Action>) {
        turn.send.push(byte::SERVER_TERMINATE);
        self.step = Step::Done;
    }

    /// All streams are there.
    ///
    /// # Errors
    /// Where no streams were awaited.
    pub fn start(&mut self, turn: &mut Turn<Action>) -> Result<(), SpeakError> {
        let ready = matches!(self.step, Step::Streams);
        self.go(ready, Step::Running, &[byte::TEST_START, byte::TEST_RUNNING], turn)
    }

    /// The streams are counted and closed.
    ///
    /// # Errors
    /// Where the client has not ended the test.
    pub fn exchange(&mut self, turn: &mut Turn<Action>) -> Result<(), SpeakError> {
        let next = Step::TheirResults(Framed::new(RESULTS_LIMIT));
        self.go(matches!(self.step, Step::Ending), next, &[byte::EXCHANGE_RESULTS], turn)
    }

    /// What this end counted, after [`Action::Theirs`].
    ///
    /// # Errors
    /// Where the client's results have not come.
    pub fn results(&mut self, results: &Results, turn: &mut Turn<Action>) -> Result<(), SpeakError> {
        let mut bytes = Vec::new();
        framed(&results.to_json(), &mut bytes);
        bytes.push(byte::DISPLAY_RESULTS);
        self.go(matches!(self.step, Step::OurResults), Step::Last, &bytes, turn)
    }

    fn go(&mut self, ready: bool, next: Step, say: &[u8], turn: &mut Turn<Action>) -> Result<(), SpeakError> {
        if !ready {
            return Err(error(self.step.name(), "it is not the server's turn"));
        }
        turn.send.extend_from_slice(say);
        self.step = next;
        Ok(())
    }

    /// What it means that the connection ends here.
    ///
    /// # Errors
    /// Where something was still to come. A client may close once it has the results.
    pub fn ended(&self) -> Result<(), SpeakError> {
        match &self.step {
            Step::Last | Step::Done => Ok(()),
            step => Err(error(step.name(), "the client closed the connection")),
        }
    }
}

fn say(fault: Fault, turn: &mut Turn<Action>) {
    turn.send.push(byte::SERVER_ERROR);
    turn.send.extend_from_slice(&fault.number().to_be_bytes());
    turn.send.extend_from_slice(&0_u32.to_be_bytes());
}
