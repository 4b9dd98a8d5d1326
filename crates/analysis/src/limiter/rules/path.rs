//! Links and queueing disciplines.

use model::units::{bits_per_second, count, seconds};
use model::{BoundKind, Direction, LimiterKind};

use super::super::scene::{Course, Scene, courses, each, goodput_bps, ramp};
use super::{Rule, Seen};
use crate::outcome::Headline;
use crate::stats::{mean, sample_sd};
use crate::way::{Side, Way};

pub(super) const QUEUE: Rule = Rule {
    name: "standing-queue",
    speaks_for: &[LimiterKind::Link],
    about: "A queue stood on the path all the time and was emptied at a steady rate: the rate of its link.",
    source: "K. Nichols and V. Jacobson, Controlling Queue Delay, ACM Queue 10(5), 2012 (standing queues); RFC 8289",
    see: |_: &Scene<'_>, way: &Way<'_>| {
        let courses = courses(way);
        let Some(added) = each(&courses, Course::queueing_ns) else { return Vec::new() };
        let Some(shortest) = each(&courses, Course::min_rtt_ns) else { return Vec::new() };
        let steady = unsteadiness(way).map_or(0.6, |spread| 1.0 - 0.6 * ramp(spread, 0.1, 0.4));
        let weight = 0.9 * each(&courses, Course::standing).unwrap_or(0.0) * steady;
        Seen::of(LimiterKind::Link, weight, || {
            let rate = goodput_bps(way).map_or(String::new(), |bps| format!(" at {}", bits_per_second(bps)));
            format!(
                "the round trip stood at {} over its shortest of {}: a queue before a link that empties it{rate}",
                seconds(shortest + added),
                seconds(shortest)
            )
        })
    },
};

pub(super) const LINE: Rule = Rule {
    name: "line-rate",
    speaks_for: &[LimiterKind::Link],
    about: "The goodput is within a few percent of what the interface's rate leaves for payload.",
    source: "IEEE 802.3 framing and the headers' sizes, as in manual/claims.md",
    see: |scene, way| {
        let ceiling = scene.outcome.summary.ceiling.as_ref();
        let line = ceiling.and_then(|ceiling| match ceiling.kind {
            BoundKind::Line => Some((ceiling.bound_bps, &ceiling.reason)),
            _ => ceiling.others.iter().find(|one| one.kind == BoundKind::Line).map(|one| (one.bps, &one.reason)),
        });
        let (Some((bps, reason)), Some(did)) = (line, goodput_bps(way)) else { return Vec::new() };
        // The bound is that of both directions together.
        let bps = if scene.spec.direction == Direction::Both { bps / 2.0 } else { bps };
        let part = did / bps;
        Seen::of(LimiterKind::Link, 0.97 * ramp(part, 0.93, 0.97), || {
            format!(
                "{} is {:.1} % of the {} that {reason} leaves for payload",
                bits_per_second(did),
                100.0 * part,
                bits_per_second(bps)
            )
        })
    },
};

pub(super) const QDISC: Rule = Rule {
    name: "qdisc",
    speaks_for: &[LimiterKind::Qdisc],
    about: "A queueing discipline of the sender held packets back for its rate, or dropped them.",
    source: "tc(8), tc-tbf(8), tc-htb(8): overlimits and drops; struct gnet_stats_queue in linux/gen_stats.h",
    see: |scene, way| {
        if scene.headline != Headline::Goodput {
            return Vec::new();
        }
        let (overlimits, drops) = (qdisc(&way.sender, "overlimits"), qdisc(&way.sender, "drops"));
        let packets = packets_sent(way).max(1.0);
        // A shaper that is always behind is over its limit for a good part of its packets (or of the bursts that GSO makes of them).
        let held = ramp(overlimits as f64 / packets, 0.001, 0.01);
        let weight = f64::max(0.95 * held, 0.5 * ramp(drops as f64 / packets, 0.0, 0.005));
        Seen::of(LimiterKind::Qdisc, weight, || {
            format!(
                "the sender's qdisc held packets back {} times for its rate (overlimits) and dropped {}",
                count(overlimits as f64),
                count(drops as f64)
            )
        })
    },
};

pub(super) const BACKLOG: Rule = Rule {
    name: "interface-queue",
    speaks_for: &[LimiterKind::Link],
    about: "Packets always waited at the sender's interface.",
    source: "tc(8): backlog",
    see: |scene, way| {
        let Some(series) = way.sender.pass.and_then(|pass| pass.observed.as_ref()?.series.as_ref()) else {
            return Vec::new();
        };
        // Where a shaper holds them it is not the interface.
        if scene.headline != Headline::Goodput || qdisc(&way.sender, "overlimits") > 0 {
            return Vec::new();
        }
        let device = way.sender.interface().map(|interface| interface.name.as_str());
        let lines = series.lines.iter().filter(|line| {
            let of = line.name.strip_prefix("qdisc.").and_then(|rest| rest.strip_suffix(".backlog"));
            of.is_some_and(|of| device.is_none_or(|device| of == device))
        });
        let waited = lines.map(|line| {
            let known: Vec<f64> = line.values.iter().copied().flatten().collect();
            known.iter().filter(|level| **level > 0.0).count() as f64 / known.len().max(1) as f64
        });
        let part = waited.fold(0.0, f64::max);
        Seen::of(LimiterKind::Link, 0.6 * ramp(part, 0.5, 0.95), || {
            format!("packets waited at the sender's interface in {:.0} % of the readings", 100.0 * part)
        })
    },
};

/// What a counter of the qdiscs of the interface that data takes grew by; of all interfaces where that one is not known.
fn qdisc(side: &Side<'_>, counter: &str) -> u64 {
    grew(side, "qdisc", counter)
}

/// What `SOURCE.DEVICE.COUNTER` of the device that data takes grew by; where that one is not known, of all but loopback. Classes
/// of a qdisc are in its root's count, and what an ingress one drops comes the other way.
pub(in super::super) fn grew(side: &Side<'_>, source: &str, counter: &str) -> u64 {
    let Some(observed) = side.pass.and_then(|pass| pass.observed.as_ref()) else { return 0 };
    let device = side.interface().map(|interface| interface.name.as_str());
    let wanted = |name: &str| {
        let of =
            name.strip_prefix(source).and_then(|rest| rest.strip_prefix('.')?.strip_suffix(counter)?.strip_suffix('.'));
        let part = |of: &str| of.contains(':') || of.ends_with(".ingress") || of == "lo";
        of.is_some_and(|of| device.map_or(!part(of), |device| of == device))
    };
    let grown =
        observed.counters.iter().filter(|(name, _)| wanted(name)).map(|(_, by)| u64::try_from(*by).unwrap_or(0));
    grown.sum()
}

/// Packets that the payload took, at least.
fn packets_sent(way: &Way<'_>) -> f64 {
    match way.sender.tally.datagrams {
        Some(tally) => tally.sent as f64,
        None => {
            let mss = courses(way).iter().find_map(Course::mss).unwrap_or(1_448.0);
            way.sender.tally.bytes_sent as f64 / mss
        }
    }
}

/// Standard deviation of the receiver's interval rates over their mean; `None` with fewer than five whole intervals.
fn unsteadiness(way: &Way<'_>) -> Option<f64> {
    let intervals = &way.receiver.tally.intervals;
    let longest = intervals.iter().map(|one| one.end_ns - one.start_ns).max()?;
    let whole = intervals.iter().skip(1).filter(|one| one.end_ns - one.start_ns > longest / 2);
    let rates: Vec<f64> = whole.map(|one| one.bytes_received as f64 / (one.end_ns - one.start_ns) as f64).collect();
    if rates.len() < 5 {
        return None;
    }
    Some(sample_sd(&rates)? / mean(&rates).filter(|mean| *mean > 0.0)?)
}
