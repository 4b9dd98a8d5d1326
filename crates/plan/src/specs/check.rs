//! TestOptions that exclude or need each other.

use options::values::NO_LIMIT;
use options::{OptionError, TestKind, TestOptions};
use text::say;

/// Refuses options that cannot be used together, and options without the one that they need.
pub(super) fn check(options: &TestOptions) -> Result<(), OptionError> {
    let curve = options.test == TestKind::Curve;
    let listed = options.sizes.is_some();
    let exclude = [
        ("udp", options.udp, "transport", options.transport.is_some()),
        ("reverse", options.reverse, "both", options.both),
        ("spin", options.spin, "wait", options.wait.is_some()),
        ("ipv4", options.ipv4, "ipv6", options.ipv6),
        ("bytes", options.bytes.is_some(), "count", options.count.is_some()),
        ("find-no-loss", options.find_no_loss, "rate", options.rate.is_some()),
        ("find-no-loss", options.find_no_loss, "bytes", options.bytes.is_some()),
        ("find-no-loss", options.find_no_loss, "count", options.count.is_some()),
        ("responsiveness", options.responsiveness, "bytes", options.bytes.is_some()),
        ("responsiveness", options.responsiveness, "count", options.count.is_some()),
        ("responsiveness", options.responsiveness, "rate", options.rate.is_some()),
        ("responsiveness", options.responsiveness, "find-no-loss", options.find_no_loss),
        ("responsiveness", options.responsiveness, "speak", options.speak.is_some()),
        ("responsiveness", options.responsiveness, "drain", options.drain.is_some()),
        ("connect", options.connect, "rate", options.request_rate.is_some()),
        ("block", listed, "first", options.first.is_some()),
        ("block", listed, "to", options.to.is_some()),
        ("block", listed, "perturbation", options.perturbation.is_some()),
    ];
    if let Some((key, _, other, _)) = exclude.into_iter().find(|(_, first, _, second)| *first && *second) {
        let what = say!("`--{key}` and `--{other}` cannot be used together: omit one of them");
        return Err(OptionError::of_key(key, what));
    }
    let captured = options.capture.is_some();
    let need = [
        ("cc-rules", options.cc_rules.is_some(), "cc", options.near.cc.is_some() || options.far.cc.is_some()),
        ("snaplen", options.snaplen.is_some(), "capture", captured),
        ("fetch", options.fetch.is_some(), "capture", captured),
        ("burst", options.burst.is_some(), "rate", options.rate.is_some_and(|rate| rate != NO_LIMIT)),
        ("overlap-close", options.overlap_close, "connect", options.connect),
        ("unpaced", curve && options.unpaced, "stream", options.stream),
        ("delayed-reads", curve && options.delayed_reads, "stream", options.stream),
    ];
    if let Some((key, _, other, _)) = need.into_iter().find(|(_, given, _, needed)| *given && !*needed) {
        let what = say!("`--{key}` has no effect without `--{other}`: add `--{other}`, or omit `--{key}`");
        return Err(OptionError::of_key(key, what));
    }
    both(options)?;
    if options.test == TestKind::Transfer && options.bytes.is_none() && options.count.is_none() {
        return Err(OptionError::of_key("count", say!("a transfer needs its amount: add `--count` or `--bytes`")));
    }
    Ok(())
}

/// Refuses `both` where a flow goes in both directions anyway, or in one only.
fn both(options: &TestOptions) -> Result<(), OptionError> {
    let what = match options.test {
        TestKind::Rr => {
            say!("rr does not support `--both`: a curve with `--both` sends blocks in both directions at once")
        }
        TestKind::Curve if options.stream => say!(
            "`--stream` and `--both` cannot be used together: without `--stream`, `--both` sends blocks in both directions at once"
        ),
        _ => return Ok(()),
    };
    if options.both { Err(OptionError::of_key("both", what)) } else { Ok(()) }
}
