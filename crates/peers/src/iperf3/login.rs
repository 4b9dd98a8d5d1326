//! iperf3's login: its client encrypts name, password and time with the server's public RSA key; the server
//! compares them with a file of users.

use std::fmt;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use peer_wire::iperf3::{LoginClaim, hashed_text};
use ring::digest::{SHA256, digest};
use rsa::{PrivateKey, PublicKey};
use subtle::ConstantTimeEq as _;

use super::keys::{self, Padding};
use crate::ProgramError;

/// Default allowed difference of the two clocks, s; iperf3's own value.
pub const SKEW_S: u64 = 10;

/// A user who logs in to a server.
pub struct Login {
    name: String,
    password: String,
    key: PublicKey,
    padding: Padding,
}

impl Login {
    /// Reads the server's public key, which is a PEM file.
    ///
    /// # Errors
    /// Where the file is not a public key, or name and password are too long for the key.
    pub fn read(name: String, password: String, key: &Path, padding: Padding) -> Result<Self, ProgramError> {
        let key = keys::public_key(&bytes(key)?).ok_or_else(|| no_public_key(key))?;
        if [&name, &password].iter().any(|text| text.contains(['\n', '\0'])) {
            return Err(ProgramError::unsupported(
                "a line break in a name or password",
                "iperf3's protocol uses line breaks as separators",
            ));
        }
        let login = Self { name, password, key, padding };
        login.token().map(|_| login)
    }

    /// A token for a test that begins now.
    pub(super) fn token(&self) -> Result<String, ProgramError> {
        let claim = LoginClaim { name: self.name.clone(), password: self.password.clone(), at_s: now_s() };
        let ciphertext = keys::encrypt(&self.key, self.padding, claim.to_text().as_bytes());
        ciphertext.map(|ciphertext| STANDARD.encode(ciphertext)).ok_or_else(|| {
            ProgramError::unsupported(
                "a name and password that are too long for the key",
                "use a longer key, or a shorter name and password",
            )
        })
    }
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Login of {}", self.name)
    }
}

/// The users that a server admits.
pub struct Users {
    key: PrivateKey,
    padding: Padding,
    /// Names, and the hashes of their passwords.
    known: Vec<(String, [u8; 32])>,
    skew_s: u64,
}

impl Users {
    /// Reads the server's private key, a PEM file without a passphrase, and the file of users: lines of a name,
    /// a comma and the SHA-256 of `{name}password`; lines that begin with # are comments. Clocks may be
    /// `skew_s` seconds apart.
    ///
    /// # Errors
    /// Where a file is invalid.
    pub fn read(key: &Path, users: &Path, skew_s: u64, padding: Padding) -> Result<Self, ProgramError> {
        let key = keys::private_key(&bytes(key)?).ok_or_else(|| no_private_key(key))?;
        Ok(Self { key, padding, known: known(users)?, skew_s })
    }

    /// Whether a client with this token is admitted. Every token goes through all steps, so that the response
    /// time does not reveal whether the padding was valid.
    pub(super) fn admits(&self, token: Option<&str>) -> bool {
        self.admits_at(token, now_s())
    }

    fn admits_at(&self, token: Option<&str>, now_s: i64) -> bool {
        let ciphertext = token.and_then(|token| STANDARD.decode(token).ok()).unwrap_or_default();
        let plaintext = keys::decrypt(&self.key, self.padding, &ciphertext);
        let claim = LoginClaim::from_text(&plaintext);
        let said = claim.is_some();
        let claim = claim.unwrap_or(LoginClaim { name: String::new(), password: String::new(), at_s: 0 });
        let hash = digest(&SHA256, hashed_text(&claim.name, &claim.password).as_bytes());
        let mut known = false;
        for (name, wanted) in &self.known {
            let right = hash.as_ref().ct_eq(wanted);
            known |= bool::from(right) & (*name == claim.name);
        }
        known & said & (now_s.abs_diff(claim.at_s) <= self.skew_s)
    }
}

impl fmt::Debug for Users {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} users", self.known.len())
    }
}

fn now_s() -> i64 {
    (engine::unix_ns() / 1_000_000_000).cast_signed()
}

fn bytes(path: &Path) -> Result<Vec<u8>, ProgramError> {
    std::fs::read(path).map_err(|error| file(path, format!("cannot be read: {error}")))
}

fn file(path: &Path, what: impl Into<String>) -> ProgramError {
    ProgramError::File { path: path.to_owned(), what: what.into() }
}

fn no_public_key(path: &Path) -> ProgramError {
    file(
        path,
        "is not a public RSA key of 2048 to 8192 bits in PEM format; create one with: openssl pkey -in PRIVATE.pem -pubout -out PUBLIC.pem",
    )
}

fn no_private_key(path: &Path) -> ProgramError {
    file(
        path,
        "is not a private RSA key of 2048 to 8192 bits in PEM format without a passphrase; create one with: openssl genrsa -out PRIVATE.pem 2048; \
         remove a passphrase with: openssl rsa -in WITH.pem -out PRIVATE.pem",
    )
}

/// The users of a file.
fn known(path: &Path) -> Result<Vec<(String, [u8; 32])>, ProgramError> {
    let text = String::from_utf8(bytes(path)?).map_err(|_| file(path, "is not UTF-8 text"))?;
    let mut known = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim_end();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let user = line.split_once(',').and_then(|(name, hash)| Some((name.to_owned(), digest_of(hash.trim())?)));
        known.push(user.ok_or_else(|| {
            file(
                path,
                format!(
                    "line {number} is not NAME,HASH; HASH is the SHA-256 of {{NAME}}PASSWORD, as printed by: \
                     printf '%s' '{{NAME}}PASSWORD' | sha256sum"
                ),
            )
        })?);
    }
    if known.is_empty() { Err(file(path, "has no users")) } else { Ok(known) }
}

/// A digest as hexadecimal digits.
fn digest_of(digits: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    hex::decode_to_slice(digits, &mut bytes).ok()?;
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use proptest::test_runner::{Config, TestRunner};

    const PRIVATE: &[u8] = include_bytes!("../../tests/data/private.pem");
    const OLDER: &[u8] = include_bytes!("../../tests/data/older.pem");
    const PUBLIC: &[u8] = include_bytes!("../../tests/data/public.pem");

    /// A folder with one key in the three forms that openssl writes, and with a file of users.
    fn folder() -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        let users = b"# users\nmario,bf7a49a846d44b454a5d11e7acfaf13d138bbe0b7483aa3e050879700572709b\n";
        let files = [("private.pem", PRIVATE), ("older.pem", OLDER), ("public.pem", PUBLIC), ("users.csv", users)];
        for (name, bytes) in files {
            std::fs::write(folder.path().join(name), bytes).unwrap();
        }
        folder
    }

    #[test]
    fn a_user_is_admitted_with_the_right_password_at_the_right_time() {
        let folder = folder();
        let file = |name: &str| folder.path().join(name);
        for padding in [Padding::Oaep, Padding::Pkcs1] {
            for key in ["private.pem", "older.pem"] {
                let users = Users::read(&file(key), &file("users.csv"), SKEW_S, padding).unwrap();
                let token = |name: &str, password: &str| {
                    Login::read(name.into(), password.into(), &file("public.pem"), padding).unwrap().token().unwrap()
                };
                let right = token("mario", "rossi");
                assert!(users.admits(Some(&right)) && !users.admits(None), "{key}");
                assert!(users.admits_at(Some(&right), now_s() + 8) && !users.admits_at(Some(&right), now_s() + 12));
                assert!(!users.admits_at(Some(&right), now_s() - 12) && !users.admits_at(Some(&right), i64::MIN));
                for (name, password) in [("mario", "Rossi"), ("luigi", "rossi"), ("", ""), ("mario", "")] {
                    assert!(!users.admits(Some(&token(name, password))), "{name}");
                }
                let other = if padding == Padding::Oaep { Padding::Pkcs1 } else { Padding::Oaep };
                let users = Users::read(&file(key), &file("users.csv"), SKEW_S, other).unwrap();
                assert!(!users.admits(Some(&right)), "of another padding");
            }
        }
        let long = Login::read("mario".into(), "x".repeat(300), &file("public.pem"), Padding::Oaep);
        assert!(long.unwrap_err().to_string().contains("too long for the key"));
    }

    #[test]
    fn a_wrong_file_is_named_with_a_remedy() {
        let folder = folder();
        let file = |name: &str| folder.path().join(name);
        let read = |key: &str, users: &str| {
            Users::read(&file(key), &file(users), SKEW_S, Padding::Oaep).unwrap_err().to_string()
        };
        assert!(read("absent.pem", "users.csv").contains("absent.pem cannot be read"));
        assert!(read("public.pem", "users.csv").contains("public.pem is not a private RSA key"));
        assert!(read("private.pem", "private.pem").contains("line 1 is not NAME,HASH"));
        std::fs::write(file("nobody.csv"), "# none\n").unwrap();
        assert!(read("private.pem", "nobody.csv").contains("has no users"));
        std::fs::write(file("short.csv"), "mario,bf7a\n").unwrap();
        assert!(read("private.pem", "short.csv").contains("line 1 is not"));
        let login = Login::read("mario".into(), "rossi".into(), &file("private.pem"), Padding::Oaep);
        assert!(login.unwrap_err().to_string().contains("private.pem is not a public RSA key"));
    }

    #[test]
    fn no_token_of_any_kind_does_harm() {
        let folder = folder();
        let file = |name: &str| folder.path().join(name);
        let public = keys::public_key(PUBLIC).unwrap();
        let ciphertext = |text: &[u8]| STANDARD.encode(keys::encrypt(&public, Padding::Pkcs1, text).unwrap());
        for padding in [Padding::Oaep, Padding::Pkcs1] {
            let users = Users::read(&file("private.pem"), &file("users.csv"), SKEW_S, padding).unwrap();
            let mut runner = TestRunner::new(Config::with_cases(40));
            let text = (any::<bool>(), proptest::collection::vec(any::<u8>(), 0..240), ".{0,400}");
            let ran = runner.run(&text, |(whole, bytes, text)| {
                let token = if whole { ciphertext(&bytes) } else { text };
                prop_assert!(!users.admits(Some(&token)));
                Ok(())
            });
            ran.unwrap();
        }
    }

    #[test]
    fn a_key_of_any_bytes_is_refused_or_read() {
        assert!(keys::public_key(PRIVATE).is_none() && keys::private_key(PUBLIC).is_none());
        let mut runner = TestRunner::new(Config::with_cases(200));
        let change = (any::<bool>(), any::<usize>(), any::<u8>(), any::<Option<u8>>());
        let ran = runner.run(&change, |(of_private, at, byte, cut)| {
            let mut pem = if of_private { PRIVATE } else { PUBLIC }.to_vec();
            let at = at % pem.len();
            pem[at] = byte;
            pem.truncate(pem.len() - cut.map_or(0, usize::from));
            if let Some(key) = keys::private_key(&pem) {
                let _ = keys::decrypt(&key, Padding::Oaep, &[]);
            }
            if let Some(key) = keys::public_key(&pem) {
                let _ = keys::encrypt(&key, Padding::Oaep, b"text");
            }
            Ok(())
        });
        ran.unwrap();
    }
}
