//! Which run the user means.

use std::path::Path;

use rusqlite::{Connection, Params};

use crate::StoreError;

/// How many near matches an error offers.
const OFFERED: usize = 5;
/// Jaro-Winkler similarity from which a name counts as a likely typing error for another.
const ALIKE: f64 = 0.75;

/// A run that is in the file.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Found {
    /// Its key.
    pub(crate) number: i64,
    /// Its identifier.
    pub(crate) id: String,
}

/// The run that `reference` means: `last` or `last~N` (N runs before the last, by order of arrival), a full id, a name,
/// or the first characters of an id. The first of these that fits decides.
pub(crate) fn resolve(connection: &Connection, path: &Path, reference: &str) -> Result<Found, StoreError> {
    let look = || -> rusqlite::Result<Vec<Found>> {
        if let Some(back) = steps_back(reference) {
            return select(connection, "ORDER BY number DESC LIMIT 1 OFFSET ?1", [back]);
        }
        for condition in ["WHERE id = ?1", "WHERE name = ?1", "WHERE substr(id, 1, length(?1)) = ?1 AND ?1 != ''"] {
            let found = select(connection, &format!("{condition} ORDER BY number DESC"), [reference])?;
            if !found.is_empty() {
                return Ok(found);
            }
        }
        Ok(Vec::new())
    };
    let failed = |source| StoreError::sqlite(path, "look up a run", source);
    let mut found = look().map_err(failed)?;
    match found.len() {
        1 => Ok(found.swap_remove(0)),
        0 => Err(StoreError::Unknown {
            reference: reference.to_owned(),
            path: path.to_owned(),
            near: near(connection, reference).map_err(failed)?,
            runs: connection.query_row("SELECT count(*) FROM run", [], |row| row.get::<_, u32>(0)).map_err(failed)?,
        }),
        _ => Err(StoreError::Ambiguous {
            reference: reference.to_owned(),
            path: path.to_owned(),
            matches: found.into_iter().map(|run| run.id).collect(),
        }),
    }
}

/// `last` is 0, `last~3` is 3, anything else `None`.
fn steps_back(reference: &str) -> Option<u32> {
    match reference.strip_prefix("last")? {
        "" => Some(0),
        tail => tail.strip_prefix('~')?.parse().ok(),
    }
}

fn select(connection: &Connection, condition: &str, parameters: impl Params) -> rusqlite::Result<Vec<Found>> {
    connection
        .prepare_cached(&format!("SELECT number, id FROM run {condition}"))?
        .query_map(parameters, |row| Ok(Found { number: row.get(0)?, id: row.get(1)? }))?
        .collect()
}

/// Ids and names that come close to `reference`, best first.
fn near(connection: &Connection, reference: &str) -> rusqlite::Result<Vec<String>> {
    let mut statement = connection.prepare("SELECT id FROM run UNION SELECT name FROM run WHERE name IS NOT NULL")?;
    let mut alike = Vec::new();
    for known in statement.query_map([], |row| row.get::<_, String>(0))? {
        let known = known?;
        let score = if !reference.is_empty() && known.contains(reference) {
            1.0
        } else {
            strsim::jaro_winkler(&known, reference)
        };
        if score >= ALIKE {
            alike.push((score, known));
        }
    }
    // Later ids sort higher, and the later run is the likelier one.
    alike.sort_by(|a, b| b.0.total_cmp(&a.0).then_with(|| b.1.cmp(&a.1)));
    Ok(alike.into_iter().take(OFFERED).map(|(_, known)| known).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A store's run table with only the columns that matter here.
    fn runs(rows: &[(&str, Option<&str>)]) -> Connection {
        let connection = Connection::open_in_memory().unwrap();
        connection.execute("CREATE TABLE run (number INTEGER PRIMARY KEY, id TEXT, name TEXT)", []).unwrap();
        for row in rows {
            connection.execute("INSERT INTO run (id, name) VALUES (?1, ?2)", *row).unwrap();
        }
        connection
    }

    fn four() -> Connection {
        runs(&[
            ("20261119-080000-0001", None),
            ("20261120-090000-aaaa", Some("before")),
            ("20261120-100000-bbbb", Some("after")),
            ("20261121-110000-cccc", Some("after")),
        ])
    }

    fn id(connection: &Connection, reference: &str) -> String {
        resolve(connection, Path::new("runs.sqlite"), reference).unwrap().id
    }

    fn refusal(connection: &Connection, reference: &str) -> String {
        resolve(connection, Path::new("runs.sqlite"), reference).unwrap_err().to_string()
    }

    #[test]
    fn ids_prefixes_names_and_last_all_lead_to_a_run() {
        let runs = four();
        assert_eq!(id(&runs, "20261120-100000-bbbb"), "20261120-100000-bbbb");
        assert_eq!(id(&runs, "20261119"), "20261119-080000-0001");
        assert_eq!(id(&runs, "before"), "20261120-090000-aaaa");
        assert_eq!(id(&runs, "last"), "20261121-110000-cccc");
        assert_eq!(id(&runs, "last~0"), "20261121-110000-cccc");
        assert_eq!(id(&runs, "last~3"), "20261119-080000-0001");
    }

    #[test]
    fn a_full_id_wins_over_a_name_and_a_name_over_a_prefix() {
        let runs = runs(&[("20261119-080000-0001", None), ("20261120-080000-0002", Some("20261119"))]);
        assert_eq!(id(&runs, "20261119"), "20261120-080000-0002");
        assert_eq!(id(&runs, "20261119-080000-0001"), "20261119-080000-0001");
    }

    #[test]
    fn what_is_ambiguous_lists_its_runs_latest_first() {
        let runs = four();
        let both = "20261121-110000-cccc, 20261120-100000-bbbb";
        assert!(refusal(&runs, "after").ends_with(both), "{}", refusal(&runs, "after"));
        let both = "20261120-100000-bbbb, 20261120-090000-aaaa";
        assert!(refusal(&runs, "20261120").ends_with(both), "{}", refusal(&runs, "20261120"));
    }

    #[test]
    fn what_is_unknown_offers_what_comes_close() {
        let runs = four();
        assert!(refusal(&runs, "befroe").contains("did you mean before?"), "{}", refusal(&runs, "befroe"));
        assert!(refusal(&runs, "cccc").contains("did you mean 20261121-110000-cccc?"), "{}", refusal(&runs, "cccc"));
        for reference in ["", "last~4", "last~-1", "last~x", "lastly", "xyz", "%", "2026%"] {
            let message = refusal(&runs, reference);
            let expected = format!("no run '{reference}' in runs.sqlite; `thru runs` lists its runs (4)");
            assert_eq!(message, expected);
        }
        assert!(refusal(&self::runs(&[("20261119-080000-0001", None)]), "xyz").ends_with("lists its runs (1)"));
        assert!(refusal(&self::runs(&[]), "last").contains("it has no runs yet"));
    }
}
