//! Rules over the text of any tracked file.

use crate::{Rule, Violation};

/// Directories that exist on the machines we work on and on nobody else's. Put together here so that this file may be
/// tracked itself.
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
    fn a_crate_that_the_map_leaves_out_is_named() {
        let map = "- `crates/model`: data\n- crates/storehouse: another\n";
        let found = check_map(map, ["model", "store"]);
        assert_eq!(found.len(), 1);
        assert!(found[0].what.ends_with("crates/store"), "{}", found[0]);
    }
}
