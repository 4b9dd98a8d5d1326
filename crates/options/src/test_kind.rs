//! The kinds of tests, each with a command of its name.

use crate::ValueError;

/// What a test measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum TestKind {
    /// Goodput.
    #[default]
    Stream,
    /// Transactions.
    Rr,
    /// Goodput of a fixed amount.
    Transfer,
    /// All block sizes.
    Curve,
}

impl TestKind {
    /// The key of the kind in a plan and in JSON.
    pub const KEY: &'static str = "pattern";
    /// Every kind.
    pub const ALL: [Self; 4] = [Self::Stream, Self::Rr, Self::Transfer, Self::Curve];

    /// Its name, the same as that of its command.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Stream => "stream",
            Self::Rr => "rr",
            Self::Transfer => "transfer",
            Self::Curve => "curve",
        }
    }

    /// The kind with this name.
    ///
    /// # Errors
    /// There is none; the message lists them.
    pub fn read(name: &str) -> Result<Self, ValueError> {
        Self::ALL
            .into_iter()
            .find(|kind| kind.name() == name)
            .ok_or_else(|| ValueError::TestKind { name: name.to_owned(), known: Self::ALL.map(Self::name).into() })
    }
}
