//! The socket and thread options of both ends.

use engine::transport::{Transport, scope_of};
use model::{EndOptions, Spec};

use super::error::FieldError;
use super::spec_draft::SpecDraft;
use crate::values::PerEnd;

/// Refuses TCP socket options on other transports.
pub(super) fn check(draft: &SpecDraft, transport: &dyn Transport) -> Result<(), FieldError> {
    let over_tcp = transport.facts().is_over_tcp();
    let without_effect = [
        ("nodelay", draft.nodelay.is_some() && !over_tcp),
        ("cork", draft.cork.is_some() && !over_tcp),
        ("cc", draft.cc.is_some() && !transport.has_congestion_controls()),
        ("mss", draft.mss.is_some() && !over_tcp),
        ("notsent-lowat", draft.notsent_lowat.is_some() && !over_tcp),
        ("keepalive", draft.keepalive.is_some() && !over_tcp),
        ("user-timeout", draft.user_timeout.is_some() && !over_tcp),
    ];
    let Some((key, _)) = without_effect.into_iter().find(|(_, given)| *given) else { return Ok(()) };
    let able = engine::transport::names(|other| other.facts().is_over_tcp());
    let what = format!("`{key}` has no effect on {}: omit it, or use {able}", transport.name());
    Err(FieldError::of_key(key, what))
}

/// Refuses a forwarded port for data where they go to another port of the far end that the kernel chooses.
pub(crate) fn check_forwarded(spec: &Spec, transport: &dyn Transport) -> Result<(), FieldError> {
    let Some(at) = spec.far.data_at.filter(|at| at.port() > 0 && spec.far.port.is_none()) else { return Ok(()) };
    let far = &spec.far;
    let options = [
        ("sndbuf", far.sndbuf.is_some()),
        ("rcvbuf", far.rcvbuf.is_some()),
        ("mss", far.mss.is_some()),
        ("device", far.device.is_some()),
    ];
    let option = options.into_iter().find(|(_, given)| *given);
    let why = match option {
        _ if transport.facts().ip.is_some() && transport.capabilities().shared_port.is_none() => {
            format!("{} uses", transport.name())
        }
        _ if spec.responsiveness => "`responsiveness` uses".into(),
        _ if spec.renews_connections() => "`connect` uses".into(),
        Some((name, _)) => format!("`{name}` at the far end needs"),
        None => return Ok(()),
    };
    let what = format!(
        "`data {at}` leads to the agent's port, and {why} another one: choose it with `data-port ,PORT`, and forward {} to it",
        at.port()
    );
    Err(FieldError::of_key("data", what))
}

/// Sets the options of both ends, in the units of the spec.
pub(super) fn apply(draft: &SpecDraft, near: &mut EndOptions, far: &mut EndOptions) {
    /// Sets one option at both ends.
    fn each<T: Clone, U>(ends: Option<&PerEnd<T>>, near: &mut Option<U>, far: &mut Option<U>, unit: impl Fn(T) -> U) {
        if let Some(ends) = ends {
            *near = ends.near.clone().map(&unit);
            *far = ends.far.clone().map(&unit);
        }
    }
    each(draft.sndbuf.as_ref(), &mut near.sndbuf, &mut far.sndbuf, |size| size.0);
    each(draft.rcvbuf.as_ref(), &mut near.rcvbuf, &mut far.rcvbuf, |size| size.0);
    each(draft.nodelay.as_ref(), &mut near.nodelay, &mut far.nodelay, |switch| switch.0);
    each(draft.cork.as_ref(), &mut near.cork, &mut far.cork, |switch| switch.0);
    each(draft.cc.as_ref(), &mut near.cc, &mut far.cc, |name| name.0);
    if let Some(rules) = &draft.cc_rules {
        let takes = |end: &EndOptions| end.cc.as_deref().is_some_and(stacks::takes_rules);
        // If neither does, both get the rules and their agents report the error.
        let neither = !takes(near) && !takes(far);
        for end in [&mut *near, &mut *far].into_iter().filter(|end| end.cc.is_some() && (neither || takes(end))) {
            end.cc_rules = rules.0.clone();
        }
    }
    each(draft.mss.as_ref(), &mut near.mss, &mut far.mss, |bytes| bytes);
    each(draft.dscp.as_ref(), &mut near.dscp, &mut far.dscp, |dscp| dscp);
    each(draft.device.as_ref(), &mut near.device, &mut far.device, |name| name);
    each(draft.data_port.as_ref(), &mut near.port, &mut far.port, |port| port);
    each(draft.pacing.as_ref(), &mut near.max_pacing_bps, &mut far.max_pacing_bps, |rate| rate.0);
    each(draft.notsent_lowat.as_ref(), &mut near.notsent_lowat, &mut far.notsent_lowat, |size| to_u32(size.0));
    each(draft.keepalive.as_ref(), &mut near.keepalive_s, &mut far.keepalive_s, |time| {
        to_u32(time.0.div_ceil(1_000_000_000))
    });
    each(draft.user_timeout.as_ref(), &mut near.user_timeout_ms, &mut far.user_timeout_ms, |time| {
        to_u32(time.0.div_ceil(1_000_000))
    });
    each(draft.busy_poll.as_ref(), &mut near.busy_poll_us, &mut far.busy_poll_us, |time| to_u32(time.0 / 1_000));
    if let Some(pin) = &draft.pin {
        near.pin = pin.near.clone().map(|cores| cores.0).unwrap_or_default();
        far.pin = pin.far.clone().map(|cores| cores.0).unwrap_or_default();
    }
    near.data_addr = draft.data_from;
    if let Some(data) = draft.data {
        // A port is forwarded, and the address before it is not one of the far end's.
        far.data_addr = (data.port() == 0).then_some(data.ip());
        far.data_at = Some(data).filter(|data| data.port() > 0 || scope_of(data) > 0);
    }
}

fn to_u32(value: u64) -> u32 {
    u32::try_from(value).unwrap_or(u32::MAX)
}
