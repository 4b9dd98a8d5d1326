//! The client's end of the control connection.

use super::error::NuttcpError;
use super::options::Options;
use super::report::Report;
use super::{LINE_LIMIT, PEER, greeted, hello};
use crate::framing::{Lines, each};
use crate::{Turn, WireError, WireProblem};

/// Most bytes of the server's report.
const REPORT_LIMIT: usize = 64 << 10;

/// What the client's driver must do.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// The server accepts: connect or listen, as the options say, and move the data.
    Run,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Greeting,
    Accepting,
    Report,
    Failed,
}

/// The control connection of a client.
#[derive(Debug, Clone)]
pub struct Client {
    step: Step,
    options: Options,
    lines: Lines,
    heard: usize,
    report: Report,
}

impl Client {
    /// Opens a control connection; `turn` receives the greeting.
    pub fn open(options: Options, turn: &mut Turn<Action>) -> Self {
        turn.send.extend_from_slice(hello().as_bytes());
        Self { step: Step::Greeting, options, lines: Lines::new(LINE_LIMIT), heard: 0, report: Report::default() }
    }

    /// Processes received bytes.
    ///
    /// # Errors
    /// The server's invalid message or its refusal.
    pub fn receive(&mut self, input: &[u8], turn: &mut Turn<Action>) -> Result<(), WireError> {
        each(input, |rest| self.take(rest, turn)).map_err(|what| {
            let error = PEER.error(self.name(), what);
            self.step = Step::Failed;
            error
        })
    }

    fn take(&mut self, input: &mut &[u8], turn: &mut Turn<Action>) -> Result<(), WireProblem> {
        if self.step == Step::Failed {
            return Err(WireProblem::Unexpected { bytes: input.len() });
        }
        let before = input.len();
        let line = self.lines.take(input)?;
        self.heard += before - input.len();
        if self.heard > REPORT_LIMIT {
            return Err(NuttcpError::ReportTooLong { limit: REPORT_LIMIT }.into());
        }
        let Some(line) = line else { return Ok(()) };
        match self.step {
            Step::Greeting => {
                greeted(line)?;
                turn.send.extend_from_slice(&self.options.to_line());
                self.step = Step::Accepting;
            }
            Step::Accepting if line.starts_with("OK") => {
                turn.actions.push(Action::Run);
                self.step = Step::Report;
            }
            Step::Accepting => return Err(NuttcpError::Refused { line }.into()),
            Step::Report | Step::Failed => self.report.read(&line),
        }
        Ok(())
    }

    /// The server closed the connection, which ends its report.
    ///
    /// # Errors
    /// Where the report holds no figures.
    pub fn ended(&self) -> Result<Report, WireError> {
        if self.step == Step::Report && self.report.bps > 0.0 {
            return Ok(self.report);
        }
        Err(PEER.error(self.name(), WireProblem::Closed { end: "server" }))
    }

    fn name(&self) -> &'static str {
        match self.step {
            Step::Greeting => "while waiting for the greeting",
            Step::Accepting => "while waiting for OK",
            Step::Report => "while reading the server's report",
            Step::Failed => "after an error",
        }
    }
}
