//! The code of an invitation: three words that one person reads on one host and types on another, once.
//!
//! Both sides use it in SPAKE2 (draft-irtf-cfrg-spake2, as magic-wormhole does): anyone who does not know the code has one guess per
//! exchange, and a recording does not help. The identities of the exchange are those of the TLS connection, so that a relay, which
//! has two connections, fails like a wrong code.

use std::fmt;
use std::str::FromStr;

use spake2::{Ed25519Group, Identity, Password, Spake2};

use super::auth::{Binding, Token};

/// The English words of BIP 39: no two begin with the same four letters.
const WORDS: &str = include_str!("words.txt");
/// Words of a code; each has 11 bits.
const LENGTH: usize = 3;

/// The code of an invitation.
#[derive(Clone, PartialEq, Eq)]
pub struct Code(String);

/// The text is not a code.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoCode {
    /// It has too few words, or too many.
    #[error("a code is three words, such as `word-word-word`: `thru serve --invite` prints it on the other host")]
    Length,
    /// One of them is not in the list.
    #[error("'{0}' is not a word of any code: check the spelling")]
    Word(String),
}

impl Code {
    /// A new code, of 33 random bits.
    ///
    /// # Errors
    /// If the kernel gives no random bits.
    pub fn fresh() -> std::io::Result<Self> {
        let words: Vec<&str> = WORDS.lines().collect();
        let random = engine::random::<{ 2 * LENGTH }>()?;
        // The number of words is a power of two, so all are equally likely.
        let number = |pair: &[u8]| usize::from(u16::from_le_bytes([pair[0], pair[1]])) % words.len();
        let chosen: Vec<&str> = random.chunks_exact(2).map(|pair| words[number(pair)]).collect();
        Ok(Self(chosen.join("-")))
    }
}

impl FromStr for Code {
    type Err = NoCode;

    /// Reads a code as people type it: in any case, with hyphens or spaces.
    fn from_str(text: &str) -> Result<Self, NoCode> {
        let text = text.to_lowercase();
        let words: Vec<&str> =
            text.split(|c: char| c == '-' || c.is_whitespace()).filter(|word| !word.is_empty()).collect();
        if words.len() != LENGTH {
            return Err(NoCode::Length);
        }
        match words.iter().find(|word| !WORDS.lines().any(|known| known == **word)) {
            Some(word) => Err(NoCode::Word((*word).to_owned())),
            None => Ok(Self(words.join("-"))),
        }
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Code(...)")
    }
}

/// A side of an exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The one that types the code.
    Coordinator,
    /// The one that printed it.
    Agent,
}

/// This side's half of an exchange.
pub struct Exchange(Spake2<Ed25519Group>);

impl Exchange {
    /// Begins an exchange over this connection. The text is for the other side.
    #[must_use]
    pub fn begin(side: Side, code: &Code, binding: &Binding) -> (Self, String) {
        let connection = hex::encode(binding.exporter);
        let client = binding.client.map(|key| key.to_string()).unwrap_or_default();
        let coordinator = Identity::new(format!("throughline/1 coordinator {client} {connection}").as_bytes());
        let agent = Identity::new(format!("throughline/1 agent {} {connection}", binding.key).as_bytes());
        let password = Password::new(code.0.as_bytes());
        let (own, message) = match side {
            Side::Coordinator => Spake2::start_a(&password, &coordinator, &agent),
            Side::Agent => Spake2::start_b(&password, &coordinator, &agent),
        };
        (Self(own), hex::encode(message))
    }

    /// The secret that both sides have now if they know the same code; each proves it to the other as it would a token. `None` if
    /// the other side's text is not one of an exchange.
    #[must_use]
    pub fn finish(self, theirs: &str) -> Option<Token> {
        let theirs = hex::decode(theirs).ok()?;
        self.0.finish(&theirs).ok().map(Token::agreed)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::proof::fingerprint::Fingerprint;

    fn here() -> Binding {
        Binding { key: Fingerprint::of(b"agent"), client: Some(Fingerprint::of(b"client")), exporter: [7; 32] }
    }

    /// Whether two sides with these codes and connections believe each other.
    fn agree(codes: [&Code; 2], bindings: [&Binding; 2]) -> bool {
        let (near, question) = Exchange::begin(Side::Coordinator, codes[0], bindings[0]);
        let (far, answer) = Exchange::begin(Side::Agent, codes[1], bindings[1]);
        let (near, far) = (near.finish(&answer).unwrap(), far.finish(&question).unwrap());
        far.check(&near.prove("coordinator", ["aa", "bb"], bindings[0]), "coordinator", ["aa", "bb"], bindings[1])
    }

    #[test]
    fn only_the_same_code_over_the_same_connection_is_believed() {
        let code: Code = "abandon-ability-zoo".parse().unwrap();
        let other: Code = "abandon-ability-zone".parse().unwrap();
        let here = here();
        assert!(agree([&code, &code], [&here, &here]));
        assert!(!agree([&code, &other], [&here, &here]));
        let elsewhere = [
            Binding { exporter: [8; 32], ..here },
            Binding { key: Fingerprint::of(b"relay"), ..here },
            Binding { client: Some(Fingerprint::of(b"relay")), ..here },
            Binding { client: None, ..here },
        ];
        for elsewhere in elsewhere {
            assert!(!agree([&code, &code], [&here, &elsewhere]), "{elsewhere:?}");
        }
    }

    #[test]
    fn an_exchange_needs_a_text_of_the_other_side() {
        let code = Code::fresh().unwrap();
        for wrong in ["", "zz", "41", &"41".repeat(33), &"00".repeat(33), &"42ff".repeat(400)] {
            let (own, _) = Exchange::begin(Side::Agent, &code, &here());
            assert!(own.finish(wrong).is_none(), "{wrong}");
        }
        let (own, question) = Exchange::begin(Side::Coordinator, &code, &here());
        assert!(own.finish(&question).is_none(), "its own text, sent back");
    }

    #[test]
    fn the_words_are_many_and_differ_early() {
        let words: Vec<&str> = WORDS.lines().collect();
        let bits = f64::from(u32::try_from(words.len()).unwrap()).log2() * LENGTH as f64;
        assert!(words.len().is_power_of_two() && bits >= 30.0, "{bits}");
        let starts: HashSet<&str> = words.iter().map(|word| word.get(..4).unwrap_or(word)).collect();
        assert_eq!(starts.len(), words.len());
        assert!(words.iter().all(|word| word.bytes().all(|byte| byte.is_ascii_lowercase())));
    }

    #[test]
    fn a_code_is_read_as_people_type_it() {
        let code: Code = "abandon-ability-zoo".parse().unwrap();
        for typed in ["Abandon-Ability-Zoo", " abandon ability zoo ", "abandon - ability - zoo"] {
            assert_eq!(typed.parse().as_ref(), Ok(&code), "{typed}");
        }
        assert_eq!("abandon-ability".parse::<Code>(), Err(NoCode::Length));
        assert_eq!("abandon-ability-zoo-zoo".parse::<Code>(), Err(NoCode::Length));
        assert_eq!("abandon-throughput-zoo".parse::<Code>(), Err(NoCode::Word("throughput".into())));
        let fresh = Code::fresh().unwrap();
        assert_eq!(fresh.to_string().parse(), Ok(fresh));
        assert_eq!(format!("{code:?}"), "Code(...)");
    }
}
