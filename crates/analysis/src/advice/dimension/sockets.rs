//! Options of TCP sockets.

use model::{LimiterKind, Role};

use super::{ALL, BULK, Dimension, Edit, Level, SearchContext, Untried};

/// The congestion control of the ends that send.
pub(super) const CONGESTION_CONTROL: Dimension = Dimension {
    name: "cc",
    class: None,
    goals: BULK,
    eases: &[LimiterKind::Loss, LimiterKind::CongestionWindow, LimiterKind::Pacing],
    levels: congestion_controls,
};

/// TCP_NODELAY at both ends.
pub(super) const NODELAY: Dimension =
    Dimension { name: "nodelay", class: None, goals: ALL, eases: &[LimiterKind::SenderApplication], levels: nodelay };

fn congestion_controls(path: &SearchContext<'_>) -> Result<Vec<Level>, Untried> {
    if !path.spec.is_over_tcp() {
        return Err(Untried::NotTcp);
    }
    let senders = path.senders();
    let allowed = |name: &String| senders.iter().all(|role| path.host(*role).congestion_controls.contains(name));
    let first = senders.first().copied().unwrap_or(Role::Active);
    let names: Vec<&String> = path.host(first).congestion_controls.iter().filter(|name| allowed(name)).collect();
    let now = current(path, first).unwrap_or_else(|| "kernel".into());
    let edits = |name: &String| senders.iter().map(|role| Edit::CongestionControl(*role, name.clone())).collect();
    let others = names.into_iter().filter(|name| **name != now);
    let levels: Vec<Level> =
        std::iter::once(Level::start(now.clone())).chain(others.map(|name| Level::new(name, edits(name)))).collect();
    if levels.len() < 2 {
        return Err(Untried::OneCongestionControl { name: now });
    }
    Ok(levels)
}

/// The congestion control of the pilot trials' sockets, else the requested one, else the host's default.
fn current(path: &SearchContext<'_>, role: Role) -> Option<String> {
    let of = |trial: &model::Trial| {
        let end = if role == Role::Active { &trial.near } else { &trial.far };
        end.flows.first().and_then(|flow| flow.socket.cc.clone())
    };
    let requested = || path.spec.end(role).cc.clone();
    let default = || path.host(role).sysctl.get("net.ipv4.tcp_congestion_control").cloned();
    path.pilot.trials.iter().find_map(of).or_else(requested).or_else(default)
}

fn nodelay(path: &SearchContext<'_>) -> Result<Vec<Level>, Untried> {
    if !path.spec.is_over_tcp() {
        return Err(Untried::NotTcp);
    }
    let trips = crate::outcome::Headline::of(path.spec) != crate::outcome::Headline::Goodput;
    let now = path.spec.near.nodelay.unwrap_or(trips);
    let label = |on: bool| if on { "on" } else { "off" };
    if trips && now {
        return Err(Untried::NodelayOn);
    }
    Ok(vec![Level::start(label(now)), Level::new(label(!now), vec![Edit::NoDelay(!now)])])
}
