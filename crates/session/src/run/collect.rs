//! Collects the events of a run into its document.

use model::{Event, EventSink, Run, SinkError};

/// The run so far; `None` before it starts.
#[derive(Default)]
pub(super) struct Collect(pub(super) Option<Run>);

impl EventSink for Collect {
    fn event(&mut self, event: &Event) -> Result<(), SinkError> {
        if let Event::Run(header) = event {
            // A continued run has its earlier passes already.
            if self.0.as_ref().is_some_and(|run| run.header.id == header.id) {
                return Ok(());
            }
            self.0 = Some(Run::new(header.clone()));
            return Ok(());
        }
        let Some(run) = &mut self.0 else { return Ok(()) };
        match event {
            Event::Cells { cells } => run.header.cells.extend(cells.iter().cloned()),
            Event::Retest(retest) => run.retests.push(retest.clone()),
            Event::Pass(pass) => run.passes.push(pass.clone()),
            Event::Outcome(outcome) => run.outcomes.push(outcome.clone()),
            Event::Finding(finding) => run.findings.push(finding.clone()),
            Event::Advice(advice) => run.advice = Some(advice.clone()),
            Event::End(ending) => {
                run.ending = Some(ending.clone());
                run.outcomes.sort_by_key(|outcome| outcome.cell);
            }
            _ => {}
        }
        Ok(())
    }
}
