//! The hosts of a plan: each is spoken to over one connection and is now a near end, now a far one.

use std::time::{Duration, Instant};

use model::{Change, Conditions, HostReading, HostSettings};

use super::{End, Pair};
use crate::ControlError;

/// How long the machines are held before they are offered to others for a moment: agents bound the time of one holder.
const HOLD: Duration = Duration::from_secs(600);
/// How far apart the two readings are that tell others' traffic.
const LOOK: Duration = Duration::from_millis(300);

/// Agents that have let us in, by numbers.
pub struct Fleet {
    hosts: Vec<Host>,
    purpose: String,
    held_since: Option<Instant>,
}

struct Host {
    /// `None` while a pair has it.
    end: Option<End>,
    /// What its settings were changed to.
    changes: Vec<Change>,
}

impl Fleet {
    /// Hosts that are reached, for a purpose that others in their queues may read.
    #[must_use]
    pub fn new(ends: Vec<End>, purpose: &str) -> Self {
        let host = |end| Host { end: Some(end), changes: Vec::new() };
        Self { hosts: ends.into_iter().map(host).collect(), purpose: purpose.to_owned(), held_since: None }
    }

    /// The host with that number, unless a pair has it.
    #[must_use]
    pub fn end(&self, host: usize) -> Option<&End> {
        self.hosts.get(host)?.end.as_ref()
    }

    /// Waits until all machines are ours; `queued` hears which one is busy and how many are first. All coordinators ask in the same
    /// order, so that no two of them wait for each other.
    ///
    /// # Errors
    /// A host that was lost or refused.
    pub async fn acquire(&mut self, mut queued: impl FnMut(&str, u32)) -> Result<(), ControlError> {
        let mut ends: Vec<&mut End> = self.hosts.iter_mut().filter_map(|host| host.end.as_mut()).collect();
        ends.sort_by(|a, b| a.instance.cmp(&b.instance));
        for end in ends {
            let name = end.name.clone();
            end.acquire(&self.purpose, |ahead| queued(&name, ahead)).await?;
        }
        self.held_since = Some(Instant::now());
        Ok(())
    }

    /// Gives all machines back and closes.
    pub async fn release(self) {
        for end in self.hosts.into_iter().filter_map(|host| host.end) {
            end.release().await;
        }
    }

    /// Puts everything back and gives the machines back, but stays connected.
    pub(super) async fn rest(&mut self) -> Result<(), ControlError> {
        self.untune().await?;
        for end in self.hosts.iter_mut().filter_map(|host| host.end.as_mut()) {
            end.give_back().await?;
        }
        self.held_since = None;
        Ok(())
    }

    /// Makes sure that the machines are ours, and lets others have them for a moment where we have held them long.
    pub(super) async fn hold(&mut self, queued: impl FnMut(&str, u32)) -> Result<(), ControlError> {
        self.catch_up()?;
        match self.held_since {
            Some(since) if since.elapsed() < HOLD => Ok(()),
            Some(_) => {
                self.rest().await?;
                self.acquire(queued).await
            }
            None => self.acquire(queued).await,
        }
    }

    /// Takes what idle hosts have said.
    pub(super) fn catch_up(&mut self) -> Result<(), ControlError> {
        self.hosts.iter_mut().filter_map(|host| host.end.as_mut()).try_for_each(End::catch_up)
    }

    /// Sets two hosts as a cell wants them, from their own state; what a host has already it keeps.
    pub(super) async fn tune(
        &mut self,
        hosts: [usize; 2],
        single_ended: bool,
        wanted: &HostSettings,
    ) -> Result<(), ControlError> {
        let Some(mut pair) = self.lend(hosts, single_ended) else { return Ok(()) };
        let applied = pair.apply(wanted).await;
        let far = pair.far.as_ref().map_or_else(Vec::new, |far| far.changed.clone());
        for (host, changes) in hosts.into_iter().zip([pair.near.changed.clone(), far]) {
            if let Some(host) = self.hosts.get_mut(host) {
                host.changes = changes;
            }
        }
        self.take_back(hosts, pair);
        applied
    }

    /// What a host's settings were changed to.
    pub(super) fn changes(&self, host: usize) -> Vec<Change> {
        self.hosts.get(host).map(|host| host.changes.clone()).unwrap_or_default()
    }

    /// Puts back what was changed on all hosts; the first failure is told after all were tried.
    pub(super) async fn untune(&mut self) -> Result<(), ControlError> {
        let mut result = Ok(());
        for host in &mut self.hosts {
            if let Some(end) = host.end.as_mut().filter(|end| !end.applied.is_empty()) {
                result = result.and(end.untune().await.map(drop));
                host.changes = Vec::new();
            }
        }
        result
    }

    /// What these hosts are like, in the order given; all null from a host that cannot say.
    pub(super) async fn look(&mut self, hosts: &[usize]) -> Result<Vec<Conditions>, ControlError> {
        let first = self.readings(hosts).await?;
        tokio::time::sleep(LOOK).await;
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
                Some(end) => end.look().await?,
                None => None,
            });
        }
        Ok(readings)
    }

    /// Takes two hosts for a test; `None` where another pair has one of them. A transport with one end needs the near one alone.
    pub(super) fn lend(&mut self, [near, far]: [usize; 2], single_ended: bool) -> Option<Pair> {
        if !single_ended && (near == far || self.hosts.get(far)?.end.is_none()) {
            return None;
        }
        let near = self.hosts.get_mut(near)?.end.take()?;
        let far = if single_ended { None } else { self.hosts.get_mut(far)?.end.take() };
        Some(Pair { near, far })
    }

    /// Takes them back.
    pub(super) fn take_back(&mut self, [near, far]: [usize; 2], pair: Pair) {
        self.hosts[near].end = Some(pair.near);
        if let Some(end) = pair.far {
            self.hosts[far].end = Some(end);
        }
    }
}
