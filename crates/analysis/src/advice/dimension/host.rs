//! Host settings, for searches that may change them. A setting that a host refuses (no permission, not available) fails in its first
//! trial and is not tried again; the host's own reason is reported.

use model::{Goal, LimiterKind, Role, Setting};

use super::{ALL, BULK, Dimension, Edit, Level, SearchContext, Untried, size};

const CPU: &[LimiterKind] =
    &[LimiterKind::SenderCpu, LimiterKind::ReceiverCpu, LimiterKind::Softirq, LimiterKind::RoundTrip];
const WINDOWS: &[LimiterKind] = &[LimiterKind::SendBuffer, LimiterKind::ReceiveWindow, LimiterKind::CongestionWindow];

/// Whether TCP scales windows: without that, no window is larger than 64 KiB (RFC 7323, section 2.2).
pub(super) const SYSCTL_SCALING: Dimension =
    Dimension { name: "window-scaling", class: Some("sysctl"), goals: BULK, eases: WINDOWS, levels: scaling };

/// The limits of the kernel's autotuning of buffers (tcp(7), tcp_rmem and tcp_wmem).
pub(super) const SYSCTL_BUFFERS: Dimension =
    Dimension { name: "autotuning-limit", class: Some("sysctl"), goals: BULK, eases: WINDOWS, levels: buffers };

/// Whether the congestion window is reset after a connection was idle.
pub(super) const SYSCTL_IDLE: Dimension = Dimension {
    name: "slow-start-after-idle",
    class: Some("sysctl"),
    goals: BULK,
    eases: &[LimiterKind::SenderApplication],
    levels: idle,
};

/// Busy polling of the whole host.
pub(super) const SYSCTL_BUSY_READ: Dimension = Dimension {
    name: "busy-read",
    class: Some("sysctl"),
    goals: &[Goal::Latency],
    eases: &[LimiterKind::RoundTrip],
    levels: busy_read,
};

/// The interfaces' MTU.
pub(super) const MTU: Dimension = Dimension { name: "mtu", class: Some("mtu"), goals: BULK, eases: CPU, levels: mtu };

/// Largest GSO packets of the senders (BIG TCP above 64 KiB).
pub(super) const GSO: Dimension =
    Dimension { name: "gso-max-size", class: Some("gso"), goals: BULK, eases: CPU, levels: gso };

/// Segmentation offload.
pub(super) const OFFLOAD_SEND: Dimension =
    Dimension { name: "tso", class: Some("offloads"), goals: ALL, eases: CPU, levels: tso };

/// Receive offload.
pub(super) const OFFLOAD_RECEIVE: Dimension =
    Dimension { name: "gro", class: Some("offloads"), goals: ALL, eases: CPU, levels: gro };

/// Interrupt coalescing.
pub(super) const COALESCING: Dimension =
    Dimension { name: "rx-usecs", class: Some("coalescing"), goals: ALL, eases: CPU, levels: coalescing };

/// Descriptors of a device's receive ring.
pub(super) const RINGS: Dimension = Dimension {
    name: "rx-ring",
    class: Some("rings"),
    goals: BULK,
    eases: &[LimiterKind::Loss, LimiterKind::Softirq],
    levels: rings,
};

/// The senders' root queueing discipline.
pub(super) const QDISC: Dimension = Dimension {
    name: "qdisc",
    class: Some("qdisc"),
    goals: ALL,
    eases: &[LimiterKind::Qdisc, LimiterKind::Pacing, LimiterKind::Loss],
    levels: qdisc,
};

/// Queue length of the senders' interfaces, packets.
pub(super) const TXQUEUELEN: Dimension = Dimension {
    name: "txqueuelen",
    class: Some("txqueuelen"),
    goals: BULK,
    eases: &[LimiterKind::Qdisc, LimiterKind::Loss],
    levels: txqueuelen,
};

/// The cores' frequency governor.
pub(super) const GOVERNOR: Dimension =
    Dimension { name: "governor", class: Some("governor"), goals: ALL, eases: CPU, levels: governor };

const BOTH: &[Role] = &[Role::Active, Role::Passive];
/// Autotuning limits that are tried if the pilot trials do not show which one they need, bytes.
const LIMITS: [u64; 3] = [4 << 20, 16 << 20, 64 << 20];
/// A larger one than the needed one is tried too, because the rate beyond it is not known: this many times.
const MORE: u64 = 4;
/// The sysctls whose last value is that limit.
const AUTOTUNING: [&str; 2] = ["net.ipv4.tcp_wmem", "net.ipv4.tcp_rmem"];

/// A sysctl on some hosts.
fn sysctl(role: Role, name: &str, value: impl Into<String>) -> Edit {
    Edit::Setting(role, Setting { key: format!("sysctl.{name}"), value: value.into() })
}

/// The smallest, default and largest buffer of a host's autotuning, bytes.
pub(super) fn autotuning(path: &SearchContext<'_>, role: Role, name: &str) -> Option<[u64; 3]> {
    let value = path.host(role).sysctl.get(name)?;
    let parts: Vec<u64> = value.split_whitespace().map(str::parse).collect::<Result<_, _>>().ok()?;
    parts.try_into().ok()
}

fn buffers(path: &SearchContext<'_>) -> Result<Vec<Level>, Untried> {
    let mut all = Vec::new();
    for (roles, name) in [path.senders(), path.receivers()].into_iter().zip(AUTOTUNING) {
        for role in roles {
            let parts = autotuning(path, *role, name).ok_or(Untried::NotReported { sysctl: name })?;
            all.push((*role, name, parts));
        }
    }
    let most = all.iter().map(|(.., parts)| parts[2]).min().unwrap_or(0);
    let level = |bytes: u64| {
        let lower = all.iter().filter(|(.., [.., last])| *last < bytes);
        let edits = lower.map(|(role, name, [least, default, _])| {
            sysctl(*role, name, format!("{least} {default} {}", bytes.max(*default)))
        });
        Level::new(size(bytes), edits.collect())
    };
    let start = Level::start(size(most));
    let sizes = needed(path).map_or_else(|| LIMITS.to_vec(), |bytes| vec![bytes, MORE * bytes]);
    Ok(std::iter::once(start).chain(sizes.into_iter().filter(|bytes| *bytes > most).map(level)).collect())
}

/// The largest limit that the pilot trials need, where they were limited by one.
fn needed(path: &SearchContext<'_>) -> Option<u64> {
    let remedies = path.pilot.summary.limits().flat_map(|(_, why)| &why.remedies);
    let limits = remedies.filter(|one| AUTOTUNING.iter().any(|name| one.setting.strip_prefix("sysctl.") == Some(name)));
    limits.filter_map(|one| one.value.split_whitespace().next_back()?.parse().ok()).max()
}

/// Both ends must offer it, so both are changed.
fn scaling(path: &SearchContext<'_>) -> Result<Vec<Level>, Untried> {
    const NAME: &str = "net.ipv4.tcp_window_scaling";
    let off: Vec<Role> = BOTH
        .iter()
        .copied()
        .filter(|role| path.host(*role).sysctl.get(NAME).is_some_and(|value| value == "0"))
        .collect();
    if off.is_empty() {
        return Err(Untried::NotOff { sysctl: NAME });
    }
    Ok(vec![Level::start("0"), Level::new("1", off.into_iter().map(|role| sysctl(role, NAME, "1")).collect())])
}

fn idle(path: &SearchContext<'_>) -> Result<Vec<Level>, Untried> {
    toggled(path, path.senders(), "net.ipv4.tcp_slow_start_after_idle", &["0", "1"])
}

fn busy_read(path: &SearchContext<'_>) -> Result<Vec<Level>, Untried> {
    toggled(path, BOTH, "net.core.busy_read", &["0", "50"])
}

/// A sysctl whose values are few.
fn toggled(
    path: &SearchContext<'_>,
    roles: &[Role],
    name: &'static str,
    values: &[&str],
) -> Result<Vec<Level>, Untried> {
    let now = |role: &Role| path.host(*role).sysctl.get(name).cloned();
    let first = roles.first().and_then(now).ok_or(Untried::NotReported { sysctl: name })?;
    let level = |value: &&str| Level::new(*value, roles.iter().map(|role| sysctl(*role, name, *value)).collect());
    let others = values.iter().filter(|value| roles.iter().any(|role| now(role).as_deref() != Some(**value)));
    Ok(std::iter::once(Level::start(first)).chain(others.map(level)).collect())
}

/// Levels of a property of the data's interfaces.
fn devices(
    path: &SearchContext<'_>,
    roles: &[Role],
    property: &str,
    now: &str,
    values: &[&str],
) -> Result<Vec<Level>, Untried> {
    let mut names = Vec::new();
    for role in roles {
        let interface = path.interface(*role).ok_or(Untried::UnknownInterface)?;
        if interface.name == "lo" {
            return Err(Untried::Loopback);
        }
        names.push((*role, format!("dev.{}.{property}", interface.name)));
    }
    let edits = |value: &str| {
        let setting =
            |(role, key): &(Role, String)| Edit::Setting(*role, Setting { key: key.clone(), value: value.to_owned() });
        names.iter().map(setting).collect()
    };
    let others = values.iter().filter(|value| **value != now);
    Ok(std::iter::once(Level::start(now)).chain(others.map(|value| Level::new(*value, edits(value)))).collect())
}

/// The start's level of a property that the inventory does not contain.
const CURRENT: &str = "current";

fn mtu(path: &SearchContext<'_>) -> Result<Vec<Level>, Untried> {
    let mtus = BOTH.iter().filter_map(|role| path.interface(*role)?.mtu);
    let now = mtus.min().ok_or(Untried::UnknownInterface)?;
    devices(path, BOTH, "mtu", &now.to_string(), &["1500", "9000"])
}

fn gso(path: &SearchContext<'_>) -> Result<Vec<Level>, Untried> {
    devices(path, path.senders(), "gso_max_size", CURRENT, &["16384", "65536", "196608"])
}

fn tso(path: &SearchContext<'_>) -> Result<Vec<Level>, Untried> {
    devices(path, path.senders(), "offload.tso", CURRENT, &["on", "off"])
}

fn gro(path: &SearchContext<'_>) -> Result<Vec<Level>, Untried> {
    devices(path, path.receivers(), "offload.gro", CURRENT, &["on", "off"])
}

fn coalescing(path: &SearchContext<'_>) -> Result<Vec<Level>, Untried> {
    devices(path, path.receivers(), "coalesce.rx-usecs", CURRENT, &["0", "20", "100"])
}

fn rings(path: &SearchContext<'_>) -> Result<Vec<Level>, Untried> {
    devices(path, path.receivers(), "ring.rx", CURRENT, &["512", "4096"])
}

fn txqueuelen(path: &SearchContext<'_>) -> Result<Vec<Level>, Untried> {
    let now =
        path.senders().iter().find_map(|role| path.interface(*role)?.txqueuelen).ok_or(Untried::UnknownInterface)?;
    devices(path, path.senders(), "txqueuelen", &now.to_string(), &["100", "1000", "10000"])
}

fn qdisc(path: &SearchContext<'_>) -> Result<Vec<Level>, Untried> {
    let mut keys = Vec::new();
    for role in path.senders() {
        let name = &path.interface(*role).ok_or(Untried::UnknownInterface)?.name;
        if name == "lo" {
            return Err(Untried::Loopback);
        }
        keys.push((*role, format!("qdisc.{name}")));
    }
    let level = |value: &str| {
        let setting =
            |(role, key): &(Role, String)| Edit::Setting(*role, Setting { key: key.clone(), value: value.to_owned() });
        Level::new(value, keys.iter().map(setting).collect())
    };
    Ok(std::iter::once(Level::start(CURRENT)).chain(["fq", "fq_codel", "pfifo_fast"].map(level)).collect())
}

fn governor(path: &SearchContext<'_>) -> Result<Vec<Level>, Untried> {
    let governors: Vec<&String> = BOTH.iter().filter_map(|role| path.host(*role).governor.as_ref()).collect();
    let now = governors.first().ok_or(Untried::NoGovernor)?;
    if governors.iter().all(|name| *name == "performance") {
        return Err(Untried::AlreadyPerformance);
    }
    let has = |role: &&Role| path.host(**role).governor.is_some();
    let set = |role: &Role| Edit::Setting(*role, Setting { key: "cpu.governor".into(), value: "performance".into() });
    Ok(vec![Level::start(now.as_str()), Level::new("performance", BOTH.iter().filter(has).map(set).collect())])
}
