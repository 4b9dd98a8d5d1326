//! The kernel's pacing.

use model::{LimiterKind, median};
use text::{Rate, say};

use super::super::bottleneck;
use super::super::observations::{Observations, SenderFlow, each, ramp, sender_flows};
use super::{Rule, Signal};
use crate::direction::DirectionView;

/// Fewest samples from which a rate counts as unchanged.
const FEWEST: usize = 5;

pub(super) const PACING: Rule = Rule {
    name: "pacing-rate",
    speaks_for: &[LimiterKind::Pacing],
    about: "The rate is the connection's requested pacing rate, or a pacing rate that stayed the same throughout.",
    source: "socket(7), SO_MAX_PACING_RATE; tcp_update_pacing_rate in net/ipv4/tcp_input.c",
    evaluate: |_: &Observations<'_>, direction: &DirectionView<'_>| {
        let flows = sender_flows(direction);
        let requested = direction.sender.options.max_pacing_bps.map(|bps| bps as f64);
        let most = |flow: &SenderFlow<'_>| requested.or_else(|| capped_bps(flow));
        // Pacing includes headers, so the payload rate is a few percent lower.
        let part = each(&flows, |flow| Some(flow.rate_bps / most(flow)?)).unwrap_or(0.0);
        let Some(all) = flows.iter().map(most).sum::<Option<f64>>().filter(|all| *all > 0.0) else { return Vec::new() };
        // Slow start may have kept the connection below it at first.
        let part = median(&bottleneck::arrivals(direction)).map_or(part, |usual| part.max(usual / all));
        Signal::of(LimiterKind::Pacing, 0.95 * ramp(part, 0.75, 0.92), || {
            let paced = each(&flows, most).unwrap_or(f64::NAN);
            let by = if requested.is_some() { "SO_MAX_PACING_RATE" } else { "its pacing rate never changed" };
            let (rate, paced) = (Rate(part * paced), Rate(paced));
            say!("a connection was paced to {paced} including headers ({by}) and carried {rate}")
        })
    },
};

/// The pacing rate of a connection that paced to the same rate in all samples, bit/s. A congestion control derives its own from the
/// window and the RTT, so it changes with them; BBR's is its estimate of the bottleneck's rate.
fn capped_bps(flow: &SenderFlow<'_>) -> Option<f64> {
    let usual = flow.pacing_bps()?;
    let same = flow.part(|one| one.pacing_bps.is_some_and(|bps| bps as f64 == usual))?;
    let own = flow.cc().is_none_or(|cc| cc.starts_with("bbr"));
    (same >= 1.0 && flow.samples().len() >= FEWEST && !own).then_some(usual)
}
