//! Socket buffers, around the bandwidth-delay product.
//!
//! While a small buffer is the limit, the path's rate is unknown. So the sizes start at the data in flight in the pilot trials
//! (goodput times minimum RTT) and grow in powers of two; if the line's rate is known they end at twice its bandwidth-delay product.

use model::{AdviceUntried, LimiterKind, Role};

use super::{BULK, Dimension, Edit, Level, SearchContext, Untried, size};

/// Smallest and largest buffer that is tried, bytes.
const BOUNDS: (u64, u64) = (16 << 10, 64 << 20);
/// Sizes to try, as multiples of the power of two above the data in flight.
const MULTIPLES: [u64; 5] = [1, 2, 4, 8, 16];
/// Multiples for one buffer alone, which only refines the two together.
const FEW_MULTIPLES: [u64; 2] = [2, 8];

const EASED: &[LimiterKind] = &[
    LimiterKind::SendBuffer,
    LimiterKind::ReceiveWindow,
    LimiterKind::CongestionWindow,
    LimiterKind::SocketBuffer,
    LimiterKind::RoundTrip,
];

/// The sender's send buffer and the receiver's receive buffer together: while either one limits, the other has no effect.
pub(super) const WINDOW: Dimension =
    Dimension { name: "window", class: None, goals: BULK, eases: EASED, levels: window };

/// The sender's buffer alone.
pub(super) const SEND_BUFFER: Dimension =
    Dimension { name: "send-buffer", class: None, goals: BULK, eases: &[LimiterKind::SendBuffer], levels: send };

/// The receiver's buffer alone.
pub(super) const RECEIVE_BUFFER: Dimension = Dimension {
    name: "receive-buffer",
    class: None,
    goals: BULK,
    eases: &[LimiterKind::ReceiveWindow, LimiterKind::SocketBuffer],
    levels: receive,
};

/// The sysctls that do not allow some of the window sizes; `None` if all are allowed.
pub(super) fn not_granted(path: &SearchContext<'_>) -> Option<AdviceUntried> {
    let needed = path.in_flight().filter(|_| BULK.contains(&path.goal))?.max(1.0) as u64;
    let ends = [(path.senders(), SEND), (path.receivers(), RECEIVE)];
    let low = |(roles, name): &(&[Role], &'static str)| {
        let limit = limits(path, roles, name).into_iter().flatten().min()?;
        (limit < 2 * needed.next_power_of_two()).then_some((*name, limit))
    };
    let limits: Vec<(&str, u64)> = ends.iter().filter_map(low).collect();
    (!limits.is_empty()).then(|| Untried::LowLimits { limits }.of("larger windows"))
}

/// Whether the data in flight is close to the hosts' limits of the buffers that the kernel sizes. A queue or slow start needs larger
/// buffers than the data in flight suggests.
pub(super) fn near_limit(path: &SearchContext<'_>) -> bool {
    /// Share of a limit that counts as close.
    const NEAR: f64 = 0.25;
    let own = |set: &[Option<u64>]| set.iter().all(Option::is_none);
    let near = |roles: &[Role], name: &str| {
        let limit =
            roles.iter().filter_map(|role| super::host::autotuning(path, *role, name)).map(|[.., most]| most).min();
        path.in_flight().zip(limit).is_some_and(|(bytes, limit)| bytes >= NEAR * limit as f64)
    };
    let sends = own(&sending(path)) && near(path.senders(), "net.ipv4.tcp_wmem");
    path.spec.is_over_tcp() && (sends || (own(&receiving(path)) && near(path.receivers(), "net.ipv4.tcp_rmem")))
}

fn window(path: &SearchContext<'_>) -> Result<Vec<Level>, Untried> {
    let edits = |bytes: Option<u64>| {
        let send = path.senders().iter().map(|role| Edit::SendBuffer(*role, bytes));
        send.chain(path.receivers().iter().map(|role| Edit::ReceiveBuffer(*role, bytes))).collect()
    };
    let now = [sending(path), receiving(path)].concat();
    let limits: Vec<Option<u64>> =
        [limits(path, path.senders(), SEND), limits(path, path.receivers(), RECEIVE)].concat();
    levels(path, &now, &limits, &MULTIPLES, edits)
}

fn send(path: &SearchContext<'_>) -> Result<Vec<Level>, Untried> {
    let edits = |bytes| path.senders().iter().map(|role| Edit::SendBuffer(*role, bytes)).collect();
    levels(path, &sending(path), &limits(path, path.senders(), SEND), &FEW_MULTIPLES, edits)
}

fn receive(path: &SearchContext<'_>) -> Result<Vec<Level>, Untried> {
    let edits = |bytes| path.receivers().iter().map(|role| Edit::ReceiveBuffer(*role, bytes)).collect();
    levels(path, &receiving(path), &limits(path, path.receivers(), RECEIVE), &FEW_MULTIPLES, edits)
}

/// Sysctls of the largest buffer that a program may request.
const SEND: &str = "net.core.wmem_max";
const RECEIVE: &str = "net.core.rmem_max";

fn limits(path: &SearchContext<'_>, roles: &[Role], name: &str) -> Vec<Option<u64>> {
    roles.iter().map(|role| path.host(*role).sysctl.get(name).and_then(|value| value.parse().ok())).collect()
}

fn sending(path: &SearchContext<'_>) -> Vec<Option<u64>> {
    path.senders().iter().map(|role| path.spec.end(*role).sndbuf).collect()
}

fn receiving(path: &SearchContext<'_>) -> Vec<Option<u64>> {
    path.receivers().iter().map(|role| path.spec.end(*role).rcvbuf).collect()
}

fn levels(
    path: &SearchContext<'_>,
    now: &[Option<u64>],
    limits: &[Option<u64>],
    multiples: &[u64],
    edits: impl Fn(Option<u64>) -> Vec<Edit>,
) -> Result<Vec<Level>, Untried> {
    let named = |bytes: &Option<u64>| bytes.map_or("kernel".to_owned(), size);
    let mut labels: Vec<String> = now.iter().map(named).collect();
    labels.dedup();
    let mut levels = vec![Level::start(labels.join(","))];
    if now.iter().any(Option::is_some) {
        levels.push(Level::new("kernel", edits(None)));
    }
    let Some(in_flight) = path.in_flight() else {
        // Datagrams have no RTT, so only the kernel's default can be tried.
        return if levels.len() > 1 { Ok(levels) } else { Err(Untried::NoRtt) };
    };
    let first = (in_flight.max(1.0) as u64).next_power_of_two();
    let max = path.max_in_flight().map_or(BOUNDS.1, |bytes| (bytes as u64).next_power_of_two());
    // A request above the limit gets the limit, so one such size is enough.
    let granted = limits.iter().flatten().copied().max().unwrap_or(u64::MAX);
    let mut sizes: Vec<u64> = multiples
        .iter()
        .map(|multiple| (first * multiple).clamp(BOUNDS.0, BOUNDS.1).min(granted))
        .filter(|bytes| *bytes <= max.max(BOUNDS.0))
        .collect();
    sizes.dedup();
    let new = sizes.into_iter().filter(|bytes| !now.iter().all(|now| *now == Some(*bytes)));
    levels.extend(new.map(|bytes| Level::new(size(bytes), edits(Some(bytes)))));
    Ok(levels)
}
