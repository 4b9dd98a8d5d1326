//! The server's end of the control connection.

use super::options::Options;
use super::report::{INTERIM_END, Report};
use super::{LINE_LIMIT, PEER, VERSION, greeted, hello};
use crate::framing::{Lines, each};
use crate::{Turn, WireError, WireProblem};

/// What the server's driver must do.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Check the client's request, listen if this end must, then call [`Server::accept`] or [`Server::refuse`].
    Requested(Box<Options>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Greeting,
    Options,
    Checking,
    Data,
    Done,
    Failed,
}

/// The control connection of a server.
#[derive(Debug, Clone)]
pub struct Server {
    step: Step,
    lines: Lines,
    parse: bool,
    /// Interim reports are sent while data flows.
    interim: bool,
}

impl Default for Server {
    fn default() -> Self {
        Self { step: Step::Greeting, lines: Lines::new(LINE_LIMIT), parse: false, interim: false }
    }
}

impl Server {
    /// Processes received bytes. After an error `turn` may contain a refusal for the client.
    ///
    /// # Errors
    /// The client's invalid message.
    pub fn receive(&mut self, input: &[u8], turn: &mut Turn<Action>) -> Result<(), WireError> {
        each(input, |rest| self.take(rest, turn)).map_err(|what| {
            let error = PEER.error(self.name(), what);
            if self.step != Step::Failed {
                turn.send.extend_from_slice(b"KO\n");
            }
            self.step = Step::Failed;
            error
        })
    }

    fn take(&mut self, input: &mut &[u8], turn: &mut Turn<Action>) -> Result<(), WireProblem> {
        if !matches!(self.step, Step::Greeting | Step::Options) {
            return Err(WireProblem::Unexpected { bytes: input.len() });
        }
        let Some(line) = self.lines.take(input)? else { return Ok(()) };
        if self.step == Step::Greeting {
            greeted(line)?;
            turn.send.extend_from_slice(hello().as_bytes());
            self.step = Step::Options;
        } else {
            let options = Options::from_line(&line)?;
            (self.parse, self.interim) = (options.parse, options.reports_interim());
            turn.actions.push(Action::Requested(Box::new(options)));
            self.step = Step::Checking;
        }
        Ok(())
    }

    /// Accepts the client.
    ///
    /// # Errors
    /// Where no options are pending.
    pub fn accept(&mut self, turn: &mut Turn<Action>) -> Result<(), WireError> {
        if self.step != Step::Checking {
            return Err(PEER.error(self.name(), WireProblem::NotServersTurn));
        }
        turn.send.extend_from_slice(format!("OK v{VERSION}\n").as_bytes());
        self.step = Step::Data;
        Ok(())
    }

    /// Refuses the client.
    pub fn refuse(&mut self, turn: &mut Turn<Action>) {
        turn.send.extend_from_slice(b"KO\n");
        self.step = Step::Done;
    }

    /// The data is complete: sends this end's counts. Close the connection afterwards.
    ///
    /// # Errors
    /// Where no data flowed.
    pub fn counted(&mut self, report: &Report, turn: &mut Turn<Action>) -> Result<(), WireError> {
        if self.step != Step::Data {
            return Err(PEER.error(self.name(), WireProblem::NothingToCount));
        }
        let text = if self.parse { report.to_pairs() } else { report.to_text() };
        if self.interim {
            turn.send.extend_from_slice(INTERIM_END);
        }
        turn.send.extend_from_slice(text.as_bytes());
        self.step = Step::Done;
        Ok(())
    }

    /// Checks that the connection may end here.
    ///
    /// # Errors
    /// Where the session is not complete.
    pub fn ended(&self) -> Result<(), WireError> {
        if self.step == Step::Done {
            Ok(())
        } else {
            Err(PEER.error(self.name(), WireProblem::Closed { end: "client" }))
        }
    }

    fn name(&self) -> &'static str {
        match self.step {
            Step::Greeting => "while waiting for the greeting",
            Step::Options => "while reading the options",
            Step::Checking => "while checking the options",
            Step::Data => "while data flowed",
            Step::Done => "at the end",
            Step::Failed => "after an error",
        }
    }
}
