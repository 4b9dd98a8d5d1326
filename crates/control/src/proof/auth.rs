//! The token: both sides prove that they know it, and neither sends it.
//!
//! Proof = HMAC-SHA256 (RFC 2104) keyed with the token over the side's name, both nonces, the agent's key and a secret of the TLS
//! connection. A recorded proof is therefore useless in the other direction, and one that a relay passes on is wrong at its other
//! connection.

use std::collections::HashSet;

use ring::hmac;

use super::fingerprint::Fingerprint;

/// The TLS connection that a proof belongs to. The default is a connection within a process, where there is no token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Binding {
    /// The agent's key, as this side sees it.
    pub key: Fingerprint,
    /// The coordinator's key, if it has shown one.
    pub client: Option<Fingerprint>,
    /// Keying material that only the two ends of this connection have (RFC 8446, 7.5).
    pub exporter: [u8; 32],
}

/// A shared secret of 128 bits or more.
#[derive(Clone)]
pub struct Token(Vec<u8>);

impl Token {
    /// The token of a token file's text, without surrounding white space. `None` if the text does not look like 128 random bits:
    /// a weaker secret can be guessed offline from one recorded proof.
    ///
    /// Accepted are 32 or more hexadecimal digits (4 bits each), and 22 or more characters of Base64 (RFC 4648, 6 bits each) with
    /// upper-case letters, lower-case letters and digits, which ordinary words seldom have. Both need at least eight different
    /// characters.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        is_strong(text).then(|| Self(text.as_bytes().to_vec()))
    }

    /// The text of a new token: 256 random bits from the kernel as 64 hexadecimal digits.
    ///
    /// # Errors
    /// If the kernel gives no random bits.
    pub fn fresh() -> Result<String, std::io::Error> {
        Ok(hex::encode(engine::random::<32>()?))
    }

    /// The secret that an exchange with the code of an invitation has led to.
    pub(super) fn agreed(secret: Vec<u8>) -> Self {
        Self(secret)
    }

    /// The proof that `side` ("coordinator" or "agent") knows the token, in hex. `nonces` are the coordinator's and the agent's.
    #[must_use]
    pub fn prove(&self, side: &str, nonces: [&str; 2], binding: &Binding) -> String {
        hex::encode(hmac::sign(&self.key(), proved(side, nonces, binding).as_bytes()).as_ref())
    }

    /// Whether `proof` is right, compared in constant time.
    #[must_use]
    pub fn check(&self, proof: &str, side: &str, nonces: [&str; 2], binding: &Binding) -> bool {
        let text = proved(side, nonces, binding);
        hex::decode(proof).is_ok_and(|bytes| hmac::verify(&self.key(), text.as_bytes(), &bytes).is_ok())
    }

    fn key(&self) -> hmac::Key {
        hmac::Key::new(hmac::HMAC_SHA256, &self.0)
    }
}

/// What a proof is made over.
fn proved(side: &str, [coordinator, agent]: [&str; 2], binding: &Binding) -> String {
    let (key, exporter) = (hex::encode(binding.key.0), hex::encode(binding.exporter));
    format!("throughline/1 {side} {coordinator} {agent} {key} {exporter}")
}

fn is_strong(text: &str) -> bool {
    let digits = text.trim_end_matches('=').as_bytes();
    let has = |kind: fn(&u8) -> bool| digits.iter().any(kind);
    let mixed = has(u8::is_ascii_uppercase) && has(u8::is_ascii_lowercase) && has(u8::is_ascii_digit);
    let is_base64 = |byte: &u8| byte.is_ascii_alphanumeric() || b"+/-_".contains(byte);
    let hex = digits.len() >= 32 && digits.iter().all(u8::is_ascii_hexdigit);
    let base64 = digits.len() >= 22 && digits.iter().all(is_base64) && mixed;
    (hex || base64) && digits.iter().collect::<HashSet<_>>().len() >= 8
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(...)")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_holds_for_its_token_side_nonces_and_connection_only() {
        let [text, other] = [Token::fresh().unwrap(), Token::fresh().unwrap()];
        let token = Token::new(&format!(" {text}\n")).unwrap();
        let here = Binding { key: Fingerprint::of(b"key"), exporter: [7; 32], ..Binding::default() };
        let proof = token.prove("coordinator", ["aa", "bb"], &here);
        assert!(token.check(&proof, "coordinator", ["aa", "bb"], &here));
        assert!(!token.check(&proof, "agent", ["aa", "bb"], &here));
        assert!(!token.check(&proof, "coordinator", ["aa", "bc"], &here));
        assert!(!token.check(&proof, "coordinator", ["aa", "bb"], &Binding { key: Fingerprint::of(b"other"), ..here }));
        assert!(!token.check(&proof, "coordinator", ["aa", "bb"], &Binding { exporter: [8; 32], ..here }));
        assert!(!Token::new(&other).unwrap().check(&proof, "coordinator", ["aa", "bb"], &here));
        assert!(!token.check("zz", "coordinator", ["aa", "bb"], &here));
    }

    #[test]
    fn texts_that_cannot_hold_128_random_bits_are_no_tokens() {
        for text in [
            "",
            " \n",
            "secret",
            "correct horse battery staple and then some more words",
            "correcthorsebatterystapleandthensomemore",
            "123456789012345678901234567890",
            "0123456789abcdef0123456789abcde",
            "00000000000000000000000000000000000000000",
            "aB3aB3aB3aB3aB3aB3aB3aB3aB3",
            "c1f8b9ee-50e2-4a3c-9d5b-0f8a7e6d5c4b",
            "K7gNU3sdo+OL0wNhqoVW====",
        ] {
            assert!(Token::new(text).is_none(), "{text}");
        }
        for text in [
            "0f1e2d3c4b5a69788796a5b4c3d2e1f0",
            "K7gNU3sdo+OL0wNhqoVWhr3g6s1xYv72ol/pe/Unols=",
            "K7gNU3sdo-OL0wNhqoVW_Q==",
        ] {
            assert!(Token::new(text).is_some(), "{text}");
        }
        for _ in 0..100 {
            assert!(Token::new(&Token::fresh().unwrap()).is_some());
        }
    }

    #[test]
    fn the_mac_is_rfc_4231s() {
        // Test case 2: key "Jefe", data "what do ya want for nothing?".
        let mac = hmac::sign(&Token(b"Jefe".to_vec()).key(), b"what do ya want for nothing?");
        assert_eq!(hex::encode(mac), "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
    }
}
