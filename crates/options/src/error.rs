//! Errors in values, found before anything is measured.

/// An invalid value, with the remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ValueError {
    /// Text that is not a quantity of that kind.
    #[error("'{text}' is not a {kind}: write {example}")]
    Quantity {
        /// What the user wrote.
        text: String,
        /// The expected kind: "size", "rate", "time" or "percentage".
        kind: &'static str,
        /// Forms that are accepted.
        example: &'static str,
    },
    /// A fraction of a byte or of a bit.
    #[error("'{text}' is not a whole number of {unit}: leave out the fraction, or use another unit")]
    Fraction {
        /// What the user wrote.
        text: String,
        /// The unit: "bytes" or "bits".
        unit: &'static str,
    },
    /// A rate in bytes; rates are in bits.
    #[error(
        "'{text}' has the unit byte, but rates are in bit/s: write {eightfold} if you mean bytes, or {same} if you mean bits"
    )]
    Bytes {
        /// What the user wrote.
        text: String,
        /// The same rate in bits.
        eightfold: String,
        /// The same number of bits.
        same: String,
    },
    /// An impossible option or combination of options.
    #[error("{what}: {remedy}")]
    Spec {
        /// The option and its value.
        what: String,
        /// What to write instead.
        remedy: String,
    },
}
