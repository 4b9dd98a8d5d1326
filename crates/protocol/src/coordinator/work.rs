//! What only the caller of a coordinator can do.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use model::{EndOptions, Leg, Setting, Shared, Spec};

/// Work for the caller of a coordinator, which goes on beside everything else.
#[derive(Debug)]
pub enum Work {
    /// Connect to the agent of this host as before; answered by [`Answer::Connected`](super::Answer::Connected).
    Connect {
        /// Number of the host.
        host: usize,
    },
    /// Make a test between this host and another program; answered by [`Answer::Tested`](super::Answer::Tested).
    Test {
        /// Number of the program's host.
        host: usize,
        /// Number of the test among the run's passes.
        number: u32,
        /// What to measure.
        spec: Shared<Spec>,
        /// All sizes of a curve, or one leg.
        legs: Vec<Leg>,
        /// Show what happens meanwhile.
        live: bool,
    },
    /// The address at which data reach an agent's `port`; answered by [`Answer::Address`](super::Answer::Address).
    Address {
        /// The address at which the control connection reached it; `None` within this process.
        control: Option<SocketAddr>,
        /// What the user says about that end.
        far: Box<EndOptions>,
        /// The port.
        port: u16,
        /// It is the port of the control connection.
        shared: bool,
    },
    /// Give the links of the lab that this process runs in these properties, and all others those of the topology.
    SetLinks(Vec<Setting>),
    /// Begin a report on the lab's links, if there is a lab.
    BeginLinks,
    /// Read the report; answered by [`Answer::Links`](super::Answer::Links) or [`Answer::NoLab`](super::Answer::NoLab).
    ReadLinks,
    /// Remove what this host's kernel knows of earlier connections to an address.
    ForgetPath(IpAddr),
    /// Write a file of this host.
    Disk(Disk),
}

/// What is done with a file. Answered by [`Answer::Bytes`](super::Answer::Bytes).
#[derive(Debug)]
pub enum Disk {
    /// Create it, with its folder.
    Create(PathBuf),
    /// Write these bytes at its end.
    Append(PathBuf, Vec<u8>),
    /// Cut a capture to its whole blocks; the answer is its new length.
    Shorten(PathBuf),
    /// Remove it.
    Remove(PathBuf),
}
