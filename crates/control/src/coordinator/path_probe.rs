//! What the two ends see of each other before the first trial, and how their clocks stand.

use std::net::IpAddr;
use std::time::{Duration, Instant};

use host::{RealSys, Sys};
use model::{ClockOffset, Path, RunHeader, Spec};
use tokio::time::timeout;

use super::{End, Pair};
use crate::ControlError;
use crate::proto::message::{FromAgent, PathFacts, ReachabilityToken, ToAgent};
use crate::proto::{PATH, VOUCH};

/// Exchanges with each end; the shortest counts.
const EXCHANGES: u32 = 16;
/// A slow path gets fewer.
const CLOCK_LIMIT: Duration = Duration::from_millis(500);
/// How long an end may take for a look, which it bounds itself; one that has none of it is not waited for.
const LOOK_LIMIT: Duration = Duration::from_secs(10);

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
    /// How the far clocks stand to the near ones; `None` where there is no far end, or an end that cannot say.
    pub async fn clocks(&mut self) -> Result<Option<ClockOffset>, ControlError> {
        let Some(far) = self.far.as_mut().filter(|far| far.looks()) else { return Ok(None) };
        if !self.near.looks() {
            return Ok(None);
        }
        let near = self.near.clock().await?;
        let far = far.clock().await?;
        let (Some(near), Some(far)) = (near, far) else { return Ok(None) };
        Ok(difference(&near, &far))
    }

    /// Lets both ends look at their traffic and at each other, and writes what they saw into `header`. `spec` tells the
    /// addresses that data will use. An end that cannot look leaves null.
    pub async fn look(&mut self, header: &mut RunHeader, spec: &Spec) -> Result<(), ControlError> {
        header.clocks = self.clocks().await?;
        let Some(far) = &mut self.far else { return Ok(()) };
        // Two ends within one process have no path between them.
        let Some(far_address) = far.address.map(|address| spec.far.data_addr.unwrap_or(address.ip())) else {
            return Ok(());
        };
        // The far end reaches the near one where this connection comes from, unless the near end is elsewhere.
        let near_address = spec.near.data_addr.or(self.near.address.map(|address| address.ip()));
        // Agents elsewhere look at each other only where the other one vouches for itself. One within this process needs no proof.
        let (mut for_near, mut for_far) = (None, None);
        if self.near.address.is_some() {
            for_near = far.vouch(spec.far.data_addr).await?;
            for_far = self.near.vouch(spec.near.data_addr).await?;
        }
        let (out, back) =
            tokio::join!(self.near.look_at(Some(far_address), for_near), far.look_at(near_address, for_far));
        for (looked, inventory, path) in [
            (out?, &mut header.near, &mut header.path_outbound as &mut Option<Path>),
            (back?, &mut header.far, &mut header.path_return),
        ] {
            if let Some(looked) = looked {
                host::note_traffic(inventory, &looked.traffic);
                *path = looked.path;
            }
        }
        Ok(())
    }
}

impl End {
    /// Whether the agent answers `clock` and `look-at`.
    fn looks(&self) -> bool {
        self.can(PATH)
    }

    /// The reading of the shortest of some exchanges.
    async fn clock(&mut self) -> Result<Option<Reading>, ControlError> {
        let begun = Instant::now();
        let mut best: Option<Reading> = None;
        let mut exchanges = 0;
        while exchanges < EXCHANGES && begun.elapsed() < CLOCK_LIMIT {
            let asked_ns = RealSys.now_ns();
            self.send(&ToAgent::Clock).await?;
            let (realtime_ns, monotonic_ns) = loop {
                if let FromAgent::Clock { realtime_ns, monotonic_ns } = self.recv("while it told its clocks").await? {
                    break (realtime_ns, monotonic_ns);
                }
            };
            let answered_ns = RealSys.now_ns();
            exchanges += 1;
            let error_ns = (answered_ns - asked_ns).div_ceil(2);
            if best.as_ref().is_none_or(|best| error_ns < best.error_ns) {
                let middle = i128::from(asked_ns) + i128::from(error_ns);
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

    /// What makes other agents look at this end's, at `at` where that is named; `None` from one that cannot say. It is asked for once
    /// while the machine is ours.
    async fn vouch(&mut self, at: Option<IpAddr>) -> Result<Option<ReachabilityToken>, ControlError> {
        if !self.can(VOUCH) {
            return Ok(None);
        }
        if let Some(reach_token) = self.reach_tokens.get(&at) {
            return Ok(Some(reach_token.clone()));
        }
        self.send(&ToAgent::IssueReachToken { at }).await?;
        loop {
            if let FromAgent::ReachToken(reach_token) = self.recv("while it vouched for itself").await? {
                self.reach_tokens.insert(at, reach_token.clone());
                return Ok(Some(reach_token));
            }
        }
    }

    /// Whether its agent connects only to agents that are vouched for: not within this process, whose user names them.
    pub(super) fn wants_reach_token(&self) -> bool {
        self.address.is_some() && self.can(VOUCH)
    }

    /// What makes another agent connect to this end's.
    pub(super) async fn proves_itself(&mut self, at: Option<IpAddr>) -> Result<ReachabilityToken, ControlError> {
        self.vouch(at).await?.ok_or_else(|| ControlError::Refused {
            address: self.name.clone(),
            reason: format!(
                "thru {} there cannot vouch for itself, which an agent at the near end wants: update it, or leave --from out",
                self.version
            ),
        })
    }

    /// What the end sees; `None` from one that cannot look, or does not answer in time.
    async fn look_at(
        &mut self,
        peer: Option<IpAddr>,
        reach_token: Option<ReachabilityToken>,
    ) -> Result<Option<PathFacts>, ControlError> {
        if !self.looks() {
            return Ok(None);
        }
        self.send(&ToAgent::ProbePath { peer, reach_token }).await?;
        let answer = async {
            loop {
                if let FromAgent::PathProbed(looked) = self.recv("while it looked at the path").await? {
                    return Ok(*looked);
                }
            }
        };
        match timeout(LOOK_LIMIT, answer).await {
            Ok(looked) => looked.map(Some),
            Err(_) => Ok(None),
        }
    }
}

/// Far less near. The coordinator's clock, which both were read against, falls out but for its own pace between the two
/// readings, which is far below the bound.
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
    fn the_coordinators_own_clock_falls_out() {
        let reading =
            |realtime_ns, monotonic_ns, error_ns| Reading { realtime_ns, monotonic_ns, error_ns, exchanges: 16 };
        let near = reading(1_800_000_000_000_000_000, 5_000, 2_000);
        let far = reading(1_800_000_000_000_700_000, -3_000_000, 40_000);
        let offset = difference(&near, &far).unwrap();
        assert_eq!((offset.offset_ns, offset.monotonic_offset_ns, offset.error_ns), (700_000, -3_005_000, 42_000));
    }
}
