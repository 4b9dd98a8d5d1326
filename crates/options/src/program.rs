//! The other programs whose protocols are known.

use std::fmt;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{Pattern, ValueError};

/// Another program that measures networks, whose servers and clients can be measured with.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Program {
    /// iperf3.
    Iperf3,
    /// netperf, whose server is netserver.
    Netperf,
    /// NetPIPE, whose program for TCP is NPtcp.
    Netpipe,
    /// nttcp.
    Nttcp,
    /// nuttcp.
    Nuttcp,
    /// iperf 2.
    Iperf2,
    /// A reflector of the Simple Two-way Active Measurement Protocol (RFC 8762).
    Stamp,
}

impl Program {
    /// All of them, in the order of the manual.
    pub const ALL: [Self; 7] =
        [Self::Iperf3, Self::Netperf, Self::Netpipe, Self::Nttcp, Self::Nuttcp, Self::Iperf2, Self::Stamp];

    /// Its name in options and records.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Iperf3 => "iperf3",
            Self::Netperf => "netperf",
            Self::Netpipe => "netpipe",
            Self::Nttcp => "nttcp",
            Self::Nuttcp => "nuttcp",
            Self::Iperf2 => "iperf2",
            Self::Stamp => "stamp",
        }
    }

    /// Whether its server reports what it counted. NPtcp does so only for streams.
    #[must_use]
    pub const fn reports(self, pattern: Pattern) -> bool {
        !matches!(self, Self::Netpipe) || matches!(pattern, Pattern::Stream)
    }

    /// The program called `name`.
    ///
    /// # Errors
    /// There is none; the message lists them.
    pub fn read(name: &str) -> Result<Self, ValueError> {
        Self::ALL
            .into_iter()
            .find(|program| program.name() == name)
            .ok_or_else(|| ValueError::Program { name: name.to_owned(), known: Self::ALL.map(Self::name).into() })
    }
}

impl fmt::Display for Program {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}
