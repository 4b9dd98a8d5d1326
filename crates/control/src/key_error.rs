//! Why an agent's key is refused.

use std::path::PathBuf;

use text::Said;

use crate::proof::fingerprint::Fingerprint;

/// An agent shows another key than the known one.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Said)]
#[non_exhaustive]
pub enum KeyError {
    /// It is not the key of the agent that was just started.
    #[error("its key is {key}, but the agent that was started has {started}: another program listens there")]
    Started {
        /// The key that it shows.
        key: Fingerprint,
        /// That of the agent.
        started: Fingerprint,
    },
    /// It is not the key in the fleet.
    #[error("its key is {key}, but the fleet has {named} for {host}: correct one of them")]
    Fleet {
        /// The key that it shows.
        key: Fingerprint,
        /// The fleet's key of the host.
        named: Fingerprint,
        /// The host's name in the fleet.
        host: String,
    },
    /// It is not the key in the user's file of defaults.
    #[error(
        "its key is {key}, but [hosts.{host}] in the configuration has {named}: correct one of them (`thru config show`)"
    )]
    Config {
        /// The key that it shows.
        key: Fingerprint,
        /// The key of the host in the file.
        named: Fingerprint,
        /// The host's name in the file.
        host: String,
    },
    /// The agent was reached before and had another one.
    #[error(
        "its key has changed from {before} to {key}: either the agent has a new key, or another host or program answers; if \
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
        "the line for {agent} in {} has no key in the form that `thru agent fingerprint` prints; correct it, or run \
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
