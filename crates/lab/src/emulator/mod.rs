//! A path with a given delay, rate, queue and loss between two hosts, carried by a thread of this process.
//!
//! Each host has a TUN device. The thread reads a packet at one end, lets each of its segments wait for the link
//! ([`queue`]), determines when it reaches the other end, if at all ([`stage`]), stores it until then ([`ring`],
//! [`schedule`]) and writes it to the other device. TSO and USO packets stay together as far as the path allows
//! ([`packet`]), which makes it fast. Everything except the devices is in [`course`], which tests run in simulated
//! time.
//!
//! The thread cannot be on time to the nanosecond. It counts how late it was with each packet, so that a measurement
//! over the path can account for it.

mod alter;
mod checksum;
mod counter;
mod counts;
mod course;
mod direction;
mod lateness;
mod packet;
mod queue;
mod random;
mod ring;
mod schedule;
mod spec;
mod stage;
mod sys;

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed, Ordering::SeqCst};
use std::sync::mpsc;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

use counts::Counters;
pub use counts::PathCounts;
use direction::LinkDirection;
pub use lateness::Lateness;
pub use spec::{Bursts, Codel, DirectionSpec, Discipline, Distribution, Jitter, LinkChange, Red, Reorder};
use sys::Tun;
pub(crate) use sys::within;

/// Priority among real-time threads, where 99 is the highest: above ordinary threads is enough.
const PRIORITY: i32 = 10;
/// A sleeping core wakes up about 40 µs after its timer. So the thread sleeps until this long before a packet is due
/// and then polls the clock, ns.
const WATCH_NS: u64 = 60_000;
/// It does so at most once in this time, ns: with many packets the core does not sleep deeply, and polling would take
/// it away from the hosts.
const SPIN_INTERVAL_NS: u64 = 500_000;
/// The longest sleep while a path empties, ns.
const DRAIN_STEP_NS: u64 = 200_000;
/// The longest sleep, ns: then the thread checks the stop flag.
const NAP_NS: u64 = 20_000_000;

/// A running path. It ends when this is dropped.
#[derive(Debug)]
pub struct Emulator {
    shared: Arc<Shared>,
    realtime: bool,
    thread: Option<JoinHandle<()>>,
}

/// State shared by the thread and its owner.
#[derive(Debug)]
struct Shared {
    /// Time 0 of the emulator's clock.
    origin: Instant,
    stop: AtomicBool,
    /// When the path's changes restart, ns; 0 once that is done.
    restart_ns: AtomicU64,
    /// What the path is to become, until the thread takes it.
    next: Mutex<Option<Next>>,
    /// Whether the path is still to become something else.
    alters: AtomicBool,
    directions: [Arc<Counters>; 2],
    failure: OnceLock<String>,
}

/// Other properties of a path.
#[derive(Debug)]
struct Next {
    directions: [DirectionSpec; 2],
    mtu: u32,
    seed: u64,
}

impl Shared {
    fn new() -> Self {
        Self {
            origin: Instant::now(),
            stop: AtomicBool::new(false),
            restart_ns: AtomicU64::new(0),
            next: Mutex::new(None),
            alters: AtomicBool::new(false),
            directions: Default::default(),
            failure: OnceLock::new(),
        }
    }

    fn now_ns(&self) -> u64 {
        self.origin.elapsed().as_nanos() as u64
    }
}

impl Emulator {
    /// Makes a device in each of two namespaces, with the names in `interfaces`, and starts the thread between them.
    /// Both devices are down and without addresses. `directions[0]` leads from the first namespace to the second;
    /// `mtu` is the MTU that the devices will have.
    pub(crate) fn start(
        namespaces: [String; 2],
        interfaces: [String; 2],
        directions: &[DirectionSpec; 2],
        mtu: u32,
        seed: u64,
    ) -> io::Result<Self> {
        let shared = Arc::new(Shared::new());
        let (ready, started) = mpsc::channel();
        let (theirs, directions) = (Arc::clone(&shared), directions.clone());
        let thread = std::thread::Builder::new().name("path".into()).spawn(move || {
            let made = devices(&namespaces, &interfaces);
            let (ends, failed) = match made {
                Ok(ends) => (Some(ends), None),
                Err(error) => (None, Some(error)),
            };
            let realtime = ends.is_some() && sys::realtime(PRIORITY).is_ok();
            let _ = ready.send(failed.map_or(Ok(realtime), Err));
            if let Some(ends) = ends {
                let directions = directions_of(&Next { directions, mtu, seed }, &theirs);
                if let Err(error) = carry(&ends, directions, &theirs) {
                    let _ = theirs.failure.set(error.to_string());
                }
            }
        })?;
        let realtime =
            started.recv().unwrap_or_else(|_| Err(io::Error::other("the emulating thread ended at once")))?;
        Ok(Self { shared, realtime, thread: Some(thread) })
    }

    /// The counts of each direction: from `a` to `b`, and the reverse.
    #[must_use]
    pub fn counts(&self) -> [PathCounts; 2] {
        [0, 1].map(|direction| self.shared.directions[direction].read())
    }

    /// Resets the path to its initial state, and counts the times of its changes from now on.
    pub(crate) fn restart(&self) {
        self.shared.restart_ns.store(self.shared.now_ns().max(1), Relaxed);
    }

    /// Gives the path other properties, as soon as each direction is empty: nothing enters it until then. `seed` is that of the
    /// random choices from then on. [`alters`](Self::alters) says when that is done.
    pub(crate) fn alter(&self, directions: &[DirectionSpec; 2], mtu: u32, seed: u64) {
        let next = Next { directions: directions.clone(), mtu, seed };
        *self.shared.next.lock().unwrap_or_else(PoisonError::into_inner) = Some(next);
        self.shared.alters.store(true, SeqCst);
    }

    /// Whether the last [`alter`](Self::alter) is not done yet.
    pub(crate) fn alters(&self) -> bool {
        self.shared.alters.load(SeqCst) && self.failure().is_none()
    }

    /// Whether the thread has priority over all ordinary ones (SCHED_FIFO). Without that permission it is later, and
    /// more often.
    #[must_use]
    pub fn realtime(&self) -> bool {
        self.realtime
    }

    /// Why the path has stopped carrying packets; `None` while it works.
    #[must_use]
    pub fn failure(&self) -> Option<&str> {
        self.shared.failure.get().map(String::as_str)
    }
}

impl Drop for Emulator {
    fn drop(&mut self) {
        self.shared.stop.store(true, Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn devices([a, b]: &[String; 2], [near, far]: &[String; 2]) -> io::Result<[Tun; 2]> {
    Ok([sys::within(a, || Tun::new(near))?, sys::within(b, || Tun::new(far))?])
}

/// Carries packets in both directions until it is stopped, or a device fails.
fn carry(ends: &[Tun; 2], mut directions: [LinkDirection; 2], shared: &Shared) -> Result<(), Errno> {
    let now = || shared.now_ns();
    // Timers of an ordinary thread may be 50 µs late by design (PR_SET_TIMERSLACK, prctl(2)); if this is refused they
    // are.
    let _ = rustix::thread::set_current_timer_slack(std::num::NonZeroU64::new(1));
    let mut until_ns = 0;
    let mut pending: [Option<LinkDirection>; 2] = [None, None];
    while !shared.stop.load(Relaxed) {
        if shared.alters.load(Relaxed) {
            if let Some(next) = shared.next.lock().unwrap_or_else(PoisonError::into_inner).take() {
                pending = directions_of(&next, shared).map(Some);
            }
            become_next(&mut directions, &mut pending, shared);
        }
        if shared.restart_ns.load(Relaxed) > 0 {
            let restart_ns = shared.restart_ns.swap(0, Relaxed);
            directions.iter_mut().for_each(|direction| direction.restart(restart_ns));
        }
        let mut done = 0;
        for (index, direction) in directions.iter_mut().enumerate() {
            done += direction.deliver(&ends[1 - index], now);
            if pending[index].is_none() {
                done += direction.take(&ends[index], now)?;
            }
        }
        if done > 0 {
            continue;
        }
        let now_ns = now();
        let left_ns = directions.iter().filter_map(LinkDirection::due_ns).min().map(|due| due.saturating_sub(now_ns));
        let watch = now_ns < until_ns || now_ns >= until_ns + SPIN_INTERVAL_NS;
        let work_ns = directions
            .iter()
            .filter_map(LinkDirection::work_ns)
            .min()
            .map_or(NAP_NS, |work| work.saturating_sub(now_ns));
        let sleep_ns = match left_ns {
            Some(left) if watch && left <= WATCH_NS => {
                // From here on the loop polls until the packet is due.
                until_ns = now_ns + left;
                continue;
            }
            Some(left) if watch => left - WATCH_NS,
            Some(left) => left,
            None => NAP_NS,
        };
        let ns = sleep_ns.min(work_ns).min(NAP_NS);
        if pending.iter().any(Option::is_some) {
            // Packets that may not enter yet would end the wait at once.
            std::thread::sleep(Duration::from_nanos(ns.min(DRAIN_STEP_NS)));
            continue;
        }
        wait(ends, ns)?;
    }
    Ok(())
}

/// The directions of a path with these properties. Counters go on.
fn directions_of(Next { directions, mtu, seed }: &Next, shared: &Shared) -> [LinkDirection; 2] {
    let counters = |direction: usize| Arc::clone(&shared.directions[direction]);
    let of = |direction: usize, seed: u64| LinkDirection::new(&directions[direction], *mtu, seed, counters(direction));
    [of(0, *seed), of(1, !*seed)]
}

/// Replaces each direction that is empty by its next one.
fn become_next(directions: &mut [LinkDirection; 2], pending: &mut [Option<LinkDirection>; 2], shared: &Shared) {
    for (direction, next) in directions.iter_mut().zip(pending.iter_mut()) {
        if direction.is_empty()
            && let Some(next) = next.take()
        {
            *direction = next;
            direction.restart(shared.now_ns());
        }
    }
    if pending.iter().all(Option::is_none) {
        shared.alters.store(false, SeqCst);
    }
}

/// Sleeps until a packet arrives, at most for this time.
fn wait(ends: &[Tun; 2], ns: u64) -> Result<(), Errno> {
    let limit = Timespec { tv_sec: 0, tv_nsec: ns as i64 };
    let mut watched = [PollFd::new(&ends[0], PollFlags::IN), PollFd::new(&ends[1], PollFlags::IN)];
    match poll(&mut watched, Some(&limit)) {
        Ok(_) | Err(Errno::INTR) => Ok(()),
        Err(error) => Err(error),
    }
}
