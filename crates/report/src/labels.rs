//! Names and sentences of several formats.

pub(crate) use drawing::dates::when;
pub(crate) use drawing::quantity;

use analysis::outcome::{explain, missed_target};
use comfy_table::LineStyle;
use jiff::Timestamp;
use model::{Answer, ByteSize, Comparison, Estimate, Inventory, Outcome, Run, Spec, Trust, Verdict, units};
use text::units::grouped;
use text::{Text, say};

/// A verdict's name in documents, such as `byte-count-mismatch`.
pub(crate) fn verdict(verdict: Verdict) -> String {
    verdict.name()
}

/// Verdicts by name, separated by commas; empty for none.
pub(crate) fn verdicts(list: &[Verdict]) -> String {
    list.iter().map(|one| verdict(*one)).collect::<Vec<_>>().join(", ")
}

/// A verdict of a run's outcomes with its meaning: `loss: datagrams were lost`. A missed target has the figures of this run.
pub(crate) fn meaning(run: &Run, one: Verdict) -> Text {
    let missed = || {
        // A budget in a plan's file is not one on the command line.
        let duration_ns = run.ending.as_ref().filter(|_| run.header.plan.is_none()).map(|ending| ending.duration_ns);
        missed_target(&run.outcomes, &run.header.stopping, duration_ns)
    };
    let words = if one == Verdict::TargetMissed { missed() } else { None };
    say!("{}: {}", verdict(one), words.unwrap_or_else(|| explain(one)))
}

/// All verdicts of these outcomes, each once, in their own order.
pub(crate) fn verdicts_of<'a>(outcomes: impl IntoIterator<Item = &'a Outcome>) -> Vec<Verdict> {
    let mut all: Vec<Verdict> = outcomes.into_iter().flat_map(|outcome| outcome.summary.verdicts.clone()).collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// A trust grade's name.
pub(crate) fn trust(trust: Trust) -> &'static str {
    match trust {
        Trust::High => "high",
        Trust::Fair => "fair",
        Trust::Low => "low",
        Trust::None => "none",
    }
}

/// Why the value is not final, after a comma; empty if it is.
pub(crate) fn unsettled(outcome: &Outcome) -> &'static str {
    match &outcome.summary.verdicts {
        verdicts if verdicts.contains(&Verdict::NotSettled) => ", not settled: still growing",
        verdicts if verdicts.contains(&Verdict::SendBufferLimited) => ", not settled: send buffer",
        _ => "",
    }
}

/// The worst trust among a run's outcomes; `None` if none has a value.
pub(crate) fn worst_trust(run: &Run) -> Option<Trust> {
    run.outcomes.iter().filter_map(|outcome| outcome.summary.trust).max()
}

/// How often an outcome's receivers slept between reads, over all trials and flows; `None` unless requested.
pub(crate) fn delayed_reads(outcome: &Outcome) -> Option<u64> {
    let ends = outcome.trials.iter().flat_map(|trial| [&trial.near, &trial.far]);
    let count = ends.flat_map(|end| &end.flows).filter_map(|flow| flow.socket.delayed_reads).sum();
    outcome.spec.delayed_reads.then_some(count)
}

/// A time in data, RFC 3339 in UTC with whole seconds.
pub(crate) fn when_rfc3339(unix_ns: u64) -> String {
    let timestamp = Timestamp::from_nanosecond(i128::from(unix_ns));
    timestamp.map_or_else(|_| unix_ns.to_string(), |at| at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string())
}

/// The run's name, otherwise its kind and target.
pub(crate) fn title(run: &Run) -> String {
    let header = &run.header;
    match (&header.name, &header.target) {
        (Some(name), _) => name.clone(),
        (None, Some(target)) => format!("{} to {target}", header.kind),
        (None, None) if header.origin.is_some() => header.kind.to_string(),
        (None, None) => format!("{} within one host", header.kind),
    }
}

/// The time of a run; for an import whose file has no time, that of the import.
pub(crate) fn begun(run: &Run) -> String {
    let measured = run.header.origin.as_ref().is_none_or(|origin| origin.measured_unix_ns.is_some());
    let when = when(run.header.started_unix_ns);
    if measured { when } else { format!("imported {when}") }
}

/// Both hosts: `alpha to beta`, or `within alpha`.
pub(crate) fn hosts(run: &Run) -> String {
    let name = |host: &Inventory| host.hostname.clone();
    // An imported run was not necessarily measured on this host.
    let imported = run.header.origin.is_some();
    let unnamed = if imported { "an unnamed host" } else { "this host" };
    let near = name(&run.header.near).unwrap_or_else(|| unnamed.to_owned());
    match (name(&run.header.far), &run.header.target) {
        (Some(far), _) if far != near => format!("{near} to {far}"),
        (None, None) if imported => near,
        (Some(_), _) => format!("both ends on {near}"),
        (None, None) => format!("on {near}"),
        (None, Some(target)) => format!("{near} to {target}"),
    }
}

/// The distinct values of `key` over a run's outcomes (or its cells if there are none), in order of appearance, without a
/// curve's memory ceiling.
pub(crate) fn distinct(run: &Run, key: fn(&model::Spec) -> String) -> String {
    let mut seen: Vec<String> = Vec::new();
    let specs: Vec<&model::Spec> = if run.outcomes.is_empty() {
        run.header.cells.iter().map(|cell| &*cell.spec).collect()
    } else {
        run.outcomes.iter().map(|outcome| &*outcome.spec).collect()
    };
    let only_ceiling = specs.iter().all(|spec| spec.transport == model::Spec::CEILING);
    for spec in specs {
        let value = key(spec);
        if !seen.contains(&value) && (only_ceiling || spec.transport != model::Spec::CEILING) {
            seen.push(value);
        }
    }
    seen.join("/")
}

/// A block size for a table: with a binary prefix if that is exact, otherwise in bytes, so that 4194301 B and 4 MiB differ.
pub(crate) fn block(bytes: u64) -> String {
    let name = ByteSize(bytes).to_string();
    if name.contains('.') { format!("{bytes} B") } else { name }
}

/// The size of a spec's blocks in a table.
pub(crate) fn blocks(spec: &Spec) -> String {
    if spec.mix.is_empty() { block(spec.block) } else { spec.block_words() }
}

/// The style of every table: one line under the head.
pub(crate) const TABLE: comfy_table::TableStyle =
    comfy_table::TableStyle::new().header_separator(LineStyle::none().fill('─').junction('─'));

/// A share in percent without trailing zeros: 0.95 is `95`, 0.999 is `99.9`.
pub(crate) fn percent(share: f64) -> String {
    let text = format!("{:.4}", share * 100.0);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

/// Datagrams lost, with their share of those sent: `12 (0.034 %)`.
pub(crate) fn lost(lost: u64, sent: Option<u64>) -> String {
    match sent.filter(|sent| *sent > 0 && lost > 0) {
        Some(sent) => format!("{} ({})", grouped(lost), model::Ratio(lost as f64 / sent as f64)),
        None => grouped(lost),
    }
}

/// The name of a comparison's answer.
pub(crate) fn answer(answer: Answer) -> &'static str {
    match answer {
        Answer::Better => "better",
        Answer::NotWorse => "not worse",
        Answer::CannotTell => "cannot tell",
        Answer::Worse => "worse",
    }
}

/// A relative difference in percent, with its sign, or from ten times on as a factor: `+0.3 %`, `-41 %`, `×42`.
pub(crate) fn signed(share: f64) -> String {
    let percent = 100.0 * share;
    // Nearly nothing is not nothing.
    let is_near_end = percent < -99.0 && percent > -99.95;
    if percent.abs() < 9.95 || is_near_end {
        // Adding 0 turns a rounded -0 into 0.
        return format!("{:+.1} %", (10.0 * percent).round() / 10.0 + 0.0);
    }
    if share >= 9.0 {
        return format!("×{}", grouped((1.0 + share).round() as u64));
    }
    let sign = if percent < 0.0 { "-" } else { "+" };
    format!("{sign}{} %", grouped(percent.abs().round() as u64))
}

/// How B differs from A, with the interval that decides the answer: `-34 % (-47 % to -18 %)`.
pub(crate) fn change(ratio: &Estimate, comparison: &Comparison) -> String {
    let bounds = comparison.adjusted_low.zip(comparison.adjusted_high);
    // Ends this far away say that next to nothing is known.
    let low = |end: f64| if end < 0.01 { "-99 % or less".to_owned() } else { signed(end - 1.0) };
    let high = |end: f64| if end > 100.0 { "×100 or more".to_owned() } else { signed(end - 1.0) };
    let interval = bounds.map(|(from, to)| format!(" ({} to {})", low(from), high(to)));
    format!("{}{}", signed(ratio.value - 1.0), interval.unwrap_or_default())
}

/// A relative half width: `±1.2 %`, or `-` without an interval.
pub(crate) fn plus_minus(outcome: &Outcome) -> String {
    outcome.estimate.as_ref().and_then(half_width).unwrap_or_else(|| "-".to_owned())
}

/// `±1.2 %`, `None` without an interval.
pub(crate) fn half_width(estimate: &Estimate) -> Option<String> {
    estimate.relative_half_width().filter(|width| width.is_finite()).map(units::plus_minus)
}

/// `9.41 Gbit/s ±0.3 %`; without the interval if there is none.
pub(crate) fn estimated(estimate: &Estimate) -> Text {
    let value = quantity(estimate.value, &estimate.unit);
    match half_width(estimate) {
        Some(width) => say!("{value} {width}"),
        None => value,
    }
}

/// The text on one line, with terminal control characters made visible.
pub(crate) fn plain(text: &str) -> String {
    model::plain(text).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_have_two_or_three_digits() {
        let shares = [0.003, -0.0812, 1.797, -0.0001, -0.998, 12.04];
        assert_eq!(shares.map(signed), ["+0.3 %", "-8.1 %", "+180 %", "+0.0 %", "-99.8 %", "×13"]);
    }
}
