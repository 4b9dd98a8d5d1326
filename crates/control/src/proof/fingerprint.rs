//! An agent's key as people compare it, in OpenSSH's notation: `SHA256:` and 43 characters of Base64.

use std::fmt;
use std::str::FromStr;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use ring::digest::{SHA256, digest};

const PREFIX: &str = "SHA256:";

/// SHA-256 of an agent's public key (a SubjectPublicKeyInfo of RFC 5280, DER).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Fingerprint(pub(crate) [u8; 32]);

impl Fingerprint {
    /// That of a public key in DER.
    #[must_use]
    pub fn of(public_key: &[u8]) -> Self {
        let mut own = Self::default();
        own.0.copy_from_slice(digest(&SHA256, public_key).as_ref());
        own
    }
}

impl fmt::Display for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{PREFIX}{}", STANDARD_NO_PAD.encode(self.0))
    }
}

impl fmt::Debug for Fingerprint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// The text is no fingerprint.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("a fingerprint is `SHA256:` and 43 characters of Base64, as `thru agent fingerprint` prints it")]
pub struct NoFingerprint;

impl FromStr for Fingerprint {
    type Err = NoFingerprint;

    fn from_str(text: &str) -> Result<Self, NoFingerprint> {
        let digits = text.strip_prefix(PREFIX).ok_or(NoFingerprint)?;
        let bytes = STANDARD_NO_PAD.decode(digits).map_err(|_| NoFingerprint)?;
        bytes.try_into().map(Self).map_err(|_| NoFingerprint)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fingerprint_is_read_as_it_is_written() {
        let fingerprint = Fingerprint::of(b"a key");
        let text = fingerprint.to_string();
        assert!(text.starts_with("SHA256:") && text.len() == 50, "{text}");
        assert_eq!(text.parse(), Ok(fingerprint));
        for wrong in ["", "SHA256:", &text[7..], &text[..49], &format!("{text}A")] {
            assert_eq!(wrong.parse::<Fingerprint>(), Err(NoFingerprint), "{wrong}");
        }
    }
}
