//! The files of a target and the names that each takes from another one.

use std::collections::{BTreeMap, BTreeSet};

use crate::lexer::lex;

/// For each file the files that it imports from, with the names.
pub type Imports = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

/// The files of one target (a library, a program, a test).
#[derive(Debug, Default)]
pub struct Target {
    /// What each file imports from the others.
    pub imports: Imports,
    /// For each file those that contain its module: its parent, the parent's parent, and so on.
    pub ancestors: BTreeMap<String, BTreeSet<String>>,
}

/// The target whose first file is `root`, a path from the root of the workspace. `read` returns the text of a file.
///
/// An import is a name in a `use` or in a path (`crate::a::b`, `super::b`, `b::c`). It counts for the file that defines the name, not
/// for those that re-export it. A `pub use` is an import only of a file that uses the name itself. Items under `#[cfg(test)]` do not
/// count, nor do methods that are called without naming their type.
///
/// # Errors
/// A file that is not Rust.
pub fn target(root: &str, read: &dyn Fn(&str) -> Option<String>) -> Result<Target, String> {
    let mut tree = Tree { modules: Vec::new(), read };
    let folder = root.rsplit_once('/').map_or("", |(folder, _)| folder);
    tree.file(root, folder, None)?;
    let mut target = Target::default();
    for (at, module) in tree.modules.iter().enumerate() {
        let ancestors = target.ancestors.entry(module.file.clone()).or_default();
        let mut parent = module.parent;
        while let Some(above) = parent {
            ancestors.insert(tree.modules[above].file.clone());
            parent = tree.modules[above].parent;
        }
        ancestors.remove(&module.file);
        let imports = target.imports.entry(module.file.clone()).or_default();
        for path in module.paths() {
            if let Some(Found::Item(file, name)) = tree.resolve(at, path)
                && file != module.file
            {
                imports.entry(file).or_default().insert(name);
            }
        }
    }
    Ok(target)
}

/// A module: a file, or a part of one in braces.
#[derive(Debug, Default)]
struct Module {
    file: String,
    parent: Option<usize>,
    children: BTreeMap<String, usize>,
    items: BTreeSet<String>,
    /// What its `use` declarations bring into scope.
    uses: Vec<Use>,
    /// Paths in its code, of two names or more.
    inline: Vec<Vec<String>>,
    /// All names in its code outside of `use` declarations.
    words: BTreeSet<String>,
}

#[derive(Debug)]
struct Use {
    path: Vec<String>,
    /// The name in this module; `*` for all names of the path's module.
    name: String,
    exported: bool,
}

impl Module {
    /// The paths that import something.
    fn paths(&self) -> impl Iterator<Item = &[String]> {
        let used = self.uses.iter().filter(|one| !one.exported || self.words.contains(&one.name));
        used.map(|one| &one.path).chain(&self.inline).map(Vec::as_slice)
    }
}

/// What a path leads to.
enum Found {
    Module(usize),
    /// The file that defines the item, and its name.
    Item(String, String),
}

struct Tree<'a> {
    modules: Vec<Module>,
    read: &'a dyn Fn(&str) -> Option<String>,
}

impl Tree<'_> {
    /// Reads the file at `path`, whose modules' files are in `folder`.
    fn file(&mut self, path: &str, folder: &str, parent: Option<usize>) -> Result<usize, String> {
        let source = (self.read)(path).unwrap_or_default();
        let tokens = lex(&source).map_err(|error| format!("{path}: does not parse: {error}"))?;
        self.body(path, folder, parent, &tokens)
    }

    fn body(&mut self, file: &str, folder: &str, parent: Option<usize>, tokens: &[String]) -> Result<usize, String> {
        let this = self.modules.len();
        self.modules.push(Module { file: file.to_owned(), parent, ..Module::default() });
        let text = |at: usize| tokens.get(at).map_or("", String::as_str);
        let (mut at, mut depth) = (0, 0);
        while at < tokens.len() {
            match text(at) {
                // Not the `use<'a>` of a type.
                "use" if text(at + 1) != "<" => {
                    let exported = at > 0 && (text(at - 1) == "pub" || text(at - 1) == ")");
                    at = declared(tokens, at + 1, &[], exported, &mut self.modules[this].uses);
                    continue;
                }
                "mod" if depth == 0 && is_name(text(at + 1)) => {
                    let name = text(at + 1);
                    let below = format!("{folder}/{name}");
                    let child = if text(at + 2) == "{" {
                        let end = closing(tokens, at + 2);
                        let child = self.body(file, &below, Some(this), &tokens[at + 3..end])?;
                        at = end;
                        Some(child)
                    } else {
                        let files = [format!("{below}.rs"), format!("{below}/mod.rs")];
                        let found = files.iter().find(|file| (self.read)(file).is_some());
                        at += 2;
                        found.map(|found| self.file(found, &below, Some(this))).transpose()?
                    };
                    self.modules[this].children.extend(child.map(|child| (name.to_owned(), child)));
                }
                "fn" | "struct" | "enum" | "trait" | "type" | "const" | "static" | "union"
                    if depth == 0 && is_name(text(at + 1)) =>
                {
                    self.modules[this].items.insert(text(at + 1).to_owned());
                }
                "macro_rules" if depth == 0 => {
                    self.modules[this].items.insert(text(at + 2).to_owned());
                }
                "{" | "(" | "[" => depth += 1,
                "}" | ")" | "]" => depth -= 1,
                name if is_name(name) => {
                    self.modules[this].words.insert(name.to_owned());
                    let continues = at >= 2 && text(at - 1) == ":" && text(at - 2) == ":";
                    let variable = at >= 1 && text(at - 1) == "$" && name != "crate";
                    let mut path = vec![name.to_owned()];
                    while text(at + 1) == ":" && text(at + 2) == ":" && is_name(text(at + 3)) {
                        path.push(text(at + 3).to_owned());
                        at += 3;
                    }
                    if path.len() > 1 && !continues && !variable {
                        self.modules[this].inline.push(path);
                    }
                }
                _ => {}
            }
            at += 1;
        }
        Ok(this)
    }

    /// What a path in a module leads to.
    fn resolve(&self, module: usize, path: &[String]) -> Option<Found> {
        let (from, rest) = self.start(module, path)?;
        self.within(from, rest, &mut Vec::new())
    }

    /// The module that the `crate`, `self` and `super` in front of a path mean, and the rest of the path.
    fn start<'p>(&self, mut at: usize, mut path: &'p [String]) -> Option<(usize, &'p [String])> {
        while let Some((first, rest)) = path.split_first() {
            at = match first.as_str() {
                "crate" => 0,
                "self" => at,
                "super" => self.modules[at].parent?,
                _ => break,
            };
            path = rest;
        }
        Some((at, path))
    }

    /// What `path` leads to from within a module; `None` for names of other crates. `seen` are the names that are being looked up,
    /// so that re-exports in a circle end.
    fn within(&self, at: usize, path: &[String], seen: &mut Vec<(usize, String)>) -> Option<Found> {
        let Some((name, rest)) = path.split_first() else { return Some(Found::Module(at)) };
        let module = &self.modules[at];
        if let Some(child) = module.children.get(name) {
            return self.within(*child, rest, seen);
        }
        if module.items.contains(name) {
            return Some(Found::Item(module.file.clone(), name.clone()));
        }
        let key = (at, name.clone());
        if seen.contains(&key) {
            return None;
        }
        seen.push(key);
        let named =
            module.uses.iter().filter(|one| one.name == *name).find_map(|one| self.used(at, &one.path, rest, seen));
        let found = named.or_else(|| {
            let all = module.uses.iter().filter(|one| one.name == "*");
            all.into_iter().find_map(|one| self.used(at, &one.path, path, seen))
        });
        seen.pop();
        found
    }

    /// What `rest` leads to from that to which the path of a `use` in module `at` leads.
    fn used(&self, at: usize, path: &[String], rest: &[String], seen: &mut Vec<(usize, String)>) -> Option<Found> {
        let (from, left) = self.start(at, path)?;
        match self.within(from, left, seen)? {
            Found::Module(module) => self.within(module, rest, seen),
            item @ Found::Item(..) => Some(item),
        }
    }
}

/// Reads the tree of a `use` that starts at `at`, below `prefix`; returns the index after it.
fn declared(tokens: &[String], mut at: usize, prefix: &[String], exported: bool, into: &mut Vec<Use>) -> usize {
    let text = |at: usize| tokens.get(at).map_or(";", String::as_str);
    let mut path = prefix.to_vec();
    loop {
        match text(at) {
            ":" => at += 1,
            "{" => {
                at += 1;
                while !matches!(text(at), "}" | ";") {
                    at = declared(tokens, at, &path, exported, into);
                    at += usize::from(text(at) == ",");
                }
                return at + 1;
            }
            "*" => {
                into.push(Use { path, name: "*".into(), exported });
                return at + 1;
            }
            name if is_name(name) => {
                path.push(name.to_owned());
                at += 1;
                if text(at) == ":" {
                    continue;
                }
                if path.last().is_some_and(|last| last == "self") && path.len() > 1 {
                    path.pop();
                }
                let mut name = path.last().cloned().unwrap_or_default();
                if text(at) == "as" {
                    text(at + 1).clone_into(&mut name);
                    at += 2;
                }
                into.push(Use { path, name, exported });
                return at;
            }
            _ => return at + 1,
        }
    }
}

/// The index of the brace that closes the one at `open`.
fn closing(tokens: &[String], open: usize) -> usize {
    let mut depth = 0;
    for (at, token) in tokens.iter().enumerate().skip(open) {
        match token.as_str() {
            "{" => depth += 1,
            "}" => depth -= 1,
            _ => {}
        }
        if depth == 0 {
            return at;
        }
    }
    tokens.len()
}

fn is_name(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The imports of a target with these files, as `file -> file: names`.
    fn imports(files: &[(&str, &str)]) -> Vec<String> {
        let read = |path: &str| files.iter().find(|(name, _)| *name == path).map(|(_, text)| (*text).to_owned());
        let target = target("a/lib.rs", &read).unwrap();
        let all = target.imports.iter().flat_map(|(from, to)| to.iter().map(move |(to, names)| (from, to, names)));
        all.map(|(from, to, names)| {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            format!("{from} -> {to}: {}", names.join(", "))
        })
        .collect()
    }

    #[test]
    fn imports_are_found_however_they_are_written() {
        for text in [
            "use crate::b::B;",
            "use crate::{b::{B as C}};",
            "use super::b::B;",
            "use super::b; fn a() -> b::B { b::B }",
            "fn a() -> crate::b::B { todo!() }",
            "fn a() { assert_eq!(super::b::B, 1) }",
            "use super::b::*; fn a() {}\nuse super::b::B;",
            "fn a() { use crate::again::B; }",
            "mod inner { use super::super::b::B; }",
        ] {
            let files = [
                ("a/lib.rs", "mod a; mod b; mod again { pub(crate) use crate::b::B; }"),
                ("a/a.rs", text),
                ("a/b.rs", "pub struct B;"),
            ];
            assert_eq!(imports(&files), ["a/a.rs -> a/b.rs: B"], "{text}");
        }
    }

    #[test]
    fn names_of_tests_and_of_other_crates_do_not_count() {
        for text in [
            "use std::b::B;",
            "use b::B;",
            "#[cfg(test)]\nmod tests { use crate::b::B; }",
            "/// See [`crate::b::B`].\nfn a() { \"crate::b::B\"; }",
            "pub use super::b::B;",
        ] {
            let files = [("a/lib.rs", "mod a; mod b;"), ("a/a.rs", text), ("a/b.rs", "pub struct B;")];
            assert_eq!(imports(&files), Vec::<String>::new(), "{text}");
        }
    }

    #[test]
    fn a_name_that_is_exported_and_used_is_imported() {
        let files = [("a/lib.rs", "mod b; pub use b::B; fn a() -> B { B }"), ("a/b.rs", "pub struct B;")];
        assert_eq!(imports(&files), ["a/lib.rs -> a/b.rs: B"]);
    }

    #[test]
    fn re_exports_lead_to_the_file_that_defines() {
        let files = [
            ("a/lib.rs", "mod a; mod b;"),
            ("a/a.rs", "use crate::b::C;"),
            ("a/b/mod.rs", "mod c; mod d; pub use self::d::*;"),
            ("a/b/c.rs", "pub struct C;"),
            ("a/b/d.rs", "pub use super::c::C; macro_rules! d { () => {} } pub(crate) use d;"),
        ];
        assert_eq!(imports(&files), ["a/a.rs -> a/b/c.rs: C"]);
    }
}
