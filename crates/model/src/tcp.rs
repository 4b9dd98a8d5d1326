//! TCP_INFO over a trial.

#[cfg(feature = "schema")]
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The kernel's TCP state of one connection at one time (`struct tcp_info` in linux/tcp.h). A value that the kernel does not
/// report is null. Counts and times are totals since the connection was established.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(JsonSchema))]
#[serde(default)]
pub struct TcpSample {
    /// Time of the reading, ns since this end started the trial.
    pub at_ns: u64,
    /// Congestion state: 0 open, 1 disorder, 2 CWR, 3 recovery, 4 loss (`tcpi_ca_state`).
    pub state: u8,
    /// Smoothed RTT, ns.
    pub rtt_ns: u64,
    /// Its mean deviation, ns.
    pub rttvar_ns: u64,
    /// Shortest recent RTT that TCP measured, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min_rtt_ns: Option<u64>,
    /// Congestion window, segments.
    pub cwnd: u32,
    /// Slow-start threshold, segments; null while there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ssthresh: Option<u32>,
    /// Sending MSS, bytes.
    pub mss: u32,
    /// Segments sent and not yet acknowledged.
    pub unacked: u32,
    /// Segments that TCP assumes lost and has not retransmitted yet.
    pub lost: u32,
    /// All retransmitted segments.
    pub retransmits: u64,
    /// Their payload, bytes (Linux 4.19 and later).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_retransmitted: Option<u64>,
    /// Segments that may arrive out of order before TCP assumes one lost.
    pub reordering: u32,
    /// TCP's pacing rate, bit/s: the rate of its sends if it paces (bbr, `fq`, SO_MAX_PACING_RATE), otherwise only the basis of its
    /// burst sizes. Null without a limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pacing_bps: Option<u64>,
    /// Delivery rate as TCP estimates it, bit/s; null before the first estimate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivery_bps: Option<u64>,
    /// Whether that estimate was limited by the application.
    pub app_limited: bool,
    /// Time with unsent or unacknowledged data, ns (`tcpi_busy_time`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub busy_ns: Option<u64>,
    /// Of that, time limited by the receiver's window, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rwnd_limited_ns: Option<u64>,
    /// Of that, time limited by the send buffer, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sndbuf_limited_ns: Option<u64>,
    /// Delivered segments, retransmissions included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivered: Option<u64>,
    /// Delivered segments with a congestion mark (ECN).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivered_ce: Option<u64>,
    /// Bytes acknowledged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_acked: Option<u64>,
    /// Bytes received.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_received: Option<u64>,
    /// Bytes in the send queue that are not sent yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notsent_bytes: Option<u64>,
    /// The other end's last advertised window, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer_window_bytes: Option<u32>,
    /// Limit for the growth of this end's window, bytes (`tcpi_rcv_ssthresh`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_bytes: Option<u32>,
    /// Current retransmission timeout, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rto_ns: Option<u64>,
    /// Retransmission timeouts that expired (`tcpi_total_rto`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeouts: Option<u64>,
    /// Segments that the other end reported as received twice, so that the retransmission was unnecessary (D-SACK, RFC 2883).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spurious: Option<u64>,
    /// Sent segments with payload, retransmissions included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub segments_sent: Option<u64>,
    /// Received segments with payload, duplicates included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub segments_received: Option<u64>,
    /// Received segments without payload: acknowledgements, apart from the handshake.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub acks_received: Option<u64>,
    /// Received segments that were out of order (`tcpi_rcv_ooopack`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub out_of_order: Option<u64>,
    /// Times at which TCP saw that its segments had arrived out of order (`tcpi_reord_seen`, Linux 4.19 and later).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reordering_seen: Option<u64>,
}
