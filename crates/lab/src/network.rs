//! Labs of any shape: a [`Topology`] built from namespaces, veth pairs, bridges and emulated paths.

use std::ffi::OsStr;
use std::net::IpAddr;
use std::path::PathBuf;
use std::process::Command;
use std::sync::{Mutex, PoisonError};

use model::{EmulatedDirection, LabReport, Setting, ShapedDirection, SplitMix64};

use crate::LabError;
use crate::available::privileged_ip;
use crate::crossover::taken;
use crate::emulator::{Emulator, PathCounts};
use crate::ip::Ip;
use crate::journal::{Built, Journal, Record};
use crate::names::{self, NetworkPeer};
use crate::plug::{self, Plug};
use crate::scope::{Scope, reap_stale};
use crate::shaped::{self, BucketCounts};
use crate::subnets::random;
use crate::topology::{Address, AddressBlock, Carrier, LabLink, Layout, NodeKind, NodeLayout, Topology};

/// The bridge of a switch.
const BRIDGE: &str = "br0";
/// Writes settings, given as pairs of a file below /proc/sys and a value.
const WRITE: &str = r#"while [ $# -gt 1 ]; do printf '%s\n' "$2" > "/proc/sys/$1"; shift 2; done"#;

/// A lab that is up. Removed when it is dropped; processes that still run on its hosts are killed.
#[derive(Debug)]
pub struct Network {
    name: String,
    topology: Topology,
    hosts: Vec<NetworkHost>,
    /// Names of both ends' interfaces, by link index.
    interfaces: Vec<[String; 2]>,
    /// By link index. Before the namespaces, because their devices keep them alive.
    emulators: Vec<(usize, Emulator)>,
    /// The links as they are now, and how often they were changed.
    now: Mutex<(Vec<LabLink>, u64)>,
    journal: Journal,
    scope: Scope,
}

/// The counters of a lab's links.
#[derive(Debug, Clone, Default)]
pub struct NetworkCounts {
    /// In the order of the emulated links.
    emulated: Vec<[PathCounts; 2]>,
    /// In the same order, packets that the sending nodes' devices had no room for.
    devices: Vec<[u64; 2]>,
    /// By link index and sending end.
    shaped: Vec<(usize, usize, BucketCounts)>,
}

/// A host of it.
#[derive(Debug, Clone)]
pub struct NetworkHost {
    /// Its name in the topology.
    pub name: String,
    /// Network namespace, as `ip netns` knows it.
    pub namespace: String,
    /// Its own addresses, of all its links.
    pub addresses: Vec<IpAddr>,
    /// Its own name first, then the other nodes.
    pub peers: Vec<NetworkPeer>,
    ip: Ip,
}

impl Network {
    /// Builds `topology`, with all addresses usable when this returns. `stays` is for lists of labs: whether this one
    /// outlives the command that made it. First removes what dead owners left.
    ///
    /// # Errors
    /// For an invalid topology, without the means that [`available`](crate::available) checks, if the journal or the
    /// hosts' files cannot be written, or if a command fails. Nothing is left then.
    pub fn make(topology: &Topology, name: Option<&str>, stays: bool) -> Result<Self, LabError> {
        topology.check()?;
        let ip = privileged_ip()?;
        let _ = reap_stale(); // another lab's remains are no reason to refuse this one
        let journal = Journal::open()?;
        let block = AddressBlock::choose(&taken(&ip, &journal)?)?;
        let layout = Layout::of(topology, block)?;
        let name = match name {
            Some(name) => chosen(name, &journal)?,
            None => format!("{}-{:08x}", topology.name, random()? as u32),
        };
        let namespace = |index: usize| format!("{name}-{}", topology.nodes[index].name);
        let of_kind = |kind| (0..topology.nodes.len()).filter(move |index| topology.nodes[*index].kind == kind);
        let hosts = of_kind(NodeKind::Host);
        let hosts: Vec<_> = hosts.map(|index| host(topology, &layout, index, namespace(index), &ip)).collect();
        let record = Record {
            namespaces: (0..topology.nodes.len()).map(namespace).collect(),
            block: Some(block),
            built: Some(Built {
                topology: topology.name.clone(),
                hosts: hosts.iter().map(|host| host.name.clone()).collect(),
                stays,
            }),
            ..Record::of(name.clone())
        };
        let scope = Scope::open(ip, &journal, record)?;
        let interface =
            |link: usize, node| layout.interface(node, link).map(|end| end.name.clone()).unwrap_or_default();
        let links = topology.links.iter().enumerate();
        let interfaces = links.map(|(index, link)| link.between.map(|node| interface(index, node))).collect();
        let now = Mutex::new((topology.links.clone(), 0));
        let topology = topology.clone();
        let mut network = Self { topology, hosts, interfaces, emulators: Vec::new(), now, journal, scope, name };
        network.build(&layout)?;
        Ok(network)
    }

    /// Name of the lab, the start of its namespaces' names.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What it was made from.
    #[must_use]
    pub fn topology(&self) -> &Topology {
        &self.topology
    }

    /// Its hosts, in the topology's order.
    #[must_use]
    pub fn hosts(&self) -> &[NetworkHost] {
        &self.hosts
    }

    /// The host of that name.
    ///
    /// # Errors
    /// For any other name.
    pub fn host(&self, name: &str) -> Result<&NetworkHost, LabError> {
        self.hosts.iter().find(|host| host.name == name).ok_or_else(|| no_host(name, &self.hosts))
    }

    /// A file that is removed with the lab: `token` for the secret of its agents, `agents` for their keys, `sock` for its
    /// socket.
    #[must_use]
    pub fn file(&self, end: &str) -> PathBuf {
        self.journal.beside(&self.name, end)
    }

    /// The current counters of each link, for [`Self::report`].
    #[must_use]
    pub fn counts(&self) -> NetworkCounts {
        let emulated = self.emulators.iter().map(|(_, emulator)| emulator.counts()).collect();
        let device = |link: usize, end: usize| {
            let namespace = self.namespace(self.topology.links[link].between[end]);
            Plug { namespace: &namespace, interface: &self.interfaces[link][end] }.dropped().unwrap_or_default()
        };
        let devices = self.emulators.iter().map(|(link, _)| [device(*link, 0), device(*link, 1)]).collect();
        let ends = (0..self.topology.links.len()).flat_map(|link| [(link, 0), (link, 1)]);
        let shaped = ends.filter_map(|(link, end)| Some((link, end, self.bucket(link, end)?))).collect();
        NetworkCounts { emulated, devices, shaped }
    }

    /// The links' activity between two readings of [`Self::counts`]; the default as the earlier one means since they
    /// were made.
    #[must_use]
    pub fn report(&self, now: &NetworkCounts, earlier: &NetworkCounts) -> LabReport {
        let mut directions = Vec::new();
        let devices = &now.devices;
        for (at, ((index, emulator), now)) in self.emulators.iter().zip(&now.emulated).enumerate() {
            for (direction, now) in now.iter().enumerate() {
                let counts =
                    earlier.emulated.get(at).map_or_else(|| now.clone(), |earlier| now.since(&earlier[direction]));
                let [from, to] = self.ends(*index, direction);
                let mut reported =
                    EmulatedDirection { from, to, realtime: emulator.realtime(), ..direction_report(&counts) };
                let device = devices.get(at).map_or(0, |now| now[direction]);
                let before = earlier.devices.get(at).map_or(0, |earlier| earlier[direction]);
                if device > before {
                    reported.dropped.insert("device".into(), device - before);
                }
                directions.push(reported);
            }
        }
        let shaped = now.shaped.iter().map(|(link, end, now)| {
            let before = earlier.shaped.iter().find(|(other, direction, _)| (other, direction) == (link, end));
            let counts = before.map_or(*now, |(.., before)| now.since(before));
            let [from, to] = self.ends(*link, *end);
            ShapedDirection { from, to, sent: counts.sent.into(), dropped: counts.dropped.into() }
        });
        LabReport { lab: self.name.clone(), topology: self.topology.name.clone(), directions, shaped: shaped.collect() }
    }

    /// Gives the links the properties of the topology with these changes ([`Topology::adjusted`]). Emulated links get theirs as
    /// soon as they are empty, see [`alters`](Self::alters). Random choices are other ones after each change.
    ///
    /// # Errors
    /// A wrong setting, a link that the kernel carries, or an interface that refuses its MTU.
    pub fn set_links(&self, settings: &[Setting]) -> Result<(), LabError> {
        let adjusted = self.topology.adjusted(settings)?;
        let mut now = self.now.lock().unwrap_or_else(PoisonError::into_inner);
        let (links, changes) = &mut *now;
        for (index, (link, next)) in links.iter_mut().zip(adjusted.links).enumerate() {
            let emulator = self.emulators.iter().find(|(emulated, _)| *emulated == index);
            let differs = next.directions != link.directions;
            if differs && emulator.is_none() {
                return Err(LabError::Fixed { link: self.topology.link_name(&next) });
            }
            if next.mtu != link.mtu {
                self.set_mtu(index, &next)?;
            }
            if let Some((_, emulator)) = emulator.filter(|_| differs || next.mtu != link.mtu) {
                *changes += 1;
                let seed = self.seed(index).wrapping_add(*changes);
                emulator.alter(&next.directions, next.mtu, seed);
            }
            *link = next;
        }
        Ok(())
    }

    /// Whether a link has not got its properties of the last [`set_links`](Self::set_links) yet.
    #[must_use]
    pub fn alters(&self) -> bool {
        self.emulators.iter().any(|(_, emulator)| emulator.alters())
    }

    fn set_mtu(&self, index: usize, link: &LabLink) -> Result<(), LabError> {
        let mtu = link.mtu.to_string();
        let ends = link.between.iter().zip(&self.interfaces[index]).zip(&link.directions);
        for ((node, interface), direction) in ends {
            let namespace = self.namespace(*node);
            let plug = Plug { namespace: &namespace, interface };
            if link.carrier() == Carrier::Veth {
                shaped::shape(&self.scope, &plug, direction, link.mtu)?;
            }
            plug.ip(&self.scope, &["link", "set", "dev", plug.interface, "mtu", &mtu])?;
        }
        Ok(())
    }

    /// Seed of a link's random choices: each link makes its own, the same ones each time.
    fn seed(&self, link: usize) -> u64 {
        self.topology.seed.wrapping_add((link as u64).wrapping_mul(SplitMix64::STEP))
    }

    /// The nodes at a link's ends, first the one that sends in this direction.
    fn ends(&self, link: usize, direction: usize) -> [String; 2] {
        let between = self.topology.links[link].between;
        [between[direction], between[1 - direction]].map(|node| self.topology.nodes[node].name.clone())
    }

    /// The counters of the bucket at an end of a link, if there is one.
    fn bucket(&self, link: usize, end: usize) -> Option<BucketCounts> {
        let definition = &self.topology.links[link];
        let shaped = definition.carrier() == Carrier::Veth && definition.directions[end].rate_bps.is_some();
        let namespace = shaped.then(|| self.namespace(definition.between[end]))?;
        shaped::counts(&Plug { namespace: &namespace, interface: &self.interfaces[link][end] })
    }

    /// Why an emulated link has stopped carrying packets, with its name; `None` while all work.
    #[must_use]
    pub fn failure(&self) -> Option<(String, String)> {
        let failed = |(link, emulator): &(usize, Emulator)| Some((*link, emulator.failure()?.to_owned()));
        let (link, why) = self.emulators.iter().find_map(failed)?;
        Some((self.topology.link_name(&self.topology.links[link]), why))
    }

    /// Removes the lab, as dropping it does, and reports whether everything was removed.
    ///
    /// # Errors
    /// [`LabError::LeftBehind`] names what could not be removed.
    pub fn close(self) -> Result<(), LabError> {
        drop(self.emulators);
        self.scope.close()
    }

    fn namespace(&self, index: usize) -> String {
        format!("{}-{}", self.name, self.topology.nodes[index].name)
    }

    fn build(&mut self, layout: &Layout) -> Result<(), LabError> {
        for index in 0..self.topology.nodes.len() {
            let namespace = self.namespace(index);
            self.scope.run(&["netns", "add", &namespace])?;
            self.prepare(index, &namespace)?;
        }
        for index in 0..self.topology.links.len() {
            self.join(index)?;
        }
        for (index, node) in layout.nodes.iter().enumerate() {
            self.configure(index, node)?;
        }
        for (index, node) in layout.nodes.iter().enumerate() {
            self.route(index, node)?;
        }
        // The times of a link's changes count from when the lab can be used.
        self.emulators.iter().for_each(|(_, emulator)| emulator.restart());
        let peers = self.hosts.iter().map(|host| (host.namespace.as_str(), host.peers.as_slice()));
        names::write(peers)
    }

    /// What a node needs before it has links.
    fn prepare(&self, index: usize, namespace: &str) -> Result<(), LabError> {
        let kind = self.topology.nodes[index].kind;
        if kind == NodeKind::Switch {
            let bridge = ["-n", namespace, "link", "add", BRIDGE, "type", "bridge", "mcast_snooping", "0"];
            self.scope.run(&bridge)?;
            return self.scope.run(&["-n", namespace, "link", "set", "dev", BRIDGE, "up"]).map(drop);
        }
        plug::prepare(&self.scope, namespace)?;
        // A new namespace inherits the machine's reverse-path filter, which need not fit the lab.
        let mut settings = vec![("net.ipv4.conf.all.rp_filter", "0"), ("net.ipv4.conf.default.rp_filter", "0")];
        if kind == NodeKind::Router {
            settings.extend([("net.ipv4.ip_forward", "1"), ("net.ipv6.conf.all.forwarding", "1")]);
        }
        settings.extend(self.topology.sysctls.iter().map(|(key, value)| (key.as_str(), value.as_str())));
        let mut command: Vec<String> = ["netns", "exec", namespace, "sh", "-ec", WRITE, "sh"].map(String::from).into();
        for (key, value) in settings {
            let path = if key.contains('/') { key.to_owned() } else { key.replace('.', "/") };
            command.extend([path, value.to_owned()]);
        }
        let command: Vec<&str> = command.iter().map(String::as_str).collect();
        self.scope.run(&command).map(drop)
    }

    fn join(&mut self, index: usize) -> Result<(), LabError> {
        let link = &self.topology.links[index];
        let namespaces = link.between.map(|node| self.namespace(node));
        let interfaces = self.interfaces[index].clone();
        let plug = |end: usize| Plug { namespace: &namespaces[end], interface: &interfaces[end] };
        let plugs = [plug(0), plug(1)];
        match link.carrier() {
            Carrier::Veth => {
                plug::join(&self.scope, plugs, link.mtu)?;
                for (plug, direction) in plugs.iter().zip(&link.directions) {
                    shaped::shape(&self.scope, plug, direction, link.mtu)?;
                }
            }
            Carrier::Emulator => {
                let seed = self.seed(index);
                let emulator =
                    Emulator::start(namespaces.clone(), interfaces.clone(), &link.directions, link.mtu, seed);
                self.emulators.push((index, emulator.map_err(|source| LabError::Emulator { source })?));
                plugs.iter().try_for_each(|plug| plug.make_room(&self.scope, link.mtu))?;
            }
        }
        Ok(())
    }

    /// Gives a node's interfaces their addresses, and a switch's ports their bridge.
    fn configure(&self, index: usize, node: &NodeLayout) -> Result<(), LabError> {
        let namespace = self.namespace(index);
        for end in &node.interfaces {
            let plug = Plug { namespace: &namespace, interface: &end.name };
            match end.address {
                Some(Address { segment, v4, v6 }) => plug.address(&self.scope, (v4, segment.v4_prefix), v6)?,
                None => {
                    let port = ["link", "set", "dev", plug.interface, "master", BRIDGE, "up"];
                    plug.ip(&self.scope, &port)?;
                }
            }
        }
        Ok(())
    }

    /// Waits for a node's addresses and adds its routes to all others.
    fn route(&self, index: usize, node: &NodeLayout) -> Result<(), LabError> {
        let namespace = self.namespace(index);
        for end in &node.interfaces {
            let Some(address) = end.address else { continue };
            let state = match self.topology.links[end.link].carrier() {
                Carrier::Veth => "UP",
                Carrier::Emulator => "UNKNOWN",
            };
            Plug { namespace: &namespace, interface: &end.name }.wait_until_ready(&self.scope, address.v6, state)?;
        }
        for route in &node.routes {
            let plug = Plug { namespace: &namespace, interface: &route.interface };
            let v4 = (format!("{}/{}", route.to.v4, route.to.v4_prefix), route.via.0.to_string());
            let v6 = (format!("{}/{}", route.to.v6, crate::Subnets::V6_PREFIX), route.via.1.to_string());
            for (version, (to, via)) in [("-4", v4), ("-6", v6)] {
                plug.ip(&self.scope, &[version, "route", "add", &to, "via", &via, "dev", plug.interface])?;
            }
        }
        Ok(())
    }
}

impl NetworkHost {
    /// A command that will run `program` on this host: in its network namespace, with a /sys that shows it and an
    /// /etc/hosts that names the lab's nodes. Other files, processes and the user are those of the machine. The
    /// child's process number is the program's own.
    #[must_use]
    pub fn command(&self, program: impl AsRef<OsStr>) -> Command {
        self.ip.exec(&self.namespace, program.as_ref())
    }
}

fn host(topology: &Topology, layout: &Layout, index: usize, namespace: String, ip: &Ip) -> NetworkHost {
    let name = |index: usize| topology.nodes[index].name.clone();
    let node = &layout.nodes[index];
    let own = || node.interfaces.iter().filter_map(|interface| interface.address);
    let addresses = own().flat_map(|Address { v4, v6, .. }| [IpAddr::V4(v4), IpAddr::V6(v6)]).collect();
    let first = own().next().map(|Address { v4, v6, .. }| NetworkPeer { name: name(index), v4, v6 });
    let others = node.names.iter().map(|(other, v4, v6)| NetworkPeer { name: name(*other), v4: *v4, v6: *v6 });
    let peers = first.into_iter().chain(others).collect();
    NetworkHost { name: name(index), namespace, addresses, peers, ip: ip.clone() }
}

/// The report of a direction's counters.
fn direction_report(counts: &PathCounts) -> EmulatedDirection {
    let drops = [
        ("mtu", counts.dropped_mtu),
        ("queue", counts.dropped_queue),
        ("aqm", counts.dropped_aqm),
        ("burst-loss", counts.dropped_burst),
        ("loss", counts.dropped_loss),
        ("ring", counts.dropped_ring),
        ("refused", counts.refused),
    ];
    let dropped = drops.into_iter().filter(|(_, segments)| *segments > 0);
    EmulatedDirection {
        arrived: counts.arrived,
        delivered: counts.delivered,
        dropped: dropped.map(|(index, segments)| (index.to_owned(), segments)).collect(),
        marked: counts.marked,
        corrupted: counts.corrupted,
        duplicated: counts.duplicated,
        reordered: counts.reordered,
        late_packets: counts.late.count(),
        late_p50_ns: counts.late.quantile_ns(0.5),
        late_p99_ns: counts.late.quantile_ns(0.99),
        late_max_ns: counts.late.max_ns(),
        ..EmulatedDirection::default()
    }
}

fn no_host(name: &str, hosts: &[NetworkHost]) -> LabError {
    let hosts: Vec<&str> = hosts.iter().map(|host| host.name.as_str()).collect();
    LabError::NoHost { name: name.into(), hosts: hosts.join(", ") }
}

/// Checks a name that the user chose for a lab.
fn chosen(name: &str, journal: &Journal) -> Result<String, LabError> {
    crate::bounds::check_prefix(name)?;
    match journal.record(name)? {
        Some(_) => Err(LabError::Exists { name: name.into() }),
        None => Ok(name.into()),
    }
}
