//! The hosts of a run. Each has one control connection and can be the near or the far end of a test, or is the far end only,
//! with another program. Simultaneous tests that share a host have further connections to its agent.

use std::time::Duration;

use model::{Change, Conditions, HostReading, HostSettings, Setting, Spec};
use schedule::FailureKind;
use text::{Said, Text};

use super::end::End;
use super::error::DialogueError;
use super::event::{Answer, Connected};
use super::metrics::Metrics;
use super::outside::Outside;
use super::pair::Pair;
use super::path_probe::BothPaths;
use super::results::Results;
use super::work::Work;
use crate::agent::Time;

/// Longest time to hold the machines before other clients get a turn: agents limit the time of one client.
const HOLD_LIMIT: Duration = Duration::from_secs(600);
/// Time between two attempts to reach a lost host, and limit of one: a host that is down shall not hold up the others.
const RETRY_INTERVAL: Duration = Duration::from_secs(3);
const RETRY_LIMIT: Duration = Duration::from_secs(1);
/// Fewest hosts of a fleet that goes on without one: two are a pair.
const LEAST_HOSTS: usize = 3;
/// Time between the two readings of a host's traffic.
const READING_INTERVAL: Duration = Duration::from_millis(300);

/// The hosts of a run, by number.
#[derive(Debug)]
pub struct Fleet {
    pub(super) outside: Outside,
    pub(super) hosts: Vec<Host>,
    purpose: String,
    held_since: Option<Time>,
    /// The properties of the lab's links that differ from those of its topology.
    links: Vec<Setting>,
    /// What the agents keep.
    pub(super) results: Results,
    /// The TCP metrics caches of two hosts, for a run that compares trials.
    pub(super) metrics: Option<Metrics>,
}

/// A host of a run as it was reached.
#[derive(Debug)]
pub enum Member {
    /// An agent.
    Agent(Box<End>),
    /// An agent that did not answer, with its name and the reason; it is tried again.
    Lost(String, Text),
    /// Another program, as the far end only.
    Program,
}

/// The ends of a test that is under way.
#[derive(Debug)]
pub(super) struct Lent {
    pub(super) pair: Pair,
    /// The far end, if it is another program.
    pub(super) program: Option<usize>,
}

#[derive(Debug)]
pub(super) struct Host {
    /// `None` while a test has it, and for another program.
    pub(super) end: Option<End>,
    /// With which further connections join; `None` while this coordinator does not have the machine.
    joining: Option<Joining>,
    /// Further connections that no test has.
    companions: Vec<End>,
    /// Whether it is another program.
    is_program: bool,
    /// Whether a test has the program.
    in_use: bool,
    /// The current changes of its settings.
    changes: Vec<Change>,
    /// Its agent was lost.
    lost: Option<Lost>,
}

/// What the first connection to an agent knows, with which further ones join it.
#[derive(Debug, Clone)]
struct Joining {
    ticket: Option<String>,
    name: String,
    instance: String,
}

/// An agent that was lost.
#[derive(Debug)]
struct Lost {
    name: String,
    why: Text,
    /// The last attempt to reach it.
    tried: Time,
}

impl Fleet {
    /// A fleet of reached hosts; `purpose` is for their logs.
    #[must_use]
    pub fn new(outside: &Outside, members: Vec<Member>, purpose: &str) -> Self {
        let tried = outside.now();
        let host = |member| {
            let is_program = matches!(member, Member::Program);
            let (end, lost) = match member {
                Member::Agent(end) => (Some(*end), None),
                Member::Lost(name, why) => (None, Some(Lost { name, why, tried })),
                Member::Program => (None, None),
            };
            let (companions, changes) = Default::default();
            Host { end, joining: None, companions, is_program, in_use: false, changes, lost }
        };
        Self {
            outside: outside.clone(),
            hosts: members.into_iter().map(host).collect(),
            purpose: purpose.to_owned(),
            held_since: None,
            links: Vec::new(),
            results: Results::default(),
            metrics: None,
        }
    }

    /// What it knows of the outside.
    #[must_use]
    pub fn outside(&self) -> &Outside {
        &self.outside
    }

    /// The agent of the host with that number, unless a test has it.
    #[must_use]
    pub fn end(&self, host: usize) -> Option<&End> {
        self.hosts.get(host)?.end.as_ref()
    }

    /// Waits until this coordinator has all machines; `queued` gets the busy one and its number of clients in front. All
    /// coordinators acquire hosts in the same order, so that no two of them wait for each other.
    ///
    /// # Errors
    /// If a connection is lost or a host refuses.
    pub async fn acquire(&mut self, mut queued: impl FnMut(&str, u32)) -> Result<(), DialogueError> {
        let instance = |number: usize| Some((self.hosts[number].end.as_ref()?.instance.clone(), number));
        let mut numbers: Vec<(String, usize)> = (0..self.hosts.len()).filter_map(instance).collect();
        numbers.sort_unstable();
        for (_, number) in numbers {
            let host = &mut self.hosts[number];
            let Some(end) = &mut host.end else { continue };
            let name = end.name.clone();
            match end.acquire(&self.purpose, |ahead| queued(&name, ahead)).await {
                Ok(()) => host.joining = Some(Joining::of(end)),
                Err(error) => self.lose_or_fail(number, error)?,
            }
        }
        self.held_since = Some(self.outside.now());
        self.some_are_left()
    }

    /// Lets two hosts measure their traffic and probe the path to each other. `spec` has the data addresses; `scope` is the interface of
    /// the far address, if it needs one.
    ///
    /// # Errors
    /// If a connection is lost.
    pub async fn probe_path(&mut self, hosts: [usize; 2], spec: &Spec, scope: u32) -> Result<BothPaths, DialogueError> {
        let Some(mut lent) = self.lend(hosts, false) else { return Ok(BothPaths::default()) };
        let probed =
            if lent.program.is_none() { lent.pair.probe_path(spec, scope).await } else { Ok(BothPaths::default()) };
        self.take_back(hosts, lent);
        probed
    }

    /// Releases all machines and closes the connections.
    pub fn release(&mut self) {
        for host in &mut self.hosts {
            host.companions.drain(..).chain(host.end.take()).for_each(End::release);
        }
    }

    /// Reverts all settings and releases the machines, but stays connected.
    ///
    /// # Errors
    /// If a connection is lost.
    pub async fn release_machines(&mut self) -> Result<(), DialogueError> {
        if self.held_since.is_none() {
            return Ok(());
        }
        self.untune().await?;
        for host in &mut self.hosts {
            host.joining = None;
            host.companions.drain(..).for_each(End::release);
            host.end.iter_mut().for_each(End::release_machine);
        }
        self.held_since = None;
        Ok(())
    }

    /// Gives up a host that has failed so, if it is lost and the fleet goes on without it.
    fn lose_or_fail(&mut self, number: usize, error: DialogueError) -> Result<(), DialogueError> {
        if error.kind() != FailureKind::Host || !self.goes_on() {
            return Err(error);
        }
        if let Some(end) = self.hosts[number].end.take() {
            self.lose(number, &end, &error);
        }
        Ok(())
    }

    /// The error of a lost host, if all hosts are lost.
    fn some_are_left(&self) -> Result<(), DialogueError> {
        let lost = |number| self.lost(number);
        if self.hosts.iter().any(|host| host.end.is_some() || host.is_program) {
            return Ok(());
        }
        (0..self.hosts.len()).find_map(lost).map_or(Ok(()), Err)
    }

    /// Whether the fleet goes on without a host that is lost.
    pub(super) fn goes_on(&self) -> bool {
        self.hosts.len() >= LEAST_HOSTS
    }

    /// Gives up the connection to a host until it is reached again.
    pub(super) fn lose(&mut self, host: usize, end: &End, why: &DialogueError) {
        let tried = self.outside.now();
        if let Some(host) = self.hosts.get_mut(host) {
            host.lost = Some(Lost { name: end.name.clone(), why: why.say(), tried });
            host.joining = None;
            host.companions.clear();
            host.changes.clear();
        }
    }

    /// The error of a test of a host that is lost, if it is.
    pub(super) fn lost(&self, host: usize) -> Option<DialogueError> {
        let lost = self.hosts.get(host)?.lost.as_ref()?;
        Some(DialogueError::LostBefore { address: lost.name.clone(), why: lost.why.clone() })
    }

    /// Tries to reach the lost host whose last attempt is the longest ago, and waits a moment for its machine.
    async fn reach_lost(&mut self) {
        let now = self.outside.now();
        let due = |(number, host): (usize, &Host)| {
            let tried = host.lost.as_ref()?.tried;
            (now.saturating_sub(tried) >= RETRY_INTERVAL).then_some((tried, number))
        };
        let Some((_, number)) = self.hosts.iter().enumerate().filter_map(due).min() else { return };
        let Some(lost) = &mut self.hosts[number].lost else { return };
        lost.tried = now;
        let name = lost.name.clone();
        let reach = async {
            let mut end = self.connect(number).await?;
            end.name = name;
            end.acquire(&self.purpose, |_| {}).await?;
            Ok::<End, DialogueError>(end)
        };
        if let Some(Ok(end)) = self.outside.within(RETRY_LIMIT, reach).await {
            let host = &mut self.hosts[number];
            host.joining = Some(Joining::of(&end));
            host.end = Some(end);
            host.lost = None;
        }
    }

    /// A new connection to the agent of a host.
    async fn connect(&self, host: usize) -> Result<End, DialogueError> {
        match self.outside.ask(Work::Connect { host }).await {
            Answer::Connected(connected) => Ok(End::new(&self.outside, Connected::clone(&connected))),
            Answer::Failed(fault) => Err(DialogueError::Outside(fault)),
            _ => Err(DialogueError::unsupported("connections to this host")),
        }
    }

    /// Reads the messages of idle hosts; a host that is lost meanwhile is given up if the fleet goes on without it.
    pub(super) fn drain(&mut self) -> Result<(), DialogueError> {
        for number in 0..self.hosts.len() {
            let host = &self.hosts[number];
            if let Err(error) = host.end.iter().chain(&host.companions).try_for_each(End::drain) {
                self.lose_or_fail(number, error)?;
            }
        }
        self.some_are_left()
    }

    /// Ensures that this coordinator has the machines. After [`HOLD_LIMIT`] it releases them and queues again.
    pub(super) async fn hold(&mut self, queued: impl FnMut(&str, u32)) -> Result<(), DialogueError> {
        self.drain()?;
        self.reach_lost().await;
        match self.held_since {
            Some(since) if self.outside.now().saturating_sub(since) < HOLD_LIMIT => Ok(()),
            Some(_) => {
                self.release_machines().await?;
                self.acquire(queued).await
            }
            None => self.acquire(queued).await,
        }
    }

    /// Gives the links of the lab these properties, and all others those of the topology; equal ones are not changed again.
    async fn apply_links(&mut self, wanted: &[Setting]) -> Result<(), DialogueError> {
        if self.links == wanted {
            return Ok(());
        }
        match self.outside.ask(Work::SetLinks(wanted.to_vec())).await {
            Answer::Failed(fault) => Err(DialogueError::Links(fault.said)),
            _ => {
                self.links = wanted.to_vec();
                Ok(())
            }
        }
    }

    /// Applies a cell's settings to two hosts; equal settings are not changed again.
    pub(super) async fn tune(
        &mut self,
        hosts: [usize; 2],
        single_ended: bool,
        wanted: &HostSettings,
    ) -> Result<(), DialogueError> {
        self.apply_links(&wanted.links).await?;
        let Some(mut lent) = self.lend(hosts, single_ended) else { return Ok(()) };
        let pair = &mut lent.pair;
        let applied = pair.apply(wanted).await;
        let far = pair.far.as_ref().map_or_else(Vec::new, |far| far.changed.clone());
        for (host, changes) in hosts.into_iter().zip([pair.near.changed.clone(), far]) {
            if let Some(host) = self.hosts.get_mut(host) {
                host.changes = changes;
            }
        }
        match applied {
            Err(error) if error.kind() == FailureKind::Host && self.goes_on() => {
                // The test of these hosts fails then, not the run.
                self.take_back_failed(hosts, lent).await;
                Ok(())
            }
            applied => {
                self.take_back(hosts, lent);
                applied
            }
        }
    }

    /// The current changes of a host's settings.
    pub(super) fn changes(&self, host: usize) -> Vec<Change> {
        self.hosts.get(host).map(|host| host.changes.clone()).unwrap_or_default()
    }

    /// Reverts the changes on all hosts; the first error is returned after all were tried. Values that had changed meanwhile are left,
    /// each with a note: a line of the host's name, the setting and the note.
    ///
    /// # Errors
    /// A host that is lost, or cannot revert.
    pub async fn untune(&mut self) -> Result<Vec<Text>, DialogueError> {
        let mut result = self.apply_links(&[]).await.map(|()| Vec::new());
        for number in 0..self.hosts.len() {
            let host = &mut self.hosts[number];
            let Some(end) = host.end.as_mut().filter(|end| !end.applied.is_empty()) else { continue };
            host.changes = Vec::new();
            match end.untune().await {
                Ok(changes) => {
                    let noted = changes.iter().filter_map(|change| Some((change, change.note.as_ref()?)));
                    let name = &end.name;
                    let noted = noted.map(|(change, note)| text::say!("{name}: {}: {note}", change.key));
                    result.iter_mut().for_each(|lines| lines.extend(noted.clone()));
                }
                Err(error) => {
                    let lost = self.lose_or_fail(number, error);
                    result = result.and_then(|lines| lost.map(|()| lines));
                }
            }
        }
        result
    }

    /// The conditions of these hosts, in the given order; all null for another program's.
    pub(super) async fn read_conditions(&mut self, hosts: &[usize]) -> Result<Vec<Conditions>, DialogueError> {
        let first = self.readings(hosts).await?;
        self.outside.wait(READING_INTERVAL).await;
        let second = self.readings(hosts).await?;
        let since = |(now, then): (Option<HostReading>, Option<HostReading>)| {
            now.zip(then).map(|(now, then)| now.since(&then)).unwrap_or_default()
        };
        Ok(second.into_iter().zip(first).map(since).collect())
    }

    async fn readings(&mut self, hosts: &[usize]) -> Result<Vec<Option<HostReading>>, DialogueError> {
        let mut readings = Vec::with_capacity(hosts.len());
        for host in hosts {
            let reading = match self.end(*host) {
                Some(end) => Some(end.read_conditions().await),
                None => None,
            };
            readings.push(match reading {
                Some(Err(error)) => {
                    self.lose_or_fail(*host, error)?;
                    None
                }
                reading => reading.and_then(Result::ok),
            });
        }
        Ok(readings)
    }

    /// Takes two hosts for a test; `None` if another test has one of them. A transport with one end needs the near host only, and so does
    /// a fleet of one.
    pub(super) fn lend(&mut self, [near, far]: [usize; 2], single_ended: bool) -> Option<Lent> {
        let single_ended = single_ended || far >= self.hosts.len();
        if !single_ended {
            let host = self.hosts.get(far)?;
            let is_there = host.end.is_some() || host.is_program && !host.in_use;
            if near == far || !is_there {
                return None;
            }
        }
        let near = self.hosts.get_mut(near)?.end.take()?;
        let host = self.hosts.get_mut(far).filter(|_| !single_ended);
        let (far_end, program) = match host {
            Some(host) if host.is_program => {
                host.in_use = true;
                (None, Some(far))
            }
            Some(host) => (host.end.take(), None),
            None => (None, None),
        };
        Some(Lent { pair: Pair::new(near, far_end), program })
    }

    /// Takes two hosts for a test at the same time as others of them: where another test has a host's connection, this one gets a
    /// further connection.
    ///
    /// # Errors
    /// An agent that is not reached, or refuses.
    pub(super) async fn share(&mut self, hosts: [usize; 2], single_ended: bool) -> Result<Lent, DialogueError> {
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
    fn keep(&mut self, host: usize, end: End) {
        // A further connection to an agent that was lost meanwhile ends with it.
        if let Some(host) = self.hosts.get_mut(host).filter(|host| !end.joined || host.lost.is_none()) {
            if end.joined { host.companions.push(end) } else { host.end = Some(end) }
        }
    }

    /// A connection to the agent of a host that no test has, new if necessary.
    async fn connection(&mut self, number: usize) -> Result<End, DialogueError> {
        let missing = || DialogueError::unsupported("simultaneous tests with another program");
        let host = self.hosts.get_mut(number).ok_or_else(missing)?;
        if let Some(end) = host.end.take().or_else(|| host.companions.pop()) {
            return Ok(end);
        }
        let Joining { ticket, name, instance } = host.joining.clone().ok_or_else(missing)?;
        let refused = |reason: &str| DialogueError::Refused { address: name.clone(), reason: reason.into() };
        let ticket = ticket.ok_or_else(|| refused("it gave no ticket with which further connections join"))?;
        let mut end = self.connect(number).await?;
        if end.instance != instance {
            return Err(refused("another agent answers there now: it was restarted"));
        }
        end.name = name;
        end.join(ticket, &self.purpose).await?;
        Ok(end)
    }

    /// Returns the hosts of a failed test to the fleet; those that do not answer are lost.
    pub(super) async fn take_back_failed(&mut self, hosts: [usize; 2], lent: Lent) {
        let Lent { pair: Pair { near, far, .. }, program } = lent;
        for (host, end) in hosts.into_iter().zip([Some(near), far]) {
            let Some(end) = end else { continue };
            match end.cancel_trial().await {
                Err(error) if !end.joined => self.lose(host, &end, &error),
                Err(_) => {}
                Ok(()) => self.keep(host, end),
            }
        }
        self.give_back(program);
    }

    /// Returns the hosts of a test to the fleet.
    pub(super) fn take_back(&mut self, [near, far]: [usize; 2], Lent { pair, program }: Lent) {
        self.keep(near, pair.near);
        if let Some(end) = pair.far {
            self.keep(far, end);
        }
        self.give_back(program);
    }

    fn give_back(&mut self, program: Option<usize>) {
        if let Some(host) = program.and_then(|program| self.hosts.get_mut(program)) {
            host.in_use = false;
        }
    }
}

impl Joining {
    /// What further connections to the agent of an acquired end need.
    fn of(end: &End) -> Self {
        Self { ticket: end.ticket.clone(), name: end.name.clone(), instance: end.instance.clone() }
    }
}
