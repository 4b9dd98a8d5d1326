//! What the two sides of a comparison (`thru ab`) are called.

use std::collections::BTreeMap;

use model::{Advice, Outcome, Run, RunKind};

/// Longest list of flags that a legend shows.
const ROOM: usize = 60;

/// The side of an outcome: `A` or `B`, in a search `start` or `best`; `None` in a run that is not a comparison.
pub(crate) fn side(run: &Run, outcome: &Outcome) -> Option<&'static str> {
    if let Some(advice) = &run.advice {
        return of_search(run, advice, outcome);
    }
    (run.header.kind == RunKind::Ab).then_some(if outcome.cell == 0 { "A" } else { "B" })
}

/// Whether an outcome is the start of the search or its best combination.
fn of_search(run: &Run, advice: &Advice, outcome: &Outcome) -> Option<&'static str> {
    let of = |levels: &BTreeMap<String, String>| {
        // Pilot trials may have another length; the cells that were compared come later.
        let matching = run.header.cells.iter().filter(|cell| cell.levels == *levels).map(|cell| cell.id);
        matching.max() == Some(outcome.cell)
    };
    if of(&BTreeMap::new()) {
        return Some("start");
    }
    of(&advice.best).then_some("best")
}

/// The outcomes shown to people: all, but of a search only the first and the best.
pub(crate) fn shown(run: &Run) -> Vec<&Outcome> {
    each(run).collect()
}

/// Whether more than one outcome is shown to people.
pub(crate) fn are_several(run: &Run) -> bool {
    each(run).nth(1).is_some()
}

fn each(run: &Run) -> impl Iterator<Item = &Outcome> {
    run.outcomes.iter().filter(|outcome| run.advice.is_none() || side(run, outcome).is_some())
}

/// The side with the flags that differ from the other side, as typed: `B --cc bbr`. A side without such flags is its letter
/// alone; one read from a file has the file's name.
pub(crate) fn name(run: &Run, outcome: &Outcome) -> Option<String> {
    let side = side(run, outcome)?;
    if run.advice.is_some() {
        return Some(side.to_owned());
    }
    let [a, b] = ["a", "b"].map(|side| typed(&run.header.command, side));
    let (own, other) = if side == "A" { (a, b) } else { (b, a) };
    let flags: Vec<String> = own.into_iter().filter(|flag| !other.contains(flag)).collect();
    let mut text = flags.join(" ");
    if text.chars().count() > ROOM {
        text = text.chars().take(ROOM - 1).chain(['…']).collect();
    }
    Some(if text.is_empty() { side.to_owned() } else { format!("{side} {text}") })
}

/// The flags of a side on the command line, each with its value; for a side read from a file, the file's name.
fn typed(command: &[String], side: &str) -> Vec<String> {
    let (flag, file) = (format!("--{side}"), format!("--{side}-file"));
    if let Some(text) = value(command, &flag) {
        let mut flags: Vec<String> = Vec::new();
        for word in text.split_whitespace() {
            match flags.last_mut() {
                // The words after a flag are its value.
                Some(last) if !word.starts_with('-') => *last = format!("{last} {word}"),
                _ => flags.push(word.to_owned()),
            }
        }
        return flags;
    }
    let base = |path: &str| path.rsplit('/').next().unwrap_or(path).to_owned();
    value(command, &file).map(base).into_iter().collect()
}

/// The value of a flag: the next word, or the text after its equals sign.
fn value<'a>(command: &'a [String], flag: &str) -> Option<&'a str> {
    command.iter().enumerate().find_map(|(at, word)| match word.strip_prefix(flag)? {
        "" => command.get(at + 1).map(String::as_str),
        rest => rest.strip_prefix('='),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample;

    fn names(command: &[&str]) -> [String; 2] {
        let mut run = sample::pair();
        run.header.command = command.iter().map(|word| (*word).to_owned()).collect();
        [0, 1].map(|cell| name(&run, &run.outcomes[cell]).unwrap())
    }

    #[test]
    fn sides_are_named_by_the_flags_that_differ() {
        assert_eq!(names(&["thru", "ab", "--a", "--cc cubic", "--b=--cc bbr", "HOST"]), ["A --cc cubic", "B --cc bbr"]);
        let spin = ["thru", "ab", "--a", "rr --time 1s", "--b", "rr --time 1s --spin", "HOST"];
        assert_eq!(names(&spin), ["A", "B --spin"]);
        assert_eq!(names(&["thru", "ab", "--a-file", "/tmp/a.json", "--b", "", "HOST"]), ["A a.json", "B"]);
        assert_eq!(names(&["thru"]), ["A", "B"]);
        let long = names(&["thru", "ab", "--b", &"--flow-with-a-long-name ".repeat(9), "--a", ""]);
        assert!(long[1].ends_with('…') && long[1].chars().count() <= ROOM + 2, "{}", long[1]);
    }

    #[test]
    fn other_runs_have_no_sides() {
        let run = sample::stream();
        assert_eq!((side(&run, &run.outcomes[0]), name(&run, &run.outcomes[0])), (None, None));
    }
}
