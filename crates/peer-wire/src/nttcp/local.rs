//! The local side, which the user starts and which sets the options.

use super::error::NttcpError;
use super::options::{OPTIONS_LIMIT, Options};
use super::statistics::Statistics;
use super::{PEER, data_port, write_port};
use crate::framing::{Lines, each};
use crate::{Turn, WireError, WireProblem};

/// Longest verbose output of the remote side before its next message, bytes.
const VERBOSE_LIMIT: usize = 64 << 10;

/// What the local side's driver must do.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Open a data socket, then call [`Local::listening`].
    Listen,
    /// Send the data to this port of the remote host; over TCP after connecting.
    Transmit(u16),
    /// The remote side's statistics have arrived.
    PeerStatistics(Statistics),
    /// A line of verbose output, to be shown or not.
    Verbose(String),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Port,
    Listening,
    Statistics,
    Failed,
}

/// The control connection of a local side.
#[derive(Debug, Clone)]
pub struct Local {
    step: Step,
    lines: Lines,
    heard: usize,
    counted: bool,
}

impl Local {
    /// Opens a control connection; `turn` receives the remote side's options.
    ///
    /// # Errors
    /// Where they do not fit into a line that a remote side reads.
    pub fn open(options: &Options, turn: &mut Turn<Action>) -> Result<Self, WireError> {
        let line = options.to_line();
        let one_line = |text: &str| !text.is_empty() && !text.contains(['\n', '\r']);
        if line.len() > OPTIONS_LIMIT || !one_line(&options.format) || !one_line(&options.seed) {
            return Err(PEER.error("while sending the options", NttcpError::OptionsTooLong { bytes: line.len() }));
        }
        turn.send.extend_from_slice(&line);
        let step = if options.transmits {
            turn.actions.push(Action::Listen);
            Step::Listening
        } else {
            Step::Port
        };
        Ok(Self { step, lines: Lines::new(OPTIONS_LIMIT), heard: 0, counted: false })
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
        self.step = Step::Statistics;
        Ok(())
    }

    /// Processes received bytes.
    ///
    /// # Errors
    /// The remote side's invalid message, or its failure.
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
        if self.heard > VERBOSE_LIMIT {
            return Err(NttcpError::Verbose { limit: VERBOSE_LIMIT }.into());
        }
        let Some(line) = line else { return Ok(()) };
        if self.step == Step::Port
            && let Some(port) = data_port(&line)
        {
            turn.actions.push(Action::Transmit(port?));
            self.step = Step::Statistics;
            return Ok(());
        }
        match Statistics::from_line(&line).filter(|_| self.step == Step::Statistics && !self.counted) {
            Some((_, counted)) => {
                self.counted = true;
                turn.actions.push(Action::PeerStatistics(counted));
            }
            // Empty lines separate verbose lines.
            None if line.is_empty() => {}
            None => turn.actions.push(Action::Verbose(line)),
        }
        Ok(())
    }

    /// Checks that the connection may end here.
    ///
    /// # Errors
    /// Where the remote side closed before its statistics. With a format other than the default its statistics
    /// are verbose output.
    pub fn ended(&self, default_format: bool) -> Result<(), WireError> {
        match self.step {
            Step::Statistics if self.counted || !default_format => Ok(()),
            _ => Err(PEER.error(self.name(), WireProblem::Closed { end: "remote side" })),
        }
    }

    fn name(&self) -> &'static str {
        match self.step {
            Step::Port => "while waiting for the data port",
            Step::Listening => "before our data port was sent",
            Step::Statistics => "while waiting for the statistics",
            Step::Failed => "after an error",
        }
    }
}
