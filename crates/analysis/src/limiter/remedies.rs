//! What to change where a buffer limits: which setting of which host, to which value.
//!
//! A window of bandwidth times RTT keeps a path full. The kernel's limits count memory: a buffer is charged for whole packets, and
//! about half of a receive buffer is announced as a window (tcp(7), tcp_adv_win_scale), so the last value of tcp_rmem and tcp_wmem must
//! be twice the window. A requested SO_RCVBUF or SO_SNDBUF is doubled by the kernel itself (socket(7)), so rmem_max and wmem_max need
//! the window only.

use model::{BoundKind, ByteSize, Direction, EndOptions, FlowTally, LimiterKind, Remedy, Role};
use text::{Rate, Text, Time, say};

use super::observations::{Observations, SenderFlow, each, sender_flows};
use crate::direction::{DirectionView, Side};
use crate::findings::wording;

/// Sizes are rounded up to a multiple of this, bytes.
const STEP: u64 = 1 << 20;
/// The same for sizes below that step, bytes.
const SMALL_STEP: u64 = 64 << 10;
/// How far above the measured rate the estimate of a bottleneck has to be to count, as a factor.
const MORE: f64 = 1.2;
/// Part of a limit from which a buffer that the kernel sizes counts as having reached it.
const REACHED: f64 = 0.9;

/// One of the two buffers of a connection.
pub(super) struct Buffer {
    name: &'static str,
    kind: LimiterKind,
    /// The field of a spec that requests it.
    field: &'static str,
    /// The sysctl whose last value ends the kernel's own sizing.
    pub(super) autotuning: &'static str,
    /// The sysctl of the largest request.
    granted: &'static str,
    requested: fn(&EndOptions) -> Option<u64>,
    had: fn(&FlowTally) -> Option<u64>,
}

/// Whether TCP scales windows.
pub(super) const SCALING: &str = "net.ipv4.tcp_window_scaling";
/// The largest window without scaling, bytes (RFC 7323, section 2.2).
const UNSCALED: f64 = 65_535.0;

/// The ends whose hosts do not scale windows, in words, where that ends the window of a connection at 64 KiB.
pub(super) fn unscaled(direction: &DirectionView<'_>) -> Option<&'static str> {
    let flows = sender_flows(direction);
    let window = each(&flows, SenderFlow::window_bytes)?;
    // Announced windows are whole multiples of the MSS.
    (window <= UNSCALED + 1.0).then_some(())?;
    match [off(&direction.sender), off(&direction.receiver)] {
        [true, true] => Some("each host"),
        [true, false] => Some("the sending host"),
        [false, true] => Some("the receiving host"),
        [false, false] => None,
    }
}

/// Whether a host does not scale windows.
fn off(side: &Side<'_>) -> bool {
    side.host.sysctl.get(SCALING).is_some_and(|value| value.trim() == "0")
}

/// What lets an end scale windows, for a window of `window` bytes.
fn scaled(side: &Side<'_>, role: Role, window: f64, why: &Text) -> Option<Remedy> {
    let end = if role == Role::Active { "near" } else { "far" };
    let command = tune(SCALING, "1");
    let statement = say!("`{command}` on the {end} host: {why}; without window scaling, a window is at most 64 KiB");
    off(side).then(|| Remedy {
        role,
        setting: format!("sysctl.{SCALING}"),
        now: "0".into(),
        value: "1".into(),
        window_bytes: window as u64,
        command,
        statement,
    })
}

/// The sender's.
pub(super) const SEND: Buffer = Buffer {
    name: "sender",
    kind: LimiterKind::SendBuffer,
    field: "sndbuf",
    autotuning: "net.ipv4.tcp_wmem",
    granted: "net.core.wmem_max",
    requested: |options| options.sndbuf,
    had: |flow| flow.socket.sndbuf,
};

/// The receiver's.
pub(super) const RECEIVE: Buffer = Buffer {
    name: "receiver",
    kind: LimiterKind::ReceiveWindow,
    field: "rcvbuf",
    autotuning: "net.ipv4.tcp_rmem",
    granted: "net.core.rmem_max",
    requested: |options| options.rcvbuf,
    had: |flow| flow.socket.rcvbuf,
};

impl Buffer {
    /// The last value of its autotuning sysctl, if the kernel sizes it and it has reached that, bytes.
    pub(super) fn reached(&self, side: &Side<'_>) -> Option<u64> {
        let [.., limit] = self.limits(side)?;
        let had = side.flows().filter_map(self.had).max()?;
        ((self.requested)(side.options).is_none() && had as f64 >= REACHED * limit as f64).then_some(limit)
    }

    fn limits(&self, side: &Side<'_>) -> Option<[u64; 3]> {
        let values = side.host.sysctl.get(self.autotuning)?.split_whitespace().map(str::parse);
        values.collect::<Result<Vec<u64>, _>>().ok()?.try_into().ok()
    }

    /// What to change at `side` for `window` bytes.
    fn remedy(&self, side: &Side<'_>, role: Role, window: f64, why: &Text) -> Option<Remedy> {
        let end = if role == Role::Active { "near" } else { "far" };
        let size = |bytes: u64| ByteSize(bytes).to_string();
        let option = |bytes: u64| format!("--{} {}", self.field, size(bytes).replace(' ', ""));
        let of = |setting: String, now: String, value: String, command: String, reason: Text| {
            let statement = say!("`{command}` {reason}");
            Some(Remedy { role, setting, now, value, window_bytes: window as u64, command, statement })
        };
        let Some(requested) = (self.requested)(side.options) else {
            let [least, default, most] = self.limits(side)?;
            let needed = up(2.0 * window);
            let reason = say!(
                "on the {end} host (now {}): {why}; the third value of {} counts memory, so it is twice that, rounded up",
                wording::rounded_size(most as f64),
                self.autotuning
            );
            let values = |last: u64| format!("{least} {default} {last}");
            let command = tune(self.autotuning, &values(needed));
            let setting = format!("sysctl.{}", self.autotuning);
            return if most < needed { of(setting, values(most), values(needed), command, reason) } else { None };
        };
        let needed = up(window);
        if requested as f64 >= window {
            return None;
        }
        let granted = side.host.sysctl.get(self.granted).and_then(|value| value.parse::<u64>().ok());
        match granted.filter(|granted| *granted < needed) {
            Some(granted) => {
                let reason = say!(
                    "on the {end} host (now {}), and then `{}`: {why}; the kernel doubles a request",
                    wording::rounded_size(granted as f64),
                    option(needed)
                );
                let (setting, command) = (format!("sysctl.{}", self.granted), tune(self.granted, &needed.to_string()));
                of(setting, granted.to_string(), needed.to_string(), command, reason)
            }
            None => {
                let now = wording::rounded_size(requested as f64);
                let reason = say!("for the {} (now {now}): {why}; the kernel doubles a request", self.name);
                of(self.field.to_owned(), requested.to_string(), needed.to_string(), option(needed), reason)
            }
        }
    }
}

/// The command that changes a sysctl of the host on which it is typed.
fn tune(sysctl: &str, value: &str) -> String {
    let setting = format!("sysctl.{sysctl}={value}");
    if value.contains(' ') { format!("thru tune set '{setting}'") } else { format!("thru tune set {setting}") }
}

/// The remedies for the buffers of an outcome: empty unless one of them is among `limiters`. The one that limits comes first; the other
/// follows if it would limit next.
pub(super) fn remedies(observations: &Observations<'_>, limiters: &[LimiterKind]) -> Vec<Remedy> {
    let both = observations.spec.direction == Direction::Both;
    let mut remedies: Vec<Remedy> = Vec::new();
    // The last trial, whose directions are the last one or two.
    let last = observations.directions.len().saturating_sub(if both { 2 } else { 1 });
    for (index, direction) in observations.directions[last..].iter().enumerate() {
        let from_far = observations.spec.direction == Direction::Reverse || index == 1;
        let roles = if from_far { [Role::Passive, Role::Active] } else { [Role::Active, Role::Passive] };
        remedies.extend(of_direction(observations, direction, roles, limiters));
    }
    remedies.dedup_by(|one, other| (one.role, &one.setting) == (other.role, &other.setting));
    remedies
}

fn of_direction(
    observations: &Observations<'_>,
    direction: &DirectionView<'_>,
    [sender, receiver]: [Role; 2],
    limiters: &[LimiterKind],
) -> Vec<Remedy> {
    let flows = sender_flows(direction);
    let Some(rtt) = each(&flows, SenderFlow::min_rtt_ns) else { return Vec::new() };
    let rate: f64 = flows.iter().map(|flow| flow.rate_bps).sum();
    let (aim, of_what) = aim(observations, rate);
    let window = aim / 8e9 * rtt / flows.len() as f64;
    let each = if flows.len() > 1 { say!(" for each of {} connections", flows.len()) } else { Text::default() };
    let why =
        say!("{}{of_what} × {} RTT needs a window of {}{each}", Rate(aim), Time(rtt), wording::rounded_size(window));
    let mut buffers = [(SEND, &direction.sender, sender), (RECEIVE, &direction.receiver, receiver)];
    let place = |kind| limiters.iter().position(|limiter| *limiter == kind).unwrap_or(usize::MAX);
    buffers.sort_by_key(|(buffer, ..)| place(buffer.kind));
    let limits = |(buffer, side, _): &(Buffer, &Side<'_>, Role)| {
        let binds = buffer.reached(side).is_some() || (buffer.requested)(side.options).is_some();
        binds && limiters.contains(&buffer.kind)
    };
    let scaling = limiters.contains(&LimiterKind::ReceiveWindow) && unscaled(direction).is_some();
    if !scaling && !buffers.iter().any(limits) {
        return Vec::new();
    }
    let ends = [(&direction.sender, sender), (&direction.receiver, receiver)];
    let first = ends.into_iter().filter(|_| scaling).filter_map(|(side, role)| scaled(side, role, window, &why));
    let larger = buffers.iter().filter_map(|(buffer, side, role)| buffer.remedy(side, *role, window, &why));
    first.chain(larger).collect()
}

/// The rate to make room for, bit/s, and what it is: the smallest known one of the path that is above the measured one, a bottleneck's
/// or the line's; else twice the measured one, because a rate that nothing reached is not known.
fn aim(observations: &Observations<'_>, rate: f64) -> (f64, &'static str) {
    let ceiling = observations.outcome.summary.ceiling.as_ref();
    let others = ceiling.iter().flat_map(|ceiling| ceiling.others.iter().map(|one| (one.kind, one.bps)));
    let all = ceiling.iter().map(|ceiling| (ceiling.kind, ceiling.bound_bps)).chain(others);
    let of_path = all.filter(|(kind, bps)| match kind {
        BoundKind::Line => *bps > rate,
        // An estimate that the measured rate has nearly reached may be the buffer's own rate.
        BoundKind::Path => *bps > MORE * rate,
        _ => false,
    });
    let known = of_path.min_by(|a, b| a.1.total_cmp(&b.1));
    match known.filter(|_| observations.spec.direction != Direction::Both) {
        Some((BoundKind::Path, bps)) => (bps, " (the bottleneck)"),
        Some((_, bps)) => (bps, " (the line)"),
        None => (2.0 * rate, " (twice the measured rate)"),
    }
}

/// Rounded up to whole steps: small windows would be multiplied by a step of a MiB.
fn up(bytes: f64) -> u64 {
    let step = if bytes < STEP as f64 { SMALL_STEP } else { STEP };
    (bytes.max(1.0) as u64).next_multiple_of(step)
}
