//! The dimensions that can be changed, as data: a registry, each with the levels to try on a given path.

mod buffers;
mod calls;
mod cores;
mod host;
mod sockets;
mod untried;

use core::net::{IpAddr, SocketAddr};
use std::collections::{BTreeMap, BTreeSet};

use model::{
    AdviceUntried, BoundKind, ByteSize, Direction, EndOptions, Goal, HostSettings, Interface, Inventory, LimiterKind,
    Outcome, ReceiveBy, Role, SendBy, Setting, Spec,
};

pub(super) use untried::Untried;

use crate::in_force::in_force;

/// Every dimension, in the order in which changes are combined (a later one may refine an earlier one) and, without other evidence,
/// tried.
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
    host::SYSCTL_SCALING,
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

/// The classes of host settings for `--allow`.
pub const CLASSES: &[&str] =
    &["sysctl", "mtu", "gso", "offloads", "coalescing", "rings", "qdisc", "txqueuelen", "governor"];

/// A dimension that can be changed.
struct Dimension {
    name: &'static str,
    /// Its class of host settings; `None` for options of a program's own sockets and threads.
    class: Option<&'static str>,
    goals: &'static [Goal],
    /// The limiters that it may relieve: it is tried first if one of these limits.
    eases: &'static [LimiterKind],
    /// Its levels on a path, the start's first; an error says why there are none to try.
    levels: fn(&SearchContext<'_>) -> Result<Vec<Level>, Untried>,
}

/// Goals of bulk transfers.
const BULK: &[Goal] = &[Goal::Throughput, Goal::Cpu];
const ALL: &[Goal] = &[Goal::Throughput, Goal::Latency, Goal::Cpu];

/// The facts known before the search.
#[derive(Debug, Clone, Copy)]
pub struct SearchContext<'a> {
    /// The goal of the search.
    pub goal: Goal,
    /// The spec of the start.
    pub spec: &'a Spec,
    /// The outcome of the pilot trials of the start, with its ceiling.
    pub pilot: &'a Outcome,
    /// The near host.
    pub near: &'a Inventory,
    /// The far host.
    pub far: &'a Inventory,
    /// Send methods of the transport.
    pub sends: &'a [SendBy],
    /// Its receive methods.
    pub receives: &'a [ReceiveBy],
    /// The block size was requested and is not changed.
    pub fixed_block: bool,
    /// Classes of host settings that may be changed.
    pub allow: &'a BTreeSet<String>,
}

/// A level: one or several changes that belong together.
#[derive(Debug, Clone, PartialEq)]
pub struct Level {
    /// Its name, as the value of a flag.
    pub label: String,
    edits: Vec<Edit>,
}

/// A dimension with the levels to try; the first one is the start's.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// Its name.
    pub name: &'static str,
    /// Its levels.
    pub levels: Vec<Level>,
    /// Its index in the registry, by which changes are combined.
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

/// The dimensions to try on a path, in the order suggested by the evidence, and those not to try, with the reason.
#[must_use]
pub fn candidates(path: &SearchContext<'_>) -> (Vec<Candidate>, Vec<AdviceUntried>) {
    let [near, far] = in_force(path.pilot, &[], [path.near, path.far]);
    let path = &SearchContext { near: &near, far: &far, ..*path };
    let mut found: Vec<((u32, bool), Candidate)> = Vec::new();
    let mut untried = Vec::new();
    for (order, dimension) in DIMENSIONS.iter().enumerate().filter(|(_, one)| one.goals.contains(&path.goal)) {
        let mut cannot = |why: Untried| untried.push(why.of(dimension.name));
        if let Some(class) = dimension.class.filter(|class| !path.allow.contains(*class)) {
            cannot(Untried::NotAllowed { class });
            continue;
        }
        match (dimension.levels)(path) {
            Ok(levels) if levels.len() > 1 => {
                let rank = path.rank(dimension.eases);
                // Allowed host settings that relieve the limiter come before changes of programs.
                let own = rank > 0 || dimension.class.is_none();
                found.push(((rank, own), Candidate { name: dimension.name, levels, order }));
            }
            Ok(_) => cannot(Untried::OneLevel),
            Err(why) => cannot(why),
        }
    }
    untried.extend(buffers::not_granted(path));
    found.sort_by_key(|(rank, candidate)| (*rank, candidate.order));
    (found.into_iter().map(|(_, candidate)| candidate).collect(), untried)
}

/// The spec of a combination, and its changes by dimension.
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
    /// A dimension without changes, for tests.
    #[cfg(test)]
    pub(super) fn of(name: &'static str, levels: Vec<Level>) -> Self {
        Self { name, levels, order: 0 }
    }
}

impl Level {
    fn new(label: impl Into<String>, edits: Vec<Edit>) -> Self {
        Self { label: label.into(), edits }
    }

    /// The start's level, without changes.
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
                let HostSettings { near, far, .. } = &mut spec.settings;
                let list = if *role == Role::Active { near } else { far };
                list.retain(|other| other.key != setting.key);
                list.push(setting.clone());
            }
        }
    }
}

/// A size as the value of a flag.
fn size(bytes: u64) -> String {
    ByteSize(bytes).to_string().replace(' ', "")
}

fn end(spec: &mut Spec, role: Role) -> &mut EndOptions {
    match role {
        Role::Active => &mut spec.near,
        Role::Passive => &mut spec.far,
    }
}

impl SearchContext<'_> {
    fn host(&self, role: Role) -> &Inventory {
        if role == Role::Active { self.near } else { self.far }
    }

    /// The ends that send payload; with round trips both do.
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

    /// Minimum RTT reported by the kernel, ns.
    fn rtt_ns(&self) -> Option<u64> {
        let ends = self.pilot.trials.iter().flat_map(|trial| [&trial.near, &trial.far]);
        ends.flat_map(|end| &end.flows).filter_map(|flow| flow.socket.min_rtt_ns).filter(|ns| *ns > 0).min()
    }

    /// Bytes in flight per flow at the start: goodput times RTT.
    fn in_flight(&self) -> Option<f64> {
        let bytes = self.pilot.summary.goodput_bps? / 8.0 * self.rtt_ns()? as f64 / 1e9;
        Some(bytes / f64::from(self.spec.flows.max(1)))
    }

    /// Largest useful number of bytes in flight: twice what the line carries per RTT, if the line is known.
    fn max_in_flight(&self) -> Option<f64> {
        let ceiling = self.pilot.summary.ceiling.as_ref()?;
        let own = (ceiling.kind == BoundKind::Line).then_some(ceiling.bound_bps);
        let other = ceiling.others.iter().find(|bound| bound.kind == BoundKind::Line).map(|bound| bound.bps);
        Some(2.0 * own.or(other)? / 8.0 * self.rtt_ns()? as f64 / 1e9)
    }

    /// The interface of an end's data.
    fn interface(&self, role: Role) -> Option<&Interface> {
        let tally = |trial: &model::Trial| {
            let end = if role == Role::Active { &trial.near } else { &trial.far };
            end.flows.first().and_then(|flow| flow.socket.local.clone())
        };
        let local = self.pilot.trials.iter().find_map(tally)?;
        let address = local.parse::<SocketAddr>().ok()?.ip().to_canonical();
        let has = |interface: &&Interface| {
            interface
                .addresses
                .iter()
                .any(|own| own.split('/').next().and_then(|ip| ip.parse::<IpAddr>().ok()) == Some(address))
        };
        self.host(role).interfaces.iter().find(has)
    }

    /// Both ends are on one host.
    fn one_host(&self) -> bool {
        self.near.boot_id.is_some() && self.near.boot_id == self.far.boot_id
    }

    /// The rank of a dimension: 0 if it relieves the limiter of the pilot trials, or for windows if the hosts' limits are near,
    /// whatever else the short pilot trials show.
    fn rank(&self, eases: &[LimiterKind]) -> u32 {
        if eases.contains(&LimiterKind::SendBuffer) && buffers::near_limit(self) {
            return 0;
        }
        let ranks = self.pilot.summary.limits().map(|(_, why)| match () {
            () if eases.contains(&why.limiter) => 0,
            () if why.also.iter().any(|kind| eases.contains(kind)) => 1,
            () => 2,
        });
        if let Some(first) = ranks.min() {
            return first;
        }
        let guess = self.guessed();
        if guess.is_some_and(|kind| eases.contains(&kind)) { 0 } else { 2 }
    }

    /// Without a known limiter: a ceiling that the pilot trials came close to.
    fn guessed(&self) -> Option<LimiterKind> {
        /// Share of the ceiling that counts as close: a window is not full all the time.
        const NEAR: f64 = 0.5;
        let ceiling = self.pilot.summary.ceiling.as_ref()?;
        let near = self.pilot.summary.goodput_bps? >= NEAR * ceiling.bound_bps;
        match ceiling.kind {
            BoundKind::Window if near => Some(LimiterKind::ReceiveWindow),
            BoundKind::SendBuffer if near => Some(LimiterKind::SendBuffer),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests;
