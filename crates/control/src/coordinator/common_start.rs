//! The common start of simultaneous tests: each waits, armed, until all are.

use std::time::Duration;

use tokio::sync::watch;
use tokio::time::Instant;

/// One test's part of a common start. Dropping it before [`wait`](Self::wait) means that the test cannot start.
pub(crate) struct CommonStart {
    state: watch::Sender<State>,
    armed: bool,
    /// If one test cannot start, none does; otherwise the others do.
    all_or_none: bool,
}

#[derive(Clone, Copy)]
struct State {
    /// Tests that are not armed yet.
    missing: usize,
    /// One test cannot start.
    failed: bool,
    /// When the last one was armed.
    at: Option<Instant>,
}

impl CommonStart {
    /// One for each of `tests`, of which all start or none.
    pub(crate) fn of(tests: usize, all_or_none: bool) -> Vec<Self> {
        let state = watch::Sender::new(State { missing: tests, failed: false, at: None });
        (0..tests).map(|_| Self { state: state.clone(), armed: false, all_or_none }).collect()
    }

    /// Called when the test is armed: waits for the others, and then for `delay`. Whether the test is to start: it is not if
    /// another one cannot.
    pub(crate) async fn wait(mut self, delay: Duration) -> bool {
        self.armed = true;
        self.state.send_modify(State::one_less);
        let mut changes = self.state.subscribe();
        let ready = changes.wait_for(|state| state.failed || state.missing == 0).await.map(|state| *state);
        match ready {
            Ok(State { failed: false, at: Some(at), .. }) => {
                tokio::time::sleep_until(at + delay).await;
                true
            }
            _ => false,
        }
    }
}

impl Drop for CommonStart {
    fn drop(&mut self) {
        if !self.armed && self.all_or_none {
            self.state.send_modify(|state| state.failed = true);
        } else if !self.armed {
            self.state.send_modify(State::one_less);
        }
    }
}

impl State {
    /// A test is armed, or is not waited for any more.
    fn one_less(&mut self) {
        self.missing -= 1;
        self.at = (self.missing == 0).then(Instant::now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn none_starts_before_the_last_is_armed_nor_before_its_delay() {
        let mut starts = CommonStart::of(3, true);
        let last = starts.pop().unwrap();
        let delays = [0, 20].map(Duration::from_millis);
        let waiting = starts.into_iter().zip(delays).map(|(start, delay)| async move {
            assert!(start.wait(delay).await);
            Instant::now()
        });
        let waiting: Vec<_> = waiting.map(tokio::spawn).collect();
        for _ in 0..10 {
            tokio::task::yield_now().await;
        }
        assert!(waiting.iter().all(|test| !test.is_finished()));
        let armed = Instant::now();
        assert!(last.wait(Duration::ZERO).await);
        for (test, delay) in waiting.into_iter().zip(delays) {
            assert!(test.await.unwrap() >= armed + delay);
        }
    }

    #[tokio::test]
    async fn others_start_without_one_that_cannot() {
        let mut starts = CommonStart::of(3, false);
        let cannot = starts.pop();
        let waiting: Vec<_> = starts.into_iter().map(|start| tokio::spawn(start.wait(Duration::ZERO))).collect();
        tokio::task::yield_now().await;
        assert!(waiting.iter().all(|test| !test.is_finished()));
        drop(cannot);
        for test in waiting {
            assert!(test.await.unwrap());
        }
    }

    #[tokio::test]
    async fn none_starts_if_one_cannot() {
        let mut starts = CommonStart::of(3, true);
        let cannot = starts.pop();
        let waiting: Vec<_> = starts.into_iter().map(|start| tokio::spawn(start.wait(Duration::ZERO))).collect();
        tokio::task::yield_now().await;
        drop(cannot);
        for test in waiting {
            assert!(!test.await.unwrap());
        }
    }
}
