//! The requests of an open loop that are not answered yet.
//!
//! Each is sent when it is due, whatever became of earlier ones, so a lost request costs only itself. A reply carries the lowest bytes
//! of its request's number, as many as fit into a request and a reply: no more requests wait than these bytes can tell apart. Where
//! that is few, a request that later ones have overtaken makes room before its time is over.

use std::collections::VecDeque;

use super::datagrams::REPLY_FLOOR_NS;

/// A request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) number: u64,
    /// When it was due, which a round trip counts from.
    pub(super) due_ns: u64,
    sent_ns: u64,
}

/// Room for at most this many, and for at least that many: some hundred KiB of a flow.
const MOST: usize = 1 << 14;
const LEAST: usize = 16;
/// Time whose requests fit, at least.
const SPAN_NS: f64 = 2e9;

/// The requests that wait for a reply, in the order of their numbers.
#[derive(Debug)]
pub(super) struct Unanswered {
    requests: VecDeque<Request>,
    most: usize,
    /// Bytes of a number that a reply returns.
    width: usize,
    /// The highest number that was answered.
    answered: Option<u64>,
    first_patience_ns: u64,
    longest_ns: u64,
}

impl Unanswered {
    /// For a request each `gap_ns`, of whose number a reply returns `width` bytes. The first reply is waited for at least for
    /// `first_patience_ns`.
    pub(super) fn new(gap_ns: f64, width: usize, first_patience_ns: u64) -> Self {
        let span_ns = SPAN_NS.max(1.25 * first_patience_ns as f64);
        let most = ((span_ns / gap_ns.max(1.0)) as usize).clamp(LEAST, MOST);
        Self {
            requests: VecDeque::with_capacity(most),
            most,
            width: width.min(8),
            answered: None,
            first_patience_ns,
            longest_ns: 0,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.requests.is_empty()
    }

    /// Numbers that can wait at the same time: half of those that the bytes tell apart.
    fn span(&self) -> u64 {
        if self.width == 8 { u64::MAX } else { (1 << (8 * self.width)) / 2 }
    }

    /// Whether request `number` may be sent; counts in `lost` the requests that are given up for it.
    pub(super) fn make_room(&mut self, number: u64, lost: &mut u64) -> bool {
        while let Some(oldest) = self.requests.front() {
            if self.requests.len() < self.most && number - oldest.number < self.span() {
                break;
            }
            if self.answered.is_none_or(|answered| answered < oldest.number) {
                return false;
            }
            self.requests.pop_front();
            *lost += 1;
        }
        true
    }

    /// Request `number` went out at `sent_ns`.
    pub(super) fn sent(&mut self, number: u64, due_ns: u64, sent_ns: u64) {
        self.requests.push_back(Request { number, due_ns, sent_ns });
    }

    /// The request that a reply answers which begins with `low` and came at `now_ns`; `None` if none waits for it.
    pub(super) fn answered(&mut self, low: &[u8], now_ns: u64) -> Option<Request> {
        let last = self.requests.back()?.number;
        let number = number_up_to(last, &low[..low.len().min(self.width)]);
        let at = self.requests.binary_search_by_key(&number, |request| request.number).ok()?;
        let request = self.requests.remove(at)?;
        self.longest_ns = self.longest_ns.max(now_ns.saturating_sub(request.sent_ns));
        self.answered = self.answered.max(Some(number));
        Some(request)
    }

    fn patience_ns(&self) -> u64 {
        if self.longest_ns == 0 { self.first_patience_ns } else { (self.longest_ns * 4).max(REPLY_FLOOR_NS) }
    }

    /// When the oldest one counts as lost; `u64::MAX` if none waits.
    pub(super) fn lost_at(&self) -> u64 {
        self.requests.front().map_or(u64::MAX, |oldest| oldest.sent_ns.saturating_add(self.patience_ns()))
    }

    /// Gives up the requests whose time is over; returns how many.
    pub(super) fn give_up(&mut self, now_ns: u64) -> u64 {
        let mut lost = 0;
        while self.lost_at() <= now_ns {
            self.requests.pop_front();
            lost += 1;
        }
        lost
    }
}

/// The highest number up to `last` with these lowest bytes; without any, `last`.
fn number_up_to(last: u64, low: &[u8]) -> u64 {
    let mut bytes = last.to_le_bytes();
    bytes[..low.len()].copy_from_slice(low);
    let number = u64::from_le_bytes(bytes);
    if number <= last || low.len() == 8 { number } else { number.wrapping_sub(1 << (8 * low.len())) }
}

#[cfg(test)]
mod tests {
    use std::cmp::Reverse;
    use std::collections::BinaryHeap;

    use model::SplitMix64;
    use proptest::prelude::*;

    use super::*;

    const MS: u64 = 1_000_000;

    /// What an open loop has done.
    struct Played {
        sent: u64,
        lost: u64,
        rtts_ns: Vec<u64>,
    }

    /// Sends requests of `width` bytes for `seconds` in virtual time over a path with a round trip of `rtt_ns` that loses a share of
    /// the exchanges.
    fn play(gap_ns: u64, width: usize, rtt_ns: u64, loss: f64, seconds: u64, seed: u64) -> Played {
        let mut random = SplitMix64::new(seed);
        let mut waiting = Unanswered::new(gap_ns as f64, width, 3_000 * MS);
        let mut replies: BinaryHeap<Reverse<(u64, u64)>> = BinaryHeap::new();
        let mut played = Played { sent: 0, lost: 0, rtts_ns: Vec::new() };
        let (start, step) = (1_000 * MS, (gap_ns / 10).clamp(1, MS / 10));
        let (mut now, mut due) = (start, start);
        let end = start + seconds * 1_000 * MS;
        while now < end || !waiting.is_empty() {
            while let Some(Reverse((at, number))) = replies.peek().copied() {
                if at > now {
                    break;
                }
                replies.pop();
                if let Some(request) = waiting.answered(&number.to_le_bytes()[..width], at) {
                    assert_eq!(request.number, number, "a reply belongs to its request");
                    played.rtts_ns.push(at - request.due_ns);
                }
            }
            played.lost += waiting.give_up(now);
            while due <= now && now < end && waiting.make_room(played.sent, &mut played.lost) {
                waiting.sent(played.sent, due, now);
                let share = random.next_u64() as f64 / u64::MAX as f64;
                if share >= loss {
                    replies.push(Reverse((now + rtt_ns, played.sent)));
                }
                played.sent += 1;
                due += gap_ns;
            }
            now += step;
        }
        played.rtts_ns.sort_unstable();
        played
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn lost_requests_cost_only_themselves(loss in 0.0..0.6f64, rate in prop::sample::select(vec![20u64, 50, 500]), seed in any::<u64>()) {
            // 20 ms, as the path of a request of one byte.
            let played = play(1_000 * MS / rate, 1, 20 * MS, loss, 5, seed);
            prop_assert_eq!(played.sent, 5 * rate, "all were offered");
            prop_assert_eq!(played.rtts_ns.len() as u64 + played.lost, played.sent);
            prop_assert!(played.rtts_ns.iter().all(|ns| *ns < 21 * MS), "{:?}", played.rtts_ns.last());
        }
    }

    #[test]
    fn a_dead_path_is_offered_all_that_can_be_told_apart() {
        let played = play(20 * MS, 8, 20 * MS, 1.0, 5, 1);
        assert_eq!((played.sent, played.lost, played.rtts_ns.len()), (250, 250, 0));
        // A byte tells 128 apart: they are given up after 3 s each.
        assert!(play(MS, 1, 20 * MS, 1.0, 5, 1).sent >= 128);
    }

    #[test]
    fn a_number_is_the_last_one_with_its_lowest_bytes() {
        assert_eq!(number_up_to(300, &[44]), 300);
        assert_eq!(number_up_to(300, &[45]), 45);
        assert_eq!(number_up_to(300, &[255]), 255);
        assert_eq!(number_up_to(7, &[]), 7);
        assert_eq!(number_up_to(7, &9u64.to_le_bytes()), 9, "not sent yet, so nothing waits for it");
        assert_eq!(number_up_to(3, &[250]), 250_u64.wrapping_sub(256), "never sent");
    }

    #[test]
    fn a_second_or_late_reply_answers_nothing() {
        let mut waiting = Unanswered::new(1e6, 2, 3_000 * MS);
        for number in 0..3 {
            waiting.sent(number, number, number);
        }
        assert_eq!(waiting.answered(&[1, 0], 5 * MS).map(|request| request.number), Some(1));
        assert_eq!(waiting.answered(&[1, 0], 6 * MS), None);
        assert_eq!(waiting.give_up(201 * MS), 2);
        assert_eq!(waiting.answered(&[0, 0], 202 * MS), None);
        assert!(waiting.is_empty() && waiting.lost_at() == u64::MAX);
    }
}
