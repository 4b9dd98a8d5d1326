//! Which system calls move the bytes of a stream.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// How a sender hands blocks to the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum SendBy {
    /// One `send(2)` or `write(2)` a block, which copies it.
    #[default]
    Copy,
    /// `sendfile(2)` from memory that has a file descriptor: pages are passed on, not copied.
    Sendfile,
    /// `tee(2)` and `splice(2)` from a pipe that is filled once: pages are passed on, not copied.
    Splice,
    /// `send(2)` with MSG_ZEROCOPY. The kernel may copy all the same (on loopback it always does), and says so;
    /// [`SocketFacts::zerocopy`](crate::SocketFacts::zerocopy) has its count.
    Zerocopy,
    /// `sendmmsg(2)`: several datagrams a call, each on its way alone.
    Mmsg,
    /// UDP_SEGMENT: one call and one way through the stack for up to 64 KiB, which the kernel or the device cuts into
    /// datagrams of the block's size.
    Gso,
    /// `send(2)` on a socket with kernel TLS: the kernel makes the records and encrypts them.
    Ktls,
}

/// How a receiver takes bytes from the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ReceiveBy {
    /// `recv(2)` or `read(2)`, which copies.
    #[default]
    Copy,
    /// `recv(2)` with MSG_TRUNC on TCP: the kernel throws the bytes away uncopied (tcp(7)).
    Trunc,
    /// TCP_ZEROCOPY_RECEIVE: pages that hold nothing but payload are mapped into the process, the rest is copied;
    /// [`SocketFacts::mapped`](crate::SocketFacts::mapped) has the share.
    Map,
    /// `recvmmsg(2)`: several datagrams a call.
    Mmsg,
    /// UDP_GRO: neighbouring datagrams of one sender are taken in one piece, up to 64 KiB.
    Gro,
    /// `recvmsg(2)` on a socket with kernel TLS: the kernel decrypts.
    Ktls,
}

/// How blocks are moved: a sender's and a receiver's way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Engine {
    /// At the end that sends.
    pub send: SendBy,
    /// At the end that receives.
    pub receive: ReceiveBy,
    /// The ways were not asked for but found: each was tried for a moment before the first trial, and these carried most.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub auto: bool,
}

impl Engine {
    /// Every way to send, with its name on the command line.
    pub const SENDS: [(&'static str, SendBy); 7] = [
        ("copy", SendBy::Copy),
        ("sendfile", SendBy::Sendfile),
        ("splice", SendBy::Splice),
        ("zerocopy", SendBy::Zerocopy),
        ("mmsg", SendBy::Mmsg),
        ("gso", SendBy::Gso),
        ("ktls", SendBy::Ktls),
    ];
    /// Every way to receive, with its name on the command line.
    pub const RECEIVES: [(&'static str, ReceiveBy); 6] = [
        ("copy", ReceiveBy::Copy),
        ("trunc", ReceiveBy::Trunc),
        ("map", ReceiveBy::Map),
        ("mmsg", ReceiveBy::Mmsg),
        ("gro", ReceiveBy::Gro),
        ("ktls", ReceiveBy::Ktls),
    ];

    /// `send` with the way to receive that goes with it: many datagrams a call at one end want the same at the other,
    /// and a kernel that encrypts one that decrypts.
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

    /// Whether it is the plain one, so that nothing need be said of it.
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
