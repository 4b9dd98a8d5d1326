//! A finished outcome in one line.

use model::{Direction, Estimate, Outcome, Pattern, Spec, units};
use text::{Count, Rate, Text, Time, say};

use crate::labels;

/// A finished outcome in one line, without a line end: what was measured, the value with its interval, trials, trust and verdicts.
///
/// ```text
/// tcp pingpong 64 B: RTT 18.5 µs ±1.1 %, NetPIPE rate 55.3 Mbit/s (6 trials, trust high)
/// ```
#[must_use]
pub fn outcome_line(outcome: &Outcome) -> Text {
    let summary = &outcome.summary;
    let trials = if summary.trials == 1 { "trial" } else { "trials" };
    let trust = summary.trust.map_or(Text::default(), |trust| say!(", trust {}", labels::trust(trust)));
    let mut line = say!("{}: {} ({} {trials}{trust})", label(&outcome.spec), values(outcome), summary.trials,);
    if !summary.verdicts.is_empty() {
        line += say!(" [{}]", labels::verdicts(&summary.verdicts));
    }
    line
}

/// The goodput of each direction: `outbound 28.1 Mbit/s ±0.4 %, return 4.70 Mbit/s ±1 %`; `None` of one direction.
pub(crate) fn each_direction(goodputs: impl Iterator<Item = (Direction, Estimate)>) -> Option<Text> {
    let words =
        |(direction, estimate): (Direction, Estimate)| say!("{} {}", direction.way(), labels::estimated(&estimate));
    let each: Vec<Text> = goodputs.map(words).collect();
    (!each.is_empty()).then(|| Text::join(each, ", "))
}

/// What a spec measures, without its target: `tcp stream 128 KiB, 4 flows, both`.
pub(crate) fn label(spec: &Spec) -> Text {
    let mut label = say!("{} {} {}", spec.transport, spec.pattern, spec.block_words());
    if let Some(reply) = spec.reply.filter(|reply| *reply != spec.block) {
        label += say!(" for {}", model::ByteSize(reply));
    }
    if spec.flows != 1 {
        label += say!(", {} flows", spec.flows);
    }
    if spec.direction != Direction::Send {
        label += say!(", {}", crate::figures::direction(spec.direction));
    }
    if let Some(program) = &spec.speak {
        label += say!(", with {program}");
    }
    if let Some(rate) = spec.rate_bps {
        label += say!(", at most {}", Rate(rate as f64));
    }
    if spec.paced_to_receiver {
        label += ", paced to the receiver";
    }
    if spec.delayed_reads {
        label += ", delayed reads";
    }
    if spec.overlap_close {
        label += ", overlapping close";
    }
    if spec.anatomy {
        label += ", some stamped";
    }
    label
}

/// The round trip of an outcome: its estimate if that is a time, otherwise the median.
pub(crate) fn rtt(outcome: &Outcome) -> Option<f64> {
    let estimate = outcome.estimate.as_ref().filter(|estimate| estimate.unit == "ns").map(|estimate| estimate.value);
    estimate.or(outcome.summary.rtt_p50_ns).filter(|ns| ns.is_finite())
}

/// The main value with its interval; `None` without one.
pub(crate) fn value(outcome: &Outcome) -> Option<Text> {
    let summary = &outcome.summary;
    // The sum of two directions is not a rate of the path.
    if let Some(each) = each_direction(outcome.directions()) {
        return Some(say!("goodput {each}"));
    }
    let value = if let Some(bps) = summary.goodput_bps {
        let name = if outcome.spec.no_loss { "highest rate without loss" } else { "goodput" };
        say!("{name} {}", Rate(bps))
    } else if let Some(rate) = summary.transactions_per_s.filter(|_| outcome.spec.pattern != Pattern::Pingpong) {
        say!("{} transactions/s", units::count(rate))
    } else {
        say!("RTT {}", Time(rtt(outcome)?))
    };
    Some(match outcome.estimate.as_ref().and_then(labels::half_width) {
        Some(width) => say!("{value} {width}"),
        None => value,
    })
}

/// The main value with its interval, then the other values.
pub(crate) fn values(outcome: &Outcome) -> Text {
    let summary = &outcome.summary;
    let Some(first) = value(outcome) else { return "no value".into() };
    let mut parts = vec![first];
    if let Some(bps) = summary.netpipe_bps.filter(|_| summary.goodput_bps.is_none()) {
        parts.push(say!("NetPIPE rate {}", Rate(bps)));
    } else if let Some(ns) = summary.rtt_p50_ns {
        parts.push(say!("median {}", Time(ns)));
    }
    if let Some(ns) = summary.rtt_p99_ns.filter(|_| outcome.spec.pattern != Pattern::Pingpong) {
        parts.push(say!("p99 {}", Time(ns)));
    }
    if let Some(lost) = summary.packets_lost.filter(|lost| *lost > 0) {
        parts.push(say!("{} datagrams lost", Count(lost)));
    }
    Text::join(parts, ", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn lines_have_the_spec_the_value_and_its_interval() {
        let line = outcome_line(&sample::curve().outcomes[0]);
        assert!(
            line.plain().starts_with("tcp pingpong 1 B: RTT ")
                && line.plain().contains('±')
                && line.plain().contains("trust"),
            "{line:?}"
        );
        let line = outcome_line(&sample::stream().outcomes[0]);
        assert!(line.plain().contains("goodput ") && line.plain().contains("Gbit/s"), "{line:?}");
        let line = outcome_line(&sample::rr().outcomes[0]);
        assert!(
            line.plain().contains("transactions/s")
                && line.plain().contains("median ")
                && line.plain().contains("p99 "),
            "{line:?}"
        );
    }

    #[test]
    fn an_estimate_has_its_width_if_known() {
        let mut estimate = sample::stream().outcomes.remove(0).estimate.unwrap();
        estimate.value = 9.41e9;
        (estimate.low, estimate.high) = (Some(9.36e9), Some(9.46e9));
        let shown = |estimate: &Estimate| labels::estimated(estimate).plain();
        assert_eq!(shown(&estimate), "9.41 Gbit/s ±0.5 %");
        estimate.low = None;
        assert_eq!(shown(&estimate), "9.41 Gbit/s");
        estimate.value = f64::NAN;
        assert_eq!(shown(&estimate), "no value");
    }

    #[test]
    fn an_outcome_without_a_value_is_named_so() {
        let mut outcome = sample::stream().outcomes.remove(0);
        outcome.summary = model::Summary { verdicts: vec![model::Verdict::Stalled], ..Default::default() };
        outcome.estimate = None;
        let line = outcome_line(&outcome);
        assert!(
            line.plain().contains("no value") && line.plain().contains("[stalled]") && !line.plain().contains('\n'),
            "{line:?}"
        );
    }
}
