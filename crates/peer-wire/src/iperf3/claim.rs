//! The plain text of a login, before encryption with the server's public key and after decryption with the
//! private key.

use std::fmt;

/// User, password and time in a client's login.
#[derive(Clone, PartialEq, Eq)]
pub struct LoginClaim {
    /// The user's name.
    pub name: String,
    /// The user's password.
    pub password: String,
    /// The client's clock: seconds since 1970 UTC.
    pub at_s: i64,
}

impl LoginClaim {
    /// The text that iperf3 encrypts (`iperf_auth.c`).
    #[must_use]
    pub fn to_text(&self) -> String {
        format!("user: {}\npwd:  {}\nts:   {}", self.name, self.password, self.at_s)
    }

    /// Parses such a text; `None` if it is invalid.
    #[must_use]
    pub fn from_text(text: &[u8]) -> Option<Self> {
        let mut lines = std::str::from_utf8(text).ok()?.split('\n');
        let mut value = |key: &str| Some(lines.next()?.strip_prefix(key)?.trim_start_matches(' ').to_owned());
        let (name, password, at) = (value("user:")?, value("pwd:")?, value("ts:")?);
        let at_s = at.trim_end_matches(['\0', '\r']).parse().ok()?;
        Some(Self { name, password, at_s })
    }
}

impl fmt::Debug for LoginClaim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Claim of {}", self.name)
    }
}

/// The text whose SHA-256 iperf3's user file contains, for a name and a password.
#[must_use]
pub fn hashed_text(name: &str, password: &str) -> String {
    format!("{{{name}}}{password}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn the_text_is_iperf3s() {
        let claim = LoginClaim { name: "mario".into(), password: "rossi 1".into(), at_s: 1_509_364_000 };
        assert_eq!(claim.to_text(), "user: mario\npwd:  rossi 1\nts:   1509364000");
        assert_eq!(LoginClaim::from_text(claim.to_text().as_bytes()), Some(claim.clone()));
        assert!(!format!("{claim:?}").contains("rossi"));
        assert_eq!(hashed_text("mario", "rossi"), "{mario}rossi");
        for wrong in ["", "user: mario", "user: a\npwd:  b\nts:   soon", "pwd:  b\nuser: a\nts:   1"] {
            assert_eq!(LoginClaim::from_text(wrong.as_bytes()), None, "{wrong}");
        }
    }

    proptest! {
        #[test]
        fn any_bytes_are_a_claim_or_none(bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            if let Some(claim) = LoginClaim::from_text(&bytes) {
                prop_assert_eq!(LoginClaim::from_text(claim.to_text().as_bytes()), Some(claim));
            }
        }
    }
}
