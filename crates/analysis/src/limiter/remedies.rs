//! What to change where a buffer limits: which setting of which host, to which value.
//!
//! A window of bandwidth times RTT keeps a path full. The kernel's limits count memory: a buffer is charged for whole packets, and
//! about half of a receive buffer is announced as a window (tcp(7), tcp_adv_win_scale), so the last value of tcp_rmem and tcp_wmem must
//! be twice the window. A requested SO_RCVBUF or SO_SNDBUF is doubled by the kernel itself (socket(7)), so rmem_max and wmem_max need
//! the window only.

use model::units::{bits_per_second, seconds};
use model::{BoundKind, ByteSize, Direction, EndOptions, FlowTally, LimiterKind, Remedy, Role};

use super::observations::{Observations, SenderFlow, each, sender_flows};
use crate::direction::{DirectionView, Side};
use crate::findings::wording;

/// Sizes are rounded up to a multiple of this, bytes.
const STEP: u64 = 1 << 20;
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
    fn remedy(&self, side: &Side<'_>, role: Role, window: f64, why: &str) -> Option<Remedy> {
        let end = if role == Role::Active { "near" } else { "far" };
        let size = |bytes: u64| ByteSize(bytes).to_string();
        let option = |bytes: u64| format!("{} {}", self.field, size(bytes).replace(' ', ""));
        let of = |setting: String, now: String, value: String, command: String, reason: String| {
            let statement = format!("`{command}` {reason}");
            Some(Remedy { role, setting, now, value, window_bytes: window as u64, command, statement })
        };
        let Some(requested) = (self.requested)(side.options) else {
            let [least, default, most] = self.limits(side)?;
            let needed = up(2.0 * window);
            let reason = format!(
                "on the {end} host (now {}): {why}; the third value of {} counts memory, twice that, in whole MiB",
                wording::rounded_size(most as f64),
                self.autotuning
            );
            let values = |last| format!("{least} {default} {last}");
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
                let reason = format!(
                    "on the {end} host (now {}), and then `{}`: {why}; the kernel doubles a request",
                    wording::rounded_size(granted as f64),
                    option(needed)
                );
                let (setting, command) = (format!("sysctl.{}", self.granted), tune(self.granted, &needed.to_string()));
                of(setting, granted.to_string(), needed.to_string(), command, reason)
            }
            None => {
                let now = wording::rounded_size(requested as f64);
                let reason = format!("for the {} (now {now}): {why}; the kernel doubles a request", self.name);
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
    let each = if flows.len() > 1 { format!(" for each of {} connections", flows.len()) } else { String::new() };
    let why = format!(
        "{}{of_what} × RTT of {} is a window of {}{each}",
        bits_per_second(aim),
        seconds(rtt),
        wording::rounded_size(window)
    );
    let mut buffers = [(SEND, &direction.sender, sender), (RECEIVE, &direction.receiver, receiver)];
    let place = |kind| limiters.iter().position(|limiter| *limiter == kind).unwrap_or(usize::MAX);
    buffers.sort_by_key(|(buffer, ..)| place(buffer.kind));
    let limits = |(buffer, side, _): &(Buffer, &Side<'_>, Role)| {
        let binds = buffer.reached(side).is_some() || (buffer.requested)(side.options).is_some();
        binds && limiters.contains(&buffer.kind)
    };
    if !buffers.iter().any(limits) {
        return Vec::new();
    }
    buffers.iter().filter_map(|(buffer, side, role)| buffer.remedy(side, *role, window, &why)).collect()
}

/// The rate to make room for, bit/s, and what it is: the line's, if it is known and not reached, else the next power of ten of the rate.
fn aim(observations: &Observations<'_>, rate: f64) -> (f64, &'static str) {
    let ceiling = observations.outcome.summary.ceiling.as_ref();
    let others = ceiling.iter().flat_map(|ceiling| ceiling.others.iter().map(|one| (one.kind, one.bps)));
    let all = ceiling.iter().map(|ceiling| (ceiling.kind, ceiling.bound_bps)).chain(others);
    let line = all.into_iter().find(|(kind, bps)| *kind == BoundKind::Line && *bps > rate).map(|(_, bps)| bps);
    match line.filter(|_| observations.spec.direction != Direction::Both) {
        Some(bps) => (bps, " (the line)"),
        None => (10f64.powf((1.2 * rate).log10().ceil()), ""),
    }
}

/// Rounded up to whole MiB.
fn up(bytes: f64) -> u64 {
    (bytes.max(1.0) as u64).next_multiple_of(STEP)
}
