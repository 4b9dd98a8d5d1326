//! The result of a check on one screen: the verdict, both directions side by side, what limits them, what was found, and what to do next.

use model::{Run, RunKind};
use text::{Text, say};

use super::answer::{TITLE, beside};
use crate::Layout;
use crate::lines::cut;
use crate::lines::hanging;
use crate::sections::check;

/// Whether the run is a check.
pub(super) fn is_of(run: &Run) -> bool {
    run.header.kind == RunKind::Check
}

/// The screen; `whole` is how to see the rest.
pub(super) fn screen(run: &Run, layout: Layout, whole: &str) -> String {
    let mut text = row("Verdict", &check::verdict(run), 1, layout);
    text.extend(check::idle(run).map(|idle| row("RTT idle", &idle, 1, layout)));
    text.push_str(&beside(&check::each(run), check::WAYS, TITLE, layout));
    text.extend(check::rows(run).iter().map(|(title, value, lines)| row(title, value, *lines, layout)));
    text.extend(check::next(run).map(|next| row("Next", &next, 2, layout)));
    text + &row("More", &say!("{whole}: hosts, path, trials, all caveats"), 1, layout)
}

/// A row of at most so many lines.
fn row(title: &str, value: &Text, lines: usize, layout: Layout) -> String {
    let mut text = String::new();
    hanging(&format!("{title:<0$}", TITLE - 1), value, TITLE, layout, &mut text);
    cut(&text, lines, layout.width())
}

#[cfg(test)]
mod tests {
    use model::{Ending, Expectation, FindingKind};

    use super::*;
    use crate::sample;

    fn shown(run: &Run) -> String {
        screen(run, Layout { columns: 80, ..Layout::default() }, "`thru show last -v`")
    }

    #[test]
    fn both_directions_and_what_was_found_fit_a_screen() {
        let text = shown(&sample::check());
        let first = "Verdict      2 findings\nRTT idle     20.0 ms\n             out                     back\n";
        assert!(text.starts_with(first), "{text}");
        assert!(text.contains("RTT loaded   143 ms, 123 ms more: C  22.0 ms, 2.00 ms more: A+\n"), "{text}");
        assert!(text.contains("Lost         0 of 625 datagrams      13 of 625 datagrams\n"), "{text}");
        assert!(
            text.contains("Found        out: a queue adds 123 ms to the round trip under load (grade C)\n"),
            "{text}"
        );
        assert!(
            text.contains("Found        back: 2.08 % of the datagrams are lost at 500 kbit/s (13 of 625)\n"),
            "{text}"
        );
        assert!(text.lines().count() <= 24 && text.lines().all(|line| line.chars().count() <= 80), "{text}");
    }

    #[test]
    fn a_curve_has_one_figure_for_both_directions_and_says_what_is_not_known() {
        let mut run = sample::check_with_nptcp();
        let text = shown(&run);
        let first = "Verdict      fine\nRTT idle     20.0 ms\nGoodput      peak 13.1 Mbit/s, one figure for out and back in turn";
        assert!(text.starts_with(first), "{text}");
        assert!(text.contains("KiB, the largest measured\n"), "{text}");
        for title in ["\nFar end      NPtcp", "\nNot known    goodput of each direction", "\nNext         `thru serve"]
        {
            assert!(text.contains(title), "{title} is not in {text}");
        }
        assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
        let summary = crate::summary(&run);
        assert!(summary.outbound.is_none() && summary.return_trip.is_none(), "no direction was measured");
        assert_eq!(summary.headline.plain(), "fine: out and back in turn 13.1 Mbit/s, RTT 20.0 ms");
        run.outcomes.truncate(1);
        let text = shown(&run);
        assert!(text.contains("Goodput      not known: the curve ended before its larger blocks\n"), "{text}");
        run.ending = Some(Ending { how: "failed".into(), ..Ending::default() });
        assert!(shown(&run).starts_with("Verdict      failed before its end\n"), "{}", shown(&run));
    }

    #[test]
    fn with_expectations_they_decide() {
        let mut run = sample::check();
        let expect = |run: &mut Run, bounds: &[&str]| {
            run.header.expected = bounds.iter().map(|bound| bound.parse::<Expectation>().unwrap()).collect();
            run.findings = analysis::of_check(&run.header, &run.outcomes);
        };
        expect(&mut run, &["out>=90M", "rtt<=25ms", "loss<=5%"]);
        assert!(shown(&run).starts_with("Verdict      as expected\n"), "{}", shown(&run));
        expect(&mut run, &["out>=90M", "back>=90M", "bloat<=30ms"]);
        let text = shown(&run);
        assert!(text.starts_with("Verdict      not as expected (2 of 3)\n"), "{text}");
        assert!(text.contains("less than the 90.0 Mbit/s that is expected\n"), "{text}");
        assert!(text.contains("Found        bloat is 123 ms, more than the 30.0 ms that is expected\n"), "{text}");
        run.outcomes.truncate(1);
        run.findings = analysis::of_check(&run.header, &run.outcomes);
        assert_eq!(run.findings[0].kind, FindingKind::Unmet);
        assert!(run.findings[0].statement.plain().starts_with("back was not measured, and 90.0 Mbit/s is expected"));
    }
}
