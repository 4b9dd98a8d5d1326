//! What to do after a measurement.

mod repeat;

use model::{Direction, Outcome, Run};
use text::{Text, say};

use super::responsiveness::working;

/// Commands that follow.
pub(crate) fn of(run: &Run, outcome: &Outcome) -> Text {
    let why = say!("`thru why {}` (evidence)", run.header.id);
    if let Some(repeat) = repeat::command(run, outcome) {
        return say!("{repeat}, {why}");
    }
    match &run.header.target {
        Some(target) if working(outcome).is_some() => {
            let (other, of) = match outcome.spec.direction {
                Direction::Send => (say!("`thru stream {target} --responsiveness --reverse`"), "the other direction"),
                Direction::Reverse => (say!("`thru stream {target} --responsiveness`"), "the other direction"),
                Direction::Both => (say!("`thru stream {target} --responsiveness --reverse`"), "one direction"),
            };
            say!("{why}, {other} ({of})")
        }
        Some(target) => say!("{why}, `thru advise {target}` (settings)"),
        None => why,
    }
}
