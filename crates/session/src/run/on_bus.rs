//! Runs on a bus: what a run measures is kept there beside the store, so that a command on another host can continue it.
//!
//! The store comes first: an event goes to the bus once it is on the disk, and waits in a file of its own until the bus has it. What a
//! command could not deliver before it ended is delivered by the one that continues the run.

use std::collections::{BTreeSet, VecDeque};
use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bus::{Bus, Place};
use command::Failure;
use command::setup::{self, open_store, recorder};
use control::ControlError;
use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use model::{Event, EventSink, Run, Trial};
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use super::collect::Collect;

/// Time before the second attempt to deliver an event; each further one waits twice as long.
const RETRY: Duration = Duration::from_secs(1);
/// Longest time between two attempts.
const LONGEST_RETRY: Duration = Duration::from_secs(16);
/// Most bytes of the events that are delivered together, unless one is longer.
const BATCH: usize = 256 << 10;
/// How long the end of a run waits for a bus that takes nothing.
const FLUSH_LIMIT: Duration = Duration::from_secs(30);
/// Most bytes of an event, unpacked.
const MAX_EVENT: u64 = 256 << 20;

/// Delivers the events of one run.
pub struct OnBus {
    /// The first event of a run that has no result yet.
    pending_start: Option<Event>,
    /// The run was begun by an earlier command.
    continued: bool,
    next: u64,
    backlog: Arc<Backlog>,
    courier: JoinHandle<()>,
    /// Some of the events could not be kept for the bus.
    is_broken: bool,
    place: Place,
}

impl OnBus {
    /// Begins with the run `id` on a connected bus. `earlier` is what was measured before this command; what the bus lacks of it is
    /// delivered first.
    ///
    /// # Errors
    /// The bus does not answer.
    pub async fn begin(bus: Bus, place: Place, id: &str, earlier: Option<(&Run, &[Trial])>) -> Result<Self, Failure> {
        let known = if earlier.is_some() { events(&bus, id).await? } else { Vec::new() };
        let backlog =
            Backlog::new().map_err(|error| Failure::other(format!("cannot make a temporary file: {error}")))?;
        let backlog = Arc::new(backlog);
        let courier = tokio::spawn(deliver_all(bus, id.to_owned(), backlog.clone()));
        let (continued, next) = (earlier.is_some(), known.len() as u64);
        let mut begun = Self { pending_start: None, continued, next, backlog, courier, is_broken: false, place };
        if let Some((run, trials)) = earlier {
            let known: BTreeSet<String> = known.iter().filter_map(key).collect();
            let header = [Event::Run(run.header.clone())].into_iter();
            let passes = run.passes.iter().cloned().map(Event::Pass);
            let all = header.chain(trials.iter().cloned().map(Event::Trial)).chain(passes);
            all.filter(|event| key(event).is_some_and(|key| !known.contains(&key)))
                .for_each(|event| begun.deliver(&event));
        }
        Ok(begun)
    }

    /// Takes an event that is stored.
    pub fn event(&mut self, event: &Event) {
        match event {
            Event::Run(_) if self.continued => {}
            Event::Run(_) => self.pending_start = Some(event.clone()),
            transient if transient.is_transient() => {}
            _ => {
                if let Some(start) = self.pending_start.take() {
                    self.deliver(&start);
                }
                self.deliver(event);
            }
        }
    }

    fn deliver(&mut self, event: &Event) {
        let kept = packed(event).and_then(|bytes| self.backlog.push(self.next, &bytes));
        self.is_broken |= kept.is_err();
        self.next += 1;
    }

    /// Waits until the bus has everything. Returns a line for the user if it does not.
    pub async fn finish(mut self) -> Option<String> {
        self.backlog.close();
        let mut left = None;
        while left != Some(self.backlog.left()) {
            left = Some(self.backlog.left());
            if tokio::time::timeout(FLUSH_LIMIT, &mut self.courier).await.is_ok() {
                let bus = &self.place.bus;
                return (self.is_broken || self.backlog.left() > 0).then(|| {
                    format!("the bus {bus} is missing part of this run; the store of this host has all of it")
                });
            }
        }
        Some(format!(
            "the bus {} has accepted nothing more of this run for {} s; the store of this host has all of it",
            self.place.bus,
            FLUSH_LIMIT.as_secs()
        ))
    }
}

impl Drop for OnBus {
    /// A run that ends early sends nothing more.
    fn drop(&mut self) {
        self.courier.abort();
    }
}

/// Delivers what is pushed to a backlog until it is closed and empty, or cannot be read.
async fn deliver_all(bus: Bus, run: String, backlog: Arc<Backlog>) {
    let mut pause = RETRY;
    while let Some(mut batch) = backlog.first(BATCH).await {
        while bus.append(&run, &batch).await.is_err() {
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_RETRY);
            // A bus that was slow for all of it is tried with one: what it has already, it drops.
            batch.truncate(1);
        }
        pause = RETRY;
        backlog.pop(batch.len());
    }
}

/// What the bus does not have yet: in a temporary file, so that a bus that is away for a night does not fill the memory.
#[derive(Debug)]
struct Backlog {
    waiting: Mutex<Waiting>,
    changed: Notify,
}

#[derive(Debug)]
struct Waiting {
    file: File,
    /// Number of each event, and its place in the file.
    events: VecDeque<(u64, u64, usize)>,
    /// End of the last one.
    end: u64,
    is_closed: bool,
}

impl Backlog {
    fn new() -> std::io::Result<Self> {
        let waiting = Waiting { file: tempfile::tempfile()?, events: VecDeque::new(), end: 0, is_closed: false };
        Ok(Self { waiting: Mutex::new(waiting), changed: Notify::new() })
    }

    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn push(&self, number: u64, bytes: &[u8]) -> std::io::Result<()> {
        let mut waiting = self.lock();
        let at = waiting.end;
        waiting.file.write_all_at(bytes, at)?;
        waiting.end += bytes.len() as u64;
        waiting.events.push_back((number, at, bytes.len()));
        self.changed.notify_one();
        Ok(())
    }

    /// Nothing more is pushed.
    fn close(&self) {
        self.lock().is_closed = true;
        self.changed.notify_one();
    }

    /// Number of events that the bus does not have.
    fn left(&self) -> usize {
        self.lock().events.len()
    }

    /// Waits for the first events, as many as fit into this many bytes but at least one; `None` at the end.
    async fn first(&self, bytes: usize) -> Option<Vec<(u64, Vec<u8>)>> {
        loop {
            {
                let waiting = self.lock();
                if !waiting.events.is_empty() {
                    return waiting.read(bytes).ok();
                }
                if waiting.is_closed {
                    return None;
                }
            }
            self.changed.notified().await;
        }
    }

    /// Forgets the first events. The space of the file is given back when all are forgotten.
    fn pop(&self, count: usize) {
        let mut waiting = self.lock();
        waiting.events.drain(..count);
        if waiting.events.is_empty() && waiting.file.set_len(0).is_ok() {
            waiting.end = 0;
        }
    }
}

impl Waiting {
    fn read(&self, most: usize) -> std::io::Result<Vec<(u64, Vec<u8>)>> {
        let (mut first, mut sum) = (Vec::new(), 0);
        for (number, at, bytes) in &self.events {
            sum += bytes;
            if sum > most && !first.is_empty() {
                break;
            }
            let mut event = vec![0; *bytes];
            self.file.read_exact_at(&mut event, *at)?;
            first.push((*number, event));
        }
        Ok(first)
    }
}

/// What an event is about, if a run has it once.
fn key(event: &Event) -> Option<String> {
    match event {
        Event::Run(_) => Some("run".into()),
        Event::Trial(trial) => Some(format!("trial {} {} {}", trial.pass, trial.cell, trial.position)),
        Event::Pass(pass) => Some(format!("pass {}", pass.index)),
        _ => None,
    }
}

fn packed(event: &Event) -> std::io::Result<Vec<u8>> {
    let mut packed = ZlibEncoder::new(Vec::new(), Compression::fast());
    packed.write_all(&serde_json::to_vec(event)?)?;
    packed.finish()
}

fn unpacked(bytes: &[u8]) -> std::io::Result<Event> {
    let mut text = String::new();
    ZlibDecoder::new(bytes).take(MAX_EVENT).read_to_string(&mut text)?;
    Ok(serde_json::from_str(&text)?)
}

/// The events of a run that a bus has.
async fn events(bus: &Bus, run: &str) -> Result<Vec<Event>, Failure> {
    let records = bus.records(run).await.map_err(ControlError::from)?;
    let events = records.iter().map(|record| unpacked(record)).collect::<Result<Vec<_>, _>>();
    let mut events = events.map_err(|error| Failure::other(format!("run {run} on the bus cannot be read: {error}")))?;
    // What a command delivered although it did not learn of it, the next one has delivered again.
    let mut known = BTreeSet::new();
    events.retain(|event| key(event).is_none_or(|key| known.insert(key)));
    Ok(events)
}

/// Copies the run called `id` from a bus into the store, if the store does not have it. Nothing happens if the bus does not have it either.
///
/// # Errors
/// The bus does not answer; the store cannot be written.
pub fn bring(id: &str, place: &Place, store: Option<&Path>) -> Result<(), Failure> {
    if open_store(store)?.load(id).is_ok() {
        return Ok(());
    }
    let fetched = setup::runtime()?.block_on(async {
        let bus = setup::buses()?.to(place).await.map_err(ControlError::from)?;
        events(&bus, id).await
    })?;
    // All of it or nothing: a part would pass for the run the next time.
    let mut recorder = recorder(store)?;
    recorder.record_all(&fetched).map_err(Failure::other)?;
    let mut run = Collect::default();
    fetched.iter().try_for_each(|event| run.event(event)).map_err(|error| Failure::other(error.to_string()))?;
    match run.0.as_ref().filter(|run| run.ending.is_some()) {
        Some(run) => recorder.summarise(&report::summary(run)).map_err(Failure::other),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use model::Pass;

    use super::*;

    #[tokio::test]
    async fn a_backlog_gives_back_what_was_pushed_and_no_more_than_asked_for() {
        let backlog = Backlog::new().unwrap();
        let event = |number: u64| (number, vec![number as u8; 100]);
        for turn in 0..3 {
            for number in 0..10 {
                backlog.push(number, &event(number).1).unwrap();
            }
            assert_eq!(backlog.lock().file.metadata().unwrap().len(), 1000, "turn {turn}");
            let mut numbers = 0..10;
            for (asked, count) in [(350, 3), (99, 1), (400, 4), (9999, 2)] {
                let expected: Vec<_> = numbers.by_ref().take(count).map(event).collect();
                assert_eq!(backlog.first(asked).await, Some(expected));
                backlog.pop(count);
            }
            assert_eq!((backlog.left(), backlog.lock().file.metadata().unwrap().len()), (0, 0));
        }
        // Who waits is woken by an event, and by the end.
        let (first, ()) = tokio::join!(backlog.first(1), async { backlog.push(7, b"x").unwrap() });
        assert_eq!(first, Some(vec![(7, b"x".to_vec())]));
        backlog.close();
        backlog.pop(1);
        assert_eq!(backlog.first(1).await, None);
    }

    #[test]
    fn an_event_is_packed_and_unpacked() {
        let event = Event::Pass(Pass { index: 3, ..Pass::default() });
        assert_eq!(unpacked(&packed(&event).unwrap()).unwrap(), event);
        assert_eq!(key(&event).as_deref(), Some("pass 3"));
        assert!(unpacked(b"no zlib").is_err());
    }
}
