//! Two ends of a stream and the bus between them, in virtual time.

use std::collections::VecDeque;

use proptest::collection::vec;
use proptest::prelude::*;

use super::super::pace::WINDOW;
use super::super::packet::Ack;
use super::*;

const MS: Duration = Duration::from_millis(1);
const S: Duration = Duration::from_secs(1);
/// More than any of these takes.
const FOREVER: Duration = Duration::from_secs(24 * 3600);

/// What a message costs on a link beside its data: subjects and lines of the protocol.
const OVERHEAD: usize = 150;

/// One direction: messages keep their order.
struct Way {
    under_way: VecDeque<(Instant, Packet)>,
    delays: VecDeque<Duration>,
    /// Whether each message is lost, in turn; one in every two arrives in any case.
    losses: VecDeque<bool>,
    arrived_in_a_row: u32,
    is_down: bool,
}

impl Way {
    fn new(delay: Duration) -> Self {
        Self {
            under_way: VecDeque::new(),
            delays: [delay].into(),
            losses: VecDeque::new(),
            arrived_in_a_row: 0,
            is_down: false,
        }
    }

    fn put(&mut self, packet: Packet, now: Instant) {
        self.delays.rotate_left(1);
        let delay = *self.delays.back().unwrap();
        if !self.losses.is_empty() {
            self.losses.rotate_left(1);
            self.arrived_in_a_row += 1;
        }
        let is_lost = self.losses.back().is_some_and(|lost| *lost) && !self.arrived_in_a_row.is_multiple_of(2);
        if !is_lost && !self.is_down {
            let at = self.under_way.back().map_or(now + delay, |(last, _)| (now + delay).max(*last));
            self.under_way.push_back((at, packet));
        }
    }
}

/// A stream on which each end sends a number of bytes.
struct Stream {
    ends: [Window; 2],
    /// To the other end.
    ways: [Way; 2],
    to_send: [usize; 2],
    sent: [usize; 2],
    got: [Vec<u8>; 2],
    reads: [bool; 2],
    ended: [Option<Result<(), Broken>>; 2],
    start: Instant,
    now: Instant,
    /// Highest number of a data message of each end, and how many bytes were sent again.
    highest: [u64; 2],
    resent: usize,
    asked: usize,
    bytes_sent: usize,
    most_under_way: usize,
}

fn pattern(at: usize) -> u8 {
    (at.wrapping_mul(2_654_435_761) >> 7) as u8
}

impl Stream {
    fn new(to_send: [usize; 2], delay: Duration) -> Self {
        let now = Instant::now();
        Self {
            ends: [Window::opening(), Window::accepting()],
            ways: [Way::new(delay), Way::new(delay)],
            to_send,
            sent: [0; 2],
            got: [Vec::new(), Vec::new()],
            reads: [true; 2],
            ended: [None; 2],
            start: now,
            now,
            highest: [0; 2],
            resent: 0,
            asked: 0,
            bytes_sent: 0,
            most_under_way: 0,
        }
    }

    /// All that can be done at an end now.
    fn work(&mut self, end: usize) {
        let now = self.now;
        let coming = &mut self.ways[1 - end].under_way;
        let arrived = coming.partition_point(|(at, _)| *at <= now);
        coming.drain(..arrived).for_each(|(_, packet)| self.ends[end].hear(packet, now));
        let window = &mut self.ends[end];
        while let Some(front) = window.front().filter(|_| self.reads[end]) {
            let bytes = front.map_or(0, Bytes::len);
            self.got[end].extend_from_slice(front.map_or(&[], |data| data));
            window.took(bytes);
        }
        loop {
            if self.sent[end] == self.to_send[end] && self.got[end].len() == self.to_send[1 - end] {
                window.close(now);
            }
            let room = window.room().min(self.to_send[end] - self.sent[end]);
            if room > 0 {
                let from = self.sent[end];
                window.write((from..from + room).map(pattern).collect());
                self.sent[end] += room;
            }
            let Some(packet) = window.transmit(now) else { break };
            match &packet {
                Packet::Data(number, data) => {
                    self.bytes_sent += data.len();
                    if *number <= self.highest[end] {
                        self.resent += data.len();
                    }
                    self.highest[end] = self.highest[end].max(*number);
                }
                Packet::Ask(_) => self.asked += 1,
                _ => {}
            }
            self.ways[end].put(packet, now);
            let under_way = self.ways[end].under_way.iter().map(|(_, packet)| packet.len()).sum();
            self.most_under_way = self.most_under_way.max(under_way);
        }
        self.ended[end] = self.ended[end].or(window.end(now));
    }

    /// The next time at which something happens.
    fn next(&self) -> Option<Instant> {
        let there = (0..2).filter(|end| self.ended[*end].is_none());
        let of = |end: usize| [self.ends[end].wake(false), self.ways[1 - end].under_way.front().map(|(at, _)| *at)];
        there.flat_map(of).flatten().min()
    }

    /// Goes on until a time since the start, or until both ends have ended.
    fn until(&mut self, time: Duration) -> &mut Self {
        let end = self.start + time;
        loop {
            for end in (0..2).filter(|end| self.ended[*end].is_none()).collect::<Vec<_>>() {
                self.work(end);
            }
            let Some(next) = self.next().filter(|next| *next <= end && self.ended.contains(&None)) else { break };
            self.now = self.now.max(next);
        }
        if time != FOREVER {
            self.now = end;
        }
        self
    }

    fn assert_complete(&self) {
        assert_eq!(self.ended, [Some(Ok(())); 2]);
        for end in 0..2 {
            assert_eq!(self.got[end].len(), self.to_send[1 - end]);
            assert!(self.got[end].iter().enumerate().all(|(at, byte)| *byte == pattern(at)));
        }
    }
}

fn delays(most: u64) -> impl Strategy<Value = VecDeque<Duration>> {
    vec(prop_oneof![3 => 0..most / 25, 1 => 0..most], 1..40)
        .prop_map(|delays| delays.into_iter().map(|delay| delay as u32 * MS).collect())
}

fn losses() -> impl Strategy<Value = VecDeque<bool>> {
    vec(prop::bool::weighted(0.3), 200..400).prop_map(VecDeque::from)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever is late and lost in both directions, all data arrive once and in order.
    #[test]
    fn all_data_arrive_once_and_in_order(
        to_send in [0_usize..600_000, 1_usize..100_000], late in [delays(1000), delays(1000)], lost in [losses(), losses()],
    ) {
        let mut stream = Stream::new(to_send, MS);
        for (way, (late, lost)) in stream.ways.iter_mut().zip(late.into_iter().zip(lost)) {
            (way.delays, way.losses) = (late, lost);
        }
        stream.until(FOREVER);
        for end in 0..2 {
            // The last word may be lost: an end waits for it, and gives up.
            prop_assert!(stream.got[end].len() == to_send[1 - end], "{:?}", stream.ended);
            prop_assert!(stream.got[end].iter().enumerate().all(|(at, byte)| *byte == pattern(at)));
        }
        prop_assert!(stream.most_under_way <= 2 * WINDOW);
    }

    /// While acknowledgements are only late, nothing is sent again, and what is under way is bounded.
    #[test]
    fn nothing_is_retransmitted_while_acknowledgements_are_late(
        to_send in [1_usize..900_000, 1_usize..100_000], late in [delays(5000), delays(5000)],
    ) {
        let mut stream = Stream::new(to_send, MS);
        for (way, late) in stream.ways.iter_mut().zip(late) {
            way.delays = late;
        }
        stream.until(FOREVER).assert_complete();
        prop_assert_eq!((stream.resent, stream.bytes_sent), (0, to_send[0] + to_send[1]));
        prop_assert!(stream.most_under_way <= WINDOW);
    }
}

/// Any message, with numbers around those that are valid.
fn any_packet() -> impl Strategy<Value = Packet> {
    let number = || prop_oneof![8 => 0_u64..80, 1 => any::<u64>()];
    prop_oneof![
        4 => (number(), number(), 0_u64..12)
            .prop_map(|(arrived, taken, answers)| Packet::Ack(Ack { arrived, taken, answers })),
        3 => (number(), 1_usize..32_000).prop_map(|(number, bytes)| Packet::Data(number, vec![0; bytes].into())),
        1 => number().prop_map(Packet::Close),
        1 => number().prop_map(Packet::Ask),
        1 => Just(Packet::Open),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever the other end says, nothing panics, and neither direction holds more than a window.
    #[test]
    fn whatever_is_said_costs_a_window(opens: bool, heard in vec((any_packet(), 0_u32..3000, any::<bool>()), 1..300)) {
        let mut window = if opens { Window::opening() } else { Window::accepting() };
        let mut now = Instant::now();
        for (packet, pause, reads) in heard {
            now += pause * MS;
            window.hear(packet, now);
            while let Some(front) = window.front().filter(|_| reads) {
                let bytes = front.map_or(0, Bytes::len);
                window.took(bytes);
            }
            let room = window.room();
            if room > 0 {
                window.write(vec![0; room].into());
            }
            for turn in 0.. {
                prop_assert!(turn < 100, "it talks without end");
                if window.transmit(now).is_none() {
                    break;
                }
            }
            let (bytes, messages) = window.received.held();
            prop_assert!(bytes <= WINDOW && messages <= 64);
            prop_assert!(window.sent.kept_bytes() <= WINDOW);
        }
    }
}

#[test]
fn a_path_with_a_delay_of_five_seconds_is_slow_and_complete() {
    let mut stream = Stream::new([300_000, 1000], 5 * S);
    stream.until(FOREVER).assert_complete();
    assert_eq!(stream.resent, 0);
}

#[test]
fn a_blocked_reader_is_waited_for_and_costs_a_window() {
    let mut stream = Stream::new([1_000_000, 10], 20 * MS);
    stream.reads[1] = false;
    stream.until(300 * S);
    assert_eq!((stream.ended, stream.resent), ([None; 2], 0));
    let (bytes, messages) = stream.ends[1].received.held();
    assert!((WINDOW - (8 << 10)..=WINDOW).contains(&bytes) && messages <= 64, "{bytes} in {messages}");
    assert_eq!(stream.bytes_sent, bytes + 10);
    // It is asked every 4 s at last.
    assert!((50..100).contains(&stream.asked), "{}", stream.asked);
    stream.reads[1] = true;
    stream.until(FOREVER).assert_complete();
    assert_eq!(stream.resent, 0);
}

#[test]
fn a_dead_end_is_given_up_and_gets_next_to_nothing() {
    let mut stream = Stream::new([50_000_000, 10], 20 * MS);
    stream.until(S);
    assert!(stream.got[1].len() > 1_000_000);
    let before = stream.bytes_sent;
    stream.ways[0].is_down = true;
    stream.ways[1].is_down = true;
    stream.until(FOREVER);
    // Who owes nothing waits; the control protocol's pings tell it.
    assert_eq!(stream.ended, [Some(Err(Broken::Silent)), None]);
    assert!(stream.bytes_sent - before <= WINDOW && stream.resent == 0);
    assert!(
        stream.now - stream.start < 25 * S && stream.asked < 20,
        "{:?}, {}",
        stream.now - stream.start,
        stream.asked
    );
}

#[test]
fn what_is_lost_in_a_reconnection_is_retransmitted_and_no_more() {
    let mut stream = Stream::new([3_000_000, 3_000_000], 20 * MS);
    stream.until(500 * MS);
    stream.ways.iter_mut().for_each(|way| way.under_way.clear());
    let now = stream.now;
    stream.ends.iter_mut().for_each(|end| end.reconnected(now));
    stream.until(FOREVER).assert_complete();
    assert!((1..=2 * WINDOW).contains(&stream.resent), "{}", stream.resent);
    assert!(stream.now - stream.start < 5 * S);

    // An end that is not told, as the other one's connection was lost, finds out by a question.
    let mut stream = Stream::new([3_000_000, 10], 20 * MS);
    stream.until(500 * MS).ways.iter_mut().for_each(|way| way.under_way.clear());
    stream.until(FOREVER).assert_complete();
    assert!((1..=WINDOW).contains(&stream.resent) && stream.now - stream.start < 5 * S);
}

#[test]
fn nobody_there_stops_data_and_ends_the_stream_unless_somebody_comes() {
    let mut stream = Stream::new([50_000_000, 10], 20 * MS);
    stream.until(S);
    for pause in [4 * S, 9 * S] {
        let (from, before) = (stream.now, stream.bytes_sent);
        stream.ways[0].is_down = true;
        stream.ways.iter_mut().for_each(|way| way.under_way.clear());
        while stream.now < from + pause && stream.ended[0].is_none() {
            let now = stream.now;
            stream.ends[0].nobody(now);
            stream.until(now - stream.start + 500 * MS);
        }
        assert_eq!(stream.bytes_sent, before);
        if pause == 4 * S {
            let now = stream.now;
            stream.ends[0].nobody(now);
            stream.ways[0].is_down = false;
            stream.until(now - stream.start + 2 * S);
            assert!(stream.bytes_sent > before + 1_000_000);
        }
    }
    assert_eq!(stream.ended[0], Some(Err(Broken::Left)));
    let mut first = Window::opening();
    let now = Instant::now();
    assert_eq!(first.transmit(now), Some(Packet::Open));
    first.nobody(now);
    assert_eq!(first.end(now), Some(Err(Broken::Left)));
}

#[test]
fn who_ignores_the_window_is_cut_off() {
    let mut window = Window::accepting();
    let now = Instant::now();
    for number in 1..=8 {
        window.hear(Packet::Data(number, vec![0; 32 << 10].into()), now);
        assert_eq!(window.end(now), None);
    }
    window.hear(Packet::Data(9, vec![0].into()), now);
    assert_eq!(window.end(now), Some(Err(Broken::Greedy)));
    let mut window = Window::accepting();
    window.hear(Packet::Data(65, vec![0].into()), now);
    assert_eq!(window.end(now), Some(Err(Broken::Greedy)));
}

#[test]
fn a_stream_that_is_closed_without_a_word_is_refused() {
    let now = Instant::now();
    let mut window = Window::accepting();
    window.close(now);
    assert_eq!(window.end(now), Some(Err(Broken::Refused)));
    let mut window = Window::accepting();
    window.write(vec![0].into());
    window.close(now);
    assert_eq!(window.end(now), None);
}

/// Streams of many agents to one coordinator, through the server's link: all complete, in about the time that the link needs, with nothing
/// sent twice and no message waiting for long.
#[test]
fn a_slow_link_that_many_share_does_not_collapse() {
    const STREAMS: usize = 30;
    const BYTES: usize = 400_000;
    let rate = 1_250_000.0; // 10 Mbit/s
    let mut streams: Vec<Stream> = (0..STREAMS).map(|_| Stream::new([1, BYTES], 5 * MS)).collect();
    let (start, mut free) = (Instant::now(), Instant::now());
    streams.iter_mut().for_each(|stream| (stream.start, stream.now) = (start, start));
    let (mut now, mut most_queued) = (start, Duration::ZERO);
    loop {
        for stream in &mut streams {
            stream.now = now;
            for end in 0..2 {
                if stream.ended[end].is_none() {
                    // What this end sends now waits behind all that the link still has.
                    let before = stream.ways[end].under_way.len();
                    stream.work(end);
                    if end == 1 {
                        for (at, packet) in stream.ways[end].under_way.iter_mut().skip(before) {
                            free = free.max(now) + Duration::from_secs_f64((packet.len() + OVERHEAD) as f64 / rate);
                            *at = free + 5 * MS;
                            most_queued = most_queued.max(free - now);
                        }
                    }
                }
            }
        }
        if streams.iter().all(|stream| !stream.ended.contains(&None)) {
            break;
        }
        now = now.max(streams.iter().filter_map(Stream::next).min().unwrap());
    }
    streams.iter().for_each(Stream::assert_complete);
    assert_eq!(streams.iter().map(|stream| stream.resent).sum::<usize>(), 0);
    let needed = Duration::from_secs_f64((STREAMS * BYTES) as f64 / rate);
    assert!(now - start < needed * 5 / 4, "{:?} of {needed:?}", now - start);
    assert!(most_queued < 3 * S, "{most_queued:?}");
}
