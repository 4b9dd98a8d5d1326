//! The definition of a lab of any shape: nodes and the links between them, as plain data. `layout` computes addresses
//! and routes; only [`Network`](crate::Network) builds anything.

mod adjust;
mod block;
mod layout;
mod map;
mod route;

pub use block::AddressBlock;
pub(crate) use layout::{Address, Layout, NodeLayout};

use crate::{DirectionSpec, LabError};

/// Nodes and links.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Topology {
    /// Its name; the start of the lab's name. Up to 32 lower-case letters, digits and hyphens.
    pub name: String,
    /// Its description, a sentence.
    pub about: Option<String>,
    /// Seed of the random choices of all emulated links.
    pub seed: u64,
    /// Hosts, routers and switches. A command without a host runs on the first one.
    pub nodes: Vec<Node>,
    /// The links between them.
    pub links: Vec<LabLink>,
    /// Settings of every host and router, as `net.ipv4.tcp_rmem` and its value.
    pub sysctls: Vec<(String, String)>,
}

/// A network namespace of the lab.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Its name: 1 to 15 lower-case letters, digits and hyphens, a letter first.
    pub name: String,
    /// Its role.
    pub kind: NodeKind,
}

/// The role of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeKind {
    /// Runs programs, and an agent.
    Host,
    /// Forwards packets between its links.
    Router,
    /// A bridge: its links are one network.
    Switch,
}

/// What joins two nodes.
#[derive(Debug, Clone, PartialEq)]
pub struct LabLink {
    /// Indexes of the two in [`Topology::nodes`].
    pub between: [usize; 2],
    /// MTU in bytes, 1280 to 65535.
    pub mtu: u32,
    /// The directions from the first to the second, and the reverse.
    pub directions: [DirectionSpec; 2],
    /// What carries its packets; `None` chooses by the properties of its directions.
    pub carrier: Option<Carrier>,
}

/// What carries the packets of a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Carrier {
    /// A veth pair of the kernel; with a rate, behind a token bucket (tc-tbf(8)) at either end.
    Veth,
    /// The emulator.
    Emulator,
}

impl LabLink {
    /// A veth pair without a limit.
    #[must_use]
    pub fn new(between: [usize; 2]) -> Self {
        Self { between, mtu: 1_500, directions: [DirectionSpec::default(), DirectionSpec::default()], carrier: None }
    }

    /// What carries its packets: the requested carrier, or the kernel if it supports everything requested.
    #[must_use]
    pub fn carrier(&self) -> Carrier {
        let kernel = self.directions.iter().all(is_plain);
        self.carrier.unwrap_or(if kernel { Carrier::Veth } else { Carrier::Emulator })
    }
}

impl Topology {
    /// Maximum nodes of a lab: each is a namespace and, if it is a host, two processes.
    pub const NODES: usize = 128;
    /// Longest name of a node.
    const NAME: usize = 15;

    /// Index of the node of that name.
    #[must_use]
    pub fn index_of(&self, name: &str) -> Option<usize> {
        self.nodes.iter().position(|node| node.name == name)
    }

    /// Name of a link, such as `a-b`.
    #[must_use]
    pub fn link_name(&self, link: &LabLink) -> String {
        link.between.map(|index| self.nodes[index].name.as_str()).join("-")
    }

    /// Refuses an invalid node name: it becomes part of a namespace's name, of a host name and of a variable's.
    ///
    /// # Errors
    /// Says which names are valid.
    pub fn check_name(name: &str) -> Result<(), LabError> {
        let letters = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        let first = name.starts_with(|c: char| c.is_ascii_lowercase());
        if first && name.len() <= Self::NAME && name.chars().all(letters) && !name.ends_with('-') && name != "localhost"
        {
            return Ok(());
        }
        let remedy = "use 1 to 15 lower-case letters, digits and hyphens, a letter first, such as geneva or h1";
        Err(LabError::Spec { what: format!("'{name}' is not a valid name"), remedy })
    }

    /// Refuses an invalid lab.
    ///
    /// # Errors
    /// Names the node or link and the remedy.
    pub fn check(&self) -> Result<(), LabError> {
        let refuse = |what: String, remedy| Err(LabError::Spec { what, remedy });
        crate::bounds::check_prefix(&self.name)?;
        if self.nodes.len() > Self::NODES {
            return refuse(format!("{} nodes", self.nodes.len()), "use at most 128");
        }
        if !self.nodes.iter().any(|node| node.kind == NodeKind::Host) {
            return refuse("the lab has no hosts".into(), "add a [[host]] with a name");
        }
        for (index, node) in self.nodes.iter().enumerate() {
            Self::check_name(&node.name)?;
            if self.index_of(&node.name) != Some(index) {
                return refuse(format!("two nodes are called '{}'", node.name), "give one of them another name");
            }
            if node.kind == NodeKind::Switch {
                self.check_switch(index)?;
            }
        }
        for link in &self.links {
            self.check_link(link)?;
        }
        if let Some((key, _)) = self.sysctls.iter().find(|(key, _)| !is_sysctl(key)) {
            return refuse(
                format!("'{key}' is not a network setting"),
                "use one that begins with net., such as net.ipv4.tcp_rmem",
            );
        }
        self.check_whole()
    }

    /// Refuses an invalid link.
    ///
    /// # Errors
    /// Names the link and the remedy.
    pub fn check_link(&self, link: &LabLink) -> Result<(), LabError> {
        let name = self.link_name(link);
        let refuse = |what: &str, remedy| Err(LabError::Spec { what: format!("link {name}: {what}"), remedy });
        if link.between[0] == link.between[1] {
            return refuse("both ends are the same node", "name two different nodes");
        }
        crate::bounds::check_mtu(link.mtu)?;
        link.directions.iter().try_for_each(|direction| direction.check(link.mtu))?;
        let switches = link.between.iter().filter(|index| self.nodes[**index].kind == NodeKind::Switch).count();
        if switches == 2 {
            return refuse("it joins two switches", "use one switch, or a router between them");
        }
        match link.carrier() {
            Carrier::Emulator if switches > 0 => refuse(
                "a link to a switch can only have a rate, a queue of 256 KiB or more, and an MTU",
                "use a router instead of the switch: its links can have delay, loss and all other impairments",
            ),
            Carrier::Veth if !link.directions.iter().all(is_plain) => refuse(
                "a veth pair can only have a rate, a queue of 256 KiB or more, and an MTU",
                "leave the carrier out, or use carrier = \"emulator\"",
            ),
            _ => Ok(()),
        }
    }

    /// All links of a switch have one MTU: a bridge does not fragment packets, it drops what is too long.
    fn check_switch(&self, index: usize) -> Result<(), LabError> {
        let mtus: Vec<u32> =
            self.links.iter().filter(|link| link.between.contains(&index)).map(|link| link.mtu).collect();
        if mtus.windows(2).all(|pair| pair[0] == pair[1]) {
            return Ok(());
        }
        let what = format!(
            "the links of switch '{}' have different MTUs, and a switch does not fragment packets",
            self.nodes[index].name
        );
        Err(LabError::Spec { what, remedy: "use one MTU, or a router instead of the switch" })
    }

    /// Every host can reach every other one.
    fn check_whole(&self) -> Result<(), LabError> {
        let first = self.nodes.iter().position(|node| node.kind == NodeKind::Host).unwrap_or_default();
        let steps = route::steps(self, first);
        let apart = self.nodes.iter().zip(&steps).find(|(node, step)| node.kind == NodeKind::Host && step.is_none());
        match apart {
            Some((node, _)) => Err(LabError::Spec {
                what: format!("no path leads from '{}' to '{}'", self.nodes[first].name, node.name),
                remedy: "add a [[link]]; only routers and switches forward packets, hosts do not",
            }),
            None => Ok(()),
        }
    }
}

/// The kernel's shortest queue, bytes: it takes and drops TSO packets of 64 KiB as one.
const KERNEL_QUEUE: u64 = 256 << 10;

/// Whether the kernel can carry it without the emulator: a rate with a drop-tail queue, or no limit at all. It has no
/// framing but its own.
fn is_plain(direction: &DirectionSpec) -> bool {
    let DirectionSpec { rate_bps, queue_bytes, .. } = *direction;
    let short = rate_bps.is_some() && queue_bytes < KERNEL_QUEUE;
    !short && *direction == DirectionSpec { rate_bps, queue_bytes, ..DirectionSpec::default() }
}

/// Whether a key can only lead to a file below /proc/sys/net.
fn is_sysctl(key: &str) -> bool {
    let letters = |c: char| c.is_ascii_alphanumeric() || "._-/".contains(c);
    key.starts_with("net.") && key.chars().all(letters) && key.split(['.', '/']).all(|part| !part.is_empty())
}

#[cfg(test)]
pub(crate) mod tests;
