//! Why an agent may not have the key that it shows.

use std::path::PathBuf;

use text::Said;

use crate::proto::fingerprint::Fingerprint;

/// An agent's key is not the one that it is known by.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Said)]
#[non_exhaustive]
pub enum KeyError {
    /// It is not that of the agent which was just started.
    #[error("its key is {key}, and that of the agent that was started is {started}: another program listens there")]
    Started {
        /// The key that it shows.
        key: Fingerprint,
        /// That of the agent.
        started: Fingerprint,
    },
    /// It is not the one that the fleet names.
    #[error("its key is {key}, and the fleet has {named} for {host}: correct one of them")]
    Fleet {
        /// The key that it shows.
        key: Fingerprint,
        /// The fleet's key of the host.
        named: Fingerprint,
        /// The host's name in the fleet.
        host: String,
    },
    /// The agent was reached before and had another one.
    #[error(
        "its key has changed from {before} to {key}: another host or program answers, or the agent has a new key; if \
         `thru agent fingerprint` there prints the new one, run `thru agent forget {agent}` here"
    )]
    Changed {
        /// The key that it shows.
        key: Fingerprint,
        /// The one before.
        before: Fingerprint,
        /// Name and port.
        agent: String,
    },
    /// The file of known agents has a line about it without a valid key.
    #[error(
        "the line of {agent} in {} has no key as `thru agent fingerprint` prints it; correct it, or run \
         `thru agent forget {agent}` here",
        file.display()
    )]
    Line {
        /// Name and port.
        agent: String,
        /// The file.
        file: PathBuf,
    },
}
