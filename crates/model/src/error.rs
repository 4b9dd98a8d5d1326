//! What can be wrong with a value before anything is measured.

/// A value that cannot be used, with what would be accepted instead.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// Text that is not a quantity of the kind wanted.
    #[error("'{text}' is not a {kind}: write {example}")]
    Quantity {
        /// What the user wrote.
        text: String,
        /// What was wanted: "size", "rate", "time" or "percentage".
        kind: &'static str,
        /// Forms that are accepted.
        example: &'static str,
    },
    /// A combination of options that no measurement can have.
    #[error("{what}: {remedy}")]
    Spec {
        /// The option and its value.
        what: String,
        /// What to write instead.
        remedy: String,
    },
}
