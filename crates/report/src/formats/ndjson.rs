//! The run as events, in an order in which they could have occurred.

use model::{Event, Run};

use crate::view::stem;
use crate::{Piece, ReportError, View};

/// Several runs follow each other; each begins with its `run` event.
pub(super) fn render(view: &View<'_>) -> Result<Vec<Piece>, ReportError> {
    view.some_run("ndjson")?;
    let mut bytes = Vec::new();
    for run in view.runs {
        for event in events(run) {
            serde_json::to_writer(&mut bytes, &event)
                .map_err(|source| ReportError::Json { run: run.header.id.clone(), source })?;
            bytes.push(b'\n');
        }
    }
    Ok(vec![Piece::new(stem(view.runs), "ndjson", bytes)])
}

/// The run; each pass after its trials; then outcomes, findings and, if the run ended, the end.
fn events(run: &Run) -> Vec<Event> {
    let mut trials: Vec<_> = run.outcomes.iter().flat_map(|outcome| &outcome.trials).collect();
    trials.sort_by_key(|trial| (trial.pass, trial.position));
    let mut passes: Vec<_> = run.passes.iter().collect();
    passes.sort_by_key(|pass| pass.index);

    let mut events = vec![Event::Run(run.header.clone())];
    let mut trials = trials.into_iter().peekable();
    for pass in passes {
        while let Some(trial) = trials.next_if(|trial| trial.pass <= pass.index) {
            events.push(Event::Trial(trial.clone()));
        }
        events.push(Event::Pass(pass.clone()));
    }
    events.extend(trials.cloned().map(Event::Trial));
    events.extend(run.outcomes.iter().cloned().map(Event::Outcome));
    events.extend(run.retests.iter().cloned().map(Event::Retest));
    events.extend(run.findings.iter().cloned().map(Event::Finding));
    events.extend(run.advice.clone().map(Event::Advice));
    events.extend(run.ending.clone().map(Event::End));
    events
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn lines_parse_back_into_the_run() {
        let run = sample::stream();
        let pieces = render(&View::new(std::slice::from_ref(&run))).unwrap();
        let text = std::str::from_utf8(&pieces[0].bytes).unwrap();
        let events: Vec<Event> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert!(matches!(&events[0], Event::Run(header) if *header == run.header));
        assert!(matches!(events.last(), Some(Event::End(ending)) if Some(ending) == run.ending.as_ref()));
        let outcomes: Vec<_> =
            events.iter().filter_map(|e| if let Event::Outcome(o) = e { Some(o.clone()) } else { None }).collect();
        // Both sides pass through text, because parsing a decimal may be off by the last bit.
        let text = serde_json::to_string(&run.outcomes).unwrap();
        assert!(outcomes == serde_json::from_str::<Vec<model::Outcome>>(&text).unwrap());
        let trials = events.iter().filter(|event| matches!(event, Event::Trial(_))).count();
        assert_eq!(trials, run.outcomes.iter().map(|outcome| outcome.trials.len()).sum::<usize>());
        let passes = events.iter().filter(|event| matches!(event, Event::Pass(_))).count();
        assert_eq!(passes, run.passes.len());
    }

    #[test]
    fn a_pass_follows_its_trials() {
        let mut done = None;
        for event in events(&sample::stream()) {
            match event {
                Event::Pass(pass) => done = Some(pass.index),
                Event::Trial(trial) => assert!(done.is_none_or(|done| trial.pass > done)),
                _ => {}
            }
        }
        assert!(done.is_some());
    }
}
