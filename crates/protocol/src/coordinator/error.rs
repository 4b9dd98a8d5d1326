//! Why a dialogue with agents has failed.

use std::time::Duration;

use schedule::FailureKind;
use text::{Said, Text};

use super::bounds::one_line;
use crate::message::{Obstacle, RefusalCause};

/// A failure between hosts, with the host and the remedy.
#[derive(Debug, Clone, PartialEq, thiserror::Error, Said)]
pub enum DialogueError {
    /// The agent refused.
    #[error("{address} refuses: {}", reason.plain())]
    Refused {
        /// Host and port.
        address: String,
        /// Its reason, with its remedy.
        reason: Text,
    },
    /// The agent requires a token, or another one.
    #[error("{address}: {}", what.plain())]
    Token {
        /// Host and port.
        address: String,
        /// What is wrong and what to do.
        what: Text,
    },
    /// The agent does not connect to the other end, which has not proved that it takes part.
    #[error("{address} refuses: {}", reason.plain())]
    Unproven {
        /// Host and port.
        address: String,
        /// Its reason, with its remedy.
        reason: Text,
    },
    /// The connection to an agent was lost.
    #[error("lost the connection to the agent at {address} {during}: {}; finished trials are kept", reason.plain())]
    Lost {
        /// Host and port.
        address: String,
        /// The activity at that time.
        during: String,
        /// What happened.
        reason: Text,
    },
    /// The agent was lost in an earlier test.
    #[error("lost the connection to the agent at {address} before this test: {}; finished trials are kept", why.plain())]
    LostBefore {
        /// Host and port.
        address: String,
        /// The error of that test.
        why: Text,
    },
    /// One end's host cannot set up the trial.
    #[error("{address}: {}", reason.plain())]
    Setup {
        /// Host and port, or "this host".
        address: String,
        /// The engine's message.
        reason: Text,
    },
    /// Settings of one end's host were not changed.
    #[error("{address}: {}", reason.plain())]
    Tune {
        /// Host and port, or "this host".
        address: String,
        /// Why, and what to do.
        reason: Text,
        /// The kind of obstacle.
        obstacle: Obstacle,
    },
    /// A plan's requirement was not met in time.
    #[error(
        "a requirement of the plan was not met within {waited}: {what}; try again later, relax [require], or skip such cells with otherwise = \"skip\""
    )]
    Unmet {
        /// The requirement, with the host.
        what: String,
        /// How long the run waited.
        waited: String,
    },
    /// A trial failed at one end.
    #[error("{address}: {}", reason.plain())]
    Trial {
        /// Host and port, or "this host".
        address: String,
        /// The engine's message.
        reason: Text,
    },
    /// The links of the lab could not be changed.
    #[error("cannot change the lab's links: {}", _0.plain())]
    Links(Text),
    /// What the coordinator asked of its caller failed.
    #[error("{}", _0.said.plain())]
    Outside(Fault),
    /// The user interrupted the run.
    #[error("interrupted; finished trials are kept")]
    Interrupted,
}

/// Why the caller of a coordinator cannot do its work.
#[derive(Debug, Clone, PartialEq)]
pub struct Fault {
    /// By which the caller finds its error again.
    pub number: usize,
    /// What it is a failure of.
    pub kind: FailureKind,
    /// The error, for people.
    pub said: Text,
}

/// Why a connection has ended, in words that continue a sentence.
#[derive(Debug, Clone, PartialEq)]
pub struct LineEnd(pub Text);

impl LineEnd {
    pub(super) fn closed() -> Self {
        Self("the connection was closed".into())
    }

    pub(super) fn silent(limit: Duration) -> Self {
        Self(format!("it gave no answer within {}", seconds(limit)).into())
    }
}

impl DialogueError {
    /// An agent's refusal.
    #[must_use]
    pub fn refused(address: String, reason: &Text, cause: RefusalCause) -> Self {
        let reason = one_line(reason);
        match cause {
            RefusalCause::Token => Self::Token { address, what: reason },
            RefusalCause::Other => Self::Refused { address, reason },
        }
    }

    /// What it is a failure of.
    #[must_use]
    pub fn kind(&self) -> FailureKind {
        match self {
            Self::Setup { .. } | Self::Refused { .. } => FailureKind::Setup,
            Self::Tune { .. } | Self::Trial { .. } => FailureKind::Trial,
            // It may have ended while it was asked for the proof.
            Self::Unproven { .. } | Self::Lost { .. } | Self::LostBefore { .. } => FailureKind::Host,
            Self::Outside(fault) => fault.kind,
            Self::Interrupted => FailureKind::Interrupted,
            Self::Token { .. } | Self::Unmet { .. } | Self::Links(_) => FailureKind::Run,
        }
    }

    pub(super) fn lost(address: &str, during: &str, end: LineEnd) -> Self {
        Self::Lost { address: address.to_owned(), during: during.to_owned(), reason: end.0 }
    }

    /// A step that no schedule of these hosts has.
    pub(super) fn unsupported(what: &str) -> Self {
        let reason = format!("{what} are not possible with these ends").into();
        Self::Trial { address: "this run".into(), reason }
    }

    /// The connections of a trial are not there in time.
    pub(super) fn not_set_up(waited: Duration) -> Self {
        Self::Setup {
            address: "set-up".into(),
            reason: text::say!(
                "the data connections were not established within {}: a firewall may allow only the control connection; see `--data`",
                seconds(waited)
            ),
        }
    }
}

/// A time limit in a sentence: whole seconds.
pub(super) fn seconds(limit: Duration) -> String {
    format!("{} s", limit.as_secs_f64().ceil())
}
