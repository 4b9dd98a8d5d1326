//! What happens to an agent, and what it does.

use std::net::SocketAddr;
use std::time::Duration;

use model::{Change, EndResult, Reading, Setting};
use text::Text;

use super::SessionEnd;
use crate::message::{Cause, FromAgent, Obstacle, PathFacts, Prepare, ToAgent, WireRendezvous};
use crate::worker_message::{FromWorker, WorkerDone};

/// What happens to a session.
#[derive(Debug)]
pub enum Event {
    /// Its coordinator sent a message.
    Message(Box<ToAgent>),
    /// The queue has moved.
    Turn,
    /// The session's deadline has passed.
    Timer,
    /// Its connection has ended.
    Gone,
    /// The answer to [`Action::SetUp`]: where the agent's own port listens for all workers, or nothing if each worker says it.
    SetUp(Result<Option<Vec<WireRendezvous>>, NotSetUp>),
    /// A worker sent a message.
    Worker {
        /// Which one.
        index: usize,
        /// What.
        message: Box<FromWorker>,
        /// A round trip of the control connection.
        round_trip: Duration,
    },
    /// A worker process has ended.
    WorkerGone {
        /// Why, in words that continue a sentence.
        reason: Text,
    },
    /// The answer to [`Action::Finish`].
    Finished(Box<EndResult>),
    /// The answer to [`Action::ProbePath`], which comes at any time.
    PathProbed(Box<PathFacts>),
    /// The answer to [`Action::Tune`].
    Tuned(Result<Tuned, NotTuned>),
    /// The answer to [`Action::Undo`].
    Undone,
    /// The answer to [`Action::KeepChanges`].
    KeptChanges(Result<(), NotTuned>),
    /// The answer to [`Action::Revert`].
    Reverted(Vec<Change>),
    /// The helper that made the session's changes has ended, and they are reverted.
    ChangesLost,
    /// The answer to [`Action::PutBack`].
    PutBack,
}

/// A trial cannot be set up.
#[derive(Debug, Clone, PartialEq)]
pub struct NotSetUp {
    /// The reason and the remedy.
    pub reason: Text,
    /// The kind of failure.
    pub cause: Cause,
}

/// Settings that were changed.
#[derive(Debug, Clone, PartialEq)]
pub struct Tuned {
    /// Each change.
    pub changes: Vec<Change>,
    /// Number of this session's changes before.
    pub mark: usize,
    /// Whether one of them may cut the control connection.
    pub cuts: bool,
}

/// No setting was changed.
#[derive(Debug, Clone, PartialEq)]
pub struct NotTuned {
    /// The reason and the remedy.
    pub reason: Text,
    /// The kind of obstacle.
    pub obstacle: Obstacle,
    /// The helper has ended, and the session's earlier changes are reverted.
    pub lost: bool,
}

/// What is to be done for a session.
#[derive(Debug)]
pub enum Action {
    /// Send this message.
    Send(Box<FromAgent>),
    /// Do what this message requests, and send the answer: it concerns the host only.
    Answer(Box<ToAgent>),
    /// Write a line about the coordinator to the log.
    Log(Text),
    /// Start the workers for a trial; answered by [`Event::SetUp`].
    SetUp(Box<Prepare>),
    /// All workers listen: begin the capture that the trial may request, and send `listening`.
    Listening(Vec<WireRendezvous>),
    /// All connections are up, these if packets are captured: accept no others, and send `armed`.
    Armed(Vec<[SocketAddr; 2]>),
    /// Begin to watch the host, and start the workers.
    Start,
    /// Make the workers end the trial.
    Abort,
    /// End the workers: their state is unknown.
    EndWorkers,
    /// Send a reading. One of the first worker has the host's CPU time.
    Report {
        /// The worker.
        index: usize,
        /// Its counts.
        reading: Reading,
    },
    /// Merge what the workers measured and what the host did, and keep it if the coordinator wants that; answered by
    /// [`Event::Finished`].
    Finish(Box<Ended>),
    /// Probe a path, beside everything else; answered by [`Event::PathProbed`].
    ProbePath(Box<ToAgent>),
    /// Change settings; answered by [`Event::Tuned`].
    Tune {
        /// The purpose, for the journal.
        command: String,
        /// The settings.
        settings: Vec<Setting>,
    },
    /// Revert the session's changes after the first `mark`; answered by [`Event::Undone`].
    Undo {
        /// Number of changes that stay.
        mark: usize,
    },
    /// The changes stay after the session; answered by [`Event::KeptChanges`].
    KeepChanges,
    /// Revert the session's changes; answered by [`Event::Reverted`].
    Revert,
    /// The measurement is over: end the workers and the path probe, and forget captures, tokens and proven hosts.
    EndMeasurement,
    /// Revert the session's changes and unload its stacks; answered by [`Event::PutBack`].
    PutBack,
    /// A measurement has left the machine.
    Left,
    /// Begin to read the host for reports.
    BeginReports,
    /// Send a report of the host.
    ReportHost,
    /// Close the connection; with the reason, unless the connection has ended by itself.
    Close(Option<SessionEnd>),
}

/// A trial whose workers have finished.
#[derive(Debug)]
pub struct Ended {
    /// What each worker measured.
    pub done: Vec<WorkerDone>,
    /// From the request to the last connection.
    pub set_up_in: Duration,
    /// Most other measurements at the same time.
    pub overlapped: usize,
}
