//! Shortest paths by number of links; among equals, the one whose links come first.

use std::collections::VecDeque;

use super::{NodeKind, Topology};

/// How a node is reached from the start of a search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Step {
    /// Links on the path.
    pub(crate) distance: usize,
    /// Index of the first link on the path; `None` for the start itself.
    pub(crate) first: Option<usize>,
    /// The last link on the path.
    pub(crate) last: Option<usize>,
    /// The node before this one that has addresses, which is the start or a router.
    pub(crate) before: usize,
    /// The first node on the path with addresses; the node itself if it is next to the start.
    pub(crate) next: usize,
}

/// How each node is reached from `start`; `None` if there is no path.
pub(crate) fn steps(topology: &Topology, start: usize) -> Vec<Option<Step>> {
    let mut steps: Vec<Option<Step>> = vec![None; topology.nodes.len()];
    steps[start] = Some(Step { distance: 0, first: None, last: None, before: start, next: start });
    let mut open = VecDeque::from([start]);
    while let Some(here) = open.pop_front() {
        let Some(step) = steps[here] else { continue };
        let kind = topology.nodes[here].kind;
        // A host does not forward packets.
        if kind == NodeKind::Host && here != start {
            continue;
        }
        for (index, link) in topology.links.iter().enumerate() {
            let there = match link.between {
                [one, other] if one == here => other,
                [one, other] if other == here => one,
                _ => continue,
            };
            if steps[there].is_some() {
                continue;
            }
            // A switch has no address: the nodes behind it are neighbours of the node before it.
            let before = if kind == NodeKind::Switch { step.before } else { here };
            let next = if before == start { there } else { step.next };
            let (first, last) = (step.first.or(Some(index)), Some(index));
            steps[there] = Some(Step { distance: step.distance + 1, first, last, before, next });
            open.push_back(there);
        }
    }
    steps
}
