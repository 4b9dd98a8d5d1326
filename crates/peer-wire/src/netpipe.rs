//! NetPIPE 3.7.2's NPtcp: one connection on which marks ("SyncMe", a repeat count, a time, "QUIT") stand between messages that
//! have no frame at all. Both ends follow the same schedule, which their users have to give to both; only the repeat count and,
//! when streaming, the time cross the wire.
//!
//! ```text
//! sync, 100 round trips of the first size, sync, [reset]
//! for each size: sync, count ->, three times (sync, exchange, [reset]), [<- time when streaming]
//! QUIT -> <- QUIT
//! ```
//!
//! A sync is "SyncMe" from both ends. A reset is the QUIT handshake and a new connection. Version 5 needs MPI and speaks otherwise.

mod error;
mod passage;
mod schedule;

use std::collections::VecDeque;

pub use error::NetpipeError;
pub use passage::Passage;
pub use schedule::{Exchange, Mode, SizePlan};

use crate::framing::Fixed;
use crate::{Peer, Turn, WireError, WireProblem};

/// NetPIPE and the port of its server.
pub const PEER: Peer = Peer { name: "netpipe", port: 5002 };

/// The first bytes of a connection, and of each synchronisation after them.
pub const MARK: &[u8; 6] = b"SyncMe";
const QUIT: &[u8; 5] = b"QUIT\0";

/// Round trips before the first size.
const WARM_UP: u32 = 100;

/// NPtcp times each point for about this long, in seconds, with at least [`LEAST_COUNT`] exchanges.
const TARGET_S: f64 = 0.1;
const LEAST_COUNT: u32 = 3;

/// NPtcp stops when an exchange takes this long, in seconds.
const LONGEST_S: f64 = 1.0;

/// The role of an end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndRole {
    /// The end with `-h`, which measures time and chooses counts.
    Transmitter,
    /// The one that listens.
    Receiver,
}

/// What the driver must do.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Move messages, then call [`Netpipe::exchanged`]. The next bytes on the connection are messages, not marks.
    Exchange(Exchange),
    /// Send all bytes of the passage while receiving all that it expects, then call [`Netpipe::passed`].
    Pass(Passage),
    /// Close this connection, make a new one, then call [`Netpipe::reconnected`].
    Reset,
    /// A size is done.
    Point {
        /// Bytes of a message.
        bytes: u64,
        /// Exchanges of each trial.
        count: u32,
        /// NetPIPE's time in seconds, the shortest of the trials: half a round trip, or the whole exchange if
        /// both ends send at once or only one sends. When streaming it is the receiver's time.
        seconds: f64,
    },
    /// The session is complete: close the connection.
    Done,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Step {
    Sync,
    /// A sync; the transmitter may quit instead.
    SyncOrQuit,
    WarmUp,
    Pass,
    Count,
    Trial,
    Quit,
    Reconnect,
    Time,
    Point,
    Failed,
}

/// One end of a run.
#[derive(Debug, Clone)]
pub struct Netpipe {
    role: EndRole,
    plan: SizePlan,
    steps: VecDeque<Step>,
    next: usize,
    count: u32,
    target_s: f64,
    best_s: f64,
    /// NetPIPE's time of the last timed size, and its bytes.
    last_s: f64,
    last_bytes: u64,
    /// Sizes before `next` that are passed now.
    passing: usize,
    sync: Fixed<6>,
    word: Fixed<4>,
    quit: Fixed<5>,
    quitting: bool,
    done: bool,
}

impl Netpipe {
    /// Opens a connection; `turn` receives the first message.
    pub fn open(role: EndRole, plan: SizePlan, turn: &mut Turn<Action>) -> Self {
        let mut steps = VecDeque::from([Step::Sync, Step::WarmUp, Step::Sync]);
        if plan.resets() {
            steps.extend([Step::Quit, Step::Reconnect]);
        }
        let mut this = Self {
            role,
            last_bytes: plan.first,
            plan,
            steps,
            next: 0,
            count: 0,
            target_s: TARGET_S,
            best_s: f64::INFINITY,
            last_s: 0.0,
            passing: 0,
            sync: Fixed::new(),
            word: Fixed::new(),
            quit: Fixed::new(),
            quitting: false,
            done: false,
        };
        this.enter(turn);
        this
    }

    /// Sets how long a trial is to take. NPtcp's own takes 0.1 s, or twice that if messages come back. The receiver accepts any count.
    pub fn aim(&mut self, seconds: f64) {
        self.target_s = seconds / self.halves();
    }

    /// How many of NetPIPE's times an exchange takes: two if messages come back.
    fn halves(&self) -> f64 {
        if self.plan.mode == Mode::PingPong { 2.0 } else { 1.0 }
    }

    /// Sizes that are still to be timed, and the trials of each.
    #[must_use]
    pub fn left(&self) -> (usize, usize) {
        let left = self.plan.sizes[self.next..].iter().filter(|size| self.plan.is_timed(**size));
        (left.count(), self.plan.trials())
    }

    /// Whether this end is quitting: all sizes are done, or one took too long.
    #[must_use]
    pub fn is_quitting(&self) -> bool {
        self.quitting
    }

    /// Whether a receiver that closes the connection here has reached the end of its own sizes. With `-2` the
    /// end depends on its socket buffers, which the transmitter does not know. Such a receiver waits for QUIT,
    /// reads as many bytes of the next SyncMe instead, and sends them back before it closes.
    #[must_use]
    pub fn is_at_limit(&self) -> bool {
        let between = self.steps.front() == Some(&Step::SyncOrQuit) && self.next > 1;
        let echoed = self.sync.so_far() == &MARK[..QUIT.len()];
        self.role == EndRole::Transmitter && self.plan.mode == Mode::Both && between && echoed
    }

    /// Whether the exchange that is due belongs to a size, and not to the warm-up.
    #[must_use]
    pub fn is_timed(&self) -> bool {
        self.steps.front() == Some(&Step::Trial)
    }

    /// The error of a receiver that sends a message although it has received none.
    #[must_use]
    pub fn unasked(&self) -> WireError {
        self.error(NetpipeError::Unasked)
    }

    /// Removes marks from the front of `input`. The rest belongs to the exchange that `turn` requests, or is
    /// unexpected.
    ///
    /// # Errors
    /// The peer's invalid message.
    pub fn receive(&mut self, input: &mut &[u8], turn: &mut Turn<Action>) -> Result<(), WireError> {
        while !input.is_empty()
            && !matches!(self.steps.front(), Some(Step::WarmUp | Step::Pass | Step::Trial | Step::Reconnect))
        {
            if let Err(what) = self.take(input, turn) {
                let error = self.error(what);
                self.steps = VecDeque::from([Step::Failed]);
                return Err(error);
            }
        }
        Ok(())
    }

    fn take(&mut self, input: &mut &[u8], turn: &mut Turn<Action>) -> Result<(), WireProblem> {
        match self.steps.front() {
            Some(Step::SyncOrQuit)
                if self.role == EndRole::Receiver
                    && self.sync.so_far().is_empty()
                    && (!self.quit.so_far().is_empty() || input.first() == QUIT.first()) =>
            {
                let Some(quit) = self.quit.take(input) else { return Ok(()) };
                expect(&quit, QUIT)?;
                turn.send.extend_from_slice(QUIT);
                self.finish(turn);
            }
            Some(Step::Sync | Step::SyncOrQuit) => {
                let Some(sync) = self.sync.take(input) else { return Ok(()) };
                expect(&sync, MARK)?;
                self.sync = Fixed::new();
                self.leave(turn);
            }
            Some(Step::Count) => {
                let Some(word) = self.word.take(input) else { return Ok(()) };
                self.word = Fixed::new();
                self.count = u32::from_be_bytes(word);
                if self.count == 0 {
                    return Err(NetpipeError::NoRepeats.into());
                }
                self.leave(turn);
            }
            Some(Step::Time) => {
                let Some(word) = self.word.take(input) else { return Ok(()) };
                self.word = Fixed::new();
                // Units of 10 ns; 0 counts as 1 µs, as in NPtcp.
                let units = u32::from_be_bytes(word);
                self.best_s = if units == 0 { 1e-6 } else { f64::from(units) / 1e8 };
                self.leave(turn);
            }
            Some(Step::Quit) => {
                let Some(quit) = self.quit.take(input) else { return Ok(()) };
                expect(&quit, QUIT)?;
                self.quit = Fixed::new();
                if self.role == EndRole::Receiver {
                    turn.send.extend_from_slice(QUIT);
                }
                self.leave(turn);
            }
            _ => return Err(WireProblem::Unexpected { bytes: input.len() }),
        }
        Ok(())
    }

    /// The exchange took `elapsed_s` seconds in all.
    ///
    /// # Errors
    /// Where no exchange was requested.
    pub fn exchanged(&mut self, elapsed_s: f64, turn: &mut Turn<Action>) -> Result<(), WireError> {
        match self.steps.front() {
            Some(Step::WarmUp) => self.last_s = elapsed_s / f64::from(2 * WARM_UP),
            Some(Step::Trial) => {
                let once = (elapsed_s / f64::from(self.count) / self.halves()).max(1e-9);
                self.best_s = self.best_s.min(once);
            }
            _ => return Err(self.error(NetpipeError::NoExchangeDue)),
        }
        self.leave(turn);
        Ok(())
    }

    /// The passage has ended after `elapsed_s` seconds.
    ///
    /// # Errors
    /// Where none was requested.
    pub fn passed(&mut self, elapsed_s: f64, turn: &mut Turn<Action>) -> Result<(), WireError> {
        match self.steps.front() {
            // All its messages were on their way at once: about one round trip, at most.
            Some(Step::WarmUp) => self.last_s = elapsed_s / 2.0,
            Some(Step::Pass) => {}
            _ => return Err(self.error(NetpipeError::NoExchangeDue)),
        }
        self.leave(turn);
        Ok(())
    }

    /// The new connection is open.
    ///
    /// # Errors
    /// Where none was requested.
    pub fn reconnected(&mut self, turn: &mut Turn<Action>) -> Result<(), WireError> {
        if self.steps.front() != Some(&Step::Reconnect) {
            return Err(self.error(NetpipeError::NoConnectionDue));
        }
        self.leave(turn);
        Ok(())
    }

    /// Checks that the connection may end here.
    ///
    /// # Errors
    /// Where the session is not complete.
    pub fn ended(&self) -> Result<(), WireError> {
        match self.steps.front() {
            _ if self.done => Ok(()),
            Some(Step::Reconnect) => Ok(()),
            _ => Err(self.error(WireProblem::Closed { end: "peer" })),
        }
    }

    fn leave(&mut self, turn: &mut Turn<Action>) {
        self.steps.pop_front();
        self.enter(turn);
    }

    /// Runs the steps that do not need the peer.
    fn enter(&mut self, turn: &mut Turn<Action>) {
        loop {
            let Some(step) = self.steps.front().copied() else {
                if !self.schedule() {
                    if self.quitting {
                        self.finish(turn);
                        return;
                    }
                    self.quitting = true;
                    self.steps.push_back(Step::Quit);
                }
                continue;
            };
            let transmits = self.role == EndRole::Transmitter;
            match step {
                Step::Sync | Step::SyncOrQuit => turn.send.extend_from_slice(MARK),
                Step::WarmUp if transmits && !self.plan.only.is_empty() => {
                    turn.actions.push(Action::Pass(Passage::of_messages(self.plan.first, WARM_UP)));
                }
                Step::Pass => {
                    let sizes = &self.plan.sizes[self.next - self.passing..self.next];
                    turn.actions.push(Action::Pass(Passage::of_sizes(sizes, self.plan.trials())));
                }
                Step::WarmUp => turn.actions.push(Action::Exchange(self.plan.warm_up(WARM_UP))),
                Step::Trial => {
                    turn.actions.push(Action::Exchange(self.plan.exchange(self.next - 1, self.count)));
                }
                Step::Count if transmits => {
                    self.count = self.plan.count.unwrap_or_else(|| self.estimate());
                    turn.send.extend_from_slice(&self.count.to_be_bytes());
                    self.steps.pop_front();
                    continue;
                }
                Step::Time if !transmits => {
                    turn.send.extend_from_slice(&((self.best_s * 1e8) as u32).to_be_bytes());
                    self.steps.pop_front();
                    continue;
                }
                Step::Quit if transmits => turn.send.extend_from_slice(QUIT),
                Step::Reconnect => turn.actions.push(Action::Reset),
                Step::Point => {
                    let bytes = self.plan.sizes[self.next - 1];
                    turn.actions.push(Action::Point { bytes, count: self.count, seconds: self.best_s });
                    (self.last_s, self.last_bytes) = (self.best_s, bytes);
                    self.steps.pop_front();
                    continue;
                }
                Step::Count | Step::Time | Step::Quit | Step::Failed => {}
            }
            return;
        }
    }

    /// Schedules the next size; false if there is none. Only the transmitter stops for slowness, because the
    /// two ends may disagree.
    fn schedule(&mut self) -> bool {
        let slow = self.role == EndRole::Transmitter && self.last_s >= LONGEST_S;
        if self.quitting || slow || self.left().0 == 0 {
            return false;
        }
        let untimed = self.plan.sizes[self.next..].iter().take_while(|size| !self.plan.is_timed(**size));
        self.passing = untimed.count();
        if self.passing > 0 {
            self.next += self.passing;
            self.steps.push_back(Step::Pass);
            return true;
        }
        self.next += 1;
        self.best_s = f64::INFINITY;
        self.steps.extend([Step::SyncOrQuit, Step::Count]);
        for _ in 0..self.plan.trials() {
            self.steps.extend([Step::Sync, Step::Trial]);
            if self.plan.resets() {
                self.steps.extend([Step::Quit, Step::Reconnect]);
            }
        }
        if self.plan.mode == Mode::Stream {
            self.steps.push_back(Step::Time);
        }
        self.steps.push_back(Step::Point);
        true
    }

    /// The repeat count for about the target time, if time grows in proportion to size. The receiver accepts
    /// any count.
    fn estimate(&self) -> u32 {
        let grown = self.plan.sizes[self.next - 1] as f64 / self.last_bytes.max(1) as f64;
        ((self.target_s / (grown.max(1.0) * self.last_s.max(1e-9))) as u32).max(LEAST_COUNT)
    }

    fn finish(&mut self, turn: &mut Turn<Action>) {
        self.steps.clear();
        self.done = true;
        turn.actions.push(Action::Done);
    }

    fn error(&self, what: impl Into<WireProblem>) -> WireError {
        let step = match self.steps.front() {
            _ if self.done => "at the end",
            Some(Step::Sync | Step::SyncOrQuit) => "while waiting for SyncMe",
            Some(Step::WarmUp | Step::Pass | Step::Trial) => "during an exchange",
            Some(Step::Count) => "while reading the repeat count",
            Some(Step::Time) => "while reading the receiver's time",
            Some(Step::Quit) => "while waiting for QUIT",
            Some(Step::Reconnect) => "while a new connection was made",
            Some(Step::Point | Step::Failed) | None => "after an error",
        };
        PEER.error(step, what)
    }
}

fn expect(came: &[u8], mark: &'static [u8]) -> Result<(), NetpipeError> {
    if came == mark { Ok(()) } else { Err(NetpipeError::Mark { expected: mark, received: came.into() }) }
}
