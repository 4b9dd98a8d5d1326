//! The common start of simultaneous tests: each waits, armed, until all are.

use std::cell::RefCell;
use std::future::poll_fn;
use std::rc::Rc;
use std::task::{Poll, Waker};
use std::time::Duration;

use super::outside::Outside;
use crate::agent::Time;

/// One test's part of a common start. Dropping it before [`wait`](Self::wait) means that the test cannot start.
#[derive(Debug)]
pub(super) struct CommonStart {
    outside: Outside,
    state: Rc<RefCell<State>>,
    armed: bool,
    /// If one test cannot start, none does; otherwise the others do.
    all_or_none: bool,
}

#[derive(Debug)]
struct State {
    /// Tests that are not armed yet.
    missing: usize,
    /// One test cannot start.
    failed: bool,
    /// When the last one was armed.
    at: Option<Time>,
    waiting: Vec<Waker>,
}

impl CommonStart {
    /// One for each of `tests`, of which all start or none.
    pub(super) fn of(outside: &Outside, tests: usize, all_or_none: bool) -> Vec<Self> {
        let state = State { missing: tests, failed: false, at: None, waiting: Vec::new() };
        let state = Rc::new(RefCell::new(state));
        let one = |_| Self { outside: outside.clone(), state: state.clone(), armed: false, all_or_none };
        (0..tests).map(one).collect()
    }

    /// Called when the test is armed: waits for the others, and then for `delay`. Whether the test is to start: it is not if
    /// another one cannot.
    pub(super) async fn wait(mut self, delay: Duration) -> bool {
        self.armed = true;
        self.one_less();
        let ready = poll_fn(|context| {
            let mut state = self.state.borrow_mut();
            match (state.failed, state.at) {
                (true, _) => Poll::Ready(None),
                (false, Some(at)) => Poll::Ready(Some(at)),
                (false, None) => {
                    state.waiting.push(context.waker().clone());
                    Poll::Pending
                }
            }
        });
        let Some(at) = ready.await else { return false };
        self.outside.until(at + delay).await;
        true
    }

    /// The test is armed, or is not waited for any more.
    fn one_less(&self) {
        let mut state = self.state.borrow_mut();
        state.missing -= 1;
        if state.missing == 0 {
            state.at = Some(self.outside.now());
            state.waiting.drain(..).for_each(Waker::wake);
        }
    }
}

impl Drop for CommonStart {
    fn drop(&mut self) {
        if !self.armed && self.all_or_none {
            let mut state = self.state.borrow_mut();
            state.failed = true;
            state.waiting.drain(..).for_each(Waker::wake);
        } else if !self.armed {
            self.one_less();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::coordinator::dialogue::Dialogue;

    const MS: Duration = Duration::from_millis(1);

    /// Dialogues that wait for starts, each with its delay.
    fn waiting(outside: &Outside, starts: Vec<CommonStart>, delays: &[u32]) -> Vec<Dialogue<'static, bool>> {
        let one = |(start, delay): (CommonStart, &u32)| Dialogue::new(outside, start.wait(MS * *delay));
        starts.into_iter().zip(delays).map(one).collect()
    }

    /// Their ends at a time.
    fn at(dialogues: &mut [Dialogue<'_, bool>], now: Duration) -> Vec<Option<bool>> {
        let end = |dialogue: &mut Dialogue<'_, bool>| {
            let _ = dialogue.on(now, 0, None);
            dialogue.end()
        };
        dialogues.iter_mut().map(end).collect()
    }

    #[test]
    fn none_starts_before_the_last_is_armed_nor_before_its_delay() {
        let outside = Outside::new(Duration::ZERO, 0);
        let starts = CommonStart::of(&outside, 3, true);
        let mut tests = waiting(&outside, starts, &[0, 20, 0]);
        assert_eq!(at(&mut tests[..2], MS), [None, None]);
        assert_eq!(at(&mut tests[2..], 5 * MS), [Some(true)]);
        assert_eq!(at(&mut tests[..2], 24 * MS), [Some(true), None]);
        assert_eq!(at(&mut tests[1..2], 25 * MS), [Some(true)]);
    }

    #[test]
    fn one_that_cannot_start_ends_all_or_is_left_out() {
        for (all_or_none, starts) in [(true, false), (false, true)] {
            let outside = Outside::new(Duration::ZERO, 0);
            let mut parts = CommonStart::of(&outside, 3, all_or_none);
            let cannot = parts.pop();
            let mut tests = waiting(&outside, parts, &[0, 0]);
            assert_eq!(at(&mut tests, MS), [None, None]);
            drop(cannot);
            assert_eq!(at(&mut tests, MS), [Some(starts); 2]);
        }
    }
}
