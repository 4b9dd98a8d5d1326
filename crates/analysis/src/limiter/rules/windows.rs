//! Windows and buffers: a connection carries at most a window in a round trip.

use model::LimiterKind;
use model::units::{bits_per_second, seconds};

use super::super::bottleneck;
use super::super::observations::{Course, Observations, courses, each, ramp};
use super::{Rule, Seen, cores};
use crate::direction::{DirectionView, Side};
use crate::findings::wording;

pub(super) const RECEIVE: Rule = Rule {
    name: "window-over-rtt",
    speaks_for: &[LimiterKind::ReceiveWindow],
    about: "The rate is what the receiver's largest window carries in a round trip.",
    source: "RFC 9293, section 3.8.6 (the window), RFC 7323, section 1.1 (window over round trip)",
    see: |observations: &Observations<'_>, direction: &DirectionView<'_>| {
        let courses = courses(direction);
        let Some(part) = used(observations, direction, &courses, Course::window_bytes) else { return Vec::new() };
        // A window that is smaller than the congestion window, and is used up.
        let smaller =
            each(&courses, |course| Some(f64::from(u8::from(course.window_bytes()? <= course.cwnd_bytes()?))));
        let weight = 0.9 * ramp(part, 0.5, 0.9) * smaller.unwrap_or(1.0);
        Seen::of(LimiterKind::ReceiveWindow, weight, || {
            let window = total(&courses, Course::window_bytes);
            let had = direction.receiver.flows().filter_map(|flow| flow.socket.rcvbuf).max();
            let limit = direction
                .receiver
                .options
                .rcvbuf
                .is_none()
                .then(|| at_limit(&direction.receiver, "net.ipv4.tcp_rmem", had?));
            let more = limit.flatten().map_or(String::new(), |limit| format!("; {limit}, and {}", needed(&courses)));
            format!("{} window over {}{more}", wording::rounded_size(window), at_most(&courses, window))
        })
    },
};

pub(super) const READER: Rule = Rule {
    name: "slow-reader",
    speaks_for: &[LimiterKind::ReceiverApplication],
    about: "The receiver's window held the sender back although it would carry much more: it closed, because nobody read.",
    source: "RFC 9293, section 3.8.6.2 (the window closes as data waits for its reader); tcpi_rwnd_limited in linux/tcp.h",
    see: |observations, direction| {
        let courses = courses(direction);
        let limited = each(&courses, |course| {
            let [first, .., last] = course.samples() else { return None };
            let span = last.at_ns.saturating_sub(first.at_ns).max(1) as f64;
            Some(last.rwnd_limited_ns?.saturating_sub(first.rwnd_limited_ns?) as f64 / span)
        });
        // Over the shortest round trip: a queue that nobody empties makes the smoothed one long.
        let part =
            each(&courses, |course| Some(course.rate_bps * course.min_rtt_ns()? / (8e9 * course.window_bytes()?)));
        let (Some(limited), Some(part)) = (limited, part) else { return Vec::new() };
        let busy = cores::busiest(observations, &direction.receiver).map(|thread| thread.share());
        let idle = 1.0 - ramp(busy.unwrap_or(0.0), 0.8, 0.95);
        // What waits for its reader closes the window. One that stands open and is used up all the same is full of what waits on
        // the path.
        let closed = 1.0 - ramp(each(&courses, Course::window_open).unwrap_or(0.0), 0.5, 0.9);
        let weight = 0.9 * ramp(limited, 0.05, 0.3) * (1.0 - ramp(part, 0.2, 0.5)) * idle * closed;
        Seen::of(LimiterKind::ReceiverApplication, weight, || {
            let carried = total(&courses, |course| over_rtt_of(course.window_bytes()?, course.min_rtt_ns()?));
            let thread = busy.map_or_else(String::new, |busy| {
                format!(", and the receiver's thread was busy for {:.0} % of the time", 100.0 * busy)
            });
            format!(
                "the window was full for {:.0} % of the time although it would carry {}{thread}: its program did not read",
                100.0 * limited,
                bits_per_second(carried)
            )
        })
    },
};

pub(super) const SEND: Rule = Rule {
    name: "send-buffer-over-rtt",
    speaks_for: &[LimiterKind::SendBuffer],
    about: "The send buffer holds no more than the rate needs for a round trip: it was asked for, or had grown to the host's limit.",
    source: "socket(7), SO_SNDBUF: what is not acknowledged yet stays in the buffer; tcp(7), tcp_wmem: how far it grows by itself",
    see: |observations: &Observations<'_>, direction: &DirectionView<'_>| {
        let courses = courses(direction);
        let had = direction.sender.flows().filter_map(|flow| flow.socket.sndbuf).max();
        let limit = had.and_then(|had| at_limit(&direction.sender, "net.ipv4.tcp_wmem", had));
        // A buffer that the kernel sizes itself grows with the need, up to there.
        if direction.sender.options.sndbuf.is_none() && limit.is_none() {
            return Vec::new();
        }
        let Some(part) = used(observations, direction, &courses, Course::send_buffer_bytes) else { return Vec::new() };
        let smaller = each(&courses, |course| Some(f64::from(u8::from(course.sndbuf()? <= course.cwnd_bytes()?))));
        // The program is woken when a third of the buffer is free (sk_stream_write_space), so that a part of it always is.
        let weight = 0.9 * ramp(part, 0.35, 0.7) * smaller.unwrap_or(1.0);
        Seen::of(LimiterKind::SendBuffer, weight, || {
            let (bytes, own) = (total(&courses, Course::send_buffer_bytes), total(&courses, Course::sndbuf));
            let over = if bytes > 1.05 * own {
                format!(", up to {} with the packet that goes over it,", wording::rounded_size(bytes))
            } else {
                String::new()
            };
            let more = match direction.sender.options.sndbuf {
                Some(requested) => format!(" (SO_SNDBUF of {}, which the kernel doubles)", model::ByteSize(requested)),
                None => limit.map_or(String::new(), |limit| format!("; {limit}, and {}", needed(&courses))),
            };
            format!("{} send buffer{over} over {}{more}", wording::rounded_size(own), at_most(&courses, bytes))
        })
    },
};

/// The part of a window that the rate uses: over the round trip as it was, and over the shortest one as far as the rest of it was spent
/// in the queue of a bottleneck, which a larger window only makes longer.
fn used<'a>(
    observations: &Observations<'_>,
    direction: &DirectionView<'_>,
    courses: &[Course<'a>],
    window: impl Fn(&Course<'a>) -> Option<f64>,
) -> Option<f64> {
    let as_it_was = each(courses, |course| Some(course.rate_bps / over_rtt(course, window(course)?)?))?;
    let empty = each(courses, |course| Some(course.rate_bps / over_rtt_of(window(course)?, course.min_rtt_ns()?)?));
    let queued = bottleneck::weight(observations, direction);
    Some(as_it_was * (1.0 - queued) + empty.unwrap_or(as_it_was) * queued)
}

/// `it has grown to the limit of net.ipv4.tcp_wmem, 4 MiB`, where the kernel sizes a buffer of `had` bytes itself and has come to the
/// last value of that sysctl.
fn at_limit(side: &Side<'_>, sysctl: &str, had: u64) -> Option<String> {
    let limit: u64 = side.host.sysctl.get(sysctl)?.split_whitespace().next_back()?.parse().ok()?;
    let size = wording::rounded_size(limit as f64);
    (had as f64 >= 0.9 * limit as f64).then(|| format!("it has grown to the limit of {sysctl}, {size}"))
}

/// `1 Gbit/s would need 9.57 MiB`: the window for the next round rate.
fn needed(courses: &[Course<'_>]) -> String {
    let rate = total(courses, |course| Some(course.rate_bps));
    let aim = 10f64.powf((1.2 * rate).log10().ceil());
    let bytes = aim / 8e9 * mean(courses, Course::min_rtt_ns);
    format!("{} would need a window of {}", bits_per_second(aim), wording::rounded_size(bytes))
}

/// What `bytes` in each smoothed round trip are, bit/s.
fn over_rtt(course: &Course<'_>, bytes: f64) -> Option<f64> {
    over_rtt_of(bytes, course.srtt_ns()?)
}

fn over_rtt_of(bytes: f64, rtt_ns: f64) -> Option<f64> {
    (rtt_ns > 0.0).then(|| bytes * 8e9 / rtt_ns)
}

fn total<'a>(courses: &[Course<'a>], of: impl Fn(&Course<'a>) -> Option<f64>) -> f64 {
    courses.iter().filter_map(of).sum()
}

/// What `bytes` carry in a round trip: in the smoothed one, or in the shortest where the rate itself shows that most were shorter
/// than the smoothed one, which counts the acknowledgements that waited for a core.
fn at_most(courses: &[Course<'_>], bytes: f64) -> String {
    let [smoothed, shortest] = [mean(courses, Course::srtt_ns), mean(courses, Course::min_rtt_ns)];
    let rate = total(courses, |course| Some(course.rate_bps));
    let rtt = if rate > bytes * 8e9 / smoothed && shortest < smoothed { shortest } else { smoothed };
    format!("{} carries at most {}", seconds(rtt), bits_per_second(bytes * 8e9 / rtt))
}

fn mean<'a>(courses: &[Course<'a>], of: impl Fn(&Course<'a>) -> Option<f64>) -> f64 {
    each(courses, of).unwrap_or(f64::NAN)
}
