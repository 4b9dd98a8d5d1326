//! Socket buffers, around bandwidth × delay.
//!
//! How much the path could carry is not known while a small buffer holds it down, so the ladder starts at what was under way at
//! the first look (goodput × shortest round trip) and climbs in powers of two; where the line's rate is known it ends at twice
//! what that carries in a round trip.

use model::{AdviceUntried, ByteSize, LimiterKind, Role};

use super::{BULK, Dimension, Edit, Level, Path};

/// Smallest and largest buffer that is tried, bytes.
const BOUNDS: (u64, u64) = (16 << 10, 64 << 20);
/// Rungs of the ladder, as multiples of the power of two above what was under way.
const RUNGS: [u64; 5] = [1, 2, 4, 8, 16];
/// Rungs for one buffer alone, which only refines the two together.
const FEW_RUNGS: [u64; 2] = [2, 8];

const EASED: &[LimiterKind] = &[
    LimiterKind::SendBuffer,
    LimiterKind::ReceiveWindow,
    LimiterKind::CongestionWindow,
    LimiterKind::SocketBuffer,
    LimiterKind::RoundTrip,
];

/// The sender's send buffer and the receiver's receive buffer together: either alone may hide what the other one holds back.
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

/// Larger windows than a program is granted here, with the sysctls that say so; `None` where the whole ladder is.
pub(super) fn not_granted(path: &Path<'_>) -> Option<AdviceUntried> {
    let wanted = path.under_way().filter(|_| BULK.contains(&path.goal))?.max(1.0) as u64;
    let ends = [(path.senders(), SEND), (path.receivers(), RECEIVE)];
    let low = |(roles, name): &(&[Role], &'static str)| {
        let least = limits(path, roles, name).into_iter().flatten().min()?;
        (least < 2 * wanted.next_power_of_two()).then(|| format!("{name} is {}", size(least)))
    };
    let low: Vec<String> = ends.iter().filter_map(low).collect();
    let why = format!("a program is not granted more: {}", low.join(", "));
    (!low.is_empty()).then(|| AdviceUntried { what: "larger windows".into(), why })
}

/// Whether buffers that the kernel sizes itself come to a good part of the hosts' limits with what was under way: with the round trips
/// of a queue, and at the middle of slow start, what they need is larger.
pub(super) fn near_limit(path: &Path<'_>) -> bool {
    /// The part of a limit that is near.
    const NEAR: f64 = 0.25;
    let own = |set: &[Option<u64>]| set.iter().all(Option::is_none);
    let near = |roles: &[Role], name: &str| {
        let limit =
            roles.iter().filter_map(|role| super::host::autotuning(path, *role, name)).map(|[.., most]| most).min();
        path.under_way().zip(limit).is_some_and(|(bytes, limit)| bytes >= NEAR * limit as f64)
    };
    let sends = own(&sending(path)) && near(path.senders(), "net.ipv4.tcp_wmem");
    path.over_tcp() && (sends || (own(&receiving(path)) && near(path.receivers(), "net.ipv4.tcp_rmem")))
}

fn window(path: &Path<'_>) -> Result<Vec<Level>, String> {
    let edits = |bytes: Option<u64>| {
        let send = path.senders().iter().map(|role| Edit::SendBuffer(*role, bytes));
        send.chain(path.receivers().iter().map(|role| Edit::ReceiveBuffer(*role, bytes))).collect()
    };
    let now = [sending(path), receiving(path)].concat();
    let limits: Vec<Option<u64>> =
        [limits(path, path.senders(), SEND), limits(path, path.receivers(), RECEIVE)].concat();
    levels(path, &now, &limits, &RUNGS, edits)
}

fn send(path: &Path<'_>) -> Result<Vec<Level>, String> {
    let edits = |bytes| path.senders().iter().map(|role| Edit::SendBuffer(*role, bytes)).collect();
    levels(path, &sending(path), &limits(path, path.senders(), SEND), &FEW_RUNGS, edits)
}

fn receive(path: &Path<'_>) -> Result<Vec<Level>, String> {
    let edits = |bytes| path.receivers().iter().map(|role| Edit::ReceiveBuffer(*role, bytes)).collect();
    levels(path, &receiving(path), &limits(path, path.receivers(), RECEIVE), &FEW_RUNGS, edits)
}

/// Names of the largest buffer that a program may ask for.
const SEND: &str = "net.core.wmem_max";
const RECEIVE: &str = "net.core.rmem_max";

fn limits(path: &Path<'_>, roles: &[Role], name: &str) -> Vec<Option<u64>> {
    roles.iter().map(|role| path.host(*role).sysctl.get(name).and_then(|value| value.parse().ok())).collect()
}

fn sending(path: &Path<'_>) -> Vec<Option<u64>> {
    path.senders().iter().map(|role| path.spec.end(*role).sndbuf).collect()
}

fn receiving(path: &Path<'_>) -> Vec<Option<u64>> {
    path.receivers().iter().map(|role| path.spec.end(*role).rcvbuf).collect()
}

fn levels(
    path: &Path<'_>,
    now: &[Option<u64>],
    limits: &[Option<u64>],
    rungs: &[u64],
    edits: impl Fn(Option<u64>) -> Vec<Edit>,
) -> Result<Vec<Level>, String> {
    let named = |bytes: &Option<u64>| bytes.map_or("kernel".to_owned(), size);
    let mut labels: Vec<String> = now.iter().map(named).collect();
    labels.dedup();
    let mut levels = vec![Level::start(labels.join(","))];
    if now.iter().any(Option::is_some) {
        levels.push(Level::new("kernel", edits(None)));
    }
    let Some(under_way) = path.under_way() else {
        // Over datagrams there is no round trip to go by, and the kernel's default is the only guide.
        return if levels.len() > 1 { Ok(levels) } else { Err("the first look has no round trip to go by".into()) };
    };
    let first = (under_way.max(1.0) as u64).next_power_of_two();
    let most = path.most_under_way().map_or(BOUNDS.1, |bytes| (bytes as u64).next_power_of_two());
    // Beyond what a program may ask for, a larger wish is granted as that much: one try is enough.
    let granted = limits.iter().flatten().copied().max().unwrap_or(u64::MAX);
    let mut sizes: Vec<u64> = rungs
        .iter()
        .map(|rung| (first * rung).clamp(BOUNDS.0, BOUNDS.1).min(granted))
        .filter(|bytes| *bytes <= most.max(BOUNDS.0))
        .collect();
    sizes.dedup();
    let new = sizes.into_iter().filter(|bytes| !now.iter().all(|now| *now == Some(*bytes)));
    levels.extend(new.map(|bytes| Level::new(size(bytes), edits(Some(bytes)))));
    Ok(levels)
}

/// A size as the flag takes it.
pub(super) fn size(bytes: u64) -> String {
    ByteSize(bytes).to_string().replace(' ', "")
}
