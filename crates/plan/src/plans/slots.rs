//! The tests of a plan, by the hosts that they occupy.

use std::collections::BTreeMap;

use analysis::plan::{PlannedCell, Slot};
use model::{Plan, Program};

use super::parsed::PlanCell;
use crate::mistake::Mistake;

/// A host of a plan.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum PlanHost {
    /// This process, as the near end.
    LocalNear,
    /// This process, as the far end.
    LocalFar,
    /// An agent.
    Remote(String),
    /// Another program's server, as the far end only.
    Program {
        /// The program.
        program: Program,
        /// Its host.
        host: String,
    },
}

impl PlanHost {
    /// The name of an agent.
    #[must_use]
    pub fn agent(&self) -> Option<&String> {
        match self {
            Self::Remote(name) => Some(name),
            Self::LocalNear | Self::LocalFar | Self::Program { .. } => None,
        }
    }
}

/// The slots of the cells, one for all sizes of a curve, and the hosts by the numbers that the slots use.
///
/// # Errors
/// A transport that this build does not have.
pub fn slots(plan: &Plan, cells: &[PlanCell]) -> Result<(Vec<Slot>, Vec<PlanHost>), Mistake> {
    let mut numbers: BTreeMap<PlanHost, usize> = BTreeMap::new();
    let mut number = |host: PlanHost| {
        let next = numbers.len();
        *numbers.entry(host).or_insert(next)
    };
    let mut ends = Vec::with_capacity(cells.len());
    for PlanCell { planned: cell, spec } in cells {
        let named = |host: &Option<String>| host.clone().map(PlanHost::Remote);
        let transport = engine::transport::transport(spec.transport.as_str())?;
        ends.push(if let (Some(program), Some(host)) = (spec.speak, &cell.to) {
            let program = PlanHost::Program { program, host: host.clone() };
            (number(PlanHost::LocalNear), Some(number(program)))
        } else if transport.capabilities().single_ended {
            // Measured on the named host.
            (number(named(&cell.from).or(named(&cell.to)).unwrap_or(PlanHost::LocalNear)), None)
        } else {
            let near = number(named(&cell.from).unwrap_or(PlanHost::LocalNear));
            (near, Some(number(named(&cell.to).unwrap_or(PlanHost::LocalFar))))
        });
    }
    let count = numbers.len();
    let mut things = BTreeMap::new();
    let mut slots: Vec<Slot> = Vec::new();
    for ((PlanCell { planned: cell, spec }, (near, far)), id) in cells.iter().zip(ends).zip(0..) {
        // A number that no host has stands for "no far host".
        let far = far.unwrap_or(count + near);
        let of = |cell: &PlannedCell| (cell.combination, cell.from.clone(), cell.to.clone());
        let one_curve = |slot: &&mut Slot| spec.is_point() && of(&cells[slot.cell as usize].planned) == of(cell);
        match slots.last_mut().filter(one_curve) {
            Some(slot) => slot.sizes += 1,
            None => {
                let (plot, combination, together) = (cell.plot, cell.combination, cell.together);
                let shared = shared_by(plan, cell, &mut things);
                slots.push(Slot { cell: id, sizes: 1, plot, combination, near, far, shared, together });
            }
        }
    }
    let mut hosts: Vec<(PlanHost, usize)> = numbers.into_iter().collect();
    hosts.sort_by_key(|(_, number)| *number);
    Ok((slots, hosts.into_iter().map(|(host, _)| host).collect()))
}

/// The numbers of what a cell's test shares with others beside its hosts; `things` has what is known so far.
fn shared_by(plan: &Plan, cell: &PlannedCell, things: &mut BTreeMap<[String; 2], usize>) -> Vec<usize> {
    let ends = [&cell.from, &cell.to].map(|host| host.as_deref().unwrap_or_default());
    let mut number = |thing: [String; 2]| {
        let next = things.len();
        *things.entry(thing).or_insert(next)
    };
    plan.shared(ends).into_iter().map(&mut number).collect()
}
