//! Runs on a bus: what a run measures is kept there beside the store, so that a command on another host can continue it.
//!
//! The store comes first: an event goes to the bus once it is on the disk, and is kept here until the bus has it. What a command could
//! not deliver before it ended is delivered by the one that continues the run.

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bus::{Bus, Place};
use control::ControlError;
use flate2::Compression;
use flate2::read::ZlibDecoder;
use flate2::write::ZlibEncoder;
use model::{Event, Run, Trial};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

use crate::failure::Failure;
use crate::setup::{self, open_store, recorder};

/// Time between two attempts to deliver an event.
const RETRY: Duration = Duration::from_secs(1);
/// Most events that are on their way to the bus at a time.
const BATCH: usize = 64;
/// How long the end of a run waits for a bus that takes nothing.
const FLUSH_LIMIT: Duration = Duration::from_secs(10);
/// Most bytes of an event, unpacked.
const MAX_EVENT: u64 = 256 << 20;

/// Delivers the events of one run.
pub struct OnBus {
    /// The first event of a run that has no result yet.
    pending_start: Option<Event>,
    /// The run was begun by an earlier command.
    continued: bool,
    next: u64,
    queue: mpsc::UnboundedSender<(u64, Vec<u8>)>,
    courier: JoinHandle<()>,
    /// Number of events that the bus has taken.
    delivered: Arc<AtomicU64>,
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
        let (queue, mut waiting) = mpsc::unbounded_channel::<(u64, Vec<u8>)>();
        let run = id.to_owned();
        let delivered: Arc<AtomicU64> = Arc::default();
        let taken = delivered.clone();
        let courier = tokio::spawn(async move {
            let mut batch = Vec::new();
            while waiting.recv_many(&mut batch, BATCH).await > 0 {
                while bus.append(&run, &batch).await.is_err() {
                    tokio::time::sleep(RETRY).await;
                }
                taken.fetch_add(batch.len() as u64, Ordering::Relaxed);
                batch.clear();
            }
        });
        let (continued, next) = (earlier.is_some(), known.len() as u64);
        let mut begun = Self { pending_start: None, continued, next, queue, courier, delivered, place };
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
        if let Ok(bytes) = packed(event) {
            // The courier ends after this.
            let _ = self.queue.send((self.next, bytes));
            self.next += 1;
        }
    }

    /// Waits until the bus has everything. Returns a line for the user if it does not.
    pub async fn finish(mut self) -> Option<String> {
        drop(self.queue);
        let mut before = None;
        while before != Some(self.delivered.load(Ordering::Relaxed)) {
            before = Some(self.delivered.load(Ordering::Relaxed));
            if tokio::time::timeout(FLUSH_LIMIT, &mut self.courier).await.is_ok() {
                return None;
            }
        }
        Some(format!(
            "the bus {} took no more of this run for {} s; the store of this host has all of it",
            self.place.bus,
            FLUSH_LIMIT.as_secs()
        ))
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
    Ok(model::json::read(&text)?)
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
    recorder(store)?.record_all(&fetched).map_err(|error| Failure::other(error.to_string()))
}

#[cfg(test)]
mod tests {
    use model::Pass;

    use super::*;

    #[test]
    fn an_event_is_packed_and_unpacked() {
        let event = Event::Pass(Pass { index: 3, ..Pass::default() });
        assert_eq!(unpacked(&packed(&event).unwrap()).unwrap(), event);
        assert_eq!(key(&event).as_deref(), Some("pass 3"));
        assert!(unpacked(b"no zlib").is_err());
    }
}
