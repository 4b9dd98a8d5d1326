//! The lines of a stream, transfer or round-trip test while it runs: one for each second, as the events come.

mod columns;
mod counts;
mod groups;
mod pairs;
mod points;
mod readings;
mod so_far;

use model::{Direction, Event, Interval, Reading, RunHeader, Shared, Spec, Trial, Verdict};
use text::Spelling;

use self::columns::{Label, columns, head, line};
use self::counts::{Change, Counts};
use self::groups::GroupLines;
use self::pairs::PairLines;
pub use self::points::{LivePoint, LivePoints};
use self::readings::Readings;
pub use self::so_far::{EstimateSoFar, SoFar};
use crate::labels;

/// Makes the lines of one run. Groups of flows have a line for all together.
///
/// A trial of a second or less has one line, with its own value; short ones share a line. The lines of a longer trial are made of
/// the readings of both ends, and its last one of its totals.
#[derive(Debug, Default)]
pub struct LiveLines {
    /// Also a line for each flow.
    each: bool,
    spelling: Spelling,
    /// What is measured; `None` where there are no lines.
    spec: Option<Shared<Spec>>,
    /// Of a run with groups of flows.
    groups: Option<GroupLines>,
    /// The rounds of a comparison.
    pairs: Option<PairLines>,
    /// The heads were printed.
    headed: bool,
    /// Time of the trials that ended, ns.
    ended_ns: u64,
    /// The trial that runs.
    readings: Readings,
    /// Short trials that have no line yet.
    gathered: Option<Change>,
}

impl LiveLines {
    /// Lines of all flows together, or with `each` also of each flow.
    #[must_use]
    pub fn new(each: bool, spelling: Spelling) -> Self {
        Self { each, spelling, ..Self::default() }
    }

    /// The lines, without line ends, that follow from an event; often none.
    pub fn event(&mut self, event: &Event) -> Vec<String> {
        if let Some(groups) = &mut self.groups {
            return groups.event(event);
        }
        if let Some(pairs) = &mut self.pairs {
            return pairs.event(event);
        }
        match event {
            Event::Run(header) => {
                self.spec = measured(header);
                self.groups = GroupLines::of(header, self.spelling);
                self.pairs = PairLines::of(header, self.spelling);
                Vec::new()
            }
            Event::Reading { pass, end, reading } => self.reading(*pass, end, reading),
            Event::Trial(trial) => self.trial(trial),
            Event::End(_) => self.rest(),
            _ => Vec::new(),
        }
    }

    fn reading(&mut self, pass: u32, end: &str, reading: &Reading) -> Vec<String> {
        let Some(spec) = self.spec.clone() else { return Vec::new() };
        let Some((before, counts)) = self.readings.add(&spec, end, reading) else { return Vec::new() };
        self.lines(&spec, pass, &counts, before.as_ref(), "")
    }

    fn trial(&mut self, trial: &Trial) -> Vec<String> {
        let Some(spec) = self.spec.clone() else { return Vec::new() };
        let (before, counts) = self.readings.end(trial);
        let lines = if before.is_some() || self.has_parts(&spec) {
            self.lines(&spec, trial.pass, &counts, before.as_ref(), &note(trial))
        } else {
            self.whole(&spec, trial, &counts)
        };
        self.ended_ns += counts.at_ns();
        lines
    }

    /// Whether a moment has several lines.
    fn has_parts(&self, spec: &Spec) -> bool {
        spec.is_stream() && (self.each || spec.direction == Direction::Both)
    }

    /// A trial without readings: its own value.
    fn whole(&mut self, spec: &Spec, trial: &Trial, counts: &Counts) -> Vec<String> {
        let mut change = counts.since(None, spec.direction, None, spec.is_stream());
        match trial.value {
            Some(value) if spec.is_stream() => change.bits = value * change.seconds,
            Some(value) => change.transactions = value * change.seconds,
            None => {}
        }
        let all = match self.gathered.take() {
            Some(earlier) => earlier.and(&change),
            None => change,
        };
        let note = note(trial);
        let period = spec.reading_ns as f64 / 1e9;
        if all.seconds < 0.95 * period && note.is_empty() {
            self.gathered = Some(all);
            return Vec::new();
        }
        let time = (self.ended_ns + counts.at_ns()) as f64 / 1e9;
        self.one(spec, &Label { time, ..Label::default() }, &all, &note)
    }

    /// Short trials at the end of the run.
    fn rest(&mut self) -> Vec<String> {
        let (Some(spec), Some(all)) = (self.spec.clone(), self.gathered.take()) else { return Vec::new() };
        self.one(&spec, &Label { time: self.ended_ns as f64 / 1e9, ..Label::default() }, &all, "")
    }

    /// The lines of one moment of a trial, of what happened since `before`.
    fn lines(&mut self, spec: &Spec, pass: u32, counts: &Counts, before: Option<&Counts>, note: &str) -> Vec<String> {
        let stream = spec.is_stream();
        let at_ns = self.ended_ns + counts.at_ns();
        let warm_up = counts.at_ns() <= spec.warmup_ns;
        let note = if warm_up { "warm-up" } else { note };
        let directions = directions(spec);
        let both = directions.len() > 1;
        let flows: Vec<Option<u32>> = if self.each && stream {
            counts.flows(before).into_iter().map(Some).chain([None]).collect()
        } else {
            vec![None]
        };
        let mut lines = Vec::new();
        for flow in flows {
            for of in &directions {
                let label = Label {
                    time: at_ns as f64 / 1e9,
                    trial: is_long(spec).then_some(pass + 1),
                    flow: self.each.then(|| flow.map_or_else(|| "all".to_owned(), |flow| flow.to_string())),
                    direction: both.then(|| of.way()),
                };
                let change = counts.since(before, *of, flow, stream);
                if is_moment(&change, before) {
                    lines.extend(self.one(spec, &label, &change, note));
                }
            }
        }
        lines
    }

    /// A line, after the heads if it is the first one.
    fn one(&mut self, spec: &Spec, label: &Label, change: &Change, note: &str) -> Vec<String> {
        let columns = columns(spec, spec.speak.is_some() && spec.direction != Direction::Reverse);
        let heads = (!std::mem::replace(&mut self.headed, true)).then(|| head(columns, label));
        heads.into_iter().chain([line(columns, label, change, note, self.spelling)]).collect()
    }
}

/// Whether a change is shown: not the remainder of a trial that ends with a period.
fn is_moment(change: &Change, before: Option<&Counts>) -> bool {
    change.seconds > 0.01 || before.is_none()
}

/// Whether an entry of the series is not of the time of its trial: behind its end arrives what was in flight.
fn is_behind_end(spec: &Spec, entry: &Interval) -> bool {
    matches!(spec.stop, model::Stop::TimeNs(length) if entry.end_ns > length)
}

/// The directions that have counts of their own.
fn directions(spec: &Spec) -> Vec<Direction> {
    match spec.direction {
        _ if !spec.is_stream() => vec![Direction::Send],
        Direction::Both => vec![Direction::Send, Direction::Reverse],
        one => vec![one],
    }
}

/// What is measured, if a run has live counts: the cells of a plan or a curve are measured side by side.
fn measured(header: &RunHeader) -> Option<Shared<Spec>> {
    match header.cells.as_slice() {
        [cell] if !cell.spec.no_loss => Some(cell.spec.clone()),
        _ => None,
    }
}

/// Whether a trial has several lines, if it ends by time.
fn is_long(spec: &Spec) -> bool {
    match spec.stop {
        model::Stop::TimeNs(ns) => ns >= 2 * spec.reading_ns,
        _ => false,
    }
}

/// What makes a trial's figures doubtful.
fn note(trial: &Trial) -> String {
    let doubtful = [Verdict::Stalled, Verdict::CutShort, Verdict::ByteCountMismatch, Verdict::SocketDrops];
    let found: Vec<Verdict> = trial.verdicts.iter().filter(|one| doubtful.contains(one)).copied().collect();
    labels::verdicts(&found)
}

#[cfg(test)]
mod tests;
