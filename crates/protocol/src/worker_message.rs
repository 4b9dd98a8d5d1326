//! The messages of an agent and its worker processes.

use std::net::SocketAddr;
use std::path::PathBuf;

use model::{EndTally, Interval, Reading};
use serde::{Deserialize, Serialize};
use text::Text;

use crate::message::{Message, Prepare, WireRendezvous};

impl Message for ToWorker {
    const MAX_FRAME: usize = 64 << 20;
}

impl Message for FromWorker {
    const MAX_FRAME: usize = 64 << 20;
}

/// A message from an agent to its worker process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ToWorker {
    /// Prepares a trial.
    Prepare(Box<Assignment>),
    /// Starts it.
    Start,
    /// Ends it.
    Abort,
}

/// One worker's part of a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Assignment {
    /// The trial.
    pub prepare: Prepare,
    /// First flow of this worker.
    pub first_flow: u32,
    /// One past its last flow.
    pub end_flow: u32,
    /// Passive end: whether connections come from the agent's port; otherwise the worker has its own listener.
    pub through_shared_port: bool,
    /// Passive end: address of the worker's listener.
    pub listen_on: Option<std::net::IpAddr>,
    /// Passive end: the number of the interface of a link-local address there, else 0.
    #[serde(default)]
    pub scope: u32,
    /// Passive end: folder for sockets of one machine.
    pub directory: PathBuf,
    /// Passive end: the cookie that authenticates data connections, in hex.
    pub cookie: String,
    /// The socket of the helper that sets options beyond the rights of the worker's user.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub helper: Option<PathBuf>,
}

/// A message from a worker to its agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FromWorker {
    /// Its own listener is ready.
    Listening(WireRendezvous),
    /// All its connections are up.
    Armed {
        /// The addresses of each connection, this end's first; only if packets are captured.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        sockets: Vec<[SocketAddr; 2]>,
    },
    /// An entry of the series.
    Live(Interval),
    /// The counts so far.
    Reading(Reading),
    /// The trial has ended.
    Done(Box<WorkerDone>),
    /// The trial failed.
    Failed {
        /// The reason.
        reason: Text,
    },
}

/// A worker's tallies, with the times that are needed to merge several workers of one host.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct WorkerDone {
    /// One for each leg that was started.
    pub tallies: Vec<EndTally>,
    /// (first, last) send and (first, last) arrival of each leg, ns of the host's monotonic clock, 0 for never.
    pub spans: Vec<[u64; 4]>,
    /// Why it ended early, if it did.
    pub failure: Option<Text>,
    /// From the start to the end, ns.
    pub elapsed_ns: u64,
}
