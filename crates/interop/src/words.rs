//! What can be said to none of the programs.

use model::{EndOptions, Spec};

/// What to do about an option of the far end.
pub(crate) const REMEDY: &str = "it has no words for that: leave it out, or give it for this end alone (VALUE,)";

/// The first flag of a spec that no program has words for.
pub(crate) fn beyond_all(spec: &Spec) -> Option<&'static str> {
    let others = [
        (spec.processes > 1, "--processes"),
        (spec.probe.is_some(), "--probe"),
        (spec.no_loss, "--find-no-loss"),
        (spec.capture.is_some(), "--capture"),
        (!spec.settings.is_empty(), "--set"),
        (spec.engine.auto, "--engine auto"),
        (spec.far.data_addr.is_some(), "--data"),
        (spec.far.device.is_some(), "--device at the far end"),
        (spec.far.port.is_some(), "--data-port at the far end"),
        (spec.far.cork.is_some(), "--cork at the far end"),
        (spec.far.notsent_lowat.is_some(), "--notsent-lowat at the far end"),
        (spec.far.keepalive_s.is_some(), "--keepalive at the far end"),
        (spec.far.user_timeout_ms.is_some(), "--user-timeout at the far end"),
        (spec.far.busy_poll_us.is_some(), "--busy-poll at the far end"),
        (spec.far.drain_bps.is_some(), "--drain at the far end"),
        (spec.far.pin.len() > 1, "--pin to several cores at the far end"),
        (!spec.near.cc_rules.is_empty() || !spec.far.cc_rules.is_empty(), "--wad"),
    ];
    others.into_iter().find(|(there, _)| *there).map(|(_, what)| what)
}

/// The first flag of a spec that the older programs, which set buffers and TCP_NODELAY alone, have no words for.
pub(crate) fn beyond_plain(spec: &Spec) -> Option<&'static str> {
    let EndOptions { cc, mss, dscp, max_pacing_bps, pin, .. } = &spec.far;
    let others = [
        (cc.is_some(), "--cc at the far end"),
        (mss.is_some(), "--mss at the far end"),
        (dscp.is_some(), "--dscp at the far end"),
        (max_pacing_bps.is_some(), "--pacing at the far end"),
        (!pin.is_empty(), "--pin at the far end"),
        (spec.warmup_ns > 0, "--warmup"),
        (spec.far.sndbuf != spec.far.rcvbuf, "--sndbuf and --rcvbuf of different values at the far end"),
    ];
    beyond_all(spec).or_else(|| others.into_iter().find(|(there, _)| *there).map(|(_, what)| what))
}
