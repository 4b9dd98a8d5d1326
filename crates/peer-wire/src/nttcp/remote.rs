//! The remote side, which inetd or `nttcp -i` starts for each control connection.

use super::error::NttcpError;
use super::options::{OPTIONS_LIMIT, Options};
use super::statistics::{Statistics, StatisticsFormat};
use super::{PEER, data_port, write_port};
use crate::framing::{Lines, each};
use crate::{Turn, WireError, WireProblem};

/// What the remote side's driver must do.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Check the request. To receive, open a data socket and call [`Remote::listening`]; to send, wait for
    /// [`Action::Transmit`].
    Requested(Box<Options>),
    /// Send the data to this port of the local host; over TCP after connecting.
    Transmit(u16),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Options,
    Listening,
    Port,
    Data,
    Done,
    Failed,
}

/// The control connection of a remote side.
#[derive(Debug, Clone)]
pub struct Remote {
    step: Step,
    lines: Lines,
    format: Option<StatisticsFormat>,
    mark: char,
}

impl Default for Remote {
    fn default() -> Self {
        Self { step: Step::Options, lines: Lines::new(OPTIONS_LIMIT), format: None, mark: '1' }
    }
}

impl Remote {
    /// Processes received bytes. After an error `turn` contains a message for the local side.
    ///
    /// # Errors
    /// The local side's invalid message.
    pub fn receive(&mut self, input: &[u8], turn: &mut Turn<Action>) -> Result<(), WireError> {
        each(input, |rest| self.take(rest, turn)).map_err(|what| {
            let error = PEER.error(self.name(), what);
            if self.step != Step::Failed {
                turn.send.extend_from_slice(format!("nttcp-{}: {}\n", self.mark, error.what).as_bytes());
            }
            self.step = Step::Failed;
            error
        })
    }

    fn take(&mut self, input: &mut &[u8], turn: &mut Turn<Action>) -> Result<(), WireProblem> {
        if !matches!(self.step, Step::Options | Step::Port) {
            return Err(WireProblem::Unexpected { bytes: input.len() });
        }
        let Some(line) = self.lines.take(input)? else { return Ok(()) };
        if self.step == Step::Port {
            // nttcp ignores lines until one names a port.
            let Some(port) = data_port(&line) else { return Ok(()) };
            turn.actions.push(Action::Transmit(port?));
            self.step = Step::Data;
            return Ok(());
        }
        let options = Options::from_line(&line)?;
        self.format = Some(StatisticsFormat::new(&options.format)?);
        self.mark = char::from(b'0' + options.number % 10);
        self.step = if options.transmits { Step::Port } else { Step::Listening };
        turn.actions.push(Action::Requested(Box::new(options)));
        Ok(())
    }

    /// Tells the other side that this receiver listens on `port`.
    ///
    /// # Errors
    /// Where no port was requested.
    pub fn listening(&mut self, port: u16, turn: &mut Turn<Action>) -> Result<(), WireError> {
        if self.step != Step::Listening {
            return Err(PEER.error(self.name(), NttcpError::NotRequested));
        }
        write_port(port, &mut turn.send);
        self.step = Step::Data;
        Ok(())
    }

    /// The data is complete: sends this end's counts. Close the connection afterwards.
    ///
    /// # Errors
    /// Where no data flowed.
    pub fn counted(&mut self, counted: &Statistics, turn: &mut Turn<Action>) -> Result<(), WireError> {
        let Some(format) = self.format.as_ref().filter(|_| self.step == Step::Data) else {
            return Err(PEER.error(self.name(), WireProblem::NothingToCount));
        };
        turn.send.extend_from_slice(format.line(self.mark, counted).as_bytes());
        self.step = Step::Done;
        Ok(())
    }

    /// Refuses the request; the local side shows `why`.
    pub fn refuse(&mut self, why: &str, turn: &mut Turn<Action>) {
        let why: String = why.chars().filter(|c| !c.is_control()).collect();
        turn.send.extend_from_slice(format!("nttcp-{}: {why}\n", self.mark).as_bytes());
        self.step = Step::Failed;
    }

    /// Checks that the connection may end here.
    ///
    /// # Errors
    /// Where the session is not complete.
    pub fn ended(&self) -> Result<(), WireError> {
        if self.step == Step::Done {
            Ok(())
        } else {
            Err(PEER.error(self.name(), WireProblem::Closed { end: "local side" }))
        }
    }

    fn name(&self) -> &'static str {
        match self.step {
            Step::Options => "while reading the options",
            Step::Listening => "before our data port was sent",
            Step::Port => "while waiting for the data port",
            Step::Data => "while data flowed",
            Step::Done => "at the end",
            Step::Failed => "after an error",
        }
    }
}
