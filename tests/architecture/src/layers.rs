//! Which crate may depend on which: the table "Layers and imports" in docs/ARCHITECTURE.md is the rule.

use std::collections::BTreeMap;

use cargo_metadata::{DependencyKind, Metadata};

/// A row of the table.
struct Row<'a> {
    layer: u32,
    /// Our crates that it may import: their names, `nothing` or `all`.
    imports: &'a str,
    /// What it does not use, among it other people's crates.
    without: &'a str,
}

/// The words of a cell that may be names of crates.
fn words(cell: &str) -> impl Iterator<Item = &str> {
    cell.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-' || c == '_'))
}

/// The rows of the table by the name of the crate: lines such as ``| 1 | `crates/lab` | model, host | tokio |``.
fn table(map: &str) -> BTreeMap<&str, Row<'_>> {
    let row = |line| {
        let cells: Vec<&str> = str::split(line, '|').map(str::trim).collect();
        let [_, layer, name, imports, without, _] = cells[..] else { return None };
        let name = name.strip_prefix("`crates/")?.strip_suffix('`')?;
        Some((name, Row { layer: layer.parse().ok()?, imports, without }))
    };
    map.lines().filter_map(row).collect()
}

/// Each of our crates, by its short name, with its dependencies. Those of tests do not count.
#[must_use]
pub fn dependencies(metadata: &Metadata) -> Vec<(String, Vec<String>)> {
    let ours = metadata.workspace_root.join("crates");
    let packages = metadata.packages.iter().filter(|package| package.manifest_path.starts_with(&ours));
    packages
        .map(|package| {
            let counted = package.dependencies.iter().filter(|one| one.kind != DependencyKind::Development);
            (short(&package.name).to_owned(), counted.map(|one| one.name.clone()).collect())
        })
        .collect()
}

/// What the table does not allow: imports, and crates without a row.
#[must_use]
pub fn check(map: &str, crates: &[(String, Vec<String>)]) -> Vec<String> {
    let table = table(map);
    let mut broken = Vec::new();
    for (name, dependencies) in crates {
        let Some(row) = table.get(name.as_str()) else {
            broken.push(format!("crates/{name}: has no row in the table of docs/ARCHITECTURE.md"));
            continue;
        };
        for dependency in dependencies {
            let place = format!("crates/{name}/Cargo.toml: depends on {dependency}");
            let import = short(dependency);
            if dependency.starts_with("throughline") {
                let below = table.get(import).is_some_and(|other| other.layer <= row.layer);
                if !below || !(row.imports == "all" || words(row.imports).any(|word| word == import)) {
                    broken.push(format!("{place}; it may import: {}", row.imports));
                }
            } else if words(row.without).any(|word| word == dependency) {
                broken.push(format!("{place}, which it does not use"));
            }
        }
    }
    broken
}

fn short(package: &str) -> &str {
    package.strip_prefix("throughline-").unwrap_or(package)
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAP: &str = "| layer | crate | may import (of ours) | does not use |\n| --- | --- | --- | --- |\n\
                       | 0 | `crates/model` | nothing | I/O; tokio, libc |\n| 1 | `crates/peer-wire` | nothing | |\n\
                       | 2 | `crates/peers` | model, peer-wire | tokio |\n| 5 | `crates/throughline` | all | |\n";

    fn broken(name: &str, dependency: &str) -> usize {
        check(MAP, &[(name.to_owned(), vec![dependency.to_owned(), "serde".into()])]).len()
    }

    #[test]
    fn what_the_table_does_not_allow_is_named() {
        for (name, dependency) in [
            ("peers", "throughline-peer-wire"),
            ("peers", "libc"),
            ("throughline", "throughline-peers"),
            ("throughline", "tokio"),
        ] {
            assert_eq!(broken(name, dependency), 0, "{name} -> {dependency}");
        }
        for (name, dependency) in [
            ("peer-wire", "throughline-model"),
            ("model", "throughline-peers"),
            ("peers", "throughline"),
            ("throughline", "throughline-novelty"),
            ("model", "libc"),
            ("peers", "tokio"),
            ("novelty", "serde"),
        ] {
            assert_eq!(broken(name, dependency), 1, "{name} -> {dependency}");
        }
    }
}
