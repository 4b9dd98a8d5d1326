//! The hosts of a plan. Each has one control connection and can be the near or the far end of a test, or is the far end only,
//! with another program. Simultaneous tests that share a host have further connections to its agent.

use std::rc::Rc;
use std::sync::Arc;
use std::time::{Duration, Instant};

use model::{Change, Conditions, Family, HostReading, HostSettings, RunHeader, Spec};

use super::companion::{self, Joining};
use super::drive::unsupported;
use super::lab_links::Links;
use super::program::AnyFarProgram;
use super::reached::Reached;
use super::results::Results;
use super::{AgentEnd, FarProgram, Pair};
use crate::{Access, ControlError};

/// Longest time to hold the machines before other clients get a turn: agents limit the time of one client.
const HOLD_LIMIT: Duration = Duration::from_secs(600);
/// Time between two attempts to reach a lost host, and limit of one: a host that is down shall not hold up the others.
const RETRY_INTERVAL: Duration = Duration::from_secs(3);
const RETRY_LIMIT: Duration = Duration::from_secs(1);
/// Fewest hosts of a fleet that goes on without one: two are a pair.
const LEAST_HOSTS: usize = 3;
/// Time between the two readings of a host's traffic.
const READING_INTERVAL: Duration = Duration::from_millis(300);

/// Connected agents, by number.
pub struct ConnectedFleet {
    pub(super) hosts: Vec<Host>,
    purpose: String,
    held_since: Option<Instant>,
    /// The changed links of the lab.
    links: Links,
    /// What the agents keep.
    pub(super) results: Results,
}

/// A host of a plan as it was reached.
pub struct Member {
    end: Option<AgentEnd>,
    program: Option<Box<dyn AnyFarProgram>>,
    lost: Option<Lost>,
}

impl Member {
    /// An agent.
    #[must_use]
    pub fn agent(end: AgentEnd) -> Self {
        Self { end: Some(end), program: None, lost: None }
    }

    /// Another program, as the far end only.
    pub fn program(program: impl FarProgram + 'static) -> Self {
        Self { end: None, program: Some(Box::new(program)), lost: None }
    }
}

impl Member {
    /// An agent that did not answer at `host` for this reason; it is tried again.
    #[must_use]
    pub fn lost(name: &str, host: &str, access: Access, family: Family, why: ControlError) -> Self {
        let reached = Reached::Not { host: host.to_owned(), access: Rc::new(access), family };
        let lost = Lost { name: name.to_owned(), why: Arc::new(why), reached, tried: Instant::now() };
        Self { end: None, program: None, lost: Some(lost) }
    }
}

/// The ends of a test that is under way.
pub(super) struct Lent {
    pub(super) pair: Pair,
    /// The far end, if it is another program.
    pub(super) program: Option<Box<dyn AnyFarProgram>>,
}

pub(super) struct Host {
    /// `None` while a pair has it, and for another program.
    pub(super) end: Option<AgentEnd>,
    /// With which further connections join; `None` while this coordinator does not have the machine.
    joining: Option<Joining>,
    /// Further connections that no test has.
    companions: Vec<AgentEnd>,
    /// `None` while a test has it, and for an agent.
    program: Option<Box<dyn AnyFarProgram>>,
    /// The current changes of its settings.
    changes: Vec<Change>,
    /// Its agent was lost.
    lost: Option<Lost>,
}

/// An agent that was lost, and how to reach it again.
struct Lost {
    name: String,
    why: Arc<ControlError>,
    reached: Reached,
    /// The last attempt to reach it.
    tried: Instant,
}

impl ConnectedFleet {
    /// A fleet of connected hosts; `purpose` is for their logs.
    #[must_use]
    pub fn new(members: Vec<Member>, purpose: &str) -> Self {
        let host = |Member { end, program, lost }| Host {
            end,
            joining: None,
            companions: Vec::new(),
            program,
            changes: Vec::new(),
            lost,
        };
        let hosts = members.into_iter().map(host).collect();
        let (links, results) = Default::default();
        Self { hosts, purpose: purpose.to_owned(), held_since: None, links, results }
    }

    /// The host with that number, unless a pair has it.
    #[must_use]
    pub fn end(&self, host: usize) -> Option<&AgentEnd> {
        self.hosts.get(host)?.end.as_ref()
    }

    /// Waits until this coordinator has all machines; `queued` gets the busy one and its number of clients in front. All
    /// coordinators acquire hosts in the same order, so that no two of them wait for each other.
    ///
    /// # Errors
    /// If a connection is lost or a host refuses.
    pub async fn acquire(&mut self, mut queued: impl FnMut(&str, u32)) -> Result<(), ControlError> {
        let ends = self.hosts.iter_mut().filter_map(|host| Some((host.end.as_mut()?, &mut host.joining)));
        let mut ends: Vec<_> = ends.collect();
        ends.sort_by(|a, b| a.0.instance.cmp(&b.0.instance));
        for (end, joining) in ends {
            let name = end.name.clone();
            end.acquire(&self.purpose, |ahead| queued(&name, ahead)).await?;
            *joining = Some(end.joining());
        }
        self.held_since = Some(Instant::now());
        Ok(())
    }

    /// Measures the path between two hosts, as [`Pair::probe_path`].
    ///
    /// # Errors
    /// If a connection is lost.
    pub async fn probe_path(
        &mut self,
        hosts: [usize; 2],
        header: &mut RunHeader,
        spec: &Spec,
    ) -> Result<(), ControlError> {
        let Some(mut lent) = self.lend(hosts, false) else { return Ok(()) };
        let probed = if lent.program.is_none() { lent.pair.probe_path(header, spec).await } else { Ok(()) };
        self.take_back(hosts, lent);
        probed
    }

    /// Releases all machines and closes the connections.
    pub async fn release(self) {
        for host in self.hosts {
            for end in host.companions.into_iter().chain(host.end) {
                end.release().await;
            }
        }
    }

    /// Reverts all settings and releases the machines, but stays connected.
    ///
    /// # Errors
    /// If a connection is lost.
    pub async fn release_machines(&mut self) -> Result<(), ControlError> {
        self.untune().await?;
        for host in &mut self.hosts {
            host.joining = None;
            for companion in host.companions.drain(..) {
                companion.release().await;
            }
            if let Some(end) = &mut host.end {
                end.release_machine().await?;
            }
        }
        self.held_since = None;
        Ok(())
    }

    /// Whether the fleet goes on without a host that is lost.
    pub(super) fn goes_on(&self) -> bool {
        self.hosts.len() >= LEAST_HOSTS
    }

    /// Gives up the connection to a host until it is reached again.
    pub(super) fn lose(&mut self, host: usize, end: &AgentEnd, why: ControlError) {
        if let Some(host) = self.hosts.get_mut(host) {
            let lost = Lost {
                name: end.name.clone(),
                why: Arc::new(why),
                reached: end.reached.clone(),
                tried: Instant::now(),
            };
            host.lost = Some(lost);
            host.joining = None;
            host.companions.clear();
            host.changes.clear();
        }
    }

    /// The error of a test of a host that is lost, if it is.
    pub(super) fn lost(&self, host: usize) -> Option<ControlError> {
        let lost = self.hosts.get(host)?.lost.as_ref()?;
        Some(ControlError::LostBefore { address: lost.name.clone(), why: lost.why.clone() })
    }

    /// Tries to reach the lost host whose last attempt is the longest ago, and waits a moment for its machine.
    async fn reach_lost(&mut self) {
        let due = |host: &&mut Host| host.lost.as_ref().is_some_and(|lost| lost.tried.elapsed() >= RETRY_INTERVAL);
        let next = self.hosts.iter_mut().filter(due).min_by_key(|host| host.lost.as_ref().map(|lost| lost.tried));
        let Some(host) = next else { return };
        let Some(lost) = &mut host.lost else { return };
        lost.tried = Instant::now();
        let reach = async {
            let mut end = companion::connect(&lost.reached).await?;
            end.name.clone_from(&lost.name);
            end.acquire(&self.purpose, |_| {}).await?;
            Ok::<AgentEnd, ControlError>(end)
        };
        if let Ok(Ok(end)) = tokio::time::timeout(RETRY_LIMIT, reach).await {
            host.joining = Some(end.joining());
            host.end = Some(end);
            host.lost = None;
        }
    }

    /// Reads the messages of idle hosts; a host that is lost meanwhile is given up if the fleet goes on without it.
    fn drain_or_lose(&mut self) -> Result<(), ControlError> {
        if !self.goes_on() {
            return self.drain_messages();
        }
        for number in 0..self.hosts.len() {
            let Some(mut end) = self.hosts[number].end.take() else { continue };
            match end.drain_messages() {
                Ok(()) => self.hosts[number].end = Some(end),
                Err(error) => self.lose(number, &end, error),
            }
        }
        if self.hosts.iter().all(|host| host.end.is_none() && host.program.is_none()) {
            let lost = (0..self.hosts.len()).find_map(|host| self.lost(host));
            return lost.map_or(Ok(()), Err);
        }
        Ok(())
    }

    /// Ensures that this coordinator has the machines. After [`HOLD_LIMIT`] it releases them and queues again.
    pub(super) async fn hold(&mut self, queued: impl FnMut(&str, u32)) -> Result<(), ControlError> {
        self.drain_or_lose()?;
        self.reach_lost().await;
        match self.held_since {
            Some(since) if since.elapsed() < HOLD_LIMIT => Ok(()),
            Some(_) => {
                self.release_machines().await?;
                self.acquire(queued).await
            }
            None => self.acquire(queued).await,
        }
    }

    /// Reads the messages of idle hosts.
    pub(super) fn drain_messages(&mut self) -> Result<(), ControlError> {
        let ends = self.hosts.iter_mut().flat_map(|host| host.end.iter_mut().chain(&mut host.companions));
        ends.into_iter().try_for_each(AgentEnd::drain_messages)
    }

    /// Applies a cell's settings to two hosts; equal settings are not changed again.
    pub(super) async fn tune(
        &mut self,
        hosts: [usize; 2],
        single_ended: bool,
        wanted: &HostSettings,
    ) -> Result<(), ControlError> {
        self.links.apply(&wanted.links).await?;
        let Some(mut lent) = self.lend(hosts, single_ended) else { return Ok(()) };
        let pair = &mut lent.pair;
        let applied = pair.apply(wanted).await;
        let far = pair.far.as_ref().map_or_else(Vec::new, |far| far.changed.clone());
        for (host, changes) in hosts.into_iter().zip([pair.near.changed.clone(), far]) {
            if let Some(host) = self.hosts.get_mut(host) {
                host.changes = changes;
            }
        }
        self.take_back(hosts, lent);
        applied
    }

    /// The current changes of a host's settings.
    pub(super) fn changes(&self, host: usize) -> Vec<Change> {
        self.hosts.get(host).map(|host| host.changes.clone()).unwrap_or_default()
    }

    /// Reverts the changes on all hosts; the first error is returned after all were tried.
    pub(super) async fn untune(&mut self) -> Result<(), ControlError> {
        let mut result = self.links.apply(&[]).await;
        for host in &mut self.hosts {
            if let Some(end) = host.end.as_mut().filter(|end| !end.applied.is_empty()) {
                result = result.and(end.untune().await.map(drop));
                host.changes = Vec::new();
            }
        }
        result
    }

    /// The conditions of these hosts, in the given order; all null for a host without this extension.
    pub(super) async fn read_conditions(&mut self, hosts: &[usize]) -> Result<Vec<Conditions>, ControlError> {
        let first = self.readings(hosts).await?;
        tokio::time::sleep(READING_INTERVAL).await;
        let second = self.readings(hosts).await?;
        let since = |(now, then): (Option<HostReading>, Option<HostReading>)| {
            now.zip(then).map(|(now, then)| now.since(&then)).unwrap_or_default()
        };
        Ok(second.into_iter().zip(first).map(since).collect())
    }

    async fn readings(&mut self, hosts: &[usize]) -> Result<Vec<Option<HostReading>>, ControlError> {
        let mut readings = Vec::with_capacity(hosts.len());
        for host in hosts {
            readings.push(match self.hosts.get_mut(*host).and_then(|host| host.end.as_mut()) {
                Some(end) => Some(end.read_conditions().await?),
                None => None,
            });
        }
        Ok(readings)
    }

    /// Takes two hosts for a test; `None` if another pair has one of them. A transport with one end needs the near host only.
    pub(super) fn lend(&mut self, [near, far]: [usize; 2], single_ended: bool) -> Option<Lent> {
        if !single_ended {
            let host = self.hosts.get(far)?;
            if near == far || host.end.is_none() && host.program.is_none() {
                return None;
            }
        }
        let near = self.hosts.get_mut(near)?.end.take()?;
        let far = self.hosts.get_mut(far).filter(|_| !single_ended);
        let (far, program) = far.map_or((None, None), |far| (far.end.take(), far.program.take()));
        Some(Lent { pair: Pair::new(near, far), program })
    }

    /// Takes two hosts for a test at the same time as others of them: where another test has a host's connection, this one gets a
    /// further connection.
    ///
    /// # Errors
    /// An agent that is too old for it, is not reached, or refuses.
    pub(super) async fn share(&mut self, hosts: [usize; 2], single_ended: bool) -> Result<Lent, ControlError> {
        if let Some(lost) = hosts.into_iter().find_map(|host| self.lost(host)) {
            return Err(lost);
        }
        let near = self.connection(hosts[0]).await?;
        let far = if single_ended { Ok(None) } else { self.connection(hosts[1]).await.map(Some) };
        match far {
            Ok(far) => Ok(Lent { pair: Pair::new(near, far), program: None }),
            Err(error) => {
                self.keep(hosts[0], near);
                Err(error)
            }
        }
    }

    /// Returns a connection to its host.
    fn keep(&mut self, host: usize, end: AgentEnd) {
        // A further connection to an agent that was lost meanwhile ends with it.
        if let Some(host) = self.hosts.get_mut(host).filter(|host| !end.joined || host.lost.is_none()) {
            if end.joined { host.companions.push(end) } else { host.end = Some(end) }
        }
    }

    /// A connection to the agent of a host that no test has, new if necessary.
    async fn connection(&mut self, host: usize) -> Result<AgentEnd, ControlError> {
        let missing = || unsupported("simultaneous tests with another program");
        let Host { end, companions, joining, .. } = self.hosts.get_mut(host).ok_or_else(missing)?;
        match end.take().or_else(|| companions.pop()) {
            Some(end) => Ok(end),
            None => joining.as_ref().ok_or_else(missing)?.connect(&self.purpose).await,
        }
    }

    /// Returns the hosts of a failed test to the fleet; those that do not answer are lost.
    pub(super) async fn take_back_failed(&mut self, hosts: [usize; 2], lent: Lent) {
        let Lent { pair: Pair { near, far, .. }, program } = lent;
        for (host, end) in hosts.into_iter().zip([Some(near), far]) {
            let Some(mut end) = end else { continue };
            match end.cancel_trial().await {
                Err(error) if !end.joined => self.lose(host, &end, error),
                Err(_) => {}
                Ok(()) => self.keep(host, end),
            }
        }
        if let Some(host) = self.hosts.get_mut(hosts[1]) {
            host.program = program.or(host.program.take());
        }
    }

    /// Returns the hosts of a test to the fleet.
    pub(super) fn take_back(&mut self, [near, far]: [usize; 2], Lent { pair, program }: Lent) {
        self.keep(near, pair.near);
        if let Some(end) = pair.far {
            self.keep(far, end);
        }
        if let Some(host) = self.hosts.get_mut(far) {
            host.program = program.or(host.program.take());
        }
    }
}
