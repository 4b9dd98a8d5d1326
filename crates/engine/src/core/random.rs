//! Random bytes of the kernel, for secrets and for what must differ: cookies, nonces, tokens, identifiers. Choices that a run must be
//! able to repeat come from [`model::SplitMix64`].

use std::io;

/// Random bytes (getrandom(2)).
///
/// # Errors
/// The kernel has none.
pub fn random<const N: usize>() -> io::Result<[u8; N]> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| io::Error::other(error.to_string()))?;
    Ok(bytes)
}
