//! Lists in sentences.

/// The entries as alternatives: `a`, `a or b`, `a, b or c`.
#[must_use]
pub fn alternatives<T: AsRef<str>>(list: &[T]) -> String {
    let list: Vec<&str> = list.iter().map(AsRef::as_ref).collect();
    match list.split_last() {
        Some((last, rest)) if !rest.is_empty() => format!("{} or {last}", rest.join(", ")),
        _ => list.concat(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_of_several_entries_comes_after_or() {
        assert_eq!(alternatives(&["a", "b", "c"]), "a, b or c");
        assert_eq!((alternatives(&["a", "b"]), alternatives(&["a"])), ("a or b".into(), "a".into()));
        assert_eq!(alternatives::<&str>(&[]), "");
    }
}
