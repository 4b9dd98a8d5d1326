//! A draft's errors in the words of the command line: options are flags.

use model::Spec;

use crate::draft::{FieldError, SpecDraft, field};
use crate::failure::Failure;

/// The specs of a draft that flags filled.
///
/// # Errors
/// Options that cannot be combined.
pub fn specs(draft: SpecDraft) -> Result<Vec<Spec>, Failure> {
    draft.finish().map_err(|error| Failure::usage(as_flags(&error)))
}

/// The spec of such a draft, which is not a curve.
///
/// # Errors
/// Options that cannot be combined.
pub fn one(draft: SpecDraft) -> Result<Spec, Failure> {
    specs(draft)?.pop().ok_or_else(|| Failure::usage("there is nothing to measure"))
}

/// The error, with `--key` for each key.
fn as_flags(error: &FieldError) -> String {
    let mut text = if error.value.is_some() { format!("--{}: ", error.key) } else { String::new() };
    for (at, part) in error.what.split('`').enumerate() {
        match (at % 2 == 1, field(part)) {
            (false, _) => text.push_str(part),
            (true, Some(field)) => text.push_str(&format!("--{}", field.key)),
            (true, None) => text.push_str(&format!("`{part}`")),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_are_spelled_as_flags_and_other_quotes_stay() {
        let error = |what: &str| as_flags(&FieldError::of_key("rate", what));
        assert_eq!(
            error("`rate` and `find-no-loss` exclude each other"),
            "--rate and --find-no-loss exclude each other"
        );
        assert_eq!(error("see `thru serve`: `rate`"), "see `thru serve`: --rate");
        let of_value = FieldError::of_value("sndbuf", "x", "'x' is not a size".into());
        assert_eq!(as_flags(&of_value), "--sndbuf: 'x' is not a size");
    }
}
