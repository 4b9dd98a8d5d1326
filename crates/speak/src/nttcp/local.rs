//! The local side, which the user started: it says what is done.

use super::options::{OPTIONS_LIMIT, Options};
use super::statistics::Statistics;
use super::{data_port, error, say_port};
use crate::intake::{Lines, each};
use crate::{SpeakError, Turn};

/// Most bytes of chatter that are read before the remote side comes to the point.
const CHATTER_LIMIT: usize = 64 << 10;

/// What the local side's driver has to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Open a data socket, then call [`Local::listening`].
    Listen,
    /// Send the data to this port of the remote host; over TCP after connecting.
    Transmit(u16),
    /// The remote side's statistics are there.
    Theirs(Statistics),
    /// A line of chatter, to be shown or not.
    Chatter(String),
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
    /// A new control connection; `turn` gets the options of the remote side.
    ///
    /// # Errors
    /// Where they do not fit into a line that a remote side reads.
    pub fn open(options: &Options, turn: &mut Turn<Action>) -> Result<Self, SpeakError> {
        let line = options.to_line();
        let one_line = |text: &str| !text.is_empty() && !text.contains(['\n', '\r']);
        if line.len() > OPTIONS_LIMIT || !one_line(&options.format) || !one_line(&options.seed) {
            return Err(error("while saying the options", format!("{} bytes do not fit into a line", line.len())));
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

    /// This end, which receives, waits on `port`.
    ///
    /// # Errors
    /// Where no port was asked for.
    pub fn listening(&mut self, port: u16, turn: &mut Turn<Action>) -> Result<(), SpeakError> {
        if self.step != Step::Listening {
            return Err(error(self.name(), "no data socket was asked for"));
        }
        say_port(port, &mut turn.send);
        self.step = Step::Statistics;
        Ok(())
    }

    /// Takes what arrived.
    ///
    /// # Errors
    /// What the remote side said wrong, or that it failed.
    pub fn receive(&mut self, input: &[u8], turn: &mut Turn<Action>) -> Result<(), SpeakError> {
        each(input, |rest| self.take(rest, turn)).map_err(|what| {
            let error = error(self.name(), what);
            self.step = Step::Failed;
            error
        })
    }

    fn take(&mut self, input: &mut &[u8], turn: &mut Turn<Action>) -> Result<(), String> {
        if self.step == Step::Failed {
            return Err(format!("{} more bytes came", input.len()));
        }
        let before = input.len();
        let line = self.lines.take(input)?;
        self.heard += before - input.len();
        if self.heard > CHATTER_LIMIT {
            return Err(format!("more than {CHATTER_LIMIT} bytes of chatter came"));
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
                turn.actions.push(Action::Theirs(counted));
            }
            // Verbose lines stand apart by empty ones.
            None if line.is_empty() => {}
            None => turn.actions.push(Action::Chatter(line)),
        }
        Ok(())
    }

    /// What it means that the connection ends here.
    ///
    /// # Errors
    /// Where the remote side went before it said what it counted. With a format other than the default its statistics are chatter.
    pub fn ended(&self, default_format: bool) -> Result<(), SpeakError> {
        match self.step {
            Step::Statistics if self.counted || !default_format => Ok(()),
            _ => Err(error(self.name(), "the remote side closed the connection")),
        }
    }

    fn name(&self) -> &'static str {
        match self.step {
            Step::Port => "while waiting for the data port",
            Step::Listening => "while our data port was due",
            Step::Statistics => "while waiting for the statistics",
            Step::Failed => "after an error",
        }
    }
}
