//! A dialogue with agents as a state machine: the compiler makes it from code that reads from top to bottom.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll, Wake, Waker};

use super::event::{Action, Event};
use super::outside::Outside;
use crate::agent::Time;

/// What a coordinator says to its agents, and does with their answers, until there is a `T`.
///
/// It reads no clock and does no I/O. It takes what happens, with the time, and returns what is to be done, in order.
pub struct Dialogue<'a, T> {
    outside: Outside,
    code: Pin<Box<dyn Future<Output = T> + 'a>>,
    result: Option<T>,
}

/// Whether the code can go on without another event.
struct Woken(AtomicBool);

impl Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::Relaxed);
    }
}

impl<'a, T> Dialogue<'a, T> {
    /// A dialogue that has not begun; `code` knows the outside by `outside` only.
    #[must_use]
    pub fn new(outside: &Outside, code: impl Future<Output = T> + 'a) -> Self {
        Self { outside: outside.clone(), code: Box::pin(code), result: None }
    }

    /// Takes what happens at `now`, when it is `unix_ns` by the wall clock; nothing at the beginning, and when the deadline has passed.
    #[must_use]
    pub fn on(&mut self, now: Time, unix_ns: u64, event: Option<Event>) -> Vec<Action> {
        self.outside.happen(now, unix_ns, event);
        let woken = Arc::new(Woken(AtomicBool::new(true)));
        let waker = Waker::from(woken.clone());
        while self.result.is_none() && woken.0.swap(false, Ordering::Relaxed) {
            if let Poll::Ready(result) = self.code.as_mut().poll(&mut Context::from_waker(&waker)) {
                self.result = Some(result);
            }
        }
        self.outside.actions()
    }

    /// When it is to be called again, if nothing happens before.
    #[must_use]
    pub fn deadline(&self) -> Option<Time> {
        self.outside.deadline()
    }

    /// Its end, if it is over.
    #[must_use]
    pub fn end(&mut self) -> Option<T> {
        self.result.take()
    }
}
