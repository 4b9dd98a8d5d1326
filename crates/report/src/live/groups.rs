//! The lines of groups of flows: one for all groups together.

use std::collections::BTreeMap;

use model::{Event, Reading, RunHeader, Shared, Spec, Trial};
use text::Spelling;

use super::columns::{Label, head, line, of_groups};
use super::counts::{Change, Counts};
use super::directions;
use super::readings::Readings;

/// Makes the lines of a run whose cells are groups, measured at the same time.
#[derive(Debug)]
pub(super) struct GroupLines {
    /// Of each group, by cell.
    specs: Vec<Shared<Spec>>,
    readings: Vec<Readings>,
    headed: bool,
    spelling: Spelling,
    /// Time of the trials that ended, ns.
    ended_ns: u64,
    /// The moment that has no line yet: its time in periods after the common start, and what happened until then in each group.
    moment: Option<(u64, BTreeMap<usize, Change>)>,
    /// The groups whose trial of this round has ended: the time of its end after the common start, ns, and what happened since the
    /// group's last reading.
    ended: Vec<(u64, Change)>,
}

impl GroupLines {
    /// `None` for a run without groups, and for one whose plan varies something else too.
    pub(super) fn of(header: &RunHeader, spelling: Spelling) -> Option<Self> {
        header.plan.as_ref().filter(|plan| plan.groups().is_some() && plan.factors.len() == 1)?;
        let specs: Vec<Shared<Spec>> = header.cells.iter().map(|cell| cell.spec.clone()).collect();
        let readings = specs.iter().map(|_| Readings::default()).collect();
        Some(Self { specs, readings, headed: false, spelling, ended_ns: 0, moment: None, ended: Vec::new() })
    }

    /// The lines that follow from an event.
    pub(super) fn event(&mut self, event: &Event) -> Vec<String> {
        match event {
            Event::Reading { pass, end, reading } => self.reading(*pass, end, reading),
            Event::Trial(trial) => self.trial(trial),
            _ => Vec::new(),
        }
    }

    fn period_ns(&self) -> u64 {
        self.specs.iter().map(|spec| spec.reading_ns).max().unwrap_or(1).max(1)
    }

    fn reading(&mut self, pass: u32, end: &str, reading: &Reading) -> Vec<String> {
        // Every round has a pass for each group, in the order of the cells.
        let group = pass as usize % self.specs.len().max(1);
        let Some(spec) = self.specs.get(group) else { return Vec::new() };
        let Some((before, counts)) = self.readings[group].add(spec, end, reading) else { return Vec::new() };
        let change = sum(spec, &counts, before.as_ref());
        let at = (spec.starts_after_ns() + counts.at_ns() + self.period_ns() / 2) / self.period_ns();
        let lines = if self.moment.as_ref().is_some_and(|(time, _)| *time < at) { self.flush() } else { Vec::new() };
        let moment = self.moment.get_or_insert_with(|| (at, BTreeMap::new()));
        moment.1.insert(group, change);
        lines
    }

    /// A group's trial has ended. The last line of a round is of those that ended last; without readings it has the values of all.
    fn trial(&mut self, trial: &Trial) -> Vec<String> {
        let group = trial.cell as usize;
        let Some(spec) = self.specs.get(group).cloned() else { return Vec::new() };
        let mut lines = self.flush();
        let (before, counts) = self.readings[group].end(trial);
        let change = sum(&spec, &counts, before.as_ref());
        // A whole trial has its own value.
        let bits = trial.value.filter(|_| before.is_none()).map_or(change.bits, |value| value * change.seconds);
        self.ended.push((spec.starts_after_ns() + counts.at_ns(), Change { bits, ..change }));
        if self.ended.len() == self.specs.len() {
            let longest_ns = self.ended.iter().map(|(end_ns, _)| *end_ns).max().unwrap_or(0);
            let is_last = |end_ns: u64| end_ns + self.period_ns() / 2 > longest_ns;
            let rest = self.ended.iter().filter(|(end_ns, _)| is_last(*end_ns)).map(|(_, change)| change.clone());
            let rest: BTreeMap<usize, Change> = (0..).zip(rest).filter(|(_, change)| change.seconds > 0.01).collect();
            self.ended_ns += longest_ns;
            self.ended.clear();
            if !rest.is_empty() {
                lines.extend(self.line(self.ended_ns, &rest));
            }
        }
        lines
    }

    /// The line of the moment that has none yet.
    fn flush(&mut self) -> Vec<String> {
        let Some((at, changes)) = self.moment.take() else { return Vec::new() };
        self.line(self.ended_ns + at * self.period_ns(), &changes)
    }

    /// A line, after the heads if it is the first one.
    fn line(&mut self, time_ns: u64, changes: &BTreeMap<usize, Change>) -> Vec<String> {
        let bits: f64 = changes.values().filter_map(Change::rate).sum();
        let retransmits: Option<u64> = changes.values().filter_map(|change| change.retransmits).reduce(|a, b| a + b);
        let all = Change { seconds: 1.0, bits, retransmits, ..Change::default() };
        let label = Label { time: time_ns as f64 / 1e9, ..Label::default() };
        let columns = of_groups(self.specs.iter().any(|spec| spec.is_over_tcp()));
        let heads = (!std::mem::replace(&mut self.headed, true)).then(|| head(columns, &label));
        let note = match changes.len() {
            active if active < self.specs.len() => format!("{active} of {} groups", self.specs.len()),
            _ => String::new(),
        };
        heads.into_iter().chain([line(columns, &label, &all, &note, self.spelling)]).collect()
    }
}

/// What happened in a group in all its directions, as one rate.
fn sum(spec: &Spec, counts: &Counts, before: Option<&Counts>) -> Change {
    let all = directions(spec).into_iter().map(|direction| counts.since(before, direction, None, true));
    let all = all.reduce(|one, other| {
        let rates = [&one, &other].map(|change| change.rate().unwrap_or(0.0));
        let retransmits = [one.retransmits, other.retransmits].into_iter().flatten().reduce(|a, b| a + b);
        let seconds = one.seconds.max(other.seconds);
        Change { seconds, bits: rates.iter().sum::<f64>() * seconds, retransmits, ..one }
    });
    all.unwrap_or_default()
}
