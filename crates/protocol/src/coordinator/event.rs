//! What happens to a coordinator, and what it does.

use model::{BothEnds, LabReport, PathTimes};

use super::error::{Fault, LineEnd};
use super::work::Work;
use crate::message::{FromAgent, ToAgent};

/// A connection of a coordinator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct LineId(pub(super) u64);

/// Work that a coordinator has asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct WorkId(pub(super) u64);

/// What is seen of a connection from outside.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Seen {
    /// How long its answers take.
    pub path: PathTimes,
    /// A part of a message has arrived.
    pub arriving: bool,
    /// Bytes of all its messages.
    pub received_bytes: usize,
}

/// What happens to a coordinator.
#[derive(Debug)]
pub enum Event {
    /// A message has arrived, or the connection has ended. Only where [`Outside::takes_of`](super::Outside::takes_of) allows it; pings are
    /// left out.
    Arrived(LineId, Result<FromAgent, LineEnd>),
    /// Some work is done.
    Done(WorkId, Answer),
    /// What happens cannot be shown or stored any more.
    Broken(Fault),
    /// The user wants to stop.
    Stop,
}

/// What is to be done for a coordinator.
#[derive(Debug)]
pub enum Action {
    /// Send a message.
    Send(LineId, Box<ToAgent>),
    /// Accept no message with more bytes over this connection.
    AcceptUpTo(LineId, usize),
    /// Send what waits, and close the connection.
    Close(LineId),
    /// End the connection.
    Cut(LineId),
    /// Do some work; answered by [`Event::Done`].
    Work(WorkId, Work),
    /// Show what happens in a run, and store it.
    Show(Box<model::Event>),
}

/// The answer to [`Action::Work`].
#[derive(Debug)]
pub enum Answer {
    /// It is done.
    Done,
    /// It cannot be done.
    Failed(Fault),
    /// There is a connection to an agent.
    Connected(Box<Connected>),
    /// A test with another program has ended, with the number of trials of each leg (empty for one each).
    Tested(Box<BothEnds>, Vec<usize>),
    /// Where the near end connects to.
    Address(std::net::SocketAddr),
    /// The report on a lab's links; `None` if there is none of them.
    Links(Option<Box<LabReport>>),
    /// This host is in no lab.
    NoLab,
    /// Bytes of a file.
    Bytes(u64),
}

/// An agent that has greeted.
#[derive(Debug, Clone)]
pub struct Connected {
    /// The connection.
    pub line: LineId,
    /// "this host", or host and port.
    pub name: String,
    /// Identifier of the agent's process.
    pub instance: String,
    /// The agent's address; `None` within this process.
    pub address: Option<std::net::SocketAddr>,
    /// The name by which the user reached it; `None` for an address.
    pub host_name: Option<String>,
    /// Its host and network namespace, if they are known: two ends with the same ones share their settings.
    pub namespace: Option<(String, u64)>,
}
