//! The error for an unknown name, with the nearest known one.

/// Largest edit distance of a suggested name.
const NEAR: usize = 3;

/// The error for an unknown name.
pub fn unknown(name: &str, known: &[impl AsRef<str>], of: &str) -> String {
    let known: Vec<&str> = known.iter().map(AsRef::as_ref).collect();
    match closest(name, &known) {
        Some(near) => format!("{of} has no '{name}'; did you mean '{near}'?"),
        None => format!("{of} has no '{name}'; it has {}", known.join(", ")),
    }
}

/// The known name that `name` may be a misspelling of.
pub fn closest<'a>(name: &str, known: &[&'a str]) -> Option<&'a str> {
    let distance = |other: &&str| strsim::damerau_levenshtein(name, other);
    known
        .iter()
        .copied()
        .min_by_key(distance)
        .filter(|near| distance(near) <= NEAR.min(name.chars().count() / 2).max(1))
}
