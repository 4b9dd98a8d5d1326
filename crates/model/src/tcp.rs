//! TCP_INFO over the time of a trial.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the kernel's TCP said of one connection at one moment (`struct tcp_info` in linux/tcp.h). Null where this kernel does not
/// tell. Counts and times are totals since the connection was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TcpSample {
    /// When, ns since this end started the trial.
    pub at_ns: u64,
    /// Congestion state: 0 open, 1 disorder, 2 CWR, 3 recovery, 4 loss (`tcpi_ca_state`).
    pub state: u8,
    /// Smoothed RTT, ns.
    pub rtt_ns: u64,
    /// Its mean deviation, ns.
    pub rttvar_ns: u64,
    /// Shortest RTT that TCP saw of late, ns.
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
    /// Segments that TCP takes for lost and has not sent again.
    pub lost: u32,
    /// Segments sent again, in all.
    pub retransmits: u64,
    /// Segments that may arrive out of order before TCP takes one for lost.
    pub reordering: u32,
    /// The rate that TCP would pace at, bit/s: the rate of its sends where it paces (bbr, `fq`, SO_MAX_PACING_RATE), else only
    /// what it sizes its bursts by. Null where there is no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pacing_bps: Option<u64>,
    /// Delivery rate as TCP estimates it, bit/s; null before the first estimate.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivery_bps: Option<u64>,
    /// Whether that estimate was limited by the application.
    pub app_limited: bool,
    /// Time with something to send or unacknowledged, ns (`tcpi_busy_time`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub busy_ns: Option<u64>,
    /// Of that, time limited by the receiver's window, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rwnd_limited_ns: Option<u64>,
    /// Of that, time limited by the send buffer, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sndbuf_limited_ns: Option<u64>,
    /// Segments delivered, those sent again included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivered: Option<u64>,
    /// Of those, with a congestion mark (ECN).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delivered_ce: Option<u64>,
    /// Bytes acknowledged.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_acked: Option<u64>,
    /// Bytes received.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes_received: Option<u64>,
    /// Bytes in the send queue that were not sent yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notsent_bytes: Option<u64>,
    /// The other end's window as last heard, bytes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub peer_window_bytes: Option<u32>,
    /// Bytes that this end's receive buffer may grow its window to (`tcpi_rcv_ssthresh`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window_bytes: Option<u32>,
    /// Retransmission timeout in force, ns.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rto_ns: Option<u64>,
    /// Retransmission timeouts that fired (`tcpi_total_rto`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeouts: Option<u64>,
    /// Segments that the other end said it had twice, so that they were sent again for nothing (D-SACK, RFC 2883).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spurious: Option<u64>,
    /// Segments with payload sent, those sent again included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub segments_sent: Option<u64>,
    /// Segments with payload received, whether or not they had been here before.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub segments_received: Option<u64>,
    /// Of those, that came out of order (`tcpi_rcv_ooopack`).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub out_of_order: Option<u64>,
}
