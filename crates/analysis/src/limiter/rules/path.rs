//! Links and queueing disciplines.

use model::source::{self, column};
use model::{BoundKind, Direction, LimiterKind};
use text::{Count, Rate, say};

use super::super::observations::{Observations, goodput_bps, ramp};
use super::super::queues::{packets_sent, qdisc, qdisc_limited, reduced_the_window};
use super::super::{bottleneck, return_path, sharing};
use super::{Rule, Signal};
use crate::direction::DirectionView;
use crate::outcome::Headline;

pub(super) const BOTTLENECK: Rule = Rule {
    name: "bottleneck",
    speaks_for: &[LimiterKind::Link],
    about: "Payload arrived at one rate while more was sent: the excess queued before a bottleneck or was lost there, or BBR paced to its rate.",
    source: "K. Nichols and V. Jacobson, Controlling Queue Delay, ACM Queue 10(5), 2012 (standing queues); RFC 8289; N. Cardwell and \
             others, BBR: Congestion-Based Congestion Control, ACM Queue 14(5), 2016 (the delivery rate as the bottleneck's)",
    evaluate: |observations: &Observations<'_>, direction: &DirectionView<'_>| {
        let Some(found) = bottleneck::of(observations, direction) else { return Vec::new() };
        // Traffic beside this one fills the queue, too.
        let weight = found.weight * (1.0 - found.back) * (1.0 - 0.5 * sharing::weight(observations, direction));
        Signal::of(LimiterKind::Link, weight, || found.statement())
    },
};

pub(super) const RETURN_PATH: Rule = Rule {
    name: "return-path",
    speaks_for: &[LimiterKind::ReturnPath],
    about: "A queue delayed acknowledgements: the time from the arrival of data to its acknowledgement grew with the round trip.",
    source: "H. Balakrishnan, V. Padmanabhan, G. Fairhurst and M. Sooriyabandara, TCP Performance Implications of Network Path \
             Asymmetry, RFC 3449",
    evaluate: |observations: &Observations<'_>, direction: &DirectionView<'_>| {
        let Some(found) = bottleneck::of(observations, direction) else { return Vec::new() };
        Signal::of(LimiterKind::ReturnPath, found.weight * found.back, || {
            found.of_return(return_path::acknowledgements(direction))
        })
    },
};

pub(super) const SHARED: Rule = Rule {
    name: "other-traffic",
    speaks_for: &[LimiterKind::OtherTraffic],
    about: "The path was full and shared: other traffic passed an interface at either end, or its queue stood before the data came.",
    source: "RFC 5136, section 2.3 (available capacity); counters of /proc/net/dev",
    evaluate: |observations: &Observations<'_>, direction: &DirectionView<'_>| {
        let Some(found) = sharing::other_traffic(observations, direction) else { return Vec::new() };
        Signal::of(LimiterKind::OtherTraffic, found.weight, || found.statement)
    },
};

pub(super) const LINE: Rule = Rule {
    name: "line-rate",
    speaks_for: &[LimiterKind::Link],
    about: "The goodput is within a few percent of the interface's rate less headers.",
    source: "IEEE 802.3 framing and the headers' sizes, as in manual/claims.md",
    evaluate: |observations, direction| {
        let ceiling = observations.outcome.summary.ceiling.as_ref();
        let line = ceiling.and_then(|ceiling| match ceiling.kind {
            BoundKind::Line => Some((ceiling.bound_bps, &ceiling.reason)),
            _ => ceiling.others.iter().find(|one| one.kind == BoundKind::Line).map(|one| (one.bps, &one.reason)),
        });
        let (Some((bps, reason)), Some(did)) = (line, goodput_bps(direction)) else { return Vec::new() };
        // The bound is that of both directions together.
        let bps = if observations.spec.direction == Direction::Both { bps / 2.0 } else { bps };
        let part = did / bps;
        Signal::of(LimiterKind::Link, 0.97 * ramp(part, 0.93, 0.97), || {
            say!("{} is {:.1} % of the {} that {reason} leaves for payload", Rate(did), 100.0 * part, Rate(bps))
        })
    },
};

pub(super) const QDISC: Rule = Rule {
    name: "qdisc",
    speaks_for: &[LimiterKind::Qdisc],
    about: "A queueing discipline of the sender delayed packets to keep its rate, or dropped them.",
    source: "tc(8), tc-tbf(8), tc-htb(8): overlimits and drops; struct gnet_stats_queue in linux/gen_stats.h",
    evaluate: |observations, direction| {
        if observations.headline != Headline::Goodput {
            return Vec::new();
        }
        let (overlimits, drops) =
            (qdisc(&direction.sender, column::OVERLIMITS), qdisc(&direction.sender, column::DROPS));
        let dropped = ramp(drops as f64 / packets_sent(direction).max(1.0), 0.0, 0.005);
        let reduced = 0.8 * reduced_the_window(direction) * (1.0 - bottleneck::weight(observations, direction));
        let weight = (0.95 * qdisc_limited(direction)).max(0.5 * dropped).max(reduced);
        Signal::of(LimiterKind::Qdisc, weight, || {
            if reduced == weight {
                return say!(
                    "the sender's qdisc had no room for {drops} packets, so TCP reduced its congestion window: the queue is too short \
                     for its bursts"
                );
            }
            say!(
                "the sender's qdisc delayed packets {} times to keep its rate (overlimits) and dropped {}",
                Count(overlimits),
                Count(drops)
            )
        })
    },
};

pub(super) const BACKLOG: Rule = Rule {
    name: "interface-queue",
    speaks_for: &[LimiterKind::Link],
    about: "Packets were always queued at the sender's interface.",
    source: "tc(8): backlog",
    evaluate: |observations, direction| {
        let Some(series) = direction.sender.pass.and_then(|pass| pass.observed.as_ref()?.series.as_ref()) else {
            return Vec::new();
        };
        // With a shaper the queue is the shaper's, not the interface's.
        if observations.headline != Headline::Goodput || qdisc(&direction.sender, column::OVERLIMITS) > 0 {
            return Vec::new();
        }
        let device = direction.sender.interface().map(|interface| interface.name.as_str());
        let lines = series.lines.iter().filter(|line| {
            let of = source::QDISC.device(&line.name).filter(|(_, column)| *column == column::BACKLOG);
            of.is_some_and(|(of, _)| device.is_none_or(|device| of == device))
        });
        let waited = lines.map(|line| {
            let known: Vec<f64> = line.values.iter().copied().flatten().collect();
            known.iter().filter(|level| **level > 0.0).count() as f64 / known.len().max(1) as f64
        });
        let part = waited.fold(0.0, f64::max);
        Signal::of(LimiterKind::Link, 0.6 * ramp(part, 0.5, 0.95), || {
            say!("packets were queued at the sender's interface in {:.0} % of the samples", 100.0 * part)
        })
    },
};
