//! Why a setting was not changed.

use std::io;
use std::path::PathBuf;

/// Why a setting was not read, changed or put back.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TuneError {
    /// No such key.
    #[error("there is no setting '{key}' on this host: {hint}")]
    Unknown {
        /// As it was written.
        key: String,
        /// Keys that come close, or how keys are made.
        hint: String,
    },
    /// A value that the setting cannot have.
    #[error("{key}={value}: {reason}")]
    Value {
        /// The setting.
        key: String,
        /// As it was written.
        value: String,
        /// What is wrong with it, and what can be written.
        reason: String,
    },
    /// Not for whom it was asked.
    #[error("clients of an agent may not change {key}: {remedy}")]
    Forbidden {
        /// The setting.
        key: String,
        /// What to do, or why nothing can be done.
        remedy: String,
    },
    /// Somebody else holds it.
    #[error("{key} is in use by {holder}{scope}: wait until it ends, or use --wait")]
    Busy {
        /// The setting.
        key: String,
        /// Its command and process.
        holder: String,
        /// Why it matters from here, where that is not plain.
        scope: &'static str,
    },
    /// The host does not let us.
    #[error("cannot {what} {key}: {source}{hint}")]
    Host {
        /// "read", "set", "put back".
        what: &'static str,
        /// The setting.
        key: String,
        /// The kernel's answer.
        source: io::Error,
        /// What to do about it, or nothing.
        hint: &'static str,
    },
    /// The journal cannot be kept, so nothing is changed.
    #[error("cannot {operation} the journal of settings {}: {source}; use --journal DIR for another directory", path.display())]
    Journal {
        /// What was being done.
        operation: &'static str,
        /// Where.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// No such entry of the journal.
    #[error("the journal has no entry '{id}': `thru tune journal` lists the entries")]
    NoEntry {
        /// As it was written.
        id: String,
    },
}

/// Whose matter an error is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// What was asked for cannot be.
    Wrong,
    /// Who asked may not.
    Refused,
    /// Somebody else holds the setting.
    Busy,
    /// The host.
    Host,
}

impl TuneError {
    /// Whose matter it is.
    #[must_use]
    pub fn fault(&self) -> Fault {
        match self {
            Self::Unknown { .. } | Self::Value { .. } | Self::NoEntry { .. } => Fault::Wrong,
            Self::Forbidden { .. } => Fault::Refused,
            Self::Busy { .. } => Fault::Busy,
            Self::Host { .. } | Self::Journal { .. } => Fault::Host,
        }
    }

    /// A failure of the kernel's, with the remedy that goes with it.
    pub(crate) fn host(what: &'static str, key: &str, host_wide: bool, source: io::Error) -> Self {
        let denied = matches!(source.kind(), io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem);
        let hint = match (denied, host_wide) {
            (true, true) => {
                "; it acts on the whole host: run as root (CAP_SYS_ADMIN, CAP_NET_ADMIN) in the host's first \
                    network namespace"
            }
            (true, false) => "; it needs root, or CAP_NET_ADMIN in this network namespace",
            _ if source.raw_os_error() == Some(libc::EOPNOTSUPP) => "; this device or kernel does not support it",
            _ => "",
        };
        Self::Host { what, key: key.into(), source, hint }
    }
}
