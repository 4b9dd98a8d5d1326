//! What can be changed on a path, as data: a registry of dimensions, each with the levels that are worth a trial here.

mod buffers;
mod calls;
mod cores;
mod host;
mod sockets;

use core::net::{IpAddr, SocketAddr};
use std::collections::{BTreeMap, BTreeSet};

use model::{
    AdviceUntried, BoundKind, Direction, EndOptions, Goal, HostSettings, Interface, Inventory, LimiterKind, Outcome,
};
use model::{ReceiveBy, Role, SendBy, Setting, Spec};

/// Every dimension, in the order in which its changes are put together (a later one may refine an earlier one) and, where the
/// evidence says nothing else, tried.
const DIMENSIONS: &[Dimension] = &[
    buffers::WINDOW,
    sockets::CONGESTION_CONTROL,
    cores::SPIN,
    cores::BUSY_POLL,
    calls::ENGINE,
    calls::BLOCK,
    cores::FLOWS,
    cores::THREADS,
    buffers::SEND_BUFFER,
    buffers::RECEIVE_BUFFER,
    cores::PIN,
    sockets::NODELAY,
    host::SYSCTL_BUFFERS,
    host::SYSCTL_IDLE,
    host::SYSCTL_BUSY_READ,
    host::MTU,
    host::GSO,
    host::OFFLOAD_SEND,
    host::OFFLOAD_RECEIVE,
    host::COALESCING,
    host::RINGS,
    host::QDISC,
    host::TXQUEUELEN,
    host::GOVERNOR,
];

/// The classes of host settings that `--allow` knows.
pub const CLASSES: &[&str] =
    &["sysctl", "mtu", "gso", "offloads", "coalescing", "rings", "qdisc", "txqueuelen", "governor"];

/// Between what was not allowed and the flag that allows it.
pub(super) const ALLOW: &str = ": --allow ";

/// Something that can be changed.
struct Dimension {
    name: &'static str,
    /// The class of host settings that it belongs to; `None` for what a program does to its own sockets and threads.
    class: Option<&'static str>,
    goals: &'static [Goal],
    /// What it may lift: tried first where that is the limiter.
    eases: &'static [LimiterKind],
    /// Its levels on a path, the start's first; an error says why there is nothing to try.
    levels: fn(&Path<'_>) -> Result<Vec<Level>, String>,
}

/// Goals of bulk transfers.
const BULK: &[Goal] = &[Goal::Throughput, Goal::Cpu];
const ALL: &[Goal] = &[Goal::Throughput, Goal::Latency, Goal::Cpu];

/// What is known of a path before the search.
#[derive(Debug, Clone, Copy)]
pub struct Path<'a> {
    /// What is searched for.
    pub goal: Goal,
    /// How the start is measured.
    pub spec: &'a Spec,
    /// The first look: the start, measured a few times, with its ceiling.
    pub look: &'a Outcome,
    /// The near host.
    pub near: &'a Inventory,
    /// The far host.
    pub far: &'a Inventory,
    /// Ways to send of the transport.
    pub sends: &'a [SendBy],
    /// Its ways to receive.
    pub receives: &'a [ReceiveBy],
    /// The block was asked for and stays.
    pub fixed_block: bool,
    /// Classes of host settings that may be changed.
    pub allow: &'a BTreeSet<String>,
}

/// One change or several that belong together.
#[derive(Debug, Clone, PartialEq)]
pub struct Level {
    /// What it is, as a flag would say it.
    pub label: String,
    edits: Vec<Edit>,
}

/// A dimension with the levels to be tried; the first one is what the start has.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// Its name.
    pub name: &'static str,
    /// Its levels.
    pub levels: Vec<Level>,
    /// Its place in the registry, by which changes are put together.
    order: usize,
}

/// A change to a spec.
#[derive(Debug, Clone, PartialEq)]
enum Edit {
    SendBuffer(Role, Option<u64>),
    ReceiveBuffer(Role, Option<u64>),
    NoDelay(bool),
    CongestionControl(Role, String),
    Engine(model::Engine),
    Block(u64),
    Flows(u32),
    Threads(u32),
    Pin(Role, Vec<u32>),
    Spin,
    BusyPoll(u32),
    Setting(Role, Setting),
}

/// What may be tried on a path, in the order in which the evidence suggests it, and what may not, with the reason.
#[must_use]
pub fn candidates(path: &Path<'_>) -> (Vec<Candidate>, Vec<AdviceUntried>) {
    let mut found: Vec<((u32, bool), Candidate)> = Vec::new();
    let mut untried = Vec::new();
    for (order, dimension) in DIMENSIONS.iter().enumerate().filter(|(_, one)| one.goals.contains(&path.goal)) {
        let mut cannot = |why: String| untried.push(AdviceUntried { what: dimension.name.into(), why });
        if let Some(class) = dimension.class.filter(|class| !path.allow.contains(*class)) {
            cannot(format!("a host setting that was not allowed{ALLOW}{class}"));
            continue;
        }
        match (dimension.levels)(path) {
            Ok(levels) if levels.len() > 1 => {
                let rank = path.rank(dimension.eases);
                // What was allowed of the hosts' settings and eases the limit goes before what each program would have to do.
                let own = rank > 0 || dimension.class.is_none();
                found.push(((rank, own), Candidate { name: dimension.name, levels, order }));
            }
            Ok(_) => cannot("no other level differs here".into()),
            Err(why) => cannot(why),
        }
    }
    untried.extend(buffers::not_granted(path));
    found.sort_by_key(|(rank, candidate)| (*rank, candidate.order));
    (found.into_iter().map(|(_, candidate)| candidate).collect(), untried)
}

/// The spec of a combination, and what it changes, by dimension.
#[must_use]
pub fn spec_of(start: &Spec, candidates: &[Candidate], at: &[usize]) -> (Spec, BTreeMap<String, String>) {
    let mut chosen: Vec<(&Candidate, usize)> = candidates.iter().zip(at.iter().copied()).collect();
    chosen.sort_by_key(|(candidate, _)| candidate.order);
    let mut spec = start.clone();
    let mut levels = BTreeMap::new();
    for (candidate, level) in chosen.into_iter().filter(|(_, level)| *level != 0) {
        let level = &candidate.levels[level];
        level.edits.iter().for_each(|edit| edit.apply(&mut spec));
        levels.insert(candidate.name.to_owned(), level.label.clone());
    }
    (spec, levels)
}

impl Candidate {
    /// A dimension that changes nothing, for tests of what is said.
    #[cfg(test)]
    pub(super) fn of(name: &'static str, levels: Vec<Level>) -> Self {
        Self { name, levels, order: 0 }
    }
}

impl Level {
    fn new(label: impl Into<String>, edits: Vec<Edit>) -> Self {
        Self { label: label.into(), edits }
    }

    /// What the start has: it changes nothing.
    pub(super) fn start(label: impl Into<String>) -> Self {
        Self::new(label, Vec::new())
    }
}

impl Edit {
    fn apply(&self, spec: &mut Spec) {
        match self {
            Self::SendBuffer(role, bytes) => end(spec, *role).sndbuf = *bytes,
            Self::ReceiveBuffer(role, bytes) => end(spec, *role).rcvbuf = *bytes,
            Self::NoDelay(on) => (spec.near.nodelay, spec.far.nodelay) = (Some(*on), Some(*on)),
            Self::CongestionControl(role, name) => end(spec, *role).cc = Some(name.clone()),
            Self::Engine(engine) => spec.engine = *engine,
            Self::Block(bytes) => spec.block = *bytes,
            Self::Flows(flows) => spec.flows = *flows,
            Self::Threads(threads) => spec.threads = Some(*threads),
            Self::Pin(role, cores) => end(spec, *role).pin.clone_from(cores),
            Self::Spin => spec.strategy = model::Strategy::Spin,
            Self::BusyPoll(us) => (spec.near.busy_poll_us, spec.far.busy_poll_us) = (Some(*us), Some(*us)),
            Self::Setting(role, setting) => {
                let HostSettings { near, far } = &mut spec.settings;
                let list = if *role == Role::Active { near } else { far };
                list.retain(|other| other.key != setting.key);
                list.push(setting.clone());
            }
        }
    }
}

fn end(spec: &mut Spec, role: Role) -> &mut EndOptions {
    match role {
        Role::Active => &mut spec.near,
        Role::Passive => &mut spec.far,
    }
}

impl Path<'_> {
    fn host(&self, role: Role) -> &Inventory {
        if role == Role::Active { self.near } else { self.far }
    }

    /// The ends that send payload; of round trips both do.
    fn senders(&self) -> &'static [Role] {
        match self.spec.direction {
            Direction::Send if self.goal != Goal::Latency => &[Role::Active],
            Direction::Reverse if self.goal != Goal::Latency => &[Role::Passive],
            _ => &[Role::Active, Role::Passive],
        }
    }

    /// The ends that receive payload.
    fn receivers(&self) -> &'static [Role] {
        match self.senders() {
            [Role::Active] => &[Role::Passive],
            [Role::Passive] => &[Role::Active],
            both => both,
        }
    }

    /// Shortest round trip that the kernel saw, ns.
    fn rtt_ns(&self) -> Option<u64> {
        let ends = self.look.trials.iter().flat_map(|trial| [&trial.near, &trial.far]);
        ends.flat_map(|end| &end.flows).filter_map(|flow| flow.socket.min_rtt_ns).filter(|ns| *ns > 0).min()
    }

    /// Bytes that each flow had under way at the start: goodput over the round trip.
    fn under_way(&self) -> Option<f64> {
        let bytes = self.look.summary.goodput_bps? / 8.0 * self.rtt_ns()? as f64 / 1e9;
        Some(bytes / f64::from(self.spec.flows.max(1)))
    }

    /// The most that a flow can usefully have under way: twice what the line carries in a round trip, where the line is known.
    fn most_under_way(&self) -> Option<f64> {
        let ceiling = self.look.summary.ceiling.as_ref()?;
        let own = (ceiling.kind == BoundKind::Line).then_some(ceiling.bound_bps);
        let other = ceiling.others.iter().find(|bound| bound.kind == BoundKind::Line).map(|bound| bound.bps);
        Some(2.0 * own.or(other)? / 8.0 * self.rtt_ns()? as f64 / 1e9)
    }

    /// The interface that an end's data takes.
    fn interface(&self, role: Role) -> Option<&Interface> {
        let tally = |trial: &model::Trial| {
            let end = if role == Role::Active { &trial.near } else { &trial.far };
            end.flows.first().and_then(|flow| flow.socket.local.clone())
        };
        let local = self.look.trials.iter().find_map(tally)?;
        let address = local.parse::<SocketAddr>().ok()?.ip().to_canonical();
        let has = |interface: &&Interface| {
            interface
                .addresses
                .iter()
                .any(|own| own.split('/').next().and_then(|ip| ip.parse::<IpAddr>().ok()) == Some(address))
        };
        self.host(role).interfaces.iter().find(has)
    }

    /// Both ends are one machine.
    fn one_host(&self) -> bool {
        self.near.boot_id.is_some() && self.near.boot_id == self.far.boot_id
    }

    /// Whether the transport's connections are TCP sockets.
    fn over_tcp(&self) -> bool {
        ["tcp", "tls", "mptcp"].iter().any(|name| self.spec.transport == **name)
    }

    /// How soon a dimension is tried: 0 where it eases what limited the first look most, and of windows where the hosts' own limits are
    /// near, whatever else a short look at a busy machine shows.
    fn rank(&self, eases: &[LimiterKind]) -> u32 {
        if eases.contains(&LimiterKind::SendBuffer) && buffers::near_limit(self) {
            return 0;
        }
        if let Some(why) = &self.look.summary.why {
            return match () {
                () if eases.contains(&why.limiter) => 0,
                () if why.also.iter().any(|kind| eases.contains(kind)) => 1,
                () => 2,
            };
        }
        let guess = self.guessed();
        if guess.is_some_and(|kind| eases.contains(&kind)) { 0 } else { 2 }
    }

    /// Without a verdict on the limiter: a ceiling that the first look came near.
    fn guessed(&self) -> Option<LimiterKind> {
        /// A window is not full all the time.
        const NEAR: f64 = 0.5;
        let ceiling = self.look.summary.ceiling.as_ref()?;
        let near = self.look.summary.goodput_bps? >= NEAR * ceiling.bound_bps;
        match ceiling.kind {
            BoundKind::Window if near => Some(LimiterKind::ReceiveWindow),
            BoundKind::SendBuffer if near => Some(LimiterKind::SendBuffer),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
