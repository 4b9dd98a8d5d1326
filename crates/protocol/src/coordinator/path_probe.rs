//! The path probes of both ends before the first trial, and the offset of their clocks.

use std::net::IpAddr;
use std::time::Duration;

use model::{ClockOffset, Spec};

use super::end::End;
use super::error::DialogueError;
use super::pair::Pair;
use crate::message::{FromAgent, PathFacts, ReachabilityToken, ToAgent};

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

/// What both ends found out about the path.
#[derive(Debug, Default)]
pub struct BothPaths {
    /// The offset of the far clocks from the near ones; `None` without a far end.
    pub clocks: Option<ClockOffset>,
    /// What the near and the far end found; `None` for an end that did not answer in time.
    pub facts: [Option<PathFacts>; 2],
}

impl Pair {
    /// The offset of the far clocks from the near ones; `None` without a far end.
    pub(super) async fn clocks(&self) -> Result<Option<ClockOffset>, DialogueError> {
        let Some(far) = &self.far else { return Ok(None) };
        let near = self.near.clock().await?;
        let far = far.clock().await?;
        let (Some(near), Some(far)) = (near, far) else { return Ok(None) };
        Ok(difference(&near, &far, self.near.outside().now()))
    }

    /// Lets both ends measure their traffic and probe the path to each other. `spec` has the data addresses; `scope` is the interface of
    /// the far address, if it needs one.
    pub(super) async fn probe_path(&mut self, spec: &Spec, scope: u32) -> Result<BothPaths, DialogueError> {
        let mut found = BothPaths { clocks: self.clocks().await?, ..BothPaths::default() };
        let Self { near, far, .. } = self;
        let Some(far) = far else { return Ok(found) };
        // Two ends within one process have no path between them.
        let at = spec.far.data_at.map(|at| at.ip());
        let Some(far_address) = far.address.map(|address| spec.far.data_addr.or(at).unwrap_or(address.ip())) else {
            return Ok(found);
        };
        let trip_of = |end: &End| end.path().round_trip_ns;
        let round_trip_ns = trip_of(near).max(trip_of(far));
        // Data towards an address of its own leaves by the route to that address, so the near end's address there is known only after
        // its probe. Otherwise the far end probes the address that this connection comes from, or that of the near agent.
        let by_route = spec.far.data_addr.is_some() && spec.near.data_addr.is_none();
        let near_address = spec.near.data_addr.or(near.address.map(|address| address.ip()));
        let near_name = near.name_for_others(&spec.near);
        let to_far = (Some(far_address), far.name_for_others(&spec.far));
        // Agents on other hosts probe each other only with a reachability token. An agent in this process needs none.
        let mut for_near = match near.address {
            Some(_) => Some(far.reach_token(spec.far.data_addr).await?),
            None => None,
        };
        if let (Some(for_near), Some(at)) = (&mut for_near, spec.far.data_at.filter(|at| at.port() > 0)) {
            for_near.port = Some(at.port());
        }
        if by_route {
            let outbound = near.probe_path(to_far, for_near, (round_trip_ns, scope)).await?;
            let source = outbound.as_ref().and_then(source);
            let for_far = near.reach_token_as_near(source).await?;
            let back = far.probe_path((source.or(near_address), near_name), for_far, (round_trip_ns, 0)).await?;
            found.facts = [outbound, back];
        } else {
            let for_far = near.reach_token_as_near(spec.near.data_addr).await?;
            let outbound = near.probe_path(to_far, for_near, (round_trip_ns, scope));
            let back = far.probe_path((near_address, near_name), for_far, (round_trip_ns, 0));
            let (outbound, back) = futures_util::future::join(outbound, back).await;
            found.facts = [outbound?, back?];
        }
        Ok(found)
    }
}

impl End {
    /// Lets this near end measure its traffic and probe the path to a host that has no agent; `None` where the probe takes too long.
    ///
    /// # Errors
    /// The connection is lost.
    pub async fn probe_host(
        &self,
        peer: (Option<IpAddr>, Option<String>),
        scope: u32,
    ) -> Result<Option<PathFacts>, DialogueError> {
        self.probe_path(peer, None, (0, scope)).await
    }

    /// The offset of its clocks from this host's, whose wall clock is `unix_ns` when its monotonic one is at zero.
    ///
    /// # Errors
    /// The connection is lost.
    pub async fn clock_offset(&self) -> Result<Option<ClockOffset>, DialogueError> {
        let Some(far) = self.clock().await? else { return Ok(None) };
        let outside = self.outside();
        // This host against itself: read without an exchange.
        let near = Reading {
            realtime_ns: i128::from(outside.unix_ns()) - nanos(outside.now()),
            monotonic_ns: 0,
            error_ns: 0,
            exchanges: far.exchanges,
        };
        Ok(difference(&near, &far, outside.now()))
    }

    /// The reading of the shortest of several exchanges.
    async fn clock(&self) -> Result<Option<Reading>, DialogueError> {
        let outside = self.outside();
        let begun = outside.now();
        let mut best: Option<Reading> = None;
        let mut exchanges = 0;
        while exchanges < EXCHANGES && outside.now().saturating_sub(begun) < CLOCK_LIMIT {
            let requested = outside.now();
            self.send(ToAgent::Clock);
            let clock = |message| match message {
                FromAgent::Clock { realtime_ns, monotonic_ns } => Some((realtime_ns, monotonic_ns)),
                _ => None,
            };
            let (realtime_ns, monotonic_ns) = self.answer("while it read its clocks", clock).await?;
            exchanges += 1;
            let error = outside.now().saturating_sub(requested).div_f64(2.0);
            let error_ns = error.as_nanos() as u64 + 1;
            if best.as_ref().is_none_or(|best| error_ns < best.error_ns) {
                let middle = nanos(requested + error);
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

    /// The reachability token with which the far agent probes this near end. One in this process needs it only at an address `at`
    /// other than the control connection's.
    async fn reach_token_as_near(&mut self, at: Option<IpAddr>) -> Result<Option<ReachabilityToken>, DialogueError> {
        if self.address.is_none() && at.is_none() { Ok(None) } else { self.reach_token(at).await.map(Some) }
    }

    /// The end's path probe; `None` if its agent does not answer in time.
    async fn probe_path(
        &self,
        (peer, name): (Option<IpAddr>, Option<String>),
        reach_token: Option<ReachabilityToken>,
        (round_trip_ns, scope): (u64, u32),
    ) -> Result<Option<PathFacts>, DialogueError> {
        self.send(ToAgent::ProbePath { peer, name, reach_token, round_trip_ns, scope });
        let facts = |message| if let FromAgent::PathProbed(facts) = message { Some(*facts) } else { None };
        let answer = self.answer("while it probed the path", facts);
        let limit = PROBE_LIMIT + Duration::from_nanos(round_trip_ns) * PROBE_TRIPS;
        self.within(limit, answer).await.transpose()
    }
}

/// The address that a host's packets to the probed one come from.
fn source(facts: &PathFacts) -> Option<IpAddr> {
    facts.path.as_ref()?.route.as_ref()?.source.as_ref()?.parse().ok()
}

fn nanos(time: Duration) -> i128 {
    time.as_nanos() as i128
}

/// Far clock less near clock. The coordinator's clock cancels out, except for its drift between the two readings, which is far
/// below the error bound.
fn difference(near: &Reading, far: &Reading, now: Duration) -> Option<ClockOffset> {
    Some(ClockOffset {
        offset_ns: i64::try_from(far.realtime_ns - near.realtime_ns).ok()?,
        monotonic_offset_ns: i64::try_from(far.monotonic_ns - near.monotonic_ns).ok()?,
        error_ns: near.error_ns + far.error_ns,
        exchanges: near.exchanges.min(far.exchanges),
        at_ns: now.as_nanos() as u64,
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
        let offset = difference(&near, &far, Duration::ZERO).unwrap();
        assert_eq!((offset.offset_ns, offset.monotonic_offset_ns, offset.error_ns), (700_000, -3_005_000, 42_000));
    }
}
