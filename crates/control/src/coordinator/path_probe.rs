//! The path probes of both ends before the first trial, and the offset of their clocks.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use engine::transport::scope_of;
use host::{RealSys, Sys};
use model::{ClockOffset, Family, Inventory, Path, RunHeader, Spec};

use super::address::split;
use super::dial::addresses;
use super::{AgentEnd, Pair};
use crate::ControlError;
use protocol::message::{FromAgent, PathFacts, ReachabilityToken, ToAgent};

/// Exchanges with each end to read its clocks; the shortest one is used.
const EXCHANGES: u32 = 16;
/// Time limit for these exchanges; a slow path gets fewer.
const CLOCK_LIMIT: Duration = Duration::from_millis(500);
/// Longest wait for an end's path probe on a short path, and the round trips that are added on a long one; it has a shorter limit of its
/// own.
const PROBE_LIMIT: Duration = Duration::from_secs(10);
const PROBE_TRIPS: u32 = 16;

/// A reading of one end's clocks against the coordinator's.
struct Reading {
    /// Its CLOCK_REALTIME less the coordinator's monotonic clock, ns.
    realtime_ns: i128,
    /// Its CLOCK_MONOTONIC less the coordinator's, ns.
    monotonic_ns: i128,
    /// Half of the exchange, ns.
    error_ns: u64,
    exchanges: u32,
}

impl Pair {
    /// The offset of the far clocks from the near ones; `None` without a far end.
    pub async fn clocks(&mut self) -> Result<Option<ClockOffset>, ControlError> {
        let Some(far) = self.far.as_mut() else { return Ok(None) };
        let near = self.near.clock().await?;
        let far = far.clock().await?;
        let (Some(near), Some(far)) = (near, far) else { return Ok(None) };
        Ok(difference(&near, &far))
    }

    /// Lets both ends measure their traffic and probe the path to each other, and writes the results into `header`. `spec` has
    /// the data addresses.
    pub async fn probe_path(&mut self, header: &mut RunHeader, spec: &Spec) -> Result<(), ControlError> {
        header.clocks = self.clocks().await?;
        let Some(far) = &mut self.far else { return Ok(()) };
        // Two ends within one process have no path between them.
        let at = spec.far.data_at.map(|at| at.ip());
        let Some(far_address) = far.address.map(|address| spec.far.data_addr.or(at).unwrap_or(address.ip())) else {
            return Ok(());
        };
        let round_trip = self.near.path().round_trip().max(far.path().round_trip());
        let round_trip_ns = round_trip.as_nanos() as u64;
        let scope = spec.far.data_at.or(far.address).as_ref().map_or(0, scope_of);
        // Data towards an address of its own leaves by the route to that address, so the near end's address there is known only after
        // its probe. Otherwise the far end probes the address that this connection comes from, or that of the near agent.
        let by_route = spec.far.data_addr.is_some() && spec.near.data_addr.is_none();
        let near_address = spec.near.data_addr.or(self.near.address.map(|address| address.ip()));
        let near_name = self.near.name_for_others(&spec.near);
        let to_far = (Some(far_address), far.name_for_others(&spec.far));
        // Agents on other hosts probe each other only with a reachability token. An agent in this process needs none.
        let mut for_near = match self.near.address {
            Some(_) => Some(far.reach_token(spec.far.data_addr).await?),
            None => None,
        };
        if let (Some(for_near), Some(at)) = (&mut for_near, spec.far.data_at.filter(|at| at.port() > 0)) {
            for_near.port = Some(at.port());
        }
        let (outbound, return_path) = if by_route {
            let outbound = self.near.probe_path(to_far, for_near, (round_trip_ns, scope)).await?;
            let source = outbound.as_ref().and_then(source);
            let for_far = self.near.reach_token_as_near(source).await?;
            (Ok(outbound), far.probe_path((source.or(near_address), near_name), for_far, (round_trip_ns, 0)).await)
        } else {
            let for_far = self.near.reach_token_as_near(spec.near.data_addr).await?;
            tokio::join!(
                self.near.probe_path(to_far, for_near, (round_trip_ns, scope)),
                far.probe_path((near_address, near_name), for_far, (round_trip_ns, 0))
            )
        };
        for (facts, inventory, path) in [
            (outbound?, &mut header.near, &mut header.path_outbound as &mut Option<Path>),
            (return_path?, &mut header.far, &mut header.path_return),
        ] {
            if let Some(facts) = facts {
                note_path(facts, inventory, path);
            }
        }
        Ok(())
    }
}

impl AgentEnd {
    /// Lets this near end measure its traffic and probe the path to a host that has no agent; `None` for one without an address, and
    /// where the probe takes too long.
    ///
    /// # Errors
    /// The name does not resolve, or the connection is lost.
    pub async fn probe_host(&mut self, host: &str, family: Family) -> Result<Option<PathFacts>, ControlError> {
        let (name, port) = split(host)?;
        let Some(address) = addresses(name, port, family).await?.into_iter().next() else { return Ok(None) };
        let peer = (Some(address.ip()), Some(name.to_owned()));
        self.probe_path(peer, None, (0, scope_of(&address))).await
    }

    /// The offset of its clocks from this host's.
    ///
    /// # Errors
    /// The connection is lost.
    pub async fn clock_offset(&mut self) -> Result<Option<ClockOffset>, ControlError> {
        let Some(far) = self.clock().await? else { return Ok(None) };
        // This host against itself: read without an exchange.
        let begun_ns = RealSys.now_ns();
        let realtime_ns = i128::from(engine::unix_ns());
        let near = Reading {
            realtime_ns: realtime_ns - i128::from(begun_ns),
            monotonic_ns: 0,
            error_ns: RealSys.now_ns() - begun_ns,
            exchanges: far.exchanges,
        };
        Ok(difference(&near, &far))
    }

    /// The reading of the shortest of several exchanges.
    async fn clock(&mut self) -> Result<Option<Reading>, ControlError> {
        let begun = Instant::now();
        let mut best: Option<Reading> = None;
        let mut exchanges = 0;
        while exchanges < EXCHANGES && begun.elapsed() < CLOCK_LIMIT {
            let requested_ns = RealSys.now_ns();
            self.send(&ToAgent::Clock).await?;
            let (realtime_ns, monotonic_ns) = loop {
                if let FromAgent::Clock { realtime_ns, monotonic_ns } = self.recv("while it read its clocks").await? {
                    break (realtime_ns, monotonic_ns);
                }
            };
            let answered_ns = RealSys.now_ns();
            exchanges += 1;
            let error_ns = (answered_ns - requested_ns).div_ceil(2);
            if best.as_ref().is_none_or(|best| error_ns < best.error_ns) {
                let middle = i128::from(requested_ns) + i128::from(error_ns);
                best = Some(Reading {
                    realtime_ns: i128::from(realtime_ns) - middle,
                    monotonic_ns: i128::from(monotonic_ns) - middle,
                    error_ns,
                    exchanges,
                });
            }
        }
        Ok(best.map(|best| Reading { exchanges, ..best }))
    }

    /// The reachability token with which another agent probes this end's and connects to it, for the address `at` if given. It is
    /// requested once while this coordinator has the machine.
    pub(super) async fn reach_token(&mut self, at: Option<IpAddr>) -> Result<ReachabilityToken, ControlError> {
        if let Some(reach_token) = self.reach_tokens.get(&at) {
            return Ok(reach_token.clone());
        }
        self.send(&ToAgent::IssueReachToken { at }).await?;
        loop {
            if let FromAgent::ReachToken(mut reach_token) = self.recv("while it issued a reachability token").await? {
                // Its port is reached as this connection reached it: it may be forwarded.
                if let (None, Some(address), Some(port)) = (at, self.address, &mut reach_token.port) {
                    *port = address.port();
                }
                self.reach_tokens.insert(at, reach_token.clone());
                return Ok(reach_token);
            }
        }
    }

    /// The reachability token with which the far agent probes this near end. One in this process needs it only at an address `at`
    /// other than the control connection's.
    async fn reach_token_as_near(&mut self, at: Option<IpAddr>) -> Result<Option<ReachabilityToken>, ControlError> {
        if self.address.is_none() && at.is_none() { Ok(None) } else { self.reach_token(at).await.map(Some) }
    }

    /// Whether its agent connects only with a reachability token. An agent in this process does not need one.
    pub(super) fn needs_reach_token(&self) -> bool {
        self.address.is_some()
    }

    /// The end's path probe; `None` if its agent does not answer in time.
    async fn probe_path(
        &mut self,
        (peer, name): (Option<IpAddr>, Option<String>),
        reach_token: Option<ReachabilityToken>,
        (round_trip_ns, scope): (u64, u32),
    ) -> Result<Option<PathFacts>, ControlError> {
        let path = self.path().clone();
        self.send(&ToAgent::ProbePath { peer, name, reach_token, round_trip_ns, scope }).await?;
        let answer = async {
            loop {
                if let FromAgent::PathProbed(facts) = self.recv("while it probed the path").await? {
                    return Ok(*facts);
                }
            }
        };
        let limit = PROBE_LIMIT + Duration::from_nanos(round_trip_ns) * PROBE_TRIPS;
        match path.within(limit, answer).await {
            Ok(facts) => facts.map(Some),
            Err(_) => Ok(None),
        }
    }
}

/// Adds what was found out to a host's inventory and to its view of the path.
pub fn note_path(facts: PathFacts, inventory: &mut Inventory, path: &mut Option<Path>) {
    host::note_traffic(inventory, &facts.traffic);
    *path = facts.path;
}

/// The address that a host's packets to the probed one come from.
fn source(facts: &PathFacts) -> Option<IpAddr> {
    facts.path.as_ref()?.route.as_ref()?.source.as_ref()?.parse().ok()
}

/// Far clock less near clock. The coordinator's clock cancels out, except for its drift between the two readings, which is far
/// below the error bound.
fn difference(near: &Reading, far: &Reading) -> Option<ClockOffset> {
    Some(ClockOffset {
        offset_ns: i64::try_from(far.realtime_ns - near.realtime_ns).ok()?,
        monotonic_offset_ns: i64::try_from(far.monotonic_ns - near.monotonic_ns).ok()?,
        error_ns: near.error_ns + far.error_ns,
        exchanges: near.exchanges.min(far.exchanges),
        at_ns: RealSys.now_ns(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_coordinators_clock_cancels_out() {
        let reading =
            |realtime_ns, monotonic_ns, error_ns| Reading { realtime_ns, monotonic_ns, error_ns, exchanges: 16 };
        let near = reading(1_800_000_000_000_000_000, 5_000, 2_000);
        let far = reading(1_800_000_000_000_700_000, -3_000_000, 40_000);
        let offset = difference(&near, &far).unwrap();
        assert_eq!((offset.offset_ns, offset.monotonic_offset_ns, offset.error_ns), (700_000, -3_005_000, 42_000));
    }
}
