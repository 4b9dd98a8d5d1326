//! The ceiling: the largest goodput that a path can carry, from the facts of both hosts.

mod frame;
mod route;

use model::{Bound, BoundKind, ByteSize, Ceiling, Direction, EndOptions, FlowTally, Inventory, Outcome};
use model::{Spec, Trial, Verdict};
use text::{Rate, Text, Time, say};

use crate::direction::{DirectionView, Side, directions, send_buffer_bytes};
use crate::in_force::in_force;
use crate::limiter;
use crate::outcome::{Headline, add_verdict, direction_outcomes};

/// Assumed size of the first arrival of a flow, at least, bytes.
const ONE_BUFFER: u64 = 65_536;
/// A window bound of more than this many times the goodput is not reported.
const MAX_FACTOR: f64 = 10.0;

/// Sets an outcome's ceiling from its trials and the inventories of both hosts, and a verdict if the goodput is above it. Null if no
/// bound is known, and for patterns without goodput.
pub fn bound(outcome: &mut Outcome, near: &Inventory, far: &Inventory) {
    let [near, far] = in_force(outcome, &[], [near, far]);
    let path = limiter::known_bps(outcome, &near, &far);
    outcome.summary.ceiling = ceiling(outcome, path, &near, &far);
    // Each of two simultaneous directions has its own line, windows and buffers. Their queues lengthen each other's round trips.
    let each = direction_outcomes(outcome);
    for ((_, one), (_, summary)) in each.iter().zip(outcome.summary.directions_mut()) {
        summary.ceiling = ceiling(one, None, &near, &far);
    }
    if excess(outcome).is_some() {
        add_verdict(outcome, Verdict::AboveCeiling);
    }
}

/// By how much an outcome's goodput is above its ceiling, as a fraction: if its whole interval is, and by more than the clocks and the
/// last blocks can explain.
pub(crate) fn excess(outcome: &Outcome) -> Option<f64> {
    let ceiling = outcome.summary.ceiling.as_ref()?;
    let estimate = outcome.estimate.as_ref()?;
    let low = estimate.low.unwrap_or(estimate.value);
    let trials = outcome.trials.len().max(1) as f64;
    let arrived = outcome.summary.bytes_received? as f64 / trials;
    // A receiver's time starts with the arrival of the first block, so that block's bytes take no time.
    let first = f64::from(outcome.spec.flows) * outcome.spec.block.max(ONE_BUFFER) as f64;
    let slack = match ceiling.kind {
        // The window is the last one, which may have been a little larger before. A path's rate is an estimate.
        BoundKind::Window | BoundKind::SendBuffer | BoundKind::Path => 0.1,
        _ => 0.01,
    };
    let allowed = ceiling.bound_bps * (1.0 + slack + if arrived > first { first / (arrived - first) } else { 1.0 });
    (low > allowed).then(|| low / ceiling.bound_bps - 1.0)
}

/// The known bounds, with the lowest as the ceiling. `path_bps` is the rate of a bottleneck on the path.
fn ceiling(outcome: &Outcome, path_bps: Option<f64>, near: &Inventory, far: &Inventory) -> Option<Ceiling> {
    let (spec, trials): (&Spec, &[Trial]) = (&outcome.spec, &outcome.trials);
    if Headline::of(spec) != Headline::Goodput {
        return None;
    }
    // With a short RTT any window gives a bound far above what the hosts can do.
    let goodput = outcome.estimate.as_ref().map(|estimate| estimate.value);
    let plausible =
        |bound: Option<Bound>| bound.filter(|bound| goodput.is_none_or(|goodput| bound.bps <= MAX_FACTOR * goodput));
    let directions: Vec<Vec<DirectionView<'_>>> =
        trials.iter().map(|trial| directions(spec, trial, None, [near, far])).collect();
    // If a bound differs between trials, the highest holds for all of them.
    let highest = |bound: &dyn Fn(&[DirectionView<'_>]) -> Option<Bound>| {
        directions.iter().filter_map(|directions| bound(directions)).max_by(|a, b| a.bps.total_cmp(&b.bps))
    };
    let mut bounds: Vec<Bound> = [
        highest(&|directions| line(spec, directions)),
        plausible(highest(&|directions| window(spec, directions))),
        plausible(highest(&|directions| send_buffer(spec, directions))),
        requested(spec),
        pacing(spec),
        // Estimated from the same trials: what was carried is not above it.
        path_bps.map(|bps| Bound {
            kind: BoundKind::Path,
            bps: bps.max(goodput.unwrap_or(0.0)),
            reason: "a bottleneck on the path".into(),
        }),
    ]
    .into_iter()
    .flatten()
    .collect();
    bounds.sort_by(|a, b| a.bps.total_cmp(&b.bps));
    let mut bounds = bounds.into_iter();
    let Bound { kind, bps, reason } = bounds.next()?;
    Some(Ceiling { bound_bps: bps, kind, reason, others: bounds.collect() })
}

/// The sum over the directions, `None` if one of them is unknown.
fn sum<'a, 'b: 'a>(
    directions: &'a [DirectionView<'b>],
    each: impl Fn(&'a DirectionView<'b>) -> Option<f64>,
) -> Option<f64> {
    directions.iter().map(each).sum()
}

/// The payload rate of the interfaces.
fn line(spec: &Spec, directions: &[DirectionView<'_>]) -> Option<Bound> {
    let routes: Vec<route::Route> =
        directions.iter().map(|direction| route::of(&direction.sender, &direction.receiver)).collect::<Option<_>>()?;
    let shares: Vec<f64> = routes.iter().map(|route| route.share(spec)).collect::<Option<_>>()?;
    let each = || routes.iter().zip(&shares).map(|(route, share)| route.line_bps * share);
    // Both directions of a half-duplex line share its rate.
    let half = routes.iter().any(|route| route.half_duplex);
    let bps = if half { each().reduce(f64::max)? } else { each().sum() };
    let slowest = routes.iter().min_by(|a, b| a.line_bps.total_cmp(&b.line_bps))?;
    let directions = match (half, routes.len()) {
        (true, _) => " half duplex",
        (false, 2) => " in each direction",
        _ => "",
    };
    let reason = say!("{} on {}{directions}", slowest.words(), rate_words(slowest.line_bps));
    Some(Bound { kind: BoundKind::Line, bps, reason })
}

/// A line's nominal rate: `1 Gbit/s`, not `1.00 Gbit/s`.
fn rate_words(bps: f64) -> Text {
    let (value, unit) = if bps >= 1e9 { (bps / 1e9, "Gbit/s") } else { (bps / 1e6, "Mbit/s") };
    say!("{value} {unit}")
}

/// One window per RTT, if the size of the receive buffer was requested. The minimum RTT and the last announced window are those that
/// the kernel reports. A window that the kernel sizes is not a bound, because it grows as needed.
fn window(spec: &Spec, directions: &[DirectionView<'_>]) -> Option<Bound> {
    if directions.iter().any(|direction| direction.receiver.options.rcvbuf.is_none()) {
        return None;
    }
    per_round_trip(spec, directions, BoundKind::Window, "window", |_, flow| {
        flow.socket.peer_window_bytes.map(u64::from)
    })
}

/// The same for a send buffer of requested size.
fn send_buffer(spec: &Spec, directions: &[DirectionView<'_>]) -> Option<Bound> {
    per_round_trip(spec, directions, BoundKind::SendBuffer, "send buffer", |side, flow| {
        side.options.sndbuf?;
        send_buffer_bytes(flow)
    })
}

fn per_round_trip(
    spec: &Spec,
    directions: &[DirectionView<'_>],
    kind: BoundKind,
    name: &str,
    bytes: impl Fn(&Side<'_>, &FlowTally) -> Option<u64>,
) -> Option<Bound> {
    // Each path of a multipath connection has windows of its own.
    if !spec.transport_facts().is_some_and(|facts| facts.is_over_tcp() && !facts.multipath) {
        return None;
    }
    let rtt = |flow: &FlowTally| flow.socket.min_rtt_ns.filter(|ns| *ns > 0);
    let of_direction = |direction: &DirectionView<'_>| {
        let flows: Vec<&FlowTally> = direction.sender.flows().filter(|flow| flow.bytes_sent > 0).collect();
        if flows.is_empty() {
            return None;
        }
        flows.into_iter().map(|flow| Some(bytes(&direction.sender, flow)? as f64 * 8e9 / rtt(flow)? as f64)).sum()
    };
    let bps = sum(directions, of_direction)?;
    let flows =
        || directions.iter().flat_map(|direction| direction.sender.flows().map(move |flow| (&direction.sender, flow)));
    let total: u64 = flows().filter_map(|(side, flow)| bytes(side, flow)).sum();
    let shortest = flows().filter_map(|(_, flow)| rtt(flow)).min()?;
    let reason = say!("{name} {} over {}", size(total), Time(shortest as f64));
    Some(Bound { kind, bps, reason })
}

/// A computed size, rounded if it is large: `31.5 MiB`.
fn size(bytes: u64) -> String {
    const MIB: u64 = 1 << 20;
    let exact = bytes < MIB || bytes.is_multiple_of(MIB);
    if exact { ByteSize(bytes).to_string() } else { format!("{:.1} MiB", bytes as f64 / MIB as f64) }
}

/// Number of directions that carry payload.
fn direction_count(spec: &Spec) -> f64 {
    if spec.direction == Direction::Both { 2.0 } else { 1.0 }
}

fn requested(spec: &Spec) -> Option<Bound> {
    let bps = spec.rate_bps? as f64;
    let direction = if spec.direction == Direction::Both { " in each direction" } else { "" };
    let reason = say!("requested rate of {}{direction}", Rate(bps));
    Some(Bound { kind: BoundKind::Rate, bps: bps * direction_count(spec), reason })
}

fn pacing(spec: &Spec) -> Option<Bound> {
    let senders: &[&EndOptions] = match spec.direction {
        Direction::Send => &[&spec.near],
        Direction::Reverse => &[&spec.far],
        Direction::Both => &[&spec.near, &spec.far],
    };
    let each: Vec<f64> = senders.iter().map(|end| end.max_pacing_bps.map(|bps| bps as f64)).collect::<Option<_>>()?;
    let flows = f64::from(spec.flows);
    let reason = say!("pacing of {} per flow", Rate(each.iter().copied().fold(f64::MAX, f64::min)));
    Some(Bound { kind: BoundKind::Pacing, bps: each.iter().sum::<f64>() * flows, reason })
}

#[cfg(test)]
mod tests;
