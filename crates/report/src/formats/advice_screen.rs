//! The result of `thru advise` on one screen: what helps and by how much, and how to keep it.

use model::{Advice, AdviceStep, Estimate, Run, RunKind};
use text::say;

use crate::headline::headline;
use crate::lines::{cut, wrapped};
use crate::sections::advice::persistent;
use crate::{Layout, labels};

/// Changes and lines of settings that a screen has.
const MOST_STEPS: usize = 6;
const MOST_LINES: usize = 8;

/// Whether the run is a search with a result.
pub(super) fn is_of(run: &Run) -> bool {
    run.header.kind == RunKind::Advise && run.advice.is_some()
}

/// The screen; `whole` is how to see the rest.
pub(super) fn screen(run: &Run, layout: Layout, whole: &str) -> String {
    let mut text = String::new();
    let mut sentence = String::new();
    wrapped("", &headline(run).capitalised(), layout, &mut sentence);
    text.push_str(&cut(&sentence, 4, layout.width()));
    if let Some(advice) = &run.advice {
        text.push_str(&steps(advice, layout));
        let mut kept = String::new();
        for (title, list) in [("Not changed:", unchanged(advice)), ("Not tried:", untried(advice))] {
            if !list.is_empty() {
                let mut line = String::new();
                wrapped(title, &list.join(", ").into(), layout, &mut line);
                kept.push_str(&cut(&line, 2, layout.width()));
            }
        }
        text.push_str(&if kept.is_empty() { kept } else { format!("\n{kept}") });
    }
    let lines = persistent(run);
    if !lines.is_empty() {
        let shown = lines.iter().take(MOST_LINES).map(|line| format!("{line}\n")).collect::<String>();
        let more = lines.len().saturating_sub(MOST_LINES);
        let more = if more > 0 { format!("{more} more lines: -v\n") } else { String::new() };
        text.push_str(&format!("\nTo keep these settings\n{shown}{more}"));
    }
    text.push('\n');
    wrapped("More:", &say!("{whole}: every trial, how the time was spent, what limits, caveats"), layout, &mut text);
    text
}

/// A line for all changes together and one for each.
fn steps(advice: &Advice, layout: Layout) -> String {
    let all: Vec<&AdviceStep> = advice.total.iter().chain(&advice.steps).collect();
    let name = |step: &AdviceStep| match step.dimension.as_str() {
        "all" => "all together".to_owned(),
        one => labels::plain(&format!("{one} {} to {}", step.from, step.to)),
    };
    let width = all.iter().map(|step| name(step).chars().count()).max().unwrap_or(0).min(layout.width() / 2);
    let line = |step: &&AdviceStep| {
        let name: String = name(step).chars().take(width).collect();
        let gain = step.estimate.as_ref().map_or_else(|| "not measured".to_owned(), change);
        let sure = if step.confirmed { "" } else { ", not confirmed" };
        format!("  {name:<width$}  {gain}{sure}\n")
    };
    let shown: String = all.iter().take(MOST_STEPS + 1).map(line).collect();
    if shown.is_empty() { shown } else { format!("\nGain (95 % interval)\n{shown}") }
}

/// A ratio as a change with its interval.
fn change(ratio: &Estimate) -> String {
    let interval = ratio.low.zip(ratio.high);
    let interval =
        interval.map(|(low, high)| format!(" ({} to {})", labels::signed(low - 1.0), labels::signed(high - 1.0)));
    format!("{}{}", labels::signed(ratio.value - 1.0), interval.unwrap_or_default())
}

fn unchanged(advice: &Advice) -> Vec<String> {
    advice.unchanged.iter().map(|one| labels::plain(&one.dimension)).collect()
}

fn untried(advice: &Advice) -> Vec<String> {
    advice.untried.iter().map(|one| labels::plain(&one.what)).collect()
}

#[cfg(test)]
mod tests {
    use model::{AdvicePersistent, Goal, HostSettings};

    use super::*;
    use crate::sample;

    #[test]
    fn what_helps_and_how_to_keep_it_fit_a_screen() {
        let mut run = sample::pair();
        run.header.kind = RunKind::Advise;
        let ratio = |value: f64| {
            let mut ratio = run.findings[0].estimate.clone().unwrap();
            (ratio.value, ratio.low, ratio.high) = (value, Some(value - 0.02), Some(value + 0.02));
            ratio
        };
        let step = |dimension: &str, value| AdviceStep {
            dimension: dimension.into(),
            from: "kernel".into(),
            to: "1MiB".into(),
            estimate: Some(ratio(value)),
            goodput: None,
            p_value: Some(0.01),
            confirmed: dimension != "cc",
        };
        let sysctl = (0..20).map(|at| format!("net.core.x{at} = 1048576")).collect();
        run.advice = Some(Advice {
            goal: Goal::Throughput,
            min_effect: 0.01,
            start: Default::default(),
            best: Default::default(),
            confirmed: true,
            total: Some(step("all", 1.3)),
            steps: vec![step("window", 1.25), step("cc", 1.01)],
            unchanged: Vec::new(),
            untried: Vec::new(),
            spent: Vec::new(),
            command: Some("thru stream beta --sndbuf 1MiB,".into()),
            settings: HostSettings::default(),
            near: AdvicePersistent::default(),
            far: AdvicePersistent { sysctl, ..AdvicePersistent::default() },
        });
        let text = screen(&run, Layout { columns: 80, ..Layout::default() }, "`thru show x -v`");
        assert!(text.lines().count() <= 24 && text.lines().all(|line| line.chars().count() <= 80), "{text}");
        assert!(text.contains("\n  all together           +30 % (+28 % to +32 %)\n"), "{text}");
        assert!(text.contains("\n  window kernel to 1MiB  +25 % (+23 % to +27 %)\n"), "{text}");
        assert!(text.contains("  cc kernel to 1MiB      +1.0 % (-1.0 % to +3.0 %), not confirmed\n"), "{text}");
        assert!(
            text.contains("\nTo keep these settings\n# to measure") && text.contains(" more lines: -v\n"),
            "{text}"
        );
    }
}
