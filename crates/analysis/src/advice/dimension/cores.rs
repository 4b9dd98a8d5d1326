//! Flows, threads, their cores and how they wait.

use model::{Goal, LimiterKind, Role, Strategy};

use super::{ALL, BULK, Dimension, Edit, Level, SearchContext, Untried};

/// Parallel connections.
pub(super) const FLOWS: Dimension = Dimension {
    name: "flows",
    class: None,
    goals: BULK,
    eases: &[
        LimiterKind::Loss,
        LimiterKind::CongestionWindow,
        LimiterKind::ReceiveWindow,
        LimiterKind::SenderCpu,
        LimiterKind::ReceiverCpu,
    ],
    levels: flows,
};

/// Threads that share the flows.
pub(super) const THREADS: Dimension = Dimension {
    name: "threads",
    class: None,
    goals: BULK,
    eases: &[LimiterKind::SenderCpu, LimiterKind::ReceiverCpu],
    levels: threads,
};

/// The cores of the measuring threads.
pub(super) const PIN: Dimension = Dimension {
    name: "pin",
    class: None,
    goals: ALL,
    eases: &[LimiterKind::SenderCpu, LimiterKind::ReceiverCpu, LimiterKind::Softirq],
    levels: pins,
};

/// Spinning instead of sleeping.
pub(super) const SPIN: Dimension =
    Dimension { name: "spin", class: None, goals: &[Goal::Latency], eases: &[LimiterKind::RoundTrip], levels: spin };

/// The kernel's busy polling, per socket.
pub(super) const BUSY_POLL: Dimension = Dimension {
    name: "busy-poll",
    class: None,
    goals: &[Goal::Latency],
    eases: &[LimiterKind::RoundTrip],
    levels: busy_poll,
};

/// Largest number of flows that is tried.
const MAX_FLOWS: u32 = 64;
/// Microseconds of busy polling that are tried.
const POLLS_US: [u32; 2] = [20, 100];

fn flows(path: &SearchContext<'_>) -> Result<Vec<Level>, Untried> {
    let now = path.spec.flows;
    let fewer = (now > 1).then_some(1);
    let more = [2, 4, 8].into_iter().map(|times| now.saturating_mul(times)).filter(|flows| *flows <= MAX_FLOWS);
    let others = fewer.into_iter().chain(more).filter(|flows| *flows >= path.spec.processes);
    Ok(std::iter::once(Level::start(now.to_string()))
        .chain(others.map(|flows| Level::new(flows.to_string(), vec![Edit::Flows(flows)])))
        .collect())
}

fn threads(path: &SearchContext<'_>) -> Result<Vec<Level>, Untried> {
    if path.spec.flows < 2 {
        return Err(Untried::OneFlow);
    }
    let now = path.spec.threads;
    let cores = path.near.cores.into_iter().chain(path.far.cores).min();
    let mut others: Vec<u32> =
        [Some(1), cores].into_iter().flatten().filter(|count| *count < path.spec.flows).collect();
    others.retain(|count| Some(*count) != now);
    others.dedup();
    let label = now.map_or("one per flow".to_owned(), |threads| threads.to_string());
    Ok(std::iter::once(Level::start(label))
        .chain(others.into_iter().map(|count| Level::new(count.to_string(), vec![Edit::Threads(count)])))
        .collect())
}

fn pins(path: &SearchContext<'_>) -> Result<Vec<Level>, Untried> {
    let (Some(near), Some(far)) = (path.near.cores, path.far.cores) else {
        return Err(Untried::UnknownCores);
    };
    if near < 2 && far < 2 {
        return Err(Untried::OneCoreEach);
    }
    let list = |cores: &[u32]| cores.iter().map(u32::to_string).collect::<Vec<_>>().join("+");
    let end = |cores: &[u32]| if cores.is_empty() { "none".to_owned() } else { list(cores) };
    let now = (&path.spec.near.pin, &path.spec.far.pin);
    let start =
        if now.0.is_empty() && now.1.is_empty() { "none".to_owned() } else { format!("{},{}", end(now.0), end(now.1)) };
    let last = (near - 1, far - 1);
    // The first core often handles the interrupts; on one host the two ends must not share a core.
    let mut pairs = if path.one_host() { vec![(0, last.1), (last.0, 0)] } else { vec![(0, 0), last] };
    pairs.retain(|(one, other)| (now.0.as_slice(), now.1.as_slice()) != (&[*one][..], &[*other][..]));
    pairs.dedup();
    let level = |(one, other): (u32, u32)| {
        let edits = vec![Edit::Pin(Role::Active, vec![one]), Edit::Pin(Role::Passive, vec![other])];
        Level::new(format!("{one},{other}"), edits)
    };
    Ok(std::iter::once(Level::start(start)).chain(pairs.into_iter().map(level)).collect())
}

fn spin(path: &SearchContext<'_>) -> Result<Vec<Level>, Untried> {
    match path.spec.strategy {
        Strategy::Spin => Err(Untried::AlreadySpinning),
        _ if path.one_host() && path.near.cores.is_some_and(|cores| cores < 2) => Err(Untried::OneCoreForBoth),
        _ => Ok(vec![Level::start("off"), Level::new("on", vec![Edit::Spin])]),
    }
}

fn busy_poll(path: &SearchContext<'_>) -> Result<Vec<Level>, Untried> {
    if path.spec.strategy == Strategy::Spin {
        return Err(Untried::SpinningPolls);
    }
    let now = path.spec.near.busy_poll_us;
    let others = POLLS_US.into_iter().filter(|us| Some(*us) != now);
    Ok(std::iter::once(Level::start(now.map_or("off".to_owned(), |us| format!("{us}us"))))
        .chain(others.map(|us| Level::new(format!("{us}us"), vec![Edit::BusyPoll(us)])))
        .collect())
}
