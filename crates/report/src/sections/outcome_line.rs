//! A finished outcome in one line.

use model::{Direction, Estimate, Outcome, Pattern, Spec, units};

use crate::labels;

/// A finished outcome in one line, without a line end: what was measured, the value with its interval, trials, trust and verdicts.
///
/// ```text
/// tcp pingpong 64 B: RTT 18.5 µs ±1.1 %, NetPIPE rate 55.3 Mbit/s (6 trials, trust high)
/// ```
#[must_use]
pub fn outcome_line(outcome: &Outcome) -> String {
    let summary = &outcome.summary;
    let trials = if summary.trials == 1 { "trial" } else { "trials" };
    let trust = summary.trust.map_or(String::new(), |trust| format!(", trust {}", labels::trust(trust)));
    let mut line =
        format!("{}: {} ({} {trials}{trust})", labels::plain(&label(&outcome.spec)), values(outcome), summary.trials,);
    if !summary.verdicts.is_empty() {
        line.push_str(&format!(" [{}]", labels::verdicts(&summary.verdicts)));
    }
    line
}

/// An estimate as text: `9.41 Gbit/s ±0.3 %`, without the width if there is no interval.
pub(crate) fn estimate_words(estimate: &Estimate) -> String {
    let value = labels::quantity(estimate.value, &estimate.unit);
    match labels::half_width(estimate) {
        Some(width) => format!("{value} {width}"),
        None => value,
    }
}

/// The goodput of each direction: `outbound 28.1 Mbit/s ±0.4 %, return 4.70 Mbit/s ±1 %`; `None` of one direction.
pub(crate) fn each_direction(goodputs: impl Iterator<Item = (Direction, Estimate)>) -> Option<String> {
    let words =
        |(direction, estimate): (Direction, Estimate)| format!("{} {}", direction.way(), estimate_words(&estimate));
    let each: Vec<String> = goodputs.map(words).collect();
    (!each.is_empty()).then(|| each.join(", "))
}

/// What a spec measures, without its target: `tcp stream 128 KiB, 4 flows, both`.
pub(crate) fn label(spec: &Spec) -> String {
    let mut label = format!("{} {} {}", spec.transport, spec.pattern, spec.block_words());
    if let Some(reply) = spec.reply.filter(|reply| *reply != spec.block) {
        label.push_str(&format!(" for {}", model::ByteSize(reply)));
    }
    if spec.flows != 1 {
        label.push_str(&format!(", {} flows", spec.flows));
    }
    if spec.direction != Direction::Send {
        label.push_str(&format!(", {}", crate::figures::direction(spec.direction)));
    }
    if let Some(program) = &spec.speak {
        label.push_str(&format!(", with {program}"));
    }
    if let Some(rate) = spec.rate_bps {
        label.push_str(&format!(", at most {}", units::bits_per_second(rate as f64)));
    }
    if spec.paced_to_receiver {
        label.push_str(", paced to the receiver");
    }
    if spec.delayed_reads {
        label.push_str(", delayed reads");
    }
    if spec.overlap_close {
        label.push_str(", overlapping close");
    }
    if spec.anatomy {
        label.push_str(", some stamped");
    }
    label
}

/// The round trip of an outcome: its estimate if that is a time, otherwise the median.
pub(crate) fn rtt(outcome: &Outcome) -> Option<f64> {
    let estimate = outcome.estimate.as_ref().filter(|estimate| estimate.unit == "ns").map(|estimate| estimate.value);
    estimate.or(outcome.summary.rtt_p50_ns).filter(|ns| ns.is_finite())
}

/// The main value with its interval, then the other values.
pub(crate) fn values(outcome: &Outcome) -> String {
    let summary = &outcome.summary;
    let mut parts = Vec::new();
    if let Some(bps) = summary.goodput_bps {
        parts.push(format!("goodput {}", units::bits_per_second(bps)));
    } else if let Some(rate) = summary.transactions_per_s.filter(|_| outcome.spec.pattern != Pattern::Pingpong) {
        parts.push(format!("{} transactions/s", units::count(rate)));
    } else if let Some(ns) = rtt(outcome) {
        parts.push(format!("RTT {}", units::seconds(ns)));
    }
    let width = labels::plus_minus(outcome);
    let each = each_direction(outcome.directions());
    match parts.first_mut() {
        // The sum of two directions is not a rate of the path.
        Some(first) if each.is_some() => *first = format!("goodput {}", each.unwrap_or_default()),
        Some(first) if width != "-" => first.push_str(&format!(" {width}")),
        Some(_) => {}
        None => return "no value".to_owned(),
    }
    if let Some(bps) = summary.netpipe_bps.filter(|_| summary.goodput_bps.is_none()) {
        parts.push(format!("NetPIPE rate {}", units::bits_per_second(bps)));
    } else if let Some(ns) = summary.rtt_p50_ns {
        parts.push(format!("median {}", units::seconds(ns)));
    }
    if let Some(ns) = summary.rtt_p99_ns.filter(|_| outcome.spec.pattern != Pattern::Pingpong) {
        parts.push(format!("p99 {}", units::seconds(ns)));
    }
    if let Some(lost) = summary.packets_lost.filter(|lost| *lost > 0) {
        parts.push(format!("{lost} datagrams lost"));
    }
    parts.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    #[test]
    fn lines_have_the_spec_the_value_and_its_interval() {
        let line = outcome_line(&sample::curve().outcomes[0]);
        assert!(line.starts_with("tcp pingpong 1 B: RTT ") && line.contains('±') && line.contains("trust"), "{line}");
        let line = outcome_line(&sample::stream().outcomes[0]);
        assert!(line.contains("goodput ") && line.contains("Gbit/s"), "{line}");
        let line = outcome_line(&sample::rr().outcomes[0]);
        assert!(line.contains("transactions/s") && line.contains("median ") && line.contains("p99 "), "{line}");
    }

    #[test]
    fn an_estimate_has_its_width_if_known() {
        let mut estimate = sample::stream().outcomes.remove(0).estimate.unwrap();
        estimate.value = 9.41e9;
        (estimate.low, estimate.high) = (Some(9.36e9), Some(9.46e9));
        assert_eq!(estimate_words(&estimate), "9.41 Gbit/s ±0.5 %");
        estimate.low = None;
        assert_eq!(estimate_words(&estimate), "9.41 Gbit/s");
        estimate.value = f64::NAN;
        assert_eq!(estimate_words(&estimate), "no value");
    }

    #[test]
    fn an_outcome_without_a_value_is_named_so() {
        let mut outcome = sample::stream().outcomes.remove(0);
        outcome.summary = model::Summary { verdicts: vec![model::Verdict::Stalled], ..Default::default() };
        outcome.estimate = None;
        let line = outcome_line(&outcome);
        assert!(line.contains("no value") && line.contains("[stalled]") && !line.contains('\n'), "{line}");
    }
}
