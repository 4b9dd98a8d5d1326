//! The messages. Fields may be added (with a default) within a protocol version; a change of meaning is a new version.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use model::{
    Change, EndResult, HostReading, Interval, Inventory, JournalEntry, Leg, MachineUser, Path, PathTimes, Reading,
    Reverted, Role, Setting, SettingNow, Spec, Traffic, Watched,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use text::Text;

use crate::hello::Hello;

/// A message that is sent as a frame.
pub trait Message: Serialize + DeserializeOwned + Send + 'static {
    /// The largest frame, bytes, from a peer that is authenticated.
    const MAX_FRAME: usize;
}

impl Message for ToAgent {
    /// Several times the request of a trial with the most legs.
    const MAX_FRAME: usize = 1 << 20;
}

impl Message for FromAgent {
    /// Several times a tally of 16,384 flows with its series.
    const MAX_FRAME: usize = 64 << 20;
}

/// A message from a coordinator to an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ToAgent {
    /// The first message.
    Hello(Hello),
    /// The coordinator's half of an exchange with the code of an invitation; answered by `Code`.
    Code {
        /// Its text, in hex.
        half: String,
    },
    /// The proof of the token, or of the secret of the exchange, for the agent's nonce.
    Proof {
        /// HMAC in hex.
        mac: String,
    },
    /// Requests the machine; requests are granted in their order.
    Acquire {
        /// The purpose, for the agent's log.
        purpose: String,
        /// The ticket of a connection that has the machine: this one joins it at once, without a place in the queue.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        join: Option<String>,
    },
    /// Prepares a trial.
    Prepare(Box<Prepare>),
    /// Starts the armed trial.
    Start,
    /// Ends the running trial; its result still follows.
    Abort,
    /// Cancels the trial that is prepared or running, without a result: after a failed set-up at the other end, this one would
    /// accept the connections of the next trial. Answered by `Reset`.
    Reset,
    /// Changes settings of the host until [`ToAgent::Untune`] or the end of the session; answered by `Tuned` or `Untuned`.
    Tune {
        /// The settings, changed in this order.
        settings: Vec<Setting>,
        /// Keeps them when the session ends; the user reverts them.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        keep: bool,
    },
    /// Confirms that the control connection survived a change; answered by `Kept`.
    Keep,
    /// Reverts all settings that this session changed; answered by `Tuned` or `Untuned`.
    Untune,
    /// Requests the current state of the host; answered by `Conditions`.
    ReadConditions,
    /// Requests repeated reports of the host until `Release`; needs no position in the queue.
    Watch {
        /// Interval of the reports, ns.
        interval_ns: u64,
    },
    /// Requests the host's clocks; answered at once.
    Clock,
    /// Requests who measures here; answered by `Users`. Needs no position in the queue.
    AskUsers,
    /// Measures the interfaces' traffic and probes the path to the peer, for about a second at most. The coordinator must have
    /// the machine, without a running trial. Answered by `PathProbed`.
    ProbePath {
        /// The address to probe; `None` for the address that the coordinator connects from.
        peer: Option<IpAddr>,
        /// The name by which the coordinator reached that host, if it is not reached at the address.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        /// The reachability token of the agent there; needed for any host but the coordinator's and the agent's own.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        reach_token: Option<ReachabilityToken>,
        /// A round trip of the path, as far as it is known, ns.
        #[serde(default)]
        round_trip_ns: u64,
        /// For an agent in this process: the number of the interface of a link-local address.
        #[serde(default)]
        scope: u32,
    },
    /// Requests a reachability token, with which another agent probes this one and connects to it until the machine is released;
    /// answered by `ReachToken`.
    IssueReachToken {
        /// The address that the other agent gets, if it is not the one of this connection.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        at: Option<IpAddr>,
    },
    /// Requests a piece of a capture of this session; answered by `Piece`.
    Fetch {
        /// The file as its [`Capture`](model::Capture) names it.
        file: String,
        /// Start of the piece, bytes.
        from: u64,
    },
    /// The coordinator is done with a capture of this session: the agent removes the file.
    Forget {
        /// The file as its [`Capture`](model::Capture) names it.
        file: String,
        /// Leaves the file in place.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        keep: bool,
    },
    /// Requests settings; answered by `Shown` or `Untuned`.
    Show {
        /// Keys and patterns; empty for the default selection.
        keys: Vec<String>,
    },
    /// Requests the journal's open records; answered by `Journal` or `Untuned`.
    Journal,
    /// Reverts settings that earlier sessions left or kept; answered by `Reverted` or `Untuned`.
    Revert {
        /// One journal record.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        id: Option<String>,
        /// The records of all network namespaces.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        all: bool,
        /// Also settings that have changed since.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        force: bool,
    },
    /// Requests what the agent's end of a run's trials measured and the coordinator has not stored; answered by any number of `Result`,
    /// and `NoMoreResults`. Needs no position in the queue.
    Results {
        /// The run, as in [`ResultOf`].
        run: String,
    },
    /// The results of trials with numbers below `below` are stored: the agent forgets them. Needs no position in the queue.
    Stored {
        /// The run, as in [`ResultOf`].
        run: String,
        /// The first number that may not be stored.
        below: u32,
    },
    /// Releases the machine.
    Release,
    /// Keeps the connection alive.
    Ping,
}

/// A message from an agent to a coordinator.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum FromAgent {
    /// The answer to the coordinator's hello.
    Hello(Hello),
    /// The agent's half of an exchange with the code of its invitation.
    Code {
        /// Its text, in hex.
        half: String,
    },
    /// The agent's proof of the secret of the exchange, after the coordinator's.
    Proof {
        /// HMAC in hex.
        mac: String,
    },
    /// The coordinator is accepted.
    Welcome {
        /// This host.
        inventory: Box<Inventory>,
        /// Cost of a clock read here, ns.
        clock_ns: f64,
        /// Number of the agent's network namespace: two ends with the same one share their settings.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        namespace: Option<u64>,
    },
    /// Others are in front.
    Queued {
        /// Number of clients in front.
        ahead: u32,
    },
    /// The coordinator has the machine until it releases it.
    Granted {
        /// Random, in hex: further connections of the same coordinator join with it. None for one that has joined.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ticket: Option<String>,
    },
    /// The passive end listens.
    Listening {
        /// One for each worker process.
        rendezvous: Vec<WireRendezvous>,
    },
    /// All connections are up.
    Armed,
    /// An entry of the running trial's series.
    Live(Interval),
    /// The counts of the running trial so far, of one process.
    Reading(Reading),
    /// The trial has ended at this end.
    Done(Box<EndResult>),
    /// Activity of the host since the last report.
    Watched(Box<Watched>),
    /// The trial failed; the coordinator keeps the machine.
    Failed {
        /// The engine's message.
        reason: Text,
        /// The kind of failure.
        #[serde(default)]
        cause: Cause,
    },
    /// No trial is prepared or running. Earlier messages in this direction belong to a trial that was cancelled.
    Reset,
    /// Settings were changed, or reverted.
    Tuned {
        /// Each change.
        changes: Vec<Change>,
        /// The changes are reverted after 5 s unless `Keep` arrives: one of them may cut the control connection.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        confirm: bool,
    },
    /// The changes are confirmed and stay until they are reverted.
    Kept,
    /// The current state of the host.
    Conditions(HostReading),
    /// No setting was changed; partial changes were reverted.
    Untuned {
        /// The reason and the remedy.
        reason: Text,
        /// The kind of obstacle.
        #[serde(default)]
        obstacle: Obstacle,
    },
    /// This host's clocks, read between the request and this answer.
    Clock {
        /// CLOCK_REALTIME, ns since the Unix epoch.
        realtime_ns: u64,
        /// CLOCK_MONOTONIC, ns.
        monotonic_ns: u64,
    },
    /// Who measures here, and how many clients wait.
    Users {
        /// Each measurement, the longest first.
        users: Vec<MachineUser>,
        /// Clients in the queue.
        waiting: u32,
    },
    /// The result of a path probe.
    PathProbed(Box<PathFacts>),
    /// A token with which another agent may probe this one and connect to it.
    ReachToken(ReachabilityToken),
    /// A piece of a capture.
    Piece(FilePiece),
    /// Current values of settings.
    Shown {
        /// Each setting.
        settings: Vec<SettingNow>,
    },
    /// Changes that are not reverted yet.
    Journal {
        /// Newest first.
        entries: Vec<JournalEntry>,
    },
    /// The result of a revert.
    Reverted {
        /// Each record that was selected.
        sessions: Vec<Reverted>,
    },
    /// A result that the agent has kept.
    Result(Box<KeptResult>),
    /// Those were all.
    NoMoreResults {
        /// Why the others could not be read, if there are any.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        unread: Option<Text>,
    },
    /// The agent ends this connection.
    Refused {
        /// The reason and the remedy.
        reason: Text,
        /// The kind of refusal.
        #[serde(default)]
        cause: RefusalCause,
    },
    /// Keeps the connection alive.
    Ping,
}

/// The result of a path probe.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct PathFacts {
    /// The path to the peer; `None` if its address is not known.
    pub path: Option<Path>,
    /// Traffic of each interface before the test.
    pub traffic: BTreeMap<String, Traffic>,
}

/// Proof that an agent of the same measurement runs at an address. Only a coordinator that the agent accepted gets it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReachabilityToken {
    /// The agent's port; null for an agent without one.
    pub port: Option<u16>,
    /// The key of the challenge and its answer at that port, in hex.
    pub cookie: String,
}

/// A piece of a file.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct FilePiece {
    /// The file, as requested.
    pub file: String,
    /// Start of the piece, bytes.
    pub from: u64,
    /// Size of the whole file, bytes.
    pub size: u64,
    /// The bytes, in Base64 (RFC 4648); fewer than [`PIECE`](crate::PIECE) at the end of the file.
    pub data: String,
    /// Why there are no bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub missing: Option<Text>,
}

/// What made a trial fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Cause {
    /// The agent's limits.
    Limits,
    /// The other end, which has not proved that it takes part in the measurement.
    Unproven,
    /// The host, during set-up: an option, an address, a core.
    Setup,
    /// Something during the trial, or a cause that this version does not know.
    #[default]
    #[serde(other)]
    Trial,
}

/// Why an agent ends a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RefusalCause {
    /// The coordinator has not proved the agent's token.
    Token,
    /// Anything else, or a cause that this version does not know.
    #[default]
    #[serde(other)]
    Other,
}

/// What prevented a change of settings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Obstacle {
    /// The agent was not started with the permission.
    Refused,
    /// An unknown key or an invalid value.
    Wrong,
    /// Another process holds the setting.
    Busy,
    /// The host: a missing right or device, or a kernel without the setting. Also an obstacle that this version does not know.
    #[default]
    #[serde(other)]
    Host,
}

/// One end's part of a trial.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Prepare {
    /// Number of the trial within the measurement.
    pub trial: u32,
    /// The agent's end.
    pub role: Role,
    /// The measurement.
    pub spec: Spec,
    /// The legs, in their order.
    pub legs: Vec<Leg>,
    /// Active end: where to connect, one for each worker process.
    #[serde(default)]
    pub rendezvous: Vec<WireRendezvous>,
    /// Active end: the reachability token of the agent at those addresses; an agent needs it if its coordinator is on another
    /// host.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reach_token: Option<ReachabilityToken>,
    /// The agent keeps the result until the coordinator has stored it, as this one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub keep: Option<ResultOf>,
    /// What the control connections show of the path.
    #[serde(default)]
    pub path: PathTimes,
}

/// What a result that agents keep belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ResultOf {
    /// A digest of the run, which only those know who have its header: another client of the agent can neither read nor replace it.
    pub run: String,
    /// A digest of what is measured, in which round.
    pub test: String,
    /// Random: both ends of one trial have the same.
    pub attempt: String,
    /// The coordinator's wall-clock time at the start, ns since the Unix epoch.
    pub started_unix_ns: u64,
}

/// A result that an agent has kept.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct KeptResult {
    /// What it belongs to.
    pub of: ResultOf,
    /// Number of the trial within the measurement.
    pub trial: u32,
    /// The agent's end.
    pub role: Role,
    /// The result.
    pub done: EndResult,
}

/// Where the active end connects to the passive end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct WireRendezvous {
    /// Address and port, which the coordinator fills in; it ignores an address from an agent.
    pub address: Option<SocketAddr>,
    /// The name that the coordinator found the address by: the active end looks it up itself if it does not reach that address.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The port, if the address is that of the control connection.
    pub port: Option<u16>,
    /// Whether that is the agent's port, which the control connection reached, perhaps by another number (a forwarded port).
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shared: bool,
    /// A path, for transports of one machine.
    pub path: Option<PathBuf>,
    /// The cookie that authenticates data connections, in hex.
    pub cookie: String,
    /// The passive host's boot, for transports of one machine.
    pub boot_id: Option<String>,
    /// Further data of the transport's passive side, in hex.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub blob: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> FromAgent {
        serde_json::from_str(text).unwrap()
    }

    #[test]
    fn a_grant_without_a_ticket_and_with_a_field_of_a_later_version_is_a_grant() {
        for text in [r#"{"granted": {}}"#, r#"{"granted": {"later": 1}}"#] {
            assert_eq!(parse(text), FromAgent::Granted { ticket: None });
        }
        let acquire: ToAgent = serde_json::from_str(r#"{"acquire": {"purpose": "x"}}"#).unwrap();
        assert_eq!(acquire, ToAgent::Acquire { purpose: "x".into(), join: None });
    }

    #[test]
    fn an_unknown_or_missing_cause_is_the_most_general_one() {
        for cause in ["", r#", "cause": "of a later version""#] {
            let refused = parse(&format!(r#"{{"refused": {{"reason": {{"statement": "x"}}{cause}}}}}"#));
            assert_eq!(refused, FromAgent::Refused { reason: "x".into(), cause: RefusalCause::Other });
            let failed = parse(&format!(r#"{{"failed": {{"reason": {{"statement": "x"}}{cause}}}}}"#));
            assert_eq!(failed, FromAgent::Failed { reason: "x".into(), cause: Cause::Trial });
        }
        let untuned = parse(r#"{"untuned": {"reason": {"statement": "x"}, "obstacle": "of a later version"}}"#);
        assert_eq!(untuned, FromAgent::Untuned { reason: "x".into(), obstacle: Obstacle::Host });
        let refused = parse(r#"{"refused": {"reason": {"statement": "x"}, "cause": "token"}}"#);
        assert_eq!(refused, FromAgent::Refused { reason: "x".into(), cause: RefusalCause::Token });
    }
}
