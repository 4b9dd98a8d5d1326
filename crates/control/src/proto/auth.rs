//! The token: both sides prove that they know it, neither says it.
//!
//! Proof = HMAC-SHA256 (RFC 2104) keyed with the token over the side's name and both nonces, so that a recorded proof is of
//! no use in another connection or in the other direction.

use hmac::{Hmac, KeyInit, Mac};
use sha2::Sha256;

/// A shared secret.
#[derive(Clone)]
pub struct Token(Vec<u8>);

impl Token {
    /// Takes the text of a token file; surrounding white space is not part of it. `None` when nothing is left.
    #[must_use]
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        (!text.is_empty()).then(|| Self(text.as_bytes().to_vec()))
    }

    /// The proof that `side` ("coordinator" or "agent") knows the token in the connection with these nonces, in hex.
    #[must_use]
    pub fn prove(&self, side: &str, coordinator: &str, agent: &str) -> String {
        hex(&self.mac(side, coordinator, agent).finalize().into_bytes())
    }

    /// Whether `proof` is that proof, in a time that does not depend on where it differs.
    #[must_use]
    pub fn check(&self, proof: &str, side: &str, coordinator: &str, agent: &str) -> bool {
        unhex(proof).is_some_and(|bytes| self.mac(side, coordinator, agent).verify_slice(&bytes).is_ok())
    }

    #[allow(clippy::expect_used, reason = "HMAC takes keys of any length")]
    fn mac(&self, side: &str, coordinator: &str, agent: &str) -> Hmac<Sha256> {
        let mut mac = Hmac::<Sha256>::new_from_slice(&self.0).expect("HMAC takes any key");
        mac.update(format!("throughline/1 {side} {coordinator} {agent}").as_bytes());
        mac
    }
}

impl std::fmt::Debug for Token {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(...)")
    }
}

/// Random bytes from the kernel.
pub fn random<const N: usize>() -> Result<[u8; N], std::io::Error> {
    let mut bytes = [0; N];
    getrandom::fill(&mut bytes).map_err(|error| std::io::Error::other(error.to_string()))?;
    Ok(bytes)
}

/// Lower-case hexadecimal.
#[must_use]
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Reads hexadecimal; `None` for anything else.
#[must_use]
pub fn unhex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    let pairs = digits.chunks_exact(2);
    if !pairs.remainder().is_empty() {
        return None;
    }
    pairs.map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proof_holds_for_its_token_side_and_nonces_only() {
        let token = Token::new(" secret\n").unwrap();
        let proof = token.prove("coordinator", "aa", "bb");
        assert!(token.check(&proof, "coordinator", "aa", "bb"));
        assert!(!token.check(&proof, "agent", "aa", "bb"));
        assert!(!token.check(&proof, "coordinator", "aa", "bc"));
        assert!(!Token::new("other").unwrap().check(&proof, "coordinator", "aa", "bb"));
        assert!(!token.check("zz", "coordinator", "aa", "bb"));
        assert!(Token::new(" \n").is_none());
    }

    #[test]
    fn the_mac_is_rfc_4231s() {
        // Test case 2: key "Jefe", data "what do ya want for nothing?".
        let mut mac = Hmac::<Sha256>::new_from_slice(b"Jefe").unwrap();
        mac.update(b"what do ya want for nothing?");
        assert_eq!(
            hex(&mac.finalize().into_bytes()),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
        );
    }

    #[test]
    fn hex_reads_what_it_wrote() {
        assert_eq!(unhex(&hex(&[0, 1, 254, 255])), Some(vec![0, 1, 254, 255]));
        assert_eq!(unhex("abc"), None);
        assert_eq!(unhex("xy"), None);
    }
}
