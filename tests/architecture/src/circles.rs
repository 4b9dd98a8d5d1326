//! No circle of files: a file imports nothing that imports it, directly or through others.
//!
//! The unit is the file, and an import is as in [`modules::target`](crate::modules::target): a name counts for the file that defines
//! it. A file may use what a module around it defines (`super::Thing`), although that module names its children, for example in a
//! registry: parent and child are one unit to a reader. In a crate of [`STRICT`] that counts too. Each target (library, program,
//! test) is looked at by itself. Files under `#[cfg(test)]` are left out.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::modules::Target;

/// Crates in which a parent and its child are no exception.
const STRICT: &[&str] = &["crates/engine/"];

/// The floors of the engine, the lowest first: a file imports from its own floor and from those below it.
const FLOORS: &[&str] = &[
    "crates/engine/src/core/",
    "crates/engine/src/transport/",
    "crates/engine/src/pattern/",
    "crates/engine/src/runner/",
];
/// The file above all floors, which imports nothing but names for other crates.
const ROOF: &str = "crates/engine/src/lib.rs";

type Edges<'a> = BTreeMap<&'a str, BTreeSet<&'a str>>;

/// One line for each group of files of which each imports all others, directly or through others, with the shortest circle in it.
#[must_use]
pub fn check(target: &Target) -> Vec<String> {
    let edges = edges(target);
    let mut broken = Vec::new();
    let mut named: BTreeSet<&str> = BTreeSet::new();
    for file in edges.keys() {
        if named.contains(file) {
            continue;
        }
        let reached = reached(&edges, file);
        let group: Vec<&str> = edges
            .keys()
            .copied()
            .filter(|other| reached.contains(other) && self::reached(&edges, other).contains(file))
            .collect();
        let circle = group.iter().filter_map(|file| shortest(&edges, file)).min_by_key(Vec::len);
        named.extend(&group);
        if let Some(circle) = circle {
            broken.push(format!("{}: {}", circle[0], describe(target, &circle, group.len())));
        }
    }
    broken
}

/// Every import of the engine from a higher floor, and every file of it on no floor.
#[must_use]
pub fn check_floors(target: &Target) -> Vec<String> {
    let floor = |file: &str| FLOORS.iter().position(|floor| file.starts_with(floor));
    let mut broken = Vec::new();
    for (file, imports) in target.imports.iter().filter(|(file, _)| *file != ROOF) {
        let Some(own) = floor(file) else {
            broken.push(format!("{file}: is on none of the floors"));
            continue;
        };
        for (other, names) in imports.iter().filter(|(other, _)| floor(other).is_none_or(|other| other > own)) {
            broken.push(format!("{file}: imports {} from {other}", list(names)));
        }
    }
    broken
}

/// The imports that count.
fn edges(target: &Target) -> Edges<'_> {
    let counts = |file: &str, other: &str| {
        let above = target.ancestors.get(file).is_some_and(|ancestors| ancestors.contains(other));
        !above || STRICT.iter().any(|strict| file.starts_with(strict))
    };
    let files = target.imports.iter();
    files
        .map(|(file, imports)| {
            (file.as_str(), imports.keys().map(String::as_str).filter(|other| counts(file, other)).collect())
        })
        .collect()
}

/// All files that `file` imports, directly or through others.
fn reached<'a>(edges: &Edges<'a>, file: &'a str) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&str> = vec![file];
    while let Some(next) = open.pop() {
        open.extend(edges.get(next).into_iter().flatten().copied().filter(|other| reached.insert(*other)));
    }
    reached
}

/// The shortest circle through `file`, without its repetition at the end; `None` if there is none.
fn shortest<'a>(edges: &Edges<'a>, file: &'a str) -> Option<Vec<&'a str>> {
    let mut before: BTreeMap<&str, &'a str> = BTreeMap::new();
    let mut open = VecDeque::from([file]);
    while let Some(at) = open.pop_front() {
        for other in edges.get(at).into_iter().flatten() {
            if *other == file {
                let mut circle = vec![at];
                while let Some(previous) = before.get(circle[circle.len() - 1]) {
                    circle.push(previous);
                }
                circle.reverse();
                return Some(circle);
            }
            if !before.contains_key(other) {
                before.insert(other, at);
                open.push_back(other);
            }
        }
    }
    None
}

/// `imports a.rs (A), which imports b.rs (B), which imports it (C)`.
fn describe(target: &Target, circle: &[&str], group: usize) -> String {
    let steps = circle.iter().enumerate().map(|(at, file)| {
        let next = circle[(at + 1) % circle.len()];
        let names = target.imports.get(*file).and_then(|imports| imports.get(next)).map_or_else(String::new, list);
        format!("imports {} ({names})", if at + 1 == circle.len() { "it" } else { next })
    });
    let text = steps.collect::<Vec<_>>().join(", which ");
    if group > circle.len() { format!("{text}; {group} files form one circle with others") } else { text }
}

fn list(names: &BTreeSet<String>) -> String {
    names.iter().map(String::as_str).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::modules::target;

    fn found(files: &[(&str, &str)], check: fn(&Target) -> Vec<String>) -> Vec<String> {
        let read = |path: &str| files.iter().find(|(name, _)| *name == path).map(|(_, text)| (*text).to_owned());
        check(&target(files[0].0, &read).unwrap())
    }

    #[test]
    fn a_circle_is_named_with_the_names_that_tie_it() {
        let root = ("a/lib.rs", "mod b; mod c; mod d;");
        let pair = [root, ("a/b.rs", "use crate::c::C; pub struct B;"), ("a/c.rs", "use crate::b::B; pub struct C;")];
        assert_eq!(found(&pair, check), ["a/b.rs: imports a/c.rs (C), which imports it (B)"]);
        let three = [
            root,
            ("a/b.rs", "use crate::c::C; pub struct B;"),
            ("a/c.rs", "pub struct C(crate::d::D);"),
            ("a/d.rs", "pub struct D; fn d() { super::b::B }"),
        ];
        assert_eq!(
            found(&three, check),
            ["a/b.rs: imports a/c.rs (C), which imports a/d.rs (D), which imports it (B)"]
        );
        let none = [
            root,
            ("a/b.rs", "use crate::c::C; use crate::d::D;"),
            ("a/c.rs", "use crate::d::D; pub struct C;"),
            ("a/d.rs", "pub struct D;"),
        ];
        assert_eq!(found(&none, check), Vec::<String>::new());
    }

    #[test]
    fn circles_between_folders_count_and_those_of_parent_and_child_only_in_strict_crates() {
        let folders = [
            ("a/lib.rs", "mod b; mod c;"),
            ("a/b/mod.rs", "mod d; pub use d::D; pub struct B;"),
            ("a/b/d.rs", "use crate::c::C; pub struct D;"),
            ("a/c.rs", "use crate::b::D; pub struct C;"),
        ];
        assert_eq!(found(&folders, check), ["a/b/d.rs: imports a/c.rs (C), which imports it (D)"]);
        let registry = |root: &'static str, child: &'static str| {
            found(
                &[
                    (root, "mod b; pub struct A; const ALL: &[A] = &[b::B];"),
                    (child, "pub const B: super::A = super::A;"),
                ],
                check,
            )
        };
        assert_eq!(registry("crates/host/src/lib.rs", "crates/host/src/b.rs"), Vec::<String>::new());
        assert_eq!(registry("crates/engine/src/lib.rs", "crates/engine/src/b.rs").len(), 1);
    }

    #[test]
    fn an_import_from_a_higher_floor_is_named() {
        let engine = |core: &'static str| {
            found(
                &[
                    (ROOF, "mod core; mod runner;"),
                    ("crates/engine/src/core/mod.rs", core),
                    ("crates/engine/src/runner/mod.rs", "use crate::core::C; pub struct R;"),
                ],
                check_floors,
            )
        };
        assert_eq!(engine("pub struct C;"), Vec::<String>::new());
        let wanted = ["crates/engine/src/core/mod.rs: imports R from crates/engine/src/runner/mod.rs"];
        assert_eq!(engine("pub struct C; use super::runner::R;"), wanted);
        let stray = [(ROOF, "mod clock;"), ("crates/engine/src/clock.rs", "")];
        assert_eq!(found(&stray, check_floors), ["crates/engine/src/clock.rs: is on none of the floors"]);
    }
}
