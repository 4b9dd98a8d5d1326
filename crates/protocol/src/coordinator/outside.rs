//! What a coordinator knows of the outside, and what it asks of it: its connections, the time, and work that only its caller can do.

use std::cell::{Ref, RefCell, RefMut};
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::Duration;

use model::random::SplitMix64;

use super::error::{Fault, LineEnd};
use super::event::{Action, Answer, Event, LineId, Seen, WorkId};
use super::work::Work;
use crate::agent::Time;
use crate::message::{FromAgent, ToAgent};

/// A handle, which all dialogues of one coordinator share.
#[derive(Debug, Clone)]
pub struct Outside(Rc<RefCell<State>>);

#[derive(Debug)]
struct State {
    now: Time,
    unix_ns: u64,
    random: SplitMix64,
    lines: BTreeMap<LineId, Line>,
    next: u64,
    actions: Vec<Action>,
    /// What was asked for, until the answer is taken.
    asked: BTreeMap<WorkId, Asked>,
    timers: BTreeMap<(Time, u64), Waker>,
    stop: Stop,
    /// What happens cannot be shown or stored.
    broken: Option<Fault>,
}

#[derive(Debug, Default)]
struct Line {
    /// What arrived and is not read yet: one message at most, or the end.
    arrived: Option<Result<FromAgent, LineEnd>>,
    reader: Option<Waker>,
    seen: Seen,
}

#[derive(Debug, Default)]
struct Asked {
    answer: Option<Answer>,
    waker: Option<Waker>,
}

/// Whether the user wants to stop.
#[derive(Debug, Default)]
struct Stop {
    wanted: bool,
    waiting: BTreeMap<u64, Waker>,
}

impl Outside {
    /// Nothing is connected, and it is `now`. `random` makes what nobody else may have made.
    #[must_use]
    pub fn new(now: Time, random: u64) -> Self {
        Self(Rc::new(RefCell::new(State {
            now,
            unix_ns: 0,
            random: SplitMix64::new(random),
            lines: BTreeMap::new(),
            next: 0,
            actions: Vec::new(),
            asked: BTreeMap::new(),
            timers: BTreeMap::new(),
            stop: Stop::default(),
            broken: None,
        })))
    }

    fn state(&self) -> Ref<'_, State> {
        self.0.borrow()
    }

    fn change(&self) -> RefMut<'_, State> {
        self.0.borrow_mut()
    }

    /// A new connection.
    #[must_use]
    pub fn line(&self) -> LineId {
        let mut state = self.change();
        state.next += 1;
        let line = LineId(state.next);
        state.lines.insert(line, Line::default());
        line
    }

    /// Whether the caller may pass the next message of a connection: the last one was read.
    #[must_use]
    pub fn takes_of(&self, line: LineId) -> bool {
        self.state().lines.get(&line).is_some_and(|line| line.arrived.is_none())
    }

    /// Takes what is seen of a connection before the next event.
    pub fn see(&self, line: LineId, seen: Seen) {
        if let Some(line) = self.change().lines.get_mut(&line) {
            line.seen = seen;
        }
    }

    /// The time of the last event.
    #[must_use]
    pub fn now(&self) -> Time {
        self.state().now
    }

    /// Wall-clock time at the last event, ns since the Unix epoch.
    #[must_use]
    pub fn unix_ns(&self) -> u64 {
        self.state().unix_ns
    }

    pub(super) fn random(&self) -> u64 {
        self.change().random.next_u64()
    }

    /// What was last seen of a connection.
    pub(super) fn seen(&self, line: LineId) -> Seen {
        self.state().lines.get(&line).map(|line| line.seen).unwrap_or_default()
    }

    pub(super) fn act(&self, action: Action) {
        self.change().actions.push(action);
    }

    pub(super) fn send(&self, line: LineId, message: ToAgent) {
        self.act(Action::Send(line, Box::new(message)));
    }

    /// Forgets a connection.
    pub(super) fn forget(&self, line: LineId) {
        self.change().lines.remove(&line);
    }

    /// The next message of a connection. Dropping the future loses nothing.
    pub(super) fn receive(&self, line: LineId) -> impl Future<Output = Result<FromAgent, LineEnd>> + use<> {
        let own = self.clone();
        poll_fn(move |context| match own.arrived(line) {
            Some(arrived) => Poll::Ready(arrived),
            None => {
                if let Some(line) = own.change().lines.get_mut(&line) {
                    line.reader = Some(context.waker().clone());
                }
                Poll::Pending
            }
        })
    }

    /// The next message of a connection, if it has arrived.
    pub(super) fn arrived(&self, line: LineId) -> Option<Result<FromAgent, LineEnd>> {
        match self.change().lines.get_mut(&line) {
            // Nothing comes after the end.
            Some(Line { arrived: Some(Err(end)), .. }) => Some(Err(end.clone())),
            Some(line) => line.arrived.take(),
            None => Some(Err(LineEnd::closed())),
        }
    }

    /// Waits until a time.
    pub(super) fn until(&self, at: Time) -> Sleep {
        Sleep { outside: self.clone(), at, number: None }
    }

    pub(super) fn wait(&self, time: Duration) -> Sleep {
        self.until(self.now().saturating_add(time))
    }

    /// Waits for `answer`, but no longer than for `limit`.
    pub(super) async fn within<T>(&self, limit: Duration, answer: impl Future<Output = T>) -> Option<T> {
        let (mut answer, mut limit) = (std::pin::pin!(answer), self.wait(limit));
        poll_fn(|context| match answer.as_mut().poll(context) {
            Poll::Ready(answer) => Poll::Ready(Some(answer)),
            Poll::Pending => Pin::new(&mut limit).poll(context).map(|()| None),
        })
        .await
    }

    /// Whether the user wants to stop.
    #[must_use]
    pub fn is_stopped(&self) -> bool {
        self.state().stop.wanted
    }

    /// Why what happens cannot be shown or stored, if it cannot.
    pub(super) fn broken(&self) -> Option<Fault> {
        self.state().broken.clone()
    }

    /// Waits for `answer`, unless the user wants to stop before.
    pub async fn unless_stopped<T>(&self, answer: impl Future<Output = T>) -> Option<T> {
        let (mut answer, mut stop) = (std::pin::pin!(answer), self.stopped());
        poll_fn(|context| match answer.as_mut().poll(context) {
            Poll::Ready(answer) => Poll::Ready(Some(answer)),
            Poll::Pending => Pin::new(&mut stop).poll(context).map(|()| None),
        })
        .await
    }

    /// Waits until the user wants to stop.
    pub(super) fn stopped(&self) -> Stopped {
        Stopped { outside: self.clone(), number: None }
    }

    /// Lets the caller do some work. If the future is dropped, its answer is of no use any more.
    pub(super) fn ask(&self, work: Work) -> impl Future<Output = Answer> + use<> {
        let mut state = self.change();
        state.next += 1;
        let id = WorkId(state.next);
        state.asked.insert(id, Asked::default());
        state.actions.push(Action::Work(id, work));
        let asking = Asking { outside: self.clone(), id };
        poll_fn(move |context| {
            let mut state = asking.outside.change();
            let Some(asked) = state.asked.get_mut(&asking.id) else { return Poll::Pending };
            match asked.answer.take() {
                Some(answer) => Poll::Ready(answer),
                None => {
                    asked.waker = Some(context.waker().clone());
                    Poll::Pending
                }
            }
        })
    }

    /// Takes what happens.
    pub(super) fn happen(&self, now: Time, unix_ns: u64, event: Option<Event>) {
        let mut state = self.change();
        (state.now, state.unix_ns) = (now.max(state.now), unix_ns);
        let mut woken = Vec::new();
        while let Some(timer) = state.timers.first_entry().filter(|timer| timer.key().0 <= now) {
            woken.push(timer.remove());
        }
        match event {
            None => {}
            Some(Event::Arrived(line, arrived)) => {
                if let Some(line) = state.lines.get_mut(&line) {
                    line.arrived = Some(arrived);
                    woken.extend(line.reader.take());
                }
            }
            Some(Event::Done(id, answer)) => {
                if let Some(asked) = state.asked.get_mut(&id) {
                    asked.answer = Some(answer);
                    woken.extend(asked.waker.take());
                } else if let Answer::Connected(connected) = answer {
                    // Nobody waits for it any more.
                    state.lines.remove(&connected.line);
                    state.actions.push(Action::Cut(connected.line));
                }
            }
            Some(Event::Broken(fault)) => {
                state.broken.get_or_insert(fault);
            }
            Some(Event::Stop) => {
                state.stop.wanted = true;
                woken.extend(std::mem::take(&mut state.stop.waiting).into_values());
            }
        }
        drop(state);
        woken.into_iter().for_each(Waker::wake);
    }

    pub(super) fn actions(&self) -> Vec<Action> {
        std::mem::take(&mut self.change().actions)
    }

    pub(super) fn deadline(&self) -> Option<Time> {
        self.state().timers.first_key_value().map(|((at, _), _)| *at)
    }
}

/// See [`Outside::until`].
#[derive(Debug)]
pub(super) struct Sleep {
    outside: Outside,
    at: Time,
    number: Option<u64>,
}

impl Future for Sleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let (outside, at) = (self.outside.clone(), self.at);
        let mut state = outside.change();
        if state.now >= at {
            return Poll::Ready(());
        }
        let number = *self.number.get_or_insert_with(|| {
            state.next += 1;
            state.next
        });
        state.timers.insert((at, number), context.waker().clone());
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.outside.change().timers.remove(&(self.at, number));
        }
    }
}

/// See [`Outside::stopped`].
#[derive(Debug)]
pub(super) struct Stopped {
    outside: Outside,
    number: Option<u64>,
}

impl Future for Stopped {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let outside = self.outside.clone();
        let mut state = outside.change();
        if state.stop.wanted {
            return Poll::Ready(());
        }
        let number = *self.number.get_or_insert_with(|| {
            state.next += 1;
            state.next
        });
        state.stop.waiting.insert(number, context.waker().clone());
        Poll::Pending
    }
}

impl Drop for Stopped {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.outside.change().stop.waiting.remove(&number);
        }
    }
}

/// Work that was asked for.
struct Asking {
    outside: Outside,
    id: WorkId,
}

impl Drop for Asking {
    fn drop(&mut self) {
        self.outside.change().asked.remove(&self.id);
    }
}
