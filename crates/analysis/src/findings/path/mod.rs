//! Findings on the hosts and the path between them that affect every measurement.

mod nic;
mod route;
mod steal;

use model::{Finding, FindingKind, Interface, Inventory, Outcome, Path, RunHeader};
use text::Text;

pub use steal::Stolen;

/// The findings on hosts and path: different MTUs, a path MTU smaller than the interface's, ping and data on different paths, half
/// duplex, a slot narrower than its NIC, interrupts on another NUMA node, other traffic, offloads at one end only, steal time.
/// `stolen` is the steal time of the near and the far host during the run. Facts that were not recorded give no finding.
#[must_use]
pub fn of_path(header: &RunHeader, outcomes: &[Outcome], stolen: &[Stolen; 2]) -> Vec<Finding> {
    let near = End { side: "near", host: &header.near, path: header.path_outbound.as_ref() };
    let far = End { side: "far", host: &header.far, path: header.path_return.as_ref() };
    let mut found = Vec::new();
    found.extend(route::unequal_mtus(&near, &far, outcomes));
    for end in [&near, &far] {
        found.extend(route::narrow_path(end));
    }
    found.extend(route::two_paths(header, outcomes));
    found.extend(nic::unequal_offloads(&near, &far));
    for end in [&near, &far] {
        found.extend(nic::half_duplex(end));
        found.extend(nic::narrow_slots(end));
        found.extend(nic::far_interrupts(end));
        found.extend(nic::other_traffic(end));
    }
    for (end, stolen) in [&near, &far].into_iter().zip(stolen) {
        found.extend(steal::steal(end.side, stolen));
    }
    found.into_iter().map(finding).collect()
}

fn finding(statement: Text) -> Finding {
    Finding { kind: FindingKind::Path, statement, estimate: None, block: None, cells: Vec::new(), comparison: None }
}

/// One end, and its view of the path to the other.
struct End<'a> {
    side: &'static str,
    host: &'a Inventory,
    path: Option<&'a Path>,
}

impl<'a> End<'a> {
    fn named(&self, name: &str) -> Option<&'a Interface> {
        self.host.interfaces.iter().find(|interface| interface.name == name)
    }

    /// The outgoing interface towards the other end.
    fn interface(&self) -> Option<&'a Interface> {
        self.named(self.path?.route.as_ref()?.interface.as_deref()?)
    }

    /// That interface and all its lower devices.
    fn devices(&self) -> Vec<&'a Interface> {
        let mut all: Vec<&Interface> = self.interface().into_iter().collect();
        let mut next = 0;
        while let Some(interface) = all.get(next) {
            let lower = interface.device.as_ref().map_or(&[][..], |device| &device.lower);
            for below in lower.iter().filter_map(|name| self.named(name)) {
                if !all.iter().any(|seen| seen.name == below.name) {
                    all.push(below);
                }
            }
            next += 1;
        }
        all
    }
}

#[cfg(test)]
mod tests;
