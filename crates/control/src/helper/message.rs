//! What an agent and its helper say to each other.

use host::capture::Tap;
use model::{Change, JournalEntry, Reverted, Setting, SettingNow, StackRule};
use serde::{Deserialize, Serialize};
use text::Text;

use protocol::message::{Message, Obstacle};

/// The first byte of a connection for a session.
pub(super) const SESSION: u8 = b'S';
/// The first byte of a connection for one request that concerns a socket.
pub(super) const SOCKET: u8 = b'D';

/// A request of an agent. Each is answered in its order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Request {
    /// Changes settings until the session ends; answered by `Tuned`.
    Tune {
        /// The purpose, for the journal.
        command: String,
        /// The settings, changed in this order.
        settings: Vec<Setting>,
    },
    /// Reverts the changes after the first `mark`; answered by `Reverted`.
    Undo {
        /// Number of changes that stay.
        mark: usize,
    },
    /// The changes stay after the session; answered by `Kept`.
    Keep,
    /// Reverts all changes; answered by `Reverted`.
    Revert,
    /// Reads settings; answered by `Shown`.
    Show {
        /// Keys and patterns; empty for the default selection.
        keys: Vec<String>,
    },
    /// Reads the journal; answered by `Journal`.
    Journal,
    /// Reverts what earlier sessions left or kept; answered by `Left`.
    RevertLeft {
        /// One journal record.
        id: Option<String>,
        /// The records of all network namespaces.
        all: bool,
        /// Also settings that have changed since.
        force: bool,
    },
    /// Loads a TCP stack until the session ends; answered by `Loaded`.
    Load {
        /// As in the argument of `--cc`.
        stack: String,
        /// Its rules for destinations.
        rules: Vec<StackRule>,
    },
    /// Captures packets until its connection is closed, and is the only request of it; answered by `Opened`, which packets follow.
    Capture(Tap),
    /// Sets an option of the socket that comes with it, and is the only request of its connection; answered by `Set`.
    Set(SocketOption),
    /// Reverts all changes and unloads all stacks; answered by `Reverted`.
    End,
    /// Keeps the connection alive; not answered.
    Ping,
}

/// A socket option.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum SocketOption {
    /// The congestion control.
    Congestion {
        /// Its name in the kernel.
        name: String,
    },
    /// The send buffer.
    SendBuffer {
        /// Its size.
        bytes: u64,
    },
    /// The receive buffer.
    ReceiveBuffer {
        /// Its size.
        bytes: u64,
    },
}

/// An answer of a helper.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Answer {
    /// Settings were changed.
    Tuned {
        /// Each change.
        changes: Vec<Change>,
        /// Number of this session's changes before.
        mark: usize,
        /// Whether one of them may cut the agent's connections.
        cuts: bool,
        /// What killed processes had left and was reverted before, a line each.
        recovered: Vec<String>,
    },
    /// Settings were restored.
    Reverted {
        /// Each change.
        changes: Vec<Change>,
    },
    /// The changes stay.
    Kept,
    /// Current values.
    Shown {
        /// Each setting.
        settings: Vec<SettingNow>,
    },
    /// Changes that are not reverted yet.
    Journal {
        /// Newest first.
        entries: Vec<JournalEntry>,
    },
    /// What earlier sessions left was reverted.
    Left {
        /// Each record.
        sessions: Vec<Reverted>,
    },
    /// The kernel has the stack.
    Loaded {
        /// Its name there.
        name: String,
    },
    /// Packets follow this answer.
    Opened,
    /// The option is set.
    Set,
    /// Nothing was done.
    Refused {
        /// The reason and the remedy.
        reason: Text,
        /// The kind of obstacle.
        obstacle: Obstacle,
    },
    /// Keeps the connection alive.
    Ping,
}

impl Message for Request {
    const MAX_FRAME: usize = 1 << 20;
}

impl Message for Answer {
    const MAX_FRAME: usize = 16 << 20;
}

impl Answer {
    /// A refusal because of the host, or of the helper itself.
    pub(crate) fn host(reason: impl Into<Text>) -> Self {
        Self::Refused { reason: reason.into(), obstacle: Obstacle::Host }
    }
}
