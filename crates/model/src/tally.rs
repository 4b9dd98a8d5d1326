//! The counts of one end in one trial.

mod count;
mod one_way;

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

pub use self::count::Count;
pub use self::one_way::{Delay, Delays, OneWay, WallClock};

use crate::{AnatomyTally, Direction, FlowCounts, Histogram, SizeCount, Spent, Stamps, TcpSample};

/// All counts of one end in one trial, over all its flows, threads and processes.
///
/// Times are nanoseconds since this end's start; the two ends' clocks are never subtracted from each other. Unreported counts
/// are absent in the document.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(remote = "Self")]
pub struct EndTally {
    /// When this end began, ns of its host's CLOCK_MONOTONIC: only differences between ends on one host have a meaning. Null on
    /// curves, whose trials share a pass, and where the program at this end does not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub began_ns: Option<u64>,
    /// Payload bytes that the kernel (or the ring) accepted from this end.
    #[serde(default = "count::unreported", deserialize_with = "count::or_unreported")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    pub bytes_sent: u64,
    /// Payload bytes that arrived here.
    #[serde(default = "count::unreported", deserialize_with = "count::or_unreported")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    pub bytes_received: u64,
    /// Calls that sent payload.
    #[serde(default = "count::unreported", deserialize_with = "count::or_unreported")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    pub calls_sent: u64,
    /// Calls that received payload.
    #[serde(default = "count::unreported", deserialize_with = "count::or_unreported")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    pub calls_received: u64,
    /// Whole blocks sent.
    #[serde(default = "count::unreported", deserialize_with = "count::or_unreported")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    pub blocks_sent: u64,
    /// Whole round trips that ended here (near end of rr, crr and pingpong).
    #[serde(default = "count::unreported", deserialize_with = "count::or_unreported")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    pub transactions: u64,
    /// Time from the first to the last payload byte passed to the kernel, ns; 0 if nothing was sent.
    #[serde(default = "count::unreported", deserialize_with = "count::or_unreported")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    pub sending_ns: u64,
    /// Time from the first to the last arrival, ns; 0 if nothing arrived or everything at once.
    #[serde(default = "count::unreported", deserialize_with = "count::or_unreported")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    pub receiving_ns: u64,
    /// For a stream, the basis of its goodput: the bytes that arrived after the first arrival, and their time. For a paced stream
    /// the bytes of all blocks before the last one, and the time from the first byte of the first block to that of the last one,
    /// the mean over the flows. Null if the bytes of the first arrival are unreported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub after_first: Option<Window>,
    /// For a paced stream, the basis of the sender's rate: the bytes sent before each flow's last block, and the time from its
    /// first to its last block, the mean over the flows. With a warm-up, from the last block of the warm-up.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before_last: Option<Window>,
    /// The part of `bytes_received` that arrived after the warm-up or the start-up of the connections, and its time; null if all of it
    /// counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub measured: Option<Window>,
    /// When the start-up of the connections was over, ns since this end began; null where it was not looked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steady_from_ns: Option<u64>,
    /// Round-trip times, at the end that measures them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt: Option<RttTally>,
    /// Round trips of the probe, at the end that sends the requests; up to 8 were outstanding at a time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probe: Option<RttTally>,
    /// The requests of a probe that has a connection for each, in the order in which they began.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub probes: Vec<ProbeSample>,
    /// How evenly a paced end sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pacing: Option<PacingTally>,
    /// Sequence counts, for transports with loss.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub datagrams: Option<DatagramTally>,
    /// Of a mix of sizes, the datagrams of each size, ascending.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<SizeCount>,
    /// One-way delays of each direction, at the end that measures round trips with a reflector that reports its times.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub one_way: Option<OneWay>,
    /// The kernel's time stamps of this end; absent in documents, whose trials have `anatomy`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stamps: Option<Stamps>,
    /// The parts of the stamped round trips by both ends' stamps, at the near end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub anatomy: Option<AnatomyTally>,
    /// Bytes that were still in this end's send queue when the drain ended (SIOCOUTQ).
    #[serde(default = "count::unreported", deserialize_with = "count::or_unreported")]
    #[cfg_attr(feature = "schema", schemars(with = "Option<u64>"))]
    pub bytes_unsent: u64,
    /// The series over time; it adds up to the totals exactly.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub intervals: Vec<Interval>,
    /// The counts of each flow, in flow order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub flows: Vec<FlowTally>,
    /// CPU time of this end; null on curves, whose trials share a pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spent: Option<Spent>,
    /// Whether nothing moved for the spec's stall time, which ended the trial.
    pub stalled: bool,
    /// Whether the trial ended before its stop rule was met (lost peer, interrupt).
    pub cut_short: bool,
    /// Unreported counts, as in files of other tools, in the order of [`Count::ALL`]. Empty for this program's own measurements.
    #[serde(skip)]
    pub unreported: Vec<Count>,
}

impl EndTally {
    /// The basis of a receive rate: the arrivals after the warm-up, else after the first arrival, else all.
    #[must_use]
    pub fn arrivals(&self) -> Window {
        let all = Window { bytes: self.bytes_received, ns: self.receiving_ns };
        self.measured.or(self.after_first).unwrap_or(all)
    }

    /// The basis of a send rate.
    #[must_use]
    pub fn sends(&self) -> Window {
        self.before_last.unwrap_or(Window { bytes: self.bytes_sent, ns: self.sending_ns })
    }
}

/// A part of a trial.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Window {
    /// Payload bytes.
    pub bytes: u64,
    /// Length in ns.
    pub ns: u64,
}

impl Window {
    /// Two simultaneous windows as one with the sum of their rates: their bytes, over the time that these would have taken.
    #[must_use]
    pub fn beside(self, other: Self) -> Self {
        let bytes = self.bytes + other.bytes;
        let rate = |window: Self| window.bytes as f64 / window.ns as f64;
        match (self.ns, other.ns) {
            (0, ns) | (ns, 0) => Self { bytes, ns },
            _ if bytes == 0 => Self { bytes, ns: self.ns.max(other.ns) },
            _ => Self { bytes, ns: (bytes as f64 / (rate(self) + rate(other))).round() as u64 },
        }
    }
}

/// Round-trip times of one trial, at the end that measures them. A whole round trip, never half of one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct RttTally {
    /// Round trips timed.
    pub count: u64,
    /// Shortest, ns.
    pub min_ns: u64,
    /// Median, ns.
    pub p50_ns: u64,
    /// Arithmetic mean, ns.
    pub mean_ns: f64,
    /// 99th percentile, ns; null with fewer than 1,000 samples, because fewer than ten would be above it.
    pub p99_ns: Option<u64>,
    /// Longest, ns.
    pub max_ns: u64,
    /// Round trips between two clock reads: 1, or more if a single round trip is shorter than 50 clock reads. Then each sample
    /// is the mean of a batch and the percentiles are of batch means.
    pub batch: u64,
    /// All samples; absent for the points of a curve, whose outcome has the merged histogram. If a probe could not send a request
    /// when it was due, because 8 were outstanding, the round trips before and after count for the missing ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub histogram: Option<Histogram>,
}

impl RttTally {
    /// Fewest samples for a 99th percentile.
    pub const P99_SAMPLES: u64 = 1_000;

    /// The digest of a probe's `histogram`, in which each of the `count` round trips counts for all that were due around it.
    #[must_use]
    pub fn weighted(histogram: Histogram, count: u64) -> Option<Self> {
        let tally = Self::from_histogram(histogram, 1)?;
        Some(Self { count, p99_ns: tally.p99_ns.filter(|_| count >= Self::P99_SAMPLES), ..tally })
    }

    /// The digest of `histogram`; `None` if it is empty.
    #[must_use]
    pub fn from_histogram(histogram: Histogram, batch: u64) -> Option<Self> {
        Some(Self {
            count: histogram.count(),
            min_ns: histogram.min()?,
            p50_ns: histogram.quantile(0.5)?,
            mean_ns: histogram.mean()?,
            p99_ns: if histogram.count() >= Self::P99_SAMPLES { histogram.quantile(0.99) } else { None },
            max_ns: histogram.max()?,
            batch,
            histogram: Some(histogram),
        })
    }
}

/// A request on a connection of its own, beside a load.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct ProbeSample {
    /// When the connection was begun, ns since this end started.
    pub at_ns: u64,
    /// From then until it was established, ns.
    pub connect_ns: u64,
    /// From then until the response was complete, ns.
    pub request_ns: u64,
}

/// How evenly a paced sender sent: the absolute difference of the times between its sends from the requested time, ns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct PacingTally {
    /// Sends that followed another one.
    pub sends: u64,
    /// Median difference, ns.
    pub p50_ns: u64,
    /// 99th percentile, ns; null with fewer than 1,000 sends.
    pub p99_ns: Option<u64>,
    /// Largest, ns.
    pub max_ns: u64,
    /// Time of the schedule that was given up because the sender's thread did not run, ns, summed over its flows: the blocks
    /// that were due in it were never sent.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub asleep_ns: u64,
    /// The same because the transport took nothing for so long: the path, the receiver or the interface was slower.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub blocked_ns: u64,
}

#[allow(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_zero(ns: &u64) -> bool {
    *ns == 0
}

impl PacingTally {
    /// The digest of `errors`; `None` if it is empty.
    #[must_use]
    pub fn from_histogram(errors: &Histogram) -> Option<Self> {
        Some(Self {
            sends: errors.count(),
            p50_ns: errors.quantile(0.5)?,
            p99_ns: if errors.count() >= RttTally::P99_SAMPLES { errors.quantile(0.99) } else { None },
            max_ns: errors.max()?,
            asleep_ns: 0,
            blocked_ns: 0,
        })
    }

    /// Two processes that sent at the same time: all sends, and the worse of each figure.
    #[must_use]
    pub fn worse(self, other: Self) -> Self {
        Self {
            sends: self.sends + other.sends,
            p50_ns: self.p50_ns.max(other.p50_ns),
            p99_ns: self.p99_ns.max(other.p99_ns),
            max_ns: self.max_ns.max(other.max_ns),
            asleep_ns: self.asleep_ns + other.asleep_ns,
            blocked_ns: self.blocked_ns + other.blocked_ns,
        }
    }
}

/// Counts of datagrams by their sequence numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct DatagramTally {
    /// Datagrams passed to the kernel here.
    pub sent: u64,
    /// Distinct datagrams that arrived here, without duplicates.
    pub received: u64,
    /// Second and further copies.
    pub duplicates: u64,
    /// Datagrams that arrived after one with a higher number.
    pub reordered: u64,
    /// Datagrams dropped at this end's socket because its buffer was full (SO_MEMINFO's drop count).
    pub socket_drops: u64,
    /// Round trips without a reply (near end of rr and pingpong).
    pub replies_lost: u64,
    /// If the other end is another program: datagrams missing here by the numbers of the received ones, without those in flight at
    /// the end of the test.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub missed: Option<u64>,
    /// Jitter of the arrivals (RFC 3550, section 6.4.1), ns; of several flows their mean. Null if the datagrams carry
    /// no times, which need 16 bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub jitter_ns: Option<u64>,
}

impl DatagramTally {
    /// The sums of the counts of both, without a jitter: that of several flows is a mean, which the caller weighs.
    #[must_use]
    pub fn together(self, other: Self) -> Self {
        let missed = [self.missed, other.missed].into_iter().flatten().reduce(u64::saturating_add);
        Self {
            sent: self.sent.saturating_add(other.sent),
            received: self.received.saturating_add(other.received),
            duplicates: self.duplicates.saturating_add(other.duplicates),
            reordered: self.reordered.saturating_add(other.reordered),
            socket_drops: self.socket_drops.saturating_add(other.socket_drops),
            replies_lost: self.replies_lost.saturating_add(other.replies_lost),
            missed,
            jitter_ns: None,
        }
    }
}

/// One entry of the series: this end's counts in [start, end).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Interval {
    /// Start, ns since this end started.
    pub start_ns: u64,
    /// End, ns since this end started.
    pub end_ns: u64,
    /// Payload bytes sent in it.
    pub bytes_sent: u64,
    /// Payload bytes received in it.
    pub bytes_received: u64,
    /// Round trips completed in it.
    pub transactions: u64,
}

/// The counts of one connection and its socket. With payload in both directions a flow of a stream has a connection for each.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct FlowTally {
    /// Flow number, from 0.
    pub flow: u32,
    /// Direction of its payload; for round trips, of the requests. Absent where it is `send`.
    #[serde(default, skip_serializing_if = "Direction::is_send")]
    pub direction: Direction,
    /// Payload bytes sent.
    pub bytes_sent: u64,
    /// Payload bytes received.
    pub bytes_received: u64,
    /// Round trips completed.
    pub transactions: u64,
    /// First and last send of payload, ns since this end (of several processes, its process) started; absent if nothing was sent, and
    /// of other programs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sending_ns: Option<[u64; 2]>,
    /// First and last arrival of payload, likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receiving_ns: Option<[u64; 2]>,
    /// Its sequence counts, for transports with loss; null if its program counts only those of all flows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub datagrams: Option<DatagramTally>,
    /// Of a mix of sizes, the datagrams of each size, ascending.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub sizes: Vec<SizeCount>,
    /// The kernel's values of the socket.
    pub socket: SocketFacts,
    /// TCP_INFO over the trial, from its start to its end, for the first 64 connections of a process; not for connections of a
    /// single transaction. Empty for other transports. Long trials have longer intervals, so that the series stays short.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub tcp: Vec<TcpSample>,
    /// The counts at each [`Reading`](crate::Reading) of the trial, where the series of its end does not have them: of one of several
    /// connections of a process, and of datagrams that arrived. Long trials have fewer.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub readings: Vec<FlowCounts>,
}

/// Counts of sends with MSG_ZEROCOPY (the kernel's Documentation/networking/msg_zerocopy).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Zerocopy {
    /// Sends with MSG_ZEROCOPY.
    pub sends: u64,
    /// Of these, sends that the kernel reported as completed.
    pub completed: u64,
    /// Of the completed ones, sends that the kernel copied (SO_EE_CODE_ZEROCOPY_COPIED).
    pub copied: u64,
}

/// How payload was received with zero-copy receive (TCP_ZEROCOPY_RECEIVE).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Mapped {
    /// Payload bytes on pages that were mapped into the process.
    pub mapped_bytes: u64,
    /// Payload bytes that were copied.
    pub copied_bytes: u64,
}

/// The kernel's values of a socket at the end of a trial; the spec has the requested ones. A value that a socket does not have is
/// null.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default)]
pub struct SocketFacts {
    /// Address of this end (or path, or segment).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub local: Option<String>,
    /// Address of the other end.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer: Option<String>,
    /// Obtained SO_SNDBUF, bytes (Linux reports twice the requested size).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sndbuf: Option<u64>,
    /// Obtained SO_RCVBUF, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rcvbuf: Option<u64>,
    /// Whether one of them exceeds the host's limit (net.core.wmem_max, rmem_max) with CAP_NET_ADMIN (SO_SNDBUFFORCE,
    /// SO_RCVBUFFORCE): other users would have to raise the limit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub forced: bool,
    /// TCP_NODELAY.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nodelay: Option<bool>,
    /// Congestion control in use.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cc: Option<String>,
    /// Sending MSS in bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mss: Option<u32>,
    /// Path MTU of this socket, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pmtu: Option<u32>,
    /// Negotiated TCP options (TCPI_OPT_* of linux/tcp.h): any of `timestamps`, `usec-timestamps` (timestamps in microseconds),
    /// `sack`, `wscale`, `ecn`, `fast-open` (the handshake carried data) and `ecn-seen` (at least one packet arrived that the
    /// network may mark; without it, no marks can be expected although `ecn` was negotiated).
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub negotiated: Vec<String>,
    /// Window scale (sending, receiving), in bits.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wscale: Option<(u8, u8)>,
    /// Segments that this end retransmitted.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retransmits: Option<u64>,
    /// Their payload, bytes (Linux 4.19 and later).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_retransmitted: Option<u64>,
    /// Shortest RTT that the kernel's TCP measured, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_rtt_ns: Option<u64>,
    /// Kernel's smoothed RTT at the end, in ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub srtt_ns: Option<u64>,
    /// The sends with MSG_ZEROCOPY, if it was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zerocopy: Option<Zerocopy>,
    /// The other end's last advertised receive window, bytes (Linux 5.4 and later).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer_window_bytes: Option<u32>,
    /// The bytes that zero-copy receive mapped, if it was requested.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mapped: Option<Mapped>,
    /// How often the receiver slept for 50 µs ([`SocketFacts::READ_DELAY_NS`]) between two reads (`--delayed-reads`), so that the
    /// sender did not have to wake it up; absent if it never did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delayed_reads: Option<u64>,
    /// SO_BUSY_POLL in use, in microseconds; absent if it is off.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub busy_poll_us: Option<u32>,
    /// Congestion window at the end, in segments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cwnd: Option<u32>,
    /// Subflows of an MPTCP connection, the first one included; 0 if it fell back to TCP, because the other host or something on
    /// the path does not support MPTCP.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mptcp_subflows: Option<u32>,
    /// How the payload is encrypted, on tls and quic.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encryption: Option<Encryption>,
}

impl SocketFacts {
    /// Length of one sleep of a receiver with delayed reads, ns; the timer may add some microseconds.
    pub const READ_DELAY_NS: u64 = 50_000;

    /// Fills in values from `earlier` that can no longer be read, such as the peer of a closed connection.
    pub fn remember(&mut self, earlier: &Self) {
        self.local = self.local.take().or_else(|| earlier.local.clone());
        self.peer = self.peer.take().or_else(|| earlier.peer.clone());
        self.mptcp_subflows = self.mptcp_subflows.max(earlier.mptcp_subflows);
    }

    /// Takes over the values of the series' last reading, so that the series ends at the totals.
    pub fn agree_with(&mut self, last: &TcpSample) {
        (self.retransmits, self.bytes_retransmitted) = (Some(last.retransmits), last.bytes_retransmitted);
        self.srtt_ns = Some(last.rtt_ns);
        self.cwnd = Some(last.cwnd);
        (self.min_rtt_ns, self.peer_window_bytes) = (last.min_rtt_ns, last.peer_window_bytes);
    }
}

/// The encryption of a connection.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
pub struct Encryption {
    /// The protocol's version, such as `TLSv1.3`.
    pub version: String,
    /// The cipher suite by its IANA name.
    pub cipher: String,
    /// Whether the kernel encrypts (kernel TLS); otherwise the process does.
    pub in_kernel: bool,
}
