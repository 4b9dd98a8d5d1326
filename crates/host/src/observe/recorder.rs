//! From the first reading to the last.

use std::io;
use std::sync::Arc;

use model::{Observed, Source};

use super::reading::{Files, Value, ValueKind, belongs};
use super::registry::{Entry, entries};
use super::series::Series;
use super::{ObservedValues, Observer, Own, cpu};
use crate::sys::Sys;

/// Reads all sources at its start and at its end, and the cheap ones in between, on request.
pub struct HostRecorder {
    sys: Arc<dyn Sys>,
    sources: Vec<ReadSource>,
    /// All sources, also those that cannot be read.
    known: Vec<Source>,
    missing: Vec<String>,
    first: ObservedValues,
    files: Files,
    series: Series,
    cost_ns: u64,
}

struct ReadSource {
    source: Source,
    often: bool,
    observer: Box<dyn Observer>,
}

impl HostRecorder {
    /// Takes the first reading of every source; a source that cannot be read is recorded with the reason.
    #[must_use]
    pub fn start(sys: Arc<dyn Sys>, processes: &[Own]) -> Self {
        let begun = sys.thread_ns();
        let (mut sources, mut missing) = (Vec::new(), Vec::new());
        let mut known = Vec::new();
        for Entry { source, often, start } in entries() {
            known.push(source);
            match start(&*sys, processes) {
                Ok(observer) => sources.push(ReadSource { source, often, observer }),
                Err(error) => missing.push(missed(source.name, &error)),
            }
        }
        let mut recorder = Self {
            sys,
            sources,
            known,
            missing,
            first: ObservedValues::default(),
            files: Files::default(),
            series: Series::default(),
            cost_ns: 0,
        };
        recorder.first = recorder.read(true);
        recorder.series.add(&recorder.first);
        recorder.cost_ns = recorder.sys.thread_ns().saturating_sub(begun);
        recorder
    }

    /// Reads the cheap sources. Returns whether every other reading was dropped, so that the next may come after twice
    /// the time.
    pub fn tick(&mut self) -> bool {
        let begun = self.sys.thread_ns();
        let mut reading = ObservedValues::new(&*self.sys, false, std::mem::take(&mut self.files));
        for source in self.sources.iter_mut().filter(|source| source.often) {
            // A failure leaves no value at this moment; the last reading shows whether the source has disappeared.
            if source.observer.read(&*self.sys, &mut reading).is_err() {
                reading.forget(source.source.name);
            }
        }
        self.files = reading.leave_files();
        let halved = self.series.add(&reading);
        self.cost_ns += self.sys.thread_ns().saturating_sub(begun);
        halved
    }

    /// Takes the last reading. It also ends the series, if at least `min_gap_ns` have passed since the previous one.
    #[must_use]
    pub fn finish(mut self, min_gap_ns: u64) -> Observed {
        let begun = self.sys.thread_ns();
        let last = self.read(true);
        if self.series.last_ns().is_some_and(|before| last.at_ns.saturating_sub(before) >= min_gap_ns) {
            self.series.add(&last);
        }
        let mut seen = Observed {
            window_ns: last.at_ns.saturating_sub(self.first.at_ns),
            sources: self
                .sources
                .iter()
                .map(|read| read.source.name.to_owned())
                .filter(|name| name != cpu::SOURCE)
                .collect(),
            missing: self.missing,
            series: self.series.finish(&self.known),
            source_facts: self
                .known
                .iter()
                .filter(|source| Source::of(source.name).is_none())
                .map(|source| (source.name.to_owned(), source.into()))
                .collect(),
            ..Observed::default()
        };
        differ(&self.first, &last, &mut seen);
        seen.cost_ns = self.cost_ns + self.sys.thread_ns().saturating_sub(begun);
        seen
    }

    /// A reading of all sources; those that fail are removed.
    fn read(&mut self, whole: bool) -> ObservedValues {
        let mut reading = ObservedValues::new(&*self.sys, whole, std::mem::take(&mut self.files));
        let (sys, missing) = (&*self.sys, &mut self.missing);
        self.sources.retain_mut(|source| match source.observer.read(sys, &mut reading) {
            Ok(()) => true,
            Err(error) => {
                reading.forget(source.source.name);
                missing.push(missed(source.source.name, &error));
                false
            }
        });
        self.files = reading.leave_files();
        reading
    }

    /// A reading of the sources of a live view only.
    pub(super) fn read_watched(&mut self) -> ObservedValues {
        self.sources.retain(|read| read.source.is_watched);
        self.read(true)
    }

    /// What could not be read of the sources of a live view.
    pub(super) fn missing_of_watched(&self) -> impl Iterator<Item = &String> {
        let watched = |gap: &str| self.known.iter().any(|source| source.is_watched && source.has(gap));
        self.missing.iter().filter(move |gap| watched(gap))
    }
}

fn missed(source: &str, error: &io::Error) -> String {
    format!("{source}: {error}")
}

/// The changes between two readings. A device that appeared or disappeared, and a counter that decreased (its driver
/// was reloaded, or it has wrapped), are unknown, not 0.
fn differ(first: &ObservedValues, last: &ObservedValues, seen: &mut Observed) {
    let mut unknown: Vec<String> = Vec::new();
    let read = |name: &str, seen: &Observed| seen.sources.iter().any(|source| belongs(name, source));
    for (name, value) in &last.values {
        let before = first.values.get(name).map(|before| before.number);
        let Value { kind, number, .. } = *value;
        match (kind, before) {
            (ValueKind::Share, _) => {}
            (ValueKind::Level, before) => {
                if let Some(before) = before.filter(|before| *before > 0 || number > 0) {
                    seen.levels.insert(name.clone(), [before, number]);
                }
            }
            (ValueKind::Counter, None) => unknown.push(format!("{}: missing at the start", device(name))),
            (ValueKind::Counter | ValueKind::Tally, Some(before)) if number < before => {
                unknown.push(format!("{name}: decreased"));
            }
            (ValueKind::Counter | ValueKind::Tally, before) => {
                let grown = number - before.unwrap_or(0);
                if grown > 0 {
                    seen.counters.insert(name.clone(), i64::try_from(grown).unwrap_or(i64::MAX));
                }
            }
        }
    }
    for (name, value) in &first.values {
        let counts = matches!(value.kind, ValueKind::Counter | ValueKind::Tally);
        if counts && !last.values.contains_key(name) && read(name, seen) {
            unknown.push(format!("{}: removed before the end", device(name)));
        }
    }
    unknown.dedup();
    seen.missing.extend(unknown);
}

/// The object of a counter: `dev.eth0` of `dev.eth0.rx_bytes`.
fn device(name: &str) -> &str {
    name.rsplit_once('.').map_or(name, |(device, _)| device)
}
