//! What a run has recorded so far.

use model::{
    Advice, Capture, CaptureSpec, Cell, EndPass, EndResult, EndTally, Event, Finding, FindingKind, Outcome, Pass,
    Phase, Retest, RunHeader, Verdict,
};
use text::Text;

use crate::cells::Cells;
use crate::{PassResult, RunEnd, ScheduleKind, StepFailure};

/// The place of a test among those that test again what stands out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct RetestPlace {
    pub(crate) round: u32,
    pub(crate) suspect: u32,
    pub(crate) comparison: u32,
    pub(crate) control: bool,
}

impl RetestPlace {
    /// The trial at this place.
    pub(crate) fn with(self, trial: model::Trial) -> Retest {
        let Self { round, suspect, comparison, control } = self;
        Retest { suspect, comparison, round, control, trial }
    }
}

/// The recorded part of a run: its cells, passes and notes, and the events that have not been taken.
#[derive(Debug)]
pub struct RunState {
    /// The run as it was planned.
    pub header: RunHeader,
    /// Its cells.
    pub cells: Cells,
    /// Number of passes so far.
    pub passes: u32,
    /// Of a plan: the index and round of each pass, without the hosts' activity.
    pub pass_rounds: Vec<Pass>,
    /// Of a mesh: the trials that test again what stands out.
    pub retests: Vec<Retest>,
    /// The place of the test that is recorded next, if it is one of those.
    pub retest: Option<RetestPlace>,
    /// The schedule's notes on the run.
    pub notes: Vec<Finding>,
    advice: Option<Advice>,
    /// Time that the hypervisor took from the near and the far host during the passes.
    stolen: [analysis::Stolen; 2],
    events: Vec<Event>,
    interrupted: bool,
}

impl RunState {
    /// Nothing recorded.
    #[must_use]
    pub fn new(header: &RunHeader, kind: ScheduleKind) -> Self {
        Self {
            header: header.clone(),
            cells: Cells::new(header, kind),
            passes: 0,
            pass_rounds: Vec::new(),
            retests: Vec::new(),
            retest: None,
            notes: Vec::new(),
            advice: None,
            stolen: Default::default(),
            events: Vec::new(),
            interrupted: false,
        }
    }

    /// The user wants to stop.
    pub fn interrupt(&mut self) {
        self.interrupted = true;
    }

    /// Remaining nanoseconds of the budget at `now`.
    #[must_use]
    pub fn left_ns(&self, now: u64) -> u64 {
        self.header.stopping.budget_ns.map_or(u64::MAX, |budget| budget.saturating_sub(now))
    }

    /// Adds an event.
    pub fn event(&mut self, event: Event) {
        self.events.push(event);
    }

    /// The events since the last call.
    pub fn events(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.events)
    }

    /// Reports the progress of a run that counts no cells.
    pub(crate) fn phase(&mut self, activity: impl Into<Text>, remaining_ns: Option<u64>) {
        self.event(Event::Phase(Phase { activity: activity.into(), cells_done: 0, cells: 1, remaining_ns }));
    }

    /// Adds new cells.
    pub(crate) fn add(&mut self, cells: Vec<Cell>) {
        cells.iter().cloned().for_each(|cell| self.cells.add(cell));
        self.event(Event::Cells { cells });
    }

    /// Records the result of a pass whose legs belong to `cells` (`None` for a warm-up). Returns how the run ended, if this ended
    /// it.
    pub(crate) fn pass(
        &mut self,
        result: Result<Option<PassResult>, StepFailure>,
        cells: &[(Option<u32>, u32)],
    ) -> Option<RunEnd> {
        let result = match result {
            Ok(Some(result)) => result,
            Err(failure) => return Some(failure.end()),
            Ok(None) => return self.interrupted(),
        };
        let PassResult { begun_ns, duration_ns, lab, links, near, far, failure, repeats: _ } = result;
        let pass = Pass { index: self.passes, started_ns: begun_ns, duration_ns, lab, ..Pass::default() };
        self.passes += 1;
        self.record(pass, near, far, cells, links);
        let what = if cells.len() == 1 { "the trial was cut short" } else { "the pass was cut short" };
        self.interrupted().or(failure.map(|reason| RunEnd::CutShort { what, reason }))
    }

    /// The end of an interrupted run.
    pub(crate) fn interrupted(&self) -> Option<RunEnd> {
        self.interrupted.then_some(RunEnd::Interrupted)
    }

    /// Makes the trials of `cells` (`None` for a warm-up leg) from both ends' tallies and records them with their partly filled
    /// pass. Adds the hosts' activity, overlapping measurements, and the verdict on a lab's links.
    pub fn record(
        &mut self,
        mut pass: Pass,
        near: EndResult,
        far: Option<EndResult>,
        cells: &[(Option<u32>, u32)],
        links: Option<Verdict>,
    ) {
        let single_ended = far.is_none();
        let far = far.unwrap_or_default();
        let overlapped_by = near.overlapped_by.max(far.overlapped_by);
        // A transport with one end uses no link.
        self.cells.links = links.filter(|_| !single_ended);
        let mut far_tallies = far.tallies.into_iter();
        let mut interrupted_leg = false;
        for ((cell, position), near) in cells.iter().zip(near.tallies) {
            let far = match far_tallies.next() {
                Some(far) => far,
                None if single_ended => EndTally::default(),
                // The far end did not start this leg, so there is no trial.
                None => break,
            };
            interrupted_leg |= near.cut_short || far.cut_short;
            if let Some((place, cell)) = self.retest.zip(*cell) {
                if let Some(trial) = self.cells.retested(cell, pass.index, *position, near, far) {
                    let retest = place.with(trial);
                    self.retests.push(retest.clone());
                    self.event(Event::Retest(retest));
                }
            } else if let Some(cell) = cell
                && let Some(trial) = self.cells.trial(*cell, pass.index, *position, near, far, overlapped_by > 0)
            {
                self.event(Event::Trial(trial));
            }
            if interrupted_leg {
                break;
            }
        }
        // A plan's conditions and settings were read before the pass.
        let [before_near, before_far] = [std::mem::take(&mut pass.near), std::mem::take(&mut pass.far)];
        let with = |before: EndPass, host: EndPass| {
            let EndPass { conditions, settings, tests, .. } = before;
            EndPass { conditions, settings, tests, ..host }
        };
        (pass.near, pass.far) = (with(before_near, near.host), with(before_far, far.host));
        pass.overlapped_by = overlapped_by;
        let wanted = cells.iter().find_map(|(cell, _)| self.header.cells.get((*cell)? as usize)?.spec.capture.as_ref());
        if let Some(wanted) = wanted {
            [&mut pass.near, &mut pass.far]
                .into_iter()
                .take(if single_ended { 1 } else { 2 })
                .for_each(|end| note_missing(end, wanted));
        }
        for (stolen, host) in self.stolen.iter_mut().zip([&pass.near, &pass.far]) {
            stolen.add(host.cpu.as_ref());
        }
        self.cells.pass(&pass);
        self.event(Event::Pass(pass));
    }

    /// Closes a cell, and reports its outcome.
    pub fn finish(&mut self, id: u32, early: bool) {
        if let Some(outcome) = self.cells.finish(id, early) {
            self.event(Event::Outcome(outcome));
        }
    }

    /// Closes all open cells.
    pub(crate) fn finish_all(&mut self, early: bool) {
        let outcomes: Vec<Outcome> = self.cells.finish_all(early);
        outcomes.into_iter().for_each(|outcome| self.event(Event::Outcome(outcome)));
    }

    /// Notes the state of the TCP metrics caches; with `may_carry_over` a trial may have started with an earlier one's values.
    pub fn metrics(&mut self, statement: Text, may_carry_over: bool) {
        if may_carry_over {
            self.cells.remark(Verdict::MetricsKept);
        }
        // A search reports on no cell in particular.
        let compared = self.cells.kind() == ScheduleKind::Paired;
        let cells = self.header.cells.iter().map(|cell| cell.id).filter(|_| compared).collect();
        let kind = FindingKind::Note;
        self.notes.push(Finding { kind, statement, estimate: None, block: None, cells, comparison: None });
    }

    /// Sets the result of a search.
    pub(crate) fn advise(&mut self, advice: Option<Advice>, findings: Vec<Finding>) {
        self.advice = advice;
        self.notes.splice(0..0, findings);
    }

    /// Makes the outcomes of all open cells, and the findings.
    pub fn close(&mut self, early: bool) {
        self.finish_all(early);
        let path = analysis::of_path(&self.header, self.cells.done(), &self.stolen);
        let checked = analysis::of_check(&self.header, self.cells.done());
        let notes = std::mem::take(&mut self.notes);
        let findings: Vec<Finding> =
            self.cells.findings(&self.pass_rounds, &self.retests).into_iter().chain(path).chain(notes).collect();
        let findings = checked.into_iter().chain(findings);
        findings.for_each(|finding| self.event(Event::Finding(finding)));
        if let Some(advice) = self.advice.take() {
            self.event(Event::Advice(advice));
        }
    }
}

/// Notes a missing capture: an agent that reports none for a request is too old for it.
fn note_missing(end: &mut EndPass, wanted: &CaptureSpec) {
    end.capture.get_or_insert_with(|| Capture {
        snaplen: wanted.snaplen,
        missing: Some("this end's agent is too old to capture packets: update thru there".into()),
        ..Capture::default()
    });
}
