//! Options that exclude or need each other.

use super::error::FieldError;
use super::spec_draft::{SpecDraft, TestKind};
use crate::values::NO_LIMIT;

/// Refuses options that exclude each other, and those without the option that they need.
pub(super) fn check(draft: &SpecDraft) -> Result<(), FieldError> {
    let curve = draft.pattern == TestKind::Curve;
    let listed = !draft.sizes.is_empty();
    let exclude = [
        ("udp", draft.udp, "transport", draft.transport.is_some()),
        ("reverse", draft.reverse, "both", draft.both),
        ("spin", draft.spin, "wait", draft.wait.is_some()),
        ("ipv4", draft.ipv4, "ipv6", draft.ipv6),
        ("bytes", draft.bytes.is_some(), "count", draft.count.is_some()),
        ("find-no-loss", draft.find_no_loss, "rate", draft.rate.is_some()),
        ("find-no-loss", draft.find_no_loss, "bytes", draft.bytes.is_some()),
        ("find-no-loss", draft.find_no_loss, "count", draft.count.is_some()),
        ("responsiveness", draft.responsiveness, "bytes", draft.bytes.is_some()),
        ("responsiveness", draft.responsiveness, "count", draft.count.is_some()),
        ("responsiveness", draft.responsiveness, "rate", draft.rate.is_some()),
        ("responsiveness", draft.responsiveness, "find-no-loss", draft.find_no_loss),
        ("responsiveness", draft.responsiveness, "speak", draft.speak.is_some()),
        ("responsiveness", draft.responsiveness, "drain", draft.drain.is_some()),
        ("connect", draft.connect, "rate", draft.request_rate.is_some()),
        ("block", listed, "first", draft.first.is_some()),
        ("block", listed, "to", draft.to.is_some()),
        ("block", listed, "perturbation", draft.perturbation.is_some()),
    ];
    if let Some((key, _, other, _)) = exclude.into_iter().find(|(_, first, _, second)| *first && *second) {
        let what = format!("`{key}` and `{other}` exclude each other: omit one of them");
        return Err(FieldError::of_key(key, what));
    }
    let captured = draft.capture.is_some();
    let need = [
        ("cc-rules", draft.cc_rules.is_some(), "cc", draft.cc.is_some()),
        ("snaplen", draft.snaplen.is_some(), "capture", captured),
        ("fetch", draft.fetch.is_some(), "capture", captured),
        ("burst", draft.burst.is_some(), "rate", draft.rate.is_some_and(|rate| rate != NO_LIMIT)),
        ("overlap-close", draft.overlap_close, "connect", draft.connect),
        ("unpaced", curve && draft.unpaced, "stream", draft.stream),
        ("delayed-reads", curve && draft.delayed_reads, "stream", draft.stream),
    ];
    if let Some((key, _, other, _)) = need.into_iter().find(|(_, given, _, needed)| *given && !*needed) {
        let what = format!("`{key}` has no effect without `{other}`: add `{other}`, or omit `{key}`");
        return Err(FieldError::of_key(key, what));
    }
    both(draft)?;
    if draft.pattern == TestKind::Transfer && draft.bytes.is_none() && draft.count.is_none() {
        return Err(FieldError::of_key("count", "a transfer needs its amount: add `count` or `bytes`"));
    }
    Ok(())
}

/// Refuses `both` where a flow goes in both directions anyway, or in one only.
fn both(draft: &SpecDraft) -> Result<(), FieldError> {
    let what = match draft.pattern {
        TestKind::Rr => "rr does not support `both`: a curve with `both` sends blocks in both directions at once",
        TestKind::Curve if draft.stream => {
            "`stream` and `both` exclude each other: without `stream`, `both` sends blocks in both directions at once"
        }
        _ => return Ok(()),
    };
    if draft.both { Err(FieldError::of_key("both", what)) } else { Ok(()) }
}
