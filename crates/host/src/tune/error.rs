//! Errors of settings.

use std::io;
use std::path::PathBuf;
use text::Said;

/// Why a setting was not read, changed or put back.
#[derive(Debug, thiserror::Error, Said)]
#[non_exhaustive]
pub enum TuneError {
    /// No such key.
    #[error("there is no setting '{key}' on this host: {hint}")]
    Unknown {
        /// As given.
        key: String,
        /// Similar keys, or the forms of keys.
        hint: String,
    },
    /// A value that the setting cannot have.
    #[error("{key}={value}: {reason}")]
    Value {
        /// The setting.
        key: String,
        /// As given.
        value: String,
        /// What is wrong with it, and what is valid.
        reason: SettingValueError,
    },
    /// Not allowed for this client.
    #[error("clients of an agent may not change {key}: {remedy}")]
    Forbidden {
        /// The setting.
        key: String,
        /// The remedy, or why there is none.
        remedy: String,
    },
    /// Another process uses it.
    #[error("{key} is in use by {holder}{scope}: wait until it ends, or use `--wait`")]
    Busy {
        /// The setting.
        key: String,
        /// Its command and process.
        holder: String,
        /// Why it matters in this namespace, if that is not obvious.
        scope: &'static str,
    },
    /// The host refuses it.
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
    /// The journal cannot be written, so nothing is changed.
    #[error("cannot {operation} the journal of settings {}: {source}; use `--journal DIR` for another directory", path.display())]
    Journal {
        /// The operation.
        operation: &'static str,
        /// The path.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// No such entry of the journal.
    #[error("the journal has no entry '{id}': `thru tune journal` lists the entries")]
    NoEntry {
        /// As given.
        id: String,
    },
}

/// What is wrong with the value of a setting.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SettingValueError {
    /// It has another form than the setting's values.
    #[error("write {expected}")]
    Form {
        /// What is accepted.
        expected: &'static str,
    },
    /// A word that is not an address with a prefix length.
    #[error("'{text}' is not an address: write 192.0.2.1/24, 192.0.2.1/255.255.255.0 or 2001:db8::1/64")]
    Address {
        /// The word.
        text: String,
    },
    /// Control characters.
    #[error("a value is one line of plain text")]
    Control,
    /// The setting is there twice in one request.
    #[error("it is set twice: leave one out")]
    Twice,
    /// The kernel does not take it.
    #[error("the kernel rejects this value")]
    Rejected,
    /// The kernel took it and has another one.
    #[error("the kernel changed it to '{now}'")]
    Changed {
        /// What was read back.
        now: String,
    },
}

/// The cause of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TuneFault {
    /// The request is invalid.
    Wrong,
    /// The client may not do this.
    Refused,
    /// Another process uses the setting.
    Busy,
    /// The host.
    Host,
}

impl TuneError {
    /// The cause.
    #[must_use]
    pub fn fault(&self) -> TuneFault {
        match self {
            Self::Unknown { .. } | Self::Value { .. } | Self::NoEntry { .. } => TuneFault::Wrong,
            Self::Forbidden { .. } => TuneFault::Refused,
            Self::Busy { .. } => TuneFault::Busy,
            Self::Host { .. } | Self::Journal { .. } => TuneFault::Host,
        }
    }

    /// An error of the kernel, with its remedy.
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
