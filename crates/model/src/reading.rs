//! What a running trial reports about once a second, for live display.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::{CpuUse, DatagramReading, Direction, Interval};

/// One report of a running trial.
#[derive(Debug, Clone, PartialEq)]
pub enum Live {
    /// An entry of the series.
    Interval(Interval),
    /// The counts so far.
    Reading(Reading),
}

/// The counts of one end since the start of a running trial, after each interval of readings.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Reading {
    /// Its number within the trial, from 1, the same at both ends.
    pub number: u32,
    /// Time since this end started, ns.
    pub at_ns: u64,
    /// Time of the first arrival since this end started, ns; null if nothing has arrived.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_arrival_ns: Option<u64>,
    /// One entry for each connection; of several processes each reports its own. A process with more than
    /// [`MOST_FLOWS`](Self::MOST_FLOWS) has one entry for each direction, which sums them up.
    pub flows: Vec<FlowReading>,
    /// CPU time of the end's host since the previous reading of this trial; null unless the host is observed over time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cpu: Option<CpuUse>,
}

/// The counts of one connection at one end since the start of the trial, or the sums of several.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct FlowReading {
    /// Flow number, from 0; of several connections the first one's.
    pub flow: u32,
    /// Connections that the entry sums up.
    pub connections: u32,
    /// Direction of its payload.
    pub direction: Direction,
    /// Payload bytes sent.
    pub bytes_sent: u64,
    /// Payload bytes received.
    pub bytes_received: u64,
    /// Round trips completed.
    pub transactions: u64,
    /// TCP's state; null for other transports and for several connections.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tcp: Option<TcpReading>,
    /// What arrived of numbered datagrams; null if nothing did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub datagrams: Option<DatagramReading>,
}

/// TCP_INFO in short.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct TcpReading {
    /// Retransmitted segments since the start.
    pub retransmits: u64,
    /// Smoothed RTT, ns.
    pub rtt_ns: u64,
    /// Congestion window, bytes.
    pub cwnd_bytes: u64,
}

impl Reading {
    /// Most connections of a process that have entries of their own.
    pub const MOST_FLOWS: usize = 64;
}
