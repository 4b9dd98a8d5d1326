//! What can go wrong on a bus.

use std::error::Error;
use std::io;

use text::Said;

/// An error of a library.
type Cause = Box<dyn Error + Send + Sync>;

/// Why something on a bus failed. The text names the bus, the name on it, and the remedy.
#[derive(Debug, thiserror::Error, Said)]
pub enum BusError {
    /// The text is not the address of a bus, or of a host on one.
    #[error("'{text}' is not a valid bus: {what}")]
    Address {
        /// As the user wrote it.
        text: String,
        /// What is wrong with it.
        what: &'static str,
    },
    /// A file of credentials or certificates cannot be used.
    #[error("cannot use {path}: {what}")]
    Credentials {
        /// Its path.
        path: String,
        /// What is wrong.
        what: CredentialsProblem,
    },
    /// The server is not reached, or refuses.
    #[error("cannot connect to the bus {bus}: {what}")]
    Unreachable {
        /// The server's address, without passwords.
        bus: String,
        /// What happened, and the remedy.
        what: ConnectProblem,
    },
    /// The server answers, but not as a bus must.
    #[error("the bus {bus} failed to {operation}: {what}")]
    Failed {
        /// The server's address, without passwords.
        bus: String,
        /// What was attempted.
        operation: &'static str,
        /// What happened, and the remedy.
        what: BusProblem,
    },
    /// No host has this name there.
    #[error("no agent on the bus {bus} has the name '{name}': start `thru serve` there with `--bus {bus}`")]
    Absent {
        /// The server's address, without passwords.
        bus: String,
        /// The name.
        name: String,
    },
    /// Another agent has this name.
    #[error(
        "another agent on the bus {bus} has the name '{name}' ({holder}): stop it, or give this host another name with `--bus {bus}/NAME`"
    )]
    Taken {
        /// The server's address, without passwords.
        bus: String,
        /// The name.
        name: String,
        /// Where that agent is.
        holder: String,
    },
    /// This program cannot use a bus.
    #[error("this thru was built without the feature `fleet`, which a bus needs")]
    Unsupported,
}

/// What is wrong with a file of credentials or certificates.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CredentialsProblem {
    /// It cannot be read.
    #[error(transparent)]
    Read(#[from] io::Error),
    /// Its bytes are not UTF-8.
    #[error("it is not text")]
    NotText,
    /// It has no credentials.
    #[error("it contains no `nsc` credentials, nkey seed, or line USER:PASSWORD")]
    NoCredentials,
    /// It has no certificate.
    #[error("it contains no PEM certificate")]
    NoCertificate,
}

/// Why there is no connection to a server.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ConnectProblem {
    /// It does not answer.
    #[error("it does not answer; check the address")]
    Silent,
    /// It is not reached.
    #[error("{source}; check the address, and that nats-server runs there")]
    NotReached {
        /// The client's error.
        source: Cause,
    },
    /// It refuses these credentials.
    #[error("it refuses these credentials ({source}); set THRU_BUS_CREDS to the file from its operator")]
    Refused {
        /// The client's error.
        source: Cause,
    },
    /// It is not recognized.
    #[error("{source}; set THRU_BUS_CA to the file with its CA certificate")]
    Tls {
        /// The client's error.
        source: Cause,
    },
    /// Another error of the connection.
    #[error("{source}")]
    Other {
        /// The client's error.
        source: Cause,
    },
    /// The seed among the credentials cannot be used.
    #[error("the seed of the credentials: {source}")]
    Seed {
        /// The error in it.
        source: Cause,
    },
    /// The credentials are incomplete.
    #[error("the credentials have no password")]
    NoPassword,
    /// A certificate of an authority cannot be used.
    #[error("{source}")]
    Authority {
        /// The error in it.
        source: Cause,
    },
}

/// Why a bus does not do its part.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum BusProblem {
    /// No answer in time.
    #[error("it does not answer")]
    Silent,
    /// The connection was lost.
    #[error("its connection was lost")]
    Lost,
    /// No room for another stream.
    #[error("it has too many streams")]
    TooManyStreams,
    /// Another agent wrote the name first.
    #[error("another agent took the name first")]
    Overtaken,
    /// The name cannot be written between the writes of others.
    #[error("other agents keep writing the same name")]
    Contended,
    /// The server or the client refused.
    #[error("{}{}", whole(source.as_ref()), jetstream(source.as_ref()))]
    Refused {
        /// The client's error.
        source: Cause,
    },
}

#[cfg(feature = "nats")]
impl BusProblem {
    /// An error of the client's library.
    pub(crate) fn refused(source: impl Into<Cause>) -> Self {
        Self::Refused { source: source.into() }
    }
}

/// An error with its sources: the first line alone says little.
fn whole(error: &(dyn Error + 'static)) -> String {
    match error.source() {
        Some(source) if !error.to_string().contains(&source.to_string()) => format!("{error}: {}", whole(source)),
        _ => error.to_string(),
    }
}

/// The remedy if the server has no JetStream.
fn jetstream(error: &(dyn Error + 'static)) -> &'static str {
    let what = whole(error);
    if what.contains("JetStream not enabled") || what.contains("no responders") {
        "; it needs JetStream: start nats-server with -js"
    } else {
        ""
    }
}
