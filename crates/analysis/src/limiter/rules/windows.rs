//! Windows and buffers: a connection carries at most one window per RTT.

use model::LimiterKind;
use text::{Rate, Text, Time, say};

use super::super::bottleneck;
use super::super::observations::{Observations, SenderFlow, each, ramp, sender_flows};
use super::super::remedies::{self as buffers, Buffer};
use super::super::threads::busiest;
use super::{Rule, Signal};
use crate::direction::{DirectionView, Side};
use crate::findings::wording;

pub(super) const RECEIVE: Rule = Rule {
    name: "window-over-rtt",
    speaks_for: &[LimiterKind::ReceiveWindow],
    about: "The rate is one receive window per RTT.",
    source: "RFC 9293, section 3.8.6 (the window), RFC 7323, section 1.1 (window over round trip)",
    evaluate: |observations: &Observations<'_>, direction: &DirectionView<'_>| {
        let flows = sender_flows(direction);
        let Some(part) = used(observations, direction, &flows, SenderFlow::window_bytes) else { return Vec::new() };
        // The window is smaller than the congestion window, and is used up.
        let smaller = each(&flows, |flow| Some(f64::from(u8::from(flow.window_bytes()? <= flow.cwnd_bytes()?))));
        let fits = near_bound(&flows, total(&flows, SenderFlow::window_bytes));
        let weight = 0.9 * ramp(part, 0.5, 0.9) * smaller.unwrap_or(1.0) * fits;
        Signal::of(LimiterKind::ReceiveWindow, weight, || {
            let window = total(&flows, SenderFlow::window_bytes);
            let more = match buffers::unscaled(direction) {
                Some(end) => say!(" (not scaled: {end} has {}=0)", buffers::SCALING),
                None => at_limit(&buffers::RECEIVE, &direction.receiver).unwrap_or_default(),
            };
            say!("{} window{more} over {}", wording::rounded_size(window), at_most(&flows, window))
        })
    },
};

pub(super) const READER: Rule = Rule {
    name: "slow-reader",
    speaks_for: &[LimiterKind::ReceiverApplication, LimiterKind::ReceiverCpu],
    about: "The receiver's window limited the sender although it could carry more: it closed because the program did not read.",
    source: "RFC 9293, section 3.8.6.2 (the window closes as data waits for its reader); tcpi_rwnd_limited in linux/tcp.h",
    evaluate: |observations, direction| {
        let flows = sender_flows(direction);
        let limited = each(&flows, |flow| {
            let [first, .., last] = flow.samples() else { return None };
            let span = last.at_ns.saturating_sub(first.at_ns).max(1) as f64;
            Some(last.rwnd_limited_ns?.saturating_sub(first.rwnd_limited_ns?) as f64 / span)
        });
        // Over the minimum RTT, because a full receive queue increases the smoothed one.
        let part = each(&flows, |flow| Some(flow.rate_bps * flow.min_rtt_ns()? / (8e9 * flow.window_bytes()?)));
        let (Some(limited), Some(part)) = (limited, part) else { return Vec::new() };
        let busy = busiest(observations, &direction.receiver).map(|thread| thread.share());
        // A thread that has little time does not leave its data unread by choice.
        let hurried = ramp(busy.unwrap_or(0.0), 0.5, 0.8);
        // Data that waits for its reader closes the window. A window that is open and still used up is full of data that waits on the
        // path.
        let closed = 1.0 - ramp(each(&flows, SenderFlow::window_open).unwrap_or(0.0), 0.5, 0.9);
        let late = 0.9 * ramp(limited, 0.05, 0.3) * closed;
        let carried = || total(&flows, |flow| over_rtt_of(flow.window_bytes()?, flow.min_rtt_ns()?));
        let statement = || late_reader(limited, carried(), busy);
        let by_choice = late * (1.0 - ramp(part, 0.2, 0.5)) * (1.0 - hurried);
        // Between two bursts such a thread waits for a round trip, so it is not full.
        let by_cpu = late * (1.0 - ramp(part, 0.5, 0.9)) * hurried;
        let mut signals = Signal::of(LimiterKind::ReceiverApplication, by_choice, statement);
        signals.extend(Signal::of(LimiterKind::ReceiverCpu, by_cpu, statement));
        signals
    },
};

/// Shares of the time in which the window was full and the receiver's thread busy, and the rate that the window would carry.
fn late_reader(limited: f64, carried_bps: f64, busy: Option<f64>) -> Text {
    let thread = busy.map_or_else(Text::default, |busy| {
        say!("; the receiver's thread was busy for {:.0} % of the time", 100.0 * busy)
    });
    say!(
        "the receiver's program did not read in time: the window was full for {:.0} % of the time although it could carry \
         {}{thread}",
        100.0 * limited,
        Rate(carried_bps)
    )
}

/// Share of the send buffer that is filled when the program is woken to send more.
const LEAST_FILLED: f64 = 2.0 / 3.0;

pub(super) const SEND: Rule = Rule {
    name: "send-buffer-over-rtt",
    speaks_for: &[LimiterKind::SendBuffer],
    about: "The send buffer holds no more than the rate needs per RTT: its size was requested, or it grew to the host's limit.",
    source: "socket(7), SO_SNDBUF: unacknowledged data stays in the buffer; tcp(7), tcp_wmem: the limit of autotuning",
    evaluate: |observations: &Observations<'_>, direction: &DirectionView<'_>| {
        let flows = sender_flows(direction);
        let limit = at_limit(&buffers::SEND, &direction.sender);
        // A buffer that the kernel sizes grows as needed up to that limit.
        if direction.sender.options.sndbuf.is_none() && limit.is_none() {
            return Vec::new();
        }
        let Some(part) = used(observations, direction, &flows, SenderFlow::send_buffer_bytes) else {
            return Vec::new();
        };
        // The program is woken when a third of the buffer is free (sk_stream_write_space), so a part of it is always free.
        let smaller =
            each(&flows, |flow| Some(f64::from(u8::from(flow.sndbuf()? * LEAST_FILLED <= flow.cwnd_bytes()?))));
        let segment_wise = flows.iter().any(|flow| bottleneck::one_segment_at_a_time(direction, flow));
        let fits = if segment_wise { 1.0 } else { near_bound(&flows, total(&flows, SenderFlow::send_buffer_bytes)) };
        let weight = 0.9 * ramp(part, 0.35, 0.7) * smaller.unwrap_or(1.0) * fits;
        Signal::of(LimiterKind::SendBuffer, weight, || {
            let (bytes, own) = (total(&flows, SenderFlow::send_buffer_bytes), total(&flows, SenderFlow::sndbuf));
            let over = if bytes > 1.05 * own {
                say!(" (up to {} with the packet that exceeds it)", wording::rounded_size(bytes))
            } else {
                Text::default()
            };
            let more = match direction.sender.options.sndbuf {
                Some(requested) => say!(" (SO_SNDBUF of {}, which the kernel doubles)", model::ByteSize(requested)),
                None => limit.unwrap_or_default(),
            };
            let own = wording::rounded_size(own);
            if segment_wise {
                let mss = wording::rounded_size(mean(&flows, SenderFlow::mss));
                return say!(
                    "{own} send buffer{more} has no room for two segments of {mss}, so each waits for a delayed acknowledgement"
                );
            }
            say!("{own} send buffer{more}{over} over {}", at_most(&flows, bytes))
        })
    },
};

/// The share of a window that the rate uses: at the smoothed RTT, or at the minimum RTT as far as the difference is the queue of a
/// bottleneck, which a larger window would only make longer.
fn used<'a>(
    observations: &Observations<'_>,
    direction: &DirectionView<'_>,
    flows: &[SenderFlow<'a>],
    window: impl Fn(&SenderFlow<'a>) -> Option<f64>,
) -> Option<f64> {
    let as_it_was = each(flows, |flow| Some(flow.rate_bps / over_rtt(flow, window(flow)?)?))?;
    let empty = each(flows, |flow| Some(flow.rate_bps / over_rtt_of(window(flow)?, flow.min_rtt_ns()?)?));
    let queued = bottleneck::weight(observations, direction);
    Some(as_it_was * (1.0 - queued) + empty.unwrap_or(as_it_was) * queued)
}

/// ` (at the limit of net.ipv4.tcp_wmem)`, if a buffer that the kernel sizes has reached the last value of that sysctl.
fn at_limit(buffer: &Buffer, side: &Side<'_>) -> Option<Text> {
    buffer.reached(side).map(|_| say!(" (at the limit of {})", buffer.autotuning))
}

/// The rate of `bytes` per smoothed RTT, bit/s.
fn over_rtt(flow: &SenderFlow<'_>, bytes: f64) -> Option<f64> {
    over_rtt_of(bytes, flow.srtt_ns()?)
}

fn over_rtt_of(bytes: f64, rtt_ns: f64) -> Option<f64> {
    (rtt_ns > 0.0).then(|| bytes * 8e9 / rtt_ns)
}

fn total<'a>(flows: &[SenderFlow<'a>], of: impl Fn(&SenderFlow<'a>) -> Option<f64>) -> f64 {
    flows.iter().filter_map(of).sum()
}

/// The rate of `bytes` per RTT: the smoothed one, or the minimum one if the rate itself shows that most RTTs were shorter than the
/// smoothed one, which includes acknowledgements that waited for CPU.
fn at_most(flows: &[SenderFlow<'_>], bytes: f64) -> Text {
    let rtt = bounding_rtt(flows, bytes);
    say!("{} carries at most {}", Time(rtt), Rate(bytes * 8e9 / rtt))
}

/// The RTT of [`at_most`], ns.
fn bounding_rtt(flows: &[SenderFlow<'_>], bytes: f64) -> f64 {
    let [smoothed, shortest] = [mean(flows, SenderFlow::srtt_ns), mean(flows, SenderFlow::min_rtt_ns)];
    let rate = total(flows, |flow| Some(flow.rate_bps));
    if rate > bytes * 8e9 / smoothed && shortest < smoothed { shortest } else { smoothed }
}

/// Whether the rate is near what [`at_most`] says `bytes` carry, from 0 to 1: a bound that is far above the rate limits nothing.
fn near_bound(flows: &[SenderFlow<'_>], bytes: f64) -> f64 {
    let part = total(flows, |flow| Some(flow.rate_bps)) * bounding_rtt(flows, bytes) / (8e9 * bytes);
    // Unknown round trips say nothing against the bound.
    if part.is_nan() { 1.0 } else { ramp(part, 0.25, 0.4) }
}

fn mean<'a>(flows: &[SenderFlow<'a>], of: impl Fn(&SenderFlow<'a>) -> Option<f64>) -> f64 {
    each(flows, of).unwrap_or(f64::NAN)
}
