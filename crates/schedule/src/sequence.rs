//! Several cells, one after another, each measured as if it were the only one.

use std::collections::VecDeque;

use model::{Cell, Direction, Pattern, RunHeader, TransportName};

use crate::fit::Unfixed;
use crate::single::Single;
use crate::state::RunState;
use crate::{Completed, Machine, RunEnd, Step};

/// The cells that are not measured yet, the first of them in progress.
#[derive(Debug)]
pub(crate) struct Sequence(VecDeque<Single>);

impl Sequence {
    pub(crate) fn new(header: &RunHeader, plan: Unfixed) -> Self {
        let mut singles = VecDeque::with_capacity(header.cells.len());
        let mut later_ns = 0;
        for cell in header.cells.iter().rev() {
            singles.push_front(Single::part(cell, header.stopping.seed, plan, name(cell), later_ns));
            later_ns += cell.spec.timed_ns().unwrap_or(0);
        }
        Self(singles)
    }
}

/// What a cell measures, for the progress line.
fn name(cell: &Cell) -> &'static str {
    let is_udp = cell.spec.transport == TransportName::Udp;
    if cell.spec.pattern == Pattern::Rr {
        return "round trips";
    }
    match (cell.spec.direction, is_udp) {
        (Direction::Send, false) => "goodput out",
        (Direction::Reverse, false) => "goodput back",
        (Direction::Both, false) => "goodput in both directions",
        (Direction::Send, true) => "loss out",
        (Direction::Reverse, true) => "loss back",
        (Direction::Both, true) => "loss in both directions",
    }
}

impl Machine for Sequence {
    fn next(&mut self, state: &mut RunState, now: u64) -> Step {
        while let Some(single) = self.0.front_mut() {
            match single.next(state, now) {
                Step::End(RunEnd::Finished) => self.0.pop_front(),
                step => return step,
            };
        }
        Step::End(RunEnd::Finished)
    }

    fn completed(&mut self, state: &mut RunState, result: Completed, now: u64) {
        if let Some(single) = self.0.front_mut() {
            single.completed(state, result, now);
        }
    }
}
