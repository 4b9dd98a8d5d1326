//! The messages. Fields may be added (with a default) within a protocol version; a change of meaning is a new version.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use model::{
    Change, EndPass, EndTally, HostReading, Interval, Inventory, JournalEntry, Path, Reverted, Role, Setting,
    SettingNow, Spec, Stop, Traffic, Watched,
};
use serde::{Deserialize, Serialize};

/// What a coordinator says to an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "kebab-case")]
pub enum ToAgent {
    /// First of all.
    Hello(Hello),
    /// Answers the agent's nonce.
    Proof {
        /// HMAC in hex.
        mac: String,
    },
    /// Asks for the machine; granted in the order of asking.
    Acquire {
        /// What for, for the others in the queue.
        purpose: String,
    },
    /// Makes ready for a trial.
    Prepare(Box<Prepare>),
    /// Releases the trial that is armed.
    Start,
    /// Ends the trial that is running; its result still comes.
    Abort,
    /// Changes settings of the host until [`ToAgent::Untune`] or the end of the session; answered by `Tuned` or `Untuned`.
    Tune {
        /// In the order in which they are to be changed.
        settings: Vec<Setting>,
        /// Leaves them when the session ends; they are put back by hand.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        keep: bool,
    },
    /// Confirms that the control connection outlived a change; answered by `Kept`.
    Keep,
    /// Puts back all settings that this session changed; answered by `Tuned` or `Untuned`.
    Untune,
    /// Asks what the host is like now; answered by `Conditions`.
    ReadConditions,
    /// Asks how the host does, again and again until released; needs no place in the queue.
    Watch {
        /// Distance of the answers, ns.
        interval_ns: u64,
    },
    /// Asks for the host's clocks; answered at once.
    Clock,
    /// Looks at the interfaces' traffic and at the path to the peer, for about a second at most; the machine must be the
    /// coordinator's, and idle.
    ProbePath {
        /// The other end; `None` for the address that the coordinator speaks from.
        peer: Option<IpAddr>,
        /// Shows that an agent there wants to be looked at; needed for any host but the coordinator's and this one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reach_token: Option<ReachabilityToken>,
    },
    /// Asks for what makes another agent look at this one and connect to it, until the machine is released; answered by
    /// `ReachToken`.
    IssueReachToken {
        /// The address that the other agent will be told, where that is not the one of this connection.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<IpAddr>,
    },
    /// Asks for a piece of a capture of this session; answered by `Piece`.
    Fetch {
        /// As its [`Capture`](model::Capture) names it.
        file: String,
        /// Where the piece begins, bytes.
        from: u64,
    },
    /// The coordinator has what it wants of a capture of this session, whose file goes.
    Forget {
        /// As its [`Capture`](model::Capture) names it.
        file: String,
        /// Leaves the file where it is.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        keep: bool,
    },
    /// Asks for settings; answered by `Shown` or `Untuned`.
    Show {
        /// Keys and patterns; none for the usual ones.
        keys: Vec<String>,
    },
    /// Asks what was changed and is not back; answered by `Journal` or `Untuned`.
    Journal,
    /// Puts back settings that others have left, or kept on purpose; answered by `Reverted` or `Untuned`.
    Revert {
        /// One session of the journal.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        /// Those of all network namespaces.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        all: bool,
        /// Also what somebody else has changed meanwhile.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        force: bool,
    },
    /// Gives the machine back.
    Release,
    /// Still there.
    Ping,
}

/// What an agent says to a coordinator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "kebab-case")]
pub enum FromAgent {
    /// Answers the coordinator's.
    Hello(Hello),
    /// The coordinator is let in.
    Welcome {
        /// What this host is.
        inventory: Box<Inventory>,
        /// Cost of a clock read here, ns.
        clock_ns: f64,
        /// Number of the agent's network namespace, to tell whether two ends share their settings.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        namespace: Option<u64>,
    },
    /// Others are first.
    Queued {
        /// How many.
        ahead: u32,
    },
    /// The machine is the coordinator's until it releases it.
    Granted,
    /// The passive end listens.
    Listening {
        /// One for each worker process.
        places: Vec<Meeting>,
    },
    /// All connections are up.
    Armed,
    /// A reading of the running trial.
    Live(Interval),
    /// The trial has ended at this end.
    Done(Box<Done>),
    /// What the host did since the last word of this kind.
    Watched(Box<Watched>),
    /// The trial could not be made; the machine is still the coordinator's.
    Failed {
        /// In the engine's words.
        reason: String,
        /// What stood in the way.
        #[serde(default)]
        cause: Cause,
    },
    /// Settings were changed, or put back.
    Tuned {
        /// Each of them.
        changes: Vec<Change>,
        /// They are put back in 5 s unless the coordinator says `Keep`: one of them may cut the control connection.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        confirm: bool,
    },
    /// The settings stay until they are put back.
    Kept,
    /// What the host is like now.
    Conditions(HostReading),
    /// No setting was changed (those that had been are as they were before the message).
    Untuned {
        /// Why, and what to do.
        reason: String,
        /// What stood in the way.
        #[serde(default)]
        obstacle: Obstacle,
    },
    /// This host's clocks, read between the question and this answer.
    Clock {
        /// CLOCK_REALTIME, ns since the Unix epoch.
        realtime_ns: u64,
        /// CLOCK_MONOTONIC, ns.
        monotonic_ns: u64,
    },
    /// What a path probe found.
    PathProbed(Box<PathFacts>),
    /// What proves to another agent that this one may be probed.
    ReachToken(ReachabilityToken),
    /// A piece of a capture.
    Piece(Piece),
    /// Settings as they are.
    Shown {
        /// Each of them.
        settings: Vec<SettingNow>,
    },
    /// What was changed and is not back.
    Journal {
        /// The newest first.
        entries: Vec<JournalEntry>,
    },
    /// What was put back, or not.
    Reverted {
        /// Each session that was meant.
        sessions: Vec<Reverted>,
    },
    /// The agent will have nothing more to do with this coordinator.
    Refused {
        /// Why, and what to do.
        reason: String,
    },
    /// Still here.
    Ping,
}

/// What a path probe found.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PathFacts {
    /// The path to the peer; `None` where its address is not known.
    pub path: Option<Path>,
    /// Traffic of each interface before the test.
    pub traffic: BTreeMap<String, Traffic>,
}

/// What an agent knows and proves to know at its port: whoever has it speaks for a coordinator that this agent let in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReachabilityToken {
    /// The agent's port; null for an agent without one.
    pub port: Option<u16>,
    /// The key of the question and its answer there, in hex.
    pub cookie: String,
}

/// A piece of a file.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Piece {
    /// The file, as it was asked for.
    pub file: String,
    /// Where the piece begins, bytes.
    pub from: u64,
    /// Bytes of the whole file.
    pub size: u64,
    /// The bytes, in Base64 (RFC 4648); fewer than [`PIECE`](super::PIECE) at the end of the file.
    pub data: String,
    /// Why there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<String>,
}

/// What stood in the way of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// The agent's limits.
    Limits,
    /// The host, while the trial was set up: an option, an address, a core.
    Setup,
    /// Something in the middle of it.
    #[default]
    Trial,
}

/// What stood in the way of a change of settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Obstacle {
    /// The agent was not told to allow it.
    Refused,
    /// No such key, or a value that cannot be.
    Wrong,
    /// Somebody else holds the setting.
    Busy,
    /// The host: a right, a device, a kernel without it.
    #[default]
    Host,
}

/// How the two introduce themselves.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hello {
    /// The protocol that the side speaks best.
    pub protocol: u32,
    /// The oldest that it still speaks.
    pub oldest: u32,
    /// Its program's version.
    pub version: String,
    /// What it can do beyond the protocol.
    #[serde(default)]
    pub capabilities: Vec<String>,
    /// Its random number, in hex.
    pub nonce: String,
    /// Agents: drawn at its start, so that a coordinator can tell two agents from one met twice.
    #[serde(default)]
    pub instance: String,
    /// Agents: whether a proof of the token is wanted.
    #[serde(default)]
    pub wants_token: bool,
    /// Agents with a token: their own proof, HMAC in hex.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mac: Option<String>,
}

/// A trial, as one end is told of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Prepare {
    /// Number of the trial within the measurement.
    pub trial: u32,
    /// Which end the agent is to be.
    pub role: Role,
    /// The measurement.
    pub spec: Spec,
    /// What is done over the connections.
    pub legs: Vec<WireLeg>,
    /// Active end: where the passive one is, one for each worker process.
    #[serde(default)]
    pub meet: Vec<Meeting>,
    /// Active end: what the agent at those places knows; an agent that was told of them by a coordinator elsewhere wants it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reach_token: Option<ReachabilityToken>,
}

/// A leg on the wire.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct WireLeg {
    /// Bytes of a block or request.
    pub block: u64,
    /// Bytes of a response.
    pub reply: u64,
    /// When it ends.
    pub stop: Stop,
    /// Expected time of one exchange, ns; 0 where unknown.
    #[serde(default)]
    pub expected_ns: u64,
}

impl WireLeg {
    /// The measurement with this leg's blocks in place of its own.
    pub(crate) fn of(&self, spec: &Spec) -> Spec {
        let reply = (spec.reply.is_some() || self.reply != self.block).then_some(self.reply);
        Spec { block: self.block, reply, ..spec.clone() }
    }
}

/// Where the two ends' data meets.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Meeting {
    /// Address and port; the coordinator fills in the address where the agent does not know how it is reached.
    pub address: Option<SocketAddr>,
    /// Port alone, where the address is the one that the control connection goes to.
    pub port: Option<u16>,
    /// A path on the machine that both share.
    pub path: Option<PathBuf>,
    /// What to show there, in hex.
    pub cookie: String,
    /// The passive host's boot, for transports that need one machine.
    pub boot_id: Option<String>,
    /// What else the transport's passive side tells its active side, in hex.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub blob: String,
}

/// What one end counted in a trial.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct Done {
    /// One for each leg that was begun.
    pub tallies: Vec<EndTally>,
    /// Why it ended early, if it did.
    pub failure: Option<String>,
    /// From the start to the end at this end, ns.
    pub elapsed_ns: u64,
    /// What the host did meanwhile.
    pub host: EndPass,
    /// Other measurements on this agent meanwhile.
    #[serde(default)]
    pub overlapped_by: u32,
}

/// What an agent says to its worker process.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "kebab-case")]
pub enum ToWorker {
    /// Makes ready for a trial.
    Prepare(Box<Assignment>),
    /// Releases it.
    Start,
    /// Ends it.
    Abort,
}

/// One worker's share of a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Assignment {
    /// The trial.
    pub prepare: Prepare,
    /// First flow of this worker.
    pub first_flow: u32,
    /// One past its last flow.
    pub end_flow: u32,
    /// Passive end: whether the agent's port hands connections in, or the worker listens by itself.
    pub through_shared_port: bool,
    /// Passive end: address for a listener of its own.
    pub listen_on: Option<std::net::IpAddr>,
    /// Passive end: folder for sockets of one machine.
    pub directory: PathBuf,
    /// Passive end: what a connection must show, in hex.
    pub cookie: String,
}

/// What a worker says to its agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "kebab-case")]
pub enum FromWorker {
    /// It listens by itself.
    Listening(Meeting),
    /// All its connections are up.
    Armed {
        /// The addresses of each one's socket, this end's first, where packets are captured.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        sockets: Vec<[SocketAddr; 2]>,
    },
    /// A reading.
    Live(Interval),
    /// The trial has ended.
    Done(Box<WorkerDone>),
    /// It could not be made.
    Failed {
        /// Why.
        reason: String,
    },
}

/// A worker's tallies, with the times that let several workers of one host be added up.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct WorkerDone {
    /// One for each leg that was begun.
    pub tallies: Vec<EndTally>,
    /// (first, last) send and (first, last) arrival of each leg, ns of the host's monotonic clock, 0 for never.
    pub spans: Vec<[u64; 4]>,
    /// Why it ended early, if it did.
    pub failure: Option<String>,
    /// From the start to the end, ns.
    pub elapsed_ns: u64,
}
