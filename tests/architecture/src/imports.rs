//! Which crate may depend on which.

use cargo_metadata::{DependencyKind, Metadata};

use crate::{Rule, Violation};

/// Each crate and those of our crates that it may import. A new crate needs a row here and in docs/ARCHITECTURE.md.
const TABLE: &[(&str, &[&str])] = &[
    // Layer 0: data and pure functions.
    ("model", &[]),
    ("analysis", &["model"]),
    ("schedule", &["model", "analysis"]),
    // Layer 1: measuring, hosts, wire formats.
    ("perf", &[]),
    ("engine", &["model", "perf"]),
    ("host", &["model", "perf"]),
    ("lab", &["model", "host"]),
    ("stacks", &["model"]),
    ("peer-wire", &[]),
    ("bus", &[]),
    // Layer 2: coordination, storage and presentation.
    ("control", &["model", "analysis", "schedule", "engine", "host", "lab", "stacks", "peer-wire", "bus"]),
    ("import", &["model", "analysis"]),
    ("peers", &["model", "engine", "peer-wire"]),
    ("store", &["model"]),
    ("report", &["model", "analysis"]),
    // Layer 3: a run. Layer 4: its screens. Layer 5: the program.
    (
        "session",
        &["model", "analysis", "engine", "host", "lab", "stacks", "peers", "control", "bus", "import", "store"],
    ),
    ("tui", &["model", "analysis", "report"]),
    ("web", &["model", "analysis", "host", "store", "report", "session"]),
    (
        "throughline",
        &[
            "model",
            "analysis",
            "schedule",
            "engine",
            "host",
            "lab",
            "stacks",
            "peer-wire",
            "bus",
            "import",
            "peers",
            "control",
            "store",
            "report",
            "session",
            "tui",
            "web",
        ],
    ),
];

/// Third-party crates that one of ours must not depend on.
const OUTSIDE: &[(&str, &[&str])] = &[
    ("model", &["tokio", "rustix", "libc", "socket2"]),
    ("analysis", &["tokio", "rustix", "libc", "socket2"]),
    ("schedule", &["tokio", "rustix", "libc", "socket2"]),
    ("report", &["tokio", "rustix", "libc", "socket2", "rusqlite"]),
    ("import", &["tokio", "rustix", "libc", "socket2", "rusqlite"]),
    ("store", &["tokio", "socket2"]),
    ("engine", &["tokio"]),
    ("peers", &["tokio", "libc"]),
    ("tui", &["tokio", "rustix", "libc", "socket2", "rusqlite"]),
    ("peer-wire", &["tokio", "rustix", "libc", "socket2"]),
];

/// One of our crates and its dependencies, without those of tests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Crate {
    /// Short name: `model` for the package `throughline-model`.
    pub name: String,
    /// Its dependencies, by package name.
    pub dependencies: Vec<String>,
}

/// The packages under `crates/` with their normal and build dependencies. Tests may use any crate.
#[must_use]
pub fn crates(metadata: &Metadata) -> Vec<Crate> {
    let ours = metadata.workspace_root.join("crates");
    metadata
        .packages
        .iter()
        .filter(|package| package.manifest_path.starts_with(&ours))
        .map(|package| Crate {
            name: short(&package.name).to_owned(),
            dependencies: package
                .dependencies
                .iter()
                .filter(|dependency| dependency.kind != DependencyKind::Development)
                .map(|dependency| dependency.name.clone())
                .collect(),
        })
        .collect()
}

/// Every dependency that the two tables do not allow.
#[must_use]
pub fn check(crates: &[Crate]) -> Vec<Violation> {
    let mut violations = Vec::new();
    for Crate { name, dependencies } in crates {
        let Some((_, allowed)) = TABLE.iter().find(|(known, _)| known == name) else {
            let what = "has no row in the table of imports (tests/architecture/src/imports.rs)";
            violations.push(Violation::new(Rule::Imports, format!("crates/{name}"), what));
            continue;
        };
        let banned = OUTSIDE.iter().filter(|(known, _)| known == name).flat_map(|(_, banned)| *banned);
        let banned: Vec<&str> = banned.copied().collect();
        for dependency in dependencies {
            let ours = dependency == "throughline" || dependency.starts_with("throughline-");
            let place = || format!("crates/{name}/Cargo.toml");
            if ours && !allowed.contains(&short(dependency)) {
                let may = if allowed.is_empty() { "none of ours".into() } else { allowed.join(", ") };
                let what = format!("depends on {dependency}; it may import {may}");
                violations.push(Violation::new(Rule::Imports, place(), what));
            }
            if banned.contains(&dependency.as_str()) {
                violations.push(Violation::new(Rule::Outside, place(), format!("depends on {dependency}")));
            }
        }
    }
    violations
}

fn short(package: &str) -> &str {
    package.strip_prefix("throughline-").unwrap_or(package)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(name: &str, dependencies: &[&str]) -> Vec<Crate> {
        let dependencies = dependencies.iter().map(|name| (*name).to_owned()).collect();
        vec![Crate { name: name.into(), dependencies }]
    }

    #[test]
    fn what_the_table_allows_passes() {
        assert_eq!(check(&one("lab", &["throughline-model", "throughline-host", "serde"])), []);
        assert_eq!(check(&one("throughline", &["throughline-control", "throughline-report", "tokio"])), []);
    }

    #[test]
    fn an_import_that_goes_up_or_sideways_is_named() {
        for (name, dependency) in [
            ("model", "throughline-analysis"),
            ("store", "throughline-analysis"),
            ("report", "throughline-store"),
            ("engine", "throughline-host"),
            ("control", "throughline-store"),
            ("session", "throughline-report"),
            ("report", "throughline"),
        ] {
            let found = check(&one(name, &["serde", dependency]));
            assert_eq!(found.len(), 1, "{name} -> {dependency}");
            assert_eq!(found[0].rule, Rule::Imports);
            let message = found[0].to_string();
            assert!(message.contains(name) && message.contains(dependency), "{message}");
            assert!(message.contains("CONTRIBUTING.md"), "{message}");
        }
    }

    #[test]
    fn the_operating_system_stays_out_of_pure_crates() {
        for (name, dependency) in [("model", "libc"), ("analysis", "rustix"), ("report", "tokio"), ("engine", "tokio")]
        {
            let found = check(&one(name, &[dependency]));
            assert_eq!(found.iter().map(|violation| violation.rule).collect::<Vec<_>>(), [Rule::Outside], "{name}");
        }
    }

    #[test]
    fn a_crate_without_a_row_is_named() {
        assert_eq!(check(&one("novelty", &[]))[0].rule, Rule::Imports);
    }

    #[test]
    fn the_table_only_points_down() {
        for (row, (name, allowed)) in TABLE.iter().enumerate() {
            for import in *allowed {
                let above = TABLE[..row].iter().any(|(known, _)| known == import);
                assert!(above, "{name} may import {import}, which has no row above it");
            }
        }
    }
}
