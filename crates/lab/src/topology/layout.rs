//! Interfaces, addresses, routes and names of every node.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::block::{AddressBlock, Segment};
use super::route::{Step, steps};
use super::{NodeKind, Topology};
use crate::LabError;

/// The layout of a lab.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Layout {
    /// One per node, in the topology's order.
    pub(crate) nodes: Vec<NodeLayout>,
}

/// A node's configuration. Switches have interfaces without addresses, and nothing else.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct NodeLayout {
    /// In the order of the links.
    pub(crate) interfaces: Vec<Interface>,
    pub(crate) routes: Vec<Route>,
    /// The other nodes: their index and the address at which this node reaches them.
    pub(crate) names: Vec<(usize, Ipv4Addr, Ipv6Addr)>,
}

/// An end of a link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Interface {
    /// `eth0` and so on.
    pub(crate) name: String,
    /// The link's index.
    pub(crate) link: usize,
    /// Its network; `None` on a switch.
    pub(crate) address: Option<Address>,
}

/// The addresses of an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) segment: Segment,
    pub(crate) v4: Ipv4Addr,
    pub(crate) v6: Ipv6Addr,
}

/// A network that a router leads to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) to: Segment,
    pub(crate) via: (Ipv4Addr, Ipv6Addr),
    pub(crate) interface: String,
}

impl Layout {
    /// Gives every link its network and every node what it needs to reach all others.
    pub(crate) fn of(topology: &Topology, block: AddressBlock) -> Result<Self, LabError> {
        let segments = segments(topology, block)?;
        let mut nodes = vec![NodeLayout::default(); topology.nodes.len()];
        let mut members = vec![0; topology.nodes.len()];
        for (index, link) in topology.links.iter().enumerate() {
            for (end, node) in link.between.into_iter().enumerate() {
                let number = match switch_of(topology, index) {
                    Some(switch) if switch == node => None,
                    Some(switch) => {
                        members[switch] += 1;
                        Some(members[switch])
                    }
                    None => Some(end as u32 + 1),
                };
                let segment = segments[index];
                let address = number.map(|number| {
                    let (v4, v6) = segment.member(number);
                    Address { segment, v4, v6 }
                });
                let name = format!("eth{}", nodes[node].interfaces.len());
                nodes[node].interfaces.push(Interface { name, link: index, address });
            }
        }
        let mut layout = Self { nodes };
        for index in 0..topology.nodes.len() {
            if topology.nodes[index].kind != NodeKind::Switch {
                layout.lead(topology, index, &segments);
            }
        }
        Ok(layout)
    }

    /// Sets a node's routes.
    fn lead(&mut self, topology: &Topology, from: usize, segments: &[Segment]) {
        let steps = steps(topology, from);
        let others = || (0..topology.nodes.len()).filter(|index| *index != from);
        let mut names = Vec::new();
        for (other, step) in others().filter_map(|other| Some((other, steps[other]?))) {
            if let Some(address) = step.last.and_then(|link| self.address(other, segments[link])) {
                names.push((other, address.v4, address.v6));
            }
        }
        let mut routes: Vec<Route> = Vec::new();
        for segment in segments {
            if self.address(from, *segment).is_some() || routes.iter().any(|route| route.to == *segment) {
                continue;
            }
            // The nearest router that is a member forwards it.
            let nearest = others()
                .filter(|other| {
                    topology.nodes[*other].kind == NodeKind::Router && self.address(*other, *segment).is_some()
                })
                .filter_map(|router| steps[router])
                .min_by_key(|step| step.distance);
            routes.extend(nearest.and_then(|step| self.toward(from, step, *segment, segments)));
        }
        self.nodes[from].names = names;
        self.nodes[from].routes = routes;
    }

    /// The route that takes a step's first link.
    fn toward(&self, from: usize, step: Step, to: Segment, segments: &[Segment]) -> Option<Route> {
        let first = step.first?;
        let via = self.address(step.next, segments[first])?;
        let interface = self.nodes[from].interfaces.iter().find(|interface| interface.link == first)?;
        Some(Route { to, via: (via.v4, via.v6), interface: interface.name.clone() })
    }

    fn address(&self, node: usize, segment: Segment) -> Option<Address> {
        self.nodes[node].interfaces.iter().filter_map(|interface| interface.address).find(|own| own.segment == segment)
    }

    /// The interface of a node on a link.
    pub(crate) fn interface(&self, node: usize, link: usize) -> Option<&Interface> {
        self.nodes[node].interfaces.iter().find(|interface| interface.link == link)
    }
}

/// The switch that a link ends at.
fn switch_of(topology: &Topology, link: usize) -> Option<usize> {
    topology.links[link].between.into_iter().find(|index| topology.nodes[*index].kind == NodeKind::Switch)
}

/// The network of each link; the links of a switch share one.
fn segments(topology: &Topology, block: AddressBlock) -> Result<Vec<Segment>, LabError> {
    let is_switch = |index: &usize| topology.nodes[*index].kind == NodeKind::Switch;
    let switches: Vec<usize> = (0..topology.nodes.len()).filter(is_switch).collect();
    let mut next = switches.len() as u64 * u64::from(Segment::SWITCH_PAIRS);
    let mut segments = Vec::with_capacity(topology.links.len());
    for index in 0..topology.links.len() {
        let switch = switch_of(topology, index).and_then(|switch| switches.iter().position(|other| *other == switch));
        segments.push(match switch {
            Some(number) => Segment::of_switch(block, number as u16 * Segment::SWITCH_PAIRS),
            None => {
                next += 1;
                Segment::of_link(block, (next - 1) as u16)
            }
        });
    }
    if next > u64::from(AddressBlock::PAIRS) {
        let what = format!("{} switches and {} links", switches.len(), topology.links.len());
        return Err(LabError::Spec { what, remedy: "use at most 256 links, or 64 fewer for each switch" });
    }
    Ok(segments)
}
