//! When a probe sends requests: at its rate if replies arrive soon, otherwise a fixed number per round trip.
//!
//! A request that waited for the previous reply would include that wait in its own time, and on a path with long round
//! trips the backlog would be all that is measured. So several requests are outstanding, each timed from its own send.
//! They are fewer than the segments of TCP's initial window (RFC 6928, 10), because beyond it requests would queue at
//! the sender. If the round trip is so long that this bounds the rate, requests are spread over it. Requests that were
//! due meanwhile count as the round trips before and after them, half each: the times are those of evenly spaced
//! requests at any rate.
//!
//! Over datagrams some are lost. A request that the reply to a later one has overtaken holds up no other, though its own reply may
//! still come.

use std::collections::VecDeque;

use crate::core::RttRecorder;

/// The share of a decrease of the round trip that the spacing follows with each reply.
const FORGET: u64 = 8;

/// Most requests that later ones have overtaken and whose replies may still come.
const MOST_OVERTAKEN: usize = 64;

/// A request that is outstanding.
struct Request {
    number: u64,
    sent_ns: u64,
    /// Requests due since the previous one, this one included.
    due: u64,
}

/// A probe's requests.
pub(super) struct Flight {
    /// Between two requests, ns.
    gap_ns: u64,
    /// Outstanding requests at most.
    most: usize,
    outstanding: VecDeque<Request>,
    requested: u64,
    next_ns: u64,
    sent_ns: u64,
    /// The longest and the shortest round trip, and an estimate that decreases slowly.
    longest_ns: u64,
    shortest_ns: u64,
    lately_ns: u64,
    /// The previous round trip.
    before_ns: Option<u64>,
    /// The highest number that was answered.
    answered: Option<u64>,
}

impl Flight {
    pub(super) fn new(gap_ns: f64, most: usize) -> Self {
        Self {
            gap_ns: (gap_ns as u64).max(1),
            most,
            outstanding: VecDeque::with_capacity(most + MOST_OVERTAKEN),
            requested: 0,
            next_ns: 0,
            sent_ns: 0,
            longest_ns: 0,
            shortest_ns: u64::MAX,
            lately_ns: 0,
            before_ns: None,
            answered: None,
        }
    }

    /// Number of the next request, which is the number of requests sent.
    pub(super) fn requested(&self) -> u64 {
        self.requested
    }

    pub(super) fn outstanding(&self) -> usize {
        self.outstanding.len()
    }

    /// Longest round trip so far, ns; 0 before the first answer.
    pub(super) fn longest_ns(&self) -> u64 {
        self.longest_ns
    }

    /// Shortest round trip so far, ns; `u64::MAX` before the first answer.
    pub(super) fn shortest_ns(&self) -> u64 {
        self.shortest_ns
    }

    /// When the oldest outstanding request was sent.
    pub(super) fn oldest_ns(&self) -> Option<u64> {
        self.outstanding.front().map(|request| request.sent_ns)
    }

    /// When the first reply can arrive, if the shortest round trip is at most `most_ns`.
    pub(super) fn expected_ns(&self, most_ns: u64) -> Option<u64> {
        self.oldest_ns().filter(|_| self.shortest_ns <= most_ns).map(|sent| sent + self.shortest_ns)
    }

    /// When the next request is due, now or later; `u64::MAX` if a reply must come first. Until the first reply, their
    /// spacing is unknown.
    pub(super) fn due_ns(&self) -> u64 {
        let most = if self.longest_ns == 0 { 1 } else { self.most };
        let overtaken = |request: &&Request| self.answered.is_some_and(|answered| request.number < answered);
        let overtaken = self.outstanding.iter().take(MOST_OVERTAKEN).take_while(overtaken).count();
        if self.outstanding.len() - overtaken < most { self.next_ns } else { u64::MAX }
    }

    /// A request went out at `now_ns`.
    pub(super) fn sent(&mut self, now_ns: u64) {
        let since = if self.requested == 0 { self.gap_ns } else { now_ns - self.sent_ns };
        let due = ((since + self.gap_ns / 2) / self.gap_ns).max(1);
        self.outstanding.push_back(Request { number: self.requested, sent_ns: now_ns, due });
        let gap_ns = self.gap_ns.max(self.lately_ns / self.most as u64);
        // Small delays do not shift the schedule, large ones restart it.
        let kept = self.next_ns + gap_ns;
        self.next_ns = if kept > now_ns { kept } else { now_ns + gap_ns };
        (self.requested, self.sent_ns) = (self.requested + 1, now_ns);
    }

    /// The answer to the oldest request came at `now_ns`.
    pub(super) fn answered_next(&mut self, now_ns: u64, rtt: &mut RttRecorder) {
        if let Some(request) = self.outstanding.pop_front() {
            self.record(&request, now_ns, rtt);
        }
    }

    /// The reply to request `number` arrived at `now_ns`; false if it is not outstanding.
    pub(super) fn answered(&mut self, number: u64, now_ns: u64, rtt: &mut RttRecorder) -> bool {
        let index = self.outstanding.iter().position(|request| request.number == number);
        let request = index.and_then(|index| self.outstanding.remove(index));
        self.answered = self.answered.max(request.as_ref().map(|request| request.number));
        request.inspect(|request| self.record(request, now_ns, rtt)).is_some()
    }

    /// The reply to the oldest request is lost.
    pub(super) fn lost_next(&mut self) {
        self.outstanding.pop_front();
    }

    fn record(&mut self, request: &Request, now_ns: u64, rtt: &mut RttRecorder) {
        let ns = now_ns - request.sent_ns;
        self.longest_ns = self.longest_ns.max(ns);
        self.shortest_ns = self.shortest_ns.min(ns);
        self.lately_ns = ns.max(self.lately_ns - self.lately_ns.saturating_sub(ns) / FORGET);
        let before = self.before_ns.map_or(0, |_| (request.due - 1) / 2);
        if before > 0 {
            rtt.record_n(self.before_ns.unwrap_or(ns), before);
        }
        rtt.record_n(ns, request.due - before);
        self.before_ns = Some(ns);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Histogram;

    const MS: u64 = 1_000_000;

    /// Sends 100 requests per second in virtual time over a path whose round trip is `rtt` of the send time, answers
    /// in order, for `ns`, then takes what is outstanding. Returns the recorded times and the number of requests.
    fn play(ns: u64, rtt: impl Fn(u64) -> u64) -> (Histogram, u64) {
        let start = 1_000_000 * MS;
        let mut flight = Flight::new(10.0 * MS as f64, 8);
        let mut recorder = RttRecorder::new();
        let mut answers: VecDeque<u64> = VecDeque::new();
        let mut now = start;
        while now < start + ns || flight.outstanding() > 0 {
            while answers.front().is_some_and(|at| *at <= now) {
                answers.pop_front();
                flight.answered_next(now, &mut recorder);
            }
            if now < start + ns && flight.due_ns() <= now {
                flight.sent(now);
                answers.push_back((now + rtt(now - start)).max(answers.back().copied().unwrap_or(0)));
            }
            assert!(flight.outstanding() <= 8);
            now += MS / 10;
        }
        (recorder.take(), flight.requested())
    }

    #[test]
    fn a_lost_request_holds_up_no_other() {
        // 20 ms and a request each 10 ms, every third of which is lost; a lost one would be given up after 200 ms.
        let mut flight = Flight::new(10.0 * MS as f64, 8);
        let mut recorder = RttRecorder::new();
        let mut answers: VecDeque<(u64, u64)> = VecDeque::new();
        let (start, mut now) = (1_000_000 * MS, 1_000_000 * MS);
        while now < start + 2_000 * MS {
            while let Some((at, number)) = answers.front().copied().filter(|(at, _)| *at <= now) {
                answers.pop_front();
                assert!(flight.answered(number, at, &mut recorder));
            }
            if flight.oldest_ns().is_some_and(|sent| sent + 200 * MS <= now) {
                flight.lost_next();
            }
            if flight.due_ns() <= now {
                if flight.requested() % 3 != 1 {
                    answers.push_back((now + 20 * MS, flight.requested()));
                }
                flight.sent(now);
            }
            now += MS / 10;
        }
        assert!(near(flight.requested() as f64, 200.0, 0.02), "{} of 200", flight.requested());
    }

    fn near(value: f64, truth: f64, share: f64) -> bool {
        (value / truth - 1.0).abs() <= share
    }

    #[test]
    fn a_steady_round_trip_of_any_length_is_recorded() {
        for ms in [1, 20, 27, 79, 100, 200, 560, 1_000] {
            let (reported, requested) = play(2_000 * MS, |_| ms * MS);
            let median = reported.quantile(0.5).unwrap() as f64;
            assert!(near(median, (ms * MS) as f64, 0.002), "{ms} ms: {median}");
            assert!(near(reported.max().unwrap() as f64, (ms * MS) as f64, 0.002), "{ms} ms: {:?}", reported.max());
            // As many as requested, or 8 per round trip after the first.
            let rate = if ms < 80 { 2_000 / 10 } else { 1 + (2_000 - ms) * 8 / ms };
            assert!(near(requested as f64, rate as f64, 0.05), "{ms} ms: {requested} of {rate}");
            assert!(near(reported.count() as f64, 200.0, 0.3), "{ms} ms: {} stand for 200", reported.count());
        }
    }

    #[test]
    fn a_growing_queue_is_recorded_as_by_evenly_spaced_requests() {
        // From 27 ms to 2 s within 2 s, as behind a bloated modem, and a queue that grows and shrinks.
        let ramp = |at: u64| 27 * MS + at;
        let (reported, _) = play(2_000 * MS, ramp);
        assert!(
            near(reported.quantile(0.5).unwrap() as f64, 1_027.0 * MS as f64, 0.05),
            "{:?}",
            reported.quantile(0.5)
        );
        let saw = |at: u64| 100 * MS + at % (1_000 * MS) / 5;
        let (reported, _) = play(5_000 * MS, saw);
        assert!(near(reported.quantile(0.5).unwrap() as f64, 200.0 * MS as f64, 0.05), "{:?}", reported.quantile(0.5));
    }

    #[test]
    fn replies_out_of_order_and_lost_ones_make_room() {
        let mut flight = Flight::new(10.0 * MS as f64, 2);
        let mut recorder = RttRecorder::new();
        flight.sent(1_000 * MS);
        assert_eq!(flight.due_ns(), u64::MAX, "the first is waited for");
        assert!(flight.answered(0, 1_001 * MS, &mut recorder));
        flight.sent(1_010 * MS);
        flight.sent(1_020 * MS);
        assert_eq!((flight.due_ns(), flight.outstanding()), (u64::MAX, 2));
        assert!(flight.answered(2, 1_021 * MS, &mut recorder) && !flight.answered(2, 1_022 * MS, &mut recorder));
        flight.lost_next();
        assert_eq!((flight.outstanding(), flight.due_ns(), recorder.count()), (0, 1_030 * MS, 2));
    }
}
