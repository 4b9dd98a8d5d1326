//! How a run was measured: what a reader needs to repeat it.

use model::{Order, Origin, Run, Stopping, units};

use crate::sections::ceiling_cost;
use crate::{Layout, labels};

/// Titles and texts.
pub(super) type Facts = Vec<(String, String)>;

/// The rule, the order, the versions; of an import its source.
pub(super) fn facts(run: &Run, layout: Layout) -> Facts {
    let mut facts: Facts = Vec::new();
    let mut add = |title: &str, text: String| facts.push((title.to_owned(), text));
    if let Some(origin) = &run.header.origin {
        imported(origin, &mut add);
        return facts;
    }
    let tool = &run.header.tool;
    add("stop rule", stop_rule(&run.header.stopping));
    add("order of the cells", order(&run.header.stopping));
    add("passes (each over fresh connections)", run.passes.len().to_string());
    if let Some(ending) = &run.ending {
        add("duration", units::seconds(ending.duration_ns as f64));
    }
    ceiling_cost::selftests(run).into_iter().for_each(|cited| add("self-test", layout.shown(&cited)));
    for (end, host) in
        [("near", &run.header.near), ("far", &run.header.far)].into_iter().filter(|(_, host)| host.selftest.is_none())
    {
        let name = host.hostname.as_deref().unwrap_or("an unnamed host");
        add(
            &format!("self-test, {end}"),
            labels::plain(&format!("No self-test is known for {name}: run thru selftest there.")),
        );
    }
    add("version, near and far", labels::plain(&format!("{} and {}", tool.near_version, tool.far_version)));
    let clocks = format!("{} and {}", units::seconds(tool.near_clock_ns), units::seconds(tool.far_clock_ns));
    add("cost of a clock read, near and far", clocks);
    facts
}

/// The source of an imported run.
fn imported(origin: &Origin, add: &mut impl FnMut(&str, String)) {
    let version = origin.version.as_deref().unwrap_or_default();
    add("measured by", labels::plain(&format!("{} {version}", origin.tool)));
    add("imported from", labels::plain(&origin.file));
    add("SHA-256 of the file", labels::plain(&origin.sha256));
    if !origin.unknown.is_empty() {
        add("fields not imported", labels::plain(&origin.unknown.join(", ")));
    }
}

fn stop_rule(stopping: &Stopping) -> String {
    let budget =
        stopping.budget_ns.map_or(String::new(), |ns| format!(", at most {} in total", units::seconds(ns as f64)));
    format!(
        "± {} % at {} % confidence, {} to {} trials{budget}",
        labels::percent(stopping.target),
        labels::percent(stopping.confidence),
        stopping.min_trials,
        stopping.max_trials
    )
}

fn order(stopping: &Stopping) -> String {
    match stopping.order {
        Order::AsWritten => "as written in the plan".to_owned(),
        Order::Ascending => "small blocks first".to_owned(),
        Order::Random => format!("random in each pass, seed {}", stopping.seed),
    }
}

/// The command line, with words quoted that a shell would split or expand.
#[must_use]
pub fn command_line(words: &[String]) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./:=,%+@".contains(c);
    let quote = |word: &String| {
        if !word.is_empty() && word.chars().all(plain) {
            word.clone()
        } else {
            format!("'{}'", word.replace('\'', "'\\''"))
        }
    };
    words.iter().map(quote).collect::<Vec<_>>().join(" ")
}
