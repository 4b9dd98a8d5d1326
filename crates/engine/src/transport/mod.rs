//! What carries the bytes. Each transport is one file with a [`Transport`] and one line: an entry in `TRANSPORTS` (`registry.rs`),
//! or [`add`] in a program that has a transport of its own.
//!
//! A transport yields [`Link`]s: open connections whose system calls are behind the [`Channel`] trait. Patterns are
//! compiled for each kind of channel and called once per batch of work, not through a table for each message.

mod breaker;
mod capabilities;
mod certificate;
mod channel;
mod check;
mod cipher;
mod datagram;
mod delayed_reads;
mod flow;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;
mod greetings;
mod handshake;
mod hello_exchange;
mod interface;
mod launched;
mod link;
pub mod local;
mod operations;
mod options;
pub mod programs;
mod registry;
mod scope;
mod stamped;
mod stream;
mod sys;
mod tcp;
mod tcp_info;
mod transient;

pub use breaker::Breaker;
pub use capabilities::{Capabilities, SharedPort};
pub use channel::{Channel, Kind};
pub use check::check_end as check_options;
pub use datagram::udp;
pub(crate) use flow::{BoxFlow, Flow, FlowLeg, FlowSetup, Scratch};
pub(crate) use greetings::{Greeting, Greetings};
pub use handshake::{Admission, Cookie, DatagramListener, FlowHello, HELLO_BYTES, REACH_PROOF_BYTES};
pub(crate) use handshake::{SIGNAL_BYTES, Signal};
pub use hello_exchange::{exchange_hello, read_hello, welcome};
pub use interface::{Launcher, ListenOptions, Listener, Rendezvous, Transport};
pub use launched::{mpi, pvm};
pub use link::Link;
pub(crate) use operations::Operations;
pub use options::{AssistError, PrivilegedOption, assist_with, set_privileged};
pub use registry::{add, names, transport, transports};
pub use scope::{at_port, is_link_local, lacks_scope, scope_hint, scope_of, scoped};
pub use sys::batch::DatagramMark;
pub use sys::sockopt::Buffer;
pub(crate) use sys::uring;
pub use sys::watched::{Owner, WatchedSocket};
pub(crate) use tcp_info::TcpInfo;
pub use tcp_info::{TcpPath, tcp_path};
