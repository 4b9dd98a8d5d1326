//! The deadlines of one thread's flows.

/// At most one deadline per flow, the earliest on top: a binary heap that knows each flow's position, so that setting,
/// moving and clearing a deadline cost its depth, and nothing is allocated after construction.
#[derive(Debug)]
pub(crate) struct Timers {
    /// Flows by deadline: no child is earlier than its parent.
    heap: Vec<u32>,
    /// Each flow's position in the heap; `NONE` without a deadline.
    positions: Vec<u32>,
    /// Each flow's deadline, ns of the monotonic clock.
    deadlines: Vec<u64>,
}

const NONE: u32 = u32::MAX;

impl Timers {
    /// For flows 0 to `flows` - 1, none of which has a deadline yet.
    pub(crate) fn new(flows: usize) -> Self {
        Self { heap: Vec::with_capacity(flows), positions: vec![NONE; flows], deadlines: vec![0; flows] }
    }

    /// Sets the deadline of `flow`, replacing any other.
    pub(crate) fn set(&mut self, flow: usize, deadline_ns: u64) {
        self.deadlines[flow] = deadline_ns;
        let position = if self.positions[flow] == NONE {
            self.heap.push(flow as u32);
            self.heap.len() - 1
        } else {
            self.positions[flow] as usize
        };
        self.settle(position);
    }

    /// Clears the deadline of `flow`.
    pub(crate) fn clear(&mut self, flow: usize) {
        let position = std::mem::replace(&mut self.positions[flow], NONE);
        if position == NONE {
            return;
        }
        self.heap.swap_remove(position as usize);
        if (position as usize) < self.heap.len() {
            self.settle(position as usize);
        }
    }

    /// The flow with the earliest deadline, and that deadline.
    pub(crate) fn first(&self) -> Option<(usize, u64)> {
        self.heap.first().map(|flow| (*flow as usize, self.deadlines[*flow as usize]))
    }

    /// Removes and returns one flow whose deadline is not after `now_ns`.
    pub(crate) fn due(&mut self, now_ns: u64) -> Option<usize> {
        let (flow, _) = self.first().filter(|(_, deadline)| *deadline <= now_ns)?;
        self.clear(flow);
        Some(flow)
    }

    fn at(&self, position: usize) -> u64 {
        self.deadlines[self.heap[position] as usize]
    }

    /// Moves the entry at `position` up or down to its order.
    fn settle(&mut self, mut position: usize) {
        while position > 0 && self.at(position) < self.at((position - 1) / 2) {
            self.heap.swap(position, (position - 1) / 2);
            self.positions[self.heap[position] as usize] = position as u32;
            position = (position - 1) / 2;
        }
        loop {
            let children = (2 * position + 1)..(2 * position + 3).min(self.heap.len());
            match children.min_by_key(|child| self.at(*child)) {
                Some(child) if self.at(child) < self.at(position) => {
                    self.heap.swap(position, child);
                    self.positions[self.heap[position] as usize] = position as u32;
                    position = child;
                }
                _ => break,
            }
        }
        self.positions[self.heap[position] as usize] = position as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Compared with a plain table: after any sequence of sets and clears, the earliest is on top and each is due
        /// once.
        #[test]
        fn deadlines_come_in_their_order(steps in prop::collection::vec((0usize..9, prop::option::of(1u64..50)), 0..80)) {
            let (mut timers, mut table) = (Timers::new(9), [None; 9]);
            for (flow, deadline) in steps {
                match deadline {
                    Some(deadline) => timers.set(flow, deadline),
                    None => timers.clear(flow),
                }
                table[flow] = deadline;
                prop_assert_eq!(timers.first().map(|(_, deadline)| deadline), table.iter().flatten().min().copied());
            }
            prop_assert_eq!(timers.due(0), None);
            let mut last = 0;
            while let Some(flow) = timers.due(50) {
                let deadline = table[flow].take();
                prop_assert!(deadline.is_some_and(|deadline| deadline >= last), "flow {} at {:?} after {}", flow, deadline, last);
                last = deadline.unwrap_or(last);
            }
            prop_assert_eq!(table, [None; 9]);
        }
    }
}
