//! Rules over the text of any tracked file.

use crate::{Rule, Violation};

/// Directories of the development machines, in two parts, so that this file does not break the rule itself.
const MACHINES: &[&[&str]] = &[&["/wo", "rk"], &["/ro", "ot"]];

/// Every line of `text`, at `path`, that names a path of a particular machine.
#[must_use]
pub fn check_machine_paths(path: &str, text: &str) -> Vec<Violation> {
    let mut violations = Vec::new();
    for (number, line) in text.lines().enumerate() {
        for directory in MACHINES.iter().map(|parts| parts.concat()) {
            if names_path(line, &directory) {
                let what = format!("names a path below {directory}; use a relative or an invented one");
                violations.push(Violation::new(Rule::Machine, format!("{path}:{}", number + 1), what));
            }
        }
    }
    violations
}

/// Whether `line` has `directory` as the start of an absolute path: not within a longer path, and with something below it.
fn names_path(line: &str, directory: &str) -> bool {
    line.match_indices(directory).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        let after = line[at + directory.len()..].chars().next();
        let within = before.is_some_and(|c| c.is_alphanumeric() || "._-~/$})*>]".contains(c));
        !within && after == Some('/')
    })
}

/// A text of several lines in which phrases are searched for across line breaks.
#[derive(Debug, Clone, Default)]
pub(crate) struct Passage {
    /// Lower case, with single spaces.
    text: String,
    /// For each line, where it starts in `text`, and its number.
    starts: Vec<(usize, usize)>,
}

impl Passage {
    pub(crate) fn of(line: usize, text: &str) -> Self {
        let mut passage = Self::default();
        passage.push(line, text);
        passage
    }

    pub(crate) fn push(&mut self, line: usize, text: &str) {
        self.starts.push((self.text.len(), line));
        for word in text.split_whitespace() {
            self.text.push_str(&word.to_lowercase());
            self.text.push(' ');
        }
    }

    /// The lines on which `phrase` starts, as whole words.
    pub(crate) fn find(&self, phrase: &str) -> Vec<usize> {
        let phrase = phrase.to_lowercase();
        let within = |character: Option<char>| character.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '-');
        let whole = |at: usize| {
            !within(self.text[..at].chars().next_back()) && !within(self.text[at + phrase.len()..].chars().next())
        };
        let line = |at: usize| self.starts.iter().rev().find(|(start, _)| *start <= at).map(|(_, line)| *line);
        self.text.match_indices(&phrase).filter(|(at, _)| whole(*at)).filter_map(|(at, _)| line(at)).collect()
    }
}

/// The crates that `map` (the text of docs/ARCHITECTURE.md) does not name as `crates/NAME`.
#[must_use]
pub fn check_map<'a>(map: &str, crates: impl IntoIterator<Item = &'a str>) -> Vec<Violation> {
    let named = |name: &str| {
        let path = format!("crates/{name}");
        map.match_indices(&path).any(|(at, _)| {
            let after = map[at + path.len()..].chars().next();
            !after.is_some_and(|c| c.is_alphanumeric() || c == '_' || c == '-')
        })
    };
    crates
        .into_iter()
        .filter(|name| !named(name))
        .map(|name| Violation::new(Rule::Map, "docs/ARCHITECTURE.md", format!("does not name crates/{name}")))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_of_our_machines_are_named_with_their_line() {
        for parts in MACHINES {
            let directory = parts.concat();
            for line in ["see DIR/main", "`DIR/x`", "DIR/.cargo", "cd \"DIR/\"", "a=DIR/b"] {
                let found = check_machine_paths("a.md", &format!("\n{}", line.replace("DIR", &directory)));
                assert_eq!(found.len(), 1, "{line}");
                assert_eq!(found[0].place, "a.md:2");
            }
            for line in ["src DIR", "DIRs/x", "home DIR.md", "a/bDIR/x", "${x}DIR/y"] {
                assert_eq!(check_machine_paths("a.md", &line.replace("DIR", &directory)), [], "{line}");
            }
        }
    }

    #[test]
    fn phrases_are_found_as_whole_words_with_their_line() {
        let mut passage = Passage::of(7, "It Is  sure");
        passage.push(8, "to be surely");
        assert_eq!(passage.find("is sure to"), [7]);
        assert_eq!((passage.find("surely"), passage.find("sure")), (vec![8], vec![7]));
        assert_eq!(passage.find("t is"), Vec::<usize>::new());
    }

    #[test]
    fn a_crate_that_the_map_leaves_out_is_named() {
        let map = "- `crates/model`: data\n- crates/storehouse: another\n";
        let found = check_map(map, ["model", "store"]);
        assert_eq!(found.len(), 1);
        assert!(found[0].what.ends_with("crates/store"), "{}", found[0]);
    }
}
