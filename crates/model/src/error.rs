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
    /// A part of a byte or of a bit.
    #[error("'{text}' is no whole number of {unit}: leave the fraction out, or take a unit in which none is left over")]
    Fraction {
        /// What the user wrote.
        text: String,
        /// What cannot be divided: "bytes" or "bits".
        unit: &'static str,
    },
    /// A rate in bytes where rates are in bits.
    #[error(
        "'{text}' is bytes, and a rate is in bit/s: write {eightfold} for so many bytes a second, or {same} for so many bits"
    )]
    Bytes {
        /// What the user wrote.
        text: String,
        /// The same rate in bits.
        eightfold: String,
        /// The same number of bits.
        same: String,
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
