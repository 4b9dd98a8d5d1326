//! The send and receive methods of a stream.

use std::fmt;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a sender passes blocks to the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum SendBy {
    /// One `send(2)` or `write(2)` per block, which copies it.
    #[default]
    Copy,
    /// `sendfile(2)` from memory with a file descriptor: pages are referenced, not copied.
    Sendfile,
    /// `tee(2)` and `splice(2)` from a pipe that is filled once: pages are referenced, not copied.
    Splice,
    /// `send(2)` with MSG_ZEROCOPY. The kernel may still copy (on loopback it always does) and reports it;
    /// `SocketFacts::zerocopy` has the counts.
    Zerocopy,
    /// `sendmmsg(2)`: several datagrams per call, each of which passes the stack separately.
    Mmsg,
    /// UDP_SEGMENT: up to 64 KiB pass the stack with one call, and the kernel or the device splits them into datagrams of the
    /// block's size.
    Gso,
    /// `send(2)` on a socket with kernel TLS: the kernel makes the records and encrypts them.
    Ktls,
}

/// How a receiver gets bytes from the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum ReceiveBy {
    /// `recv(2)` or `read(2)`, which copies.
    #[default]
    Copy,
    /// `recv(2)` with MSG_TRUNC on TCP: the kernel discards the bytes without copying them (tcp(7)).
    Trunc,
    /// TCP_ZEROCOPY_RECEIVE: pages that contain only payload are mapped into the process, the rest is copied;
    /// `SocketFacts::mapped` has the counts.
    Map,
    /// `recvmmsg(2)`: several datagrams per call.
    Mmsg,
    /// UDP_GRO: consecutive datagrams of one sender are received in one piece of up to 64 KiB.
    Gro,
    /// `recvmsg(2)` on a socket with kernel TLS: the kernel decrypts.
    Ktls,
}

/// The send method and the receive method.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default)]
pub struct Engine {
    /// At the end that sends.
    pub send: SendBy,
    /// At the end that receives.
    pub receive: ReceiveBy,
    /// The methods were chosen by pilot trials before the first trial, as those with the highest goodput.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub auto: bool,
}

impl Engine {
    /// Every send method, with its name on the command line.
    pub const SENDS: [(&'static str, SendBy); 7] = [
        ("copy", SendBy::Copy),
        ("sendfile", SendBy::Sendfile),
        ("splice", SendBy::Splice),
        ("zerocopy", SendBy::Zerocopy),
        ("mmsg", SendBy::Mmsg),
        ("gso", SendBy::Gso),
        ("ktls", SendBy::Ktls),
    ];
    /// Every receive method, with its name on the command line.
    pub const RECEIVES: [(&'static str, ReceiveBy); 6] = [
        ("copy", ReceiveBy::Copy),
        ("trunc", ReceiveBy::Trunc),
        ("map", ReceiveBy::Map),
        ("mmsg", ReceiveBy::Mmsg),
        ("gro", ReceiveBy::Gro),
        ("ktls", ReceiveBy::Ktls),
    ];

    /// `send` with the matching receive method: several datagrams per call at both ends, or kernel TLS at both ends.
    #[must_use]
    pub fn sending(send: SendBy) -> Self {
        let receive = match send {
            SendBy::Mmsg => ReceiveBy::Mmsg,
            SendBy::Gso => ReceiveBy::Gro,
            SendBy::Ktls => ReceiveBy::Ktls,
            _ => ReceiveBy::Copy,
        };
        Self { send, receive, auto: false }
    }

    /// Whether it is the default, which is not mentioned in output.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        *self == Self::default()
    }
}

impl fmt::Display for Engine {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let send = Self::SENDS.iter().find(|(_, method)| *method == self.send).map_or("", |(name, _)| name);
        let receive = Self::RECEIVES.iter().find(|(_, method)| *method == self.receive).map_or("", |(name, _)| name);
        write!(f, "{send},{receive}")
    }
}
