//! Problems of iperf3's protocol.

use std::fmt;

use text::{Said, Text, say};
use thiserror::Error;

use super::fault::ServerFault;

/// An invalid message of iperf3, or why the other end refused.
#[derive(Debug, Error, Said)]
#[non_exhaustive]
pub enum Iperf3Error {
    /// A byte that was not due.
    #[error("unexpected byte {byte}")]
    Byte {
        /// As received.
        byte: u8,
    },
    /// Parameters that are not JSON.
    #[error("not a JSON object: {source}")]
    NotParameters {
        /// The parser's answer.
        source: serde_json::Error,
    },
    /// Parameters of several protocols, or of none.
    #[error("the parameters must request either \"tcp\" or \"udp\"")]
    Protocol,
    /// A parameter out of its limits.
    #[error("\"{key}\" is {value}; the limits are {least} to {most}")]
    Limits {
        /// The parameter.
        key: &'static str,
        /// As received.
        value: i64,
        /// The least.
        least: u32,
        /// The largest.
        most: u32,
        /// iperf3's reason for such a value.
        fault: ServerFault,
    },
    /// A count below 0.
    #[error("\"{key}\" is {value}; it cannot be negative")]
    Negative {
        /// The parameter.
        key: &'static str,
        /// As received.
        value: i64,
    },
    /// Results that are not JSON, or without a key.
    #[error("invalid results: {source}")]
    NotResults {
        /// The parser's answer.
        source: serde_json::Error,
    },
    /// Results of more streams than a test can have.
    #[error("{count} streams; the limit is {limit}")]
    TooManyStreams {
        /// How many.
        count: usize,
        /// The most.
        limit: usize,
    },
    /// Results of a stream that was not opened.
    #[error("stream {id} is not part of this test")]
    UnknownStream {
        /// Its number.
        id: u64,
    },
    /// Two results of one stream.
    #[error("stream {id} occurs twice")]
    Repeated {
        /// Its number.
        id: u32,
    },
    /// A count that cannot be.
    #[error("\"{key}\" is {number}, which is not a count")]
    Count {
        /// Its key.
        key: &'static str,
        /// As received.
        number: f64,
    },
    /// A jitter that cannot be.
    #[error("invalid \"jitter\" {number}")]
    Jitter {
        /// As received.
        number: f64,
    },
    /// One of the two counts of the omitted time alone.
    #[error("\"omitted_errors\" or \"omitted_packets\" is missing")]
    Omitted,
    /// The server has another client.
    #[error("the server is busy with another client; try again later")]
    Busy,
    /// The server's user stopped it.
    #[error("the server was stopped")]
    Stopped,
    /// The server refused for a reason.
    #[error("the server refused with error {number}{}{}", Meaning(*number), SystemError(*errno))]
    Refused {
        /// Its reason, by iperf3's number.
        number: u32,
        /// The system's error number; some servers send none.
        errno: Option<i32>,
    },
    /// The server closed the connection within its refusal.
    #[error("the server refused without a reason")]
    RefusedSilently,
    /// The server closed the connection after a login.
    #[error(
        "the server closed the connection: it may not know the login; check `--username`, the password, \
         `--rsa-public-key-path`, `--use-pkcs1-padding` and both clocks"
    )]
    Login,
    /// The server closed the connection after parameters without a login.
    #[error("the server closed the connection: it may require a login (`--username` and `--rsa-public-key-path`)")]
    NoLogin,
    /// The driver ended a test that does not run.
    #[error("the test cannot end before it runs")]
    NotRunning,
    /// The driver gave results that were not requested.
    #[error("the server does not wait for results")]
    NotWaiting,
}

impl Iperf3Error {
    /// What iperf3 answers to parameters with this problem.
    pub(super) fn fault(&self) -> ServerFault {
        match self {
            Self::Limits { fault, .. } => *fault,
            _ => ServerFault::Parameters,
        }
    }
}

/// What a number of iperf3's means, if it is known.
struct Meaning(u32);

impl fmt::Display for Meaning {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        ServerFault::of(self.0).map_or(Ok(()), |fault| write!(f, " ({fault})"))
    }
}

impl Said for Meaning {
    fn say(&self) -> Text {
        ServerFault::of(self.0).map_or(Text::default(), |fault| say!(" ({fault})"))
    }
}

/// The system's error number behind a server's error; some servers send one that no system has.
struct SystemError(Option<i32>);

impl fmt::Display for SystemError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            None | Some(0) => Ok(()),
            Some(errno @ 1..) => write!(f, ": {}", std::io::Error::from_raw_os_error(errno)),
            Some(errno) => write!(f, ", errno {errno}"),
        }
    }
}
