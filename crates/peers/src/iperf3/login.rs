//! iperf3's login: its client encrypts name, password and time with the server's public RSA key; the server
//! compares them with a file of users. The cryptography is aws-lc's.

use std::fmt;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::rsa::{
    OAEP_SHA1_MGF1SHA1, OaepPrivateDecryptingKey, OaepPublicEncryptingKey, Pkcs1PrivateDecryptingKey,
    Pkcs1PublicEncryptingKey, PrivateDecryptingKey, PublicEncryptingKey,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use peer_wire::iperf3::{Claim, hashed_text};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{PrivateKeyDer, SubjectPublicKeyInfoDer};

use crate::InteropError;

/// Default allowed difference of the two clocks, s; iperf3's own value.
pub const SKEW_S: u64 = 10;

/// Padding of the encrypted login; both ends must use the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Padding {
    /// RSAES-OAEP with SHA-1: iperf3 3.17 and newer.
    Oaep,
    /// RSAES-PKCS1-v1_5: iperf3 before 3.17, and newer ones with `--use-pkcs1-padding`.
    Pkcs1,
}

/// A user who logs in to a server.
pub struct Login {
    name: String,
    password: String,
    key: EncryptingKey,
}

/// The key that encrypts.
enum EncryptingKey {
    Oaep(OaepPublicEncryptingKey),
    Pkcs1(Pkcs1PublicEncryptingKey),
}

impl Login {
    /// Reads the server's public key, which is a PEM file.
    ///
    /// # Errors
    /// Where the file is not a public key, or name and password are too long for the key.
    pub fn read(name: String, password: String, key: &Path, padding: Padding) -> Result<Self, InteropError> {
        let der = SubjectPublicKeyInfoDer::from_pem_slice(&bytes(key)?).map_err(|_| no_public_key(key))?;
        let public = PublicEncryptingKey::from_der(&der).map_err(|_| no_public_key(key))?;
        let key_of = |encrypting: Result<EncryptingKey, _>| {
            encrypting.map_err(|_: aws_lc_rs::error::Unspecified| no_public_key(key))
        };
        let encrypting = match padding {
            Padding::Oaep => key_of(OaepPublicEncryptingKey::new(public).map(EncryptingKey::Oaep))?,
            Padding::Pkcs1 => key_of(Pkcs1PublicEncryptingKey::new(public).map(EncryptingKey::Pkcs1))?,
        };
        if [&name, &password].iter().any(|text| text.contains(['\n', '\0'])) {
            return Err(InteropError::unsupported(
                "a line break in a name or password",
                "iperf3's protocol uses line breaks as separators",
            ));
        }
        let login = Self { name, password, key: encrypting };
        login.token().map(|_| login)
    }

    /// A token for a test that begins now.
    pub(super) fn token(&self) -> Result<String, InteropError> {
        let claim = Claim { name: self.name.clone(), password: self.password.clone(), at_s: now_s() };
        let text = claim.to_text();
        let ciphertext = match &self.key {
            EncryptingKey::Oaep(key) => {
                let mut ciphertext = vec![0; key.ciphertext_size()];
                key.encrypt(&OAEP_SHA1_MGF1SHA1, text.as_bytes(), &mut ciphertext, None)
                    .map(|ciphertext| STANDARD.encode(ciphertext))
            }
            EncryptingKey::Pkcs1(key) => {
                let mut ciphertext = vec![0; key.ciphertext_size()];
                key.encrypt(text.as_bytes(), &mut ciphertext).map(|ciphertext| STANDARD.encode(ciphertext))
            }
        };
        ciphertext.map_err(|_| {
            InteropError::unsupported(
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
    key: DecryptingKey,
    /// Names, and the hashes of their passwords.
    known: Vec<(String, [u8; 32])>,
    skew_s: u64,
}

/// The key that decrypts.
enum DecryptingKey {
    Oaep(OaepPrivateDecryptingKey),
    Pkcs1(Pkcs1PrivateDecryptingKey),
}

impl Users {
    /// Reads the server's private key, a PEM file without a passphrase, and the file of users: lines of a name,
    /// a comma and the SHA-256 of `{name}password`; lines that begin with # are comments. Clocks may be
    /// `skew_s` seconds apart.
    ///
    /// # Errors
    /// Where a file is invalid.
    pub fn read(key: &Path, users: &Path, skew_s: u64, padding: Padding) -> Result<Self, InteropError> {
        let private = PrivateDecryptingKey::from_pkcs8(&private_key(key)?).map_err(|_| no_private_key(key))?;
        let key_of = |decrypting: Result<DecryptingKey, _>| {
            decrypting.map_err(|_: aws_lc_rs::error::Unspecified| no_private_key(key))
        };
        let key = match padding {
            Padding::Oaep => key_of(OaepPrivateDecryptingKey::new(private).map(DecryptingKey::Oaep))?,
            Padding::Pkcs1 => key_of(Pkcs1PrivateDecryptingKey::new(private).map(DecryptingKey::Pkcs1))?,
        };
        Ok(Self { key, known: known(users)?, skew_s })
    }

    /// Whether a client with this token is admitted. Every token goes through all steps, so that the response
    /// time does not reveal whether the padding was valid.
    pub(super) fn admits(&self, token: Option<&str>) -> bool {
        self.admits_at(token, now_s())
    }

    fn admits_at(&self, token: Option<&str>, now_s: i64) -> bool {
        let ciphertext = token.and_then(|token| STANDARD.decode(token).ok()).unwrap_or_default();
        let plaintext = self.open(&ciphertext);
        let claim = Claim::from_text(&plaintext);
        let said = claim.is_some();
        let claim = claim.unwrap_or(Claim { name: String::new(), password: String::new(), at_s: 0 });
        let hash = digest(&SHA256, hashed_text(&claim.name, &claim.password).as_bytes());
        let mut known = false;
        for (name, wanted) in &self.known {
            let right = verify_slices_are_equal(hash.as_ref(), wanted).is_ok();
            known |= right & (*name == claim.name);
        }
        known & said & (now_s.abs_diff(claim.at_s) <= self.skew_s)
    }

    /// The decrypted text; empty if the token cannot be decrypted.
    fn open(&self, ciphertext: &[u8]) -> Vec<u8> {
        let (size, mut plain) = match &self.key {
            DecryptingKey::Oaep(key) => (key.key_size_bytes(), vec![0; key.min_output_size()]),
            DecryptingKey::Pkcs1(key) => (key.key_size_bytes(), vec![0; key.min_output_size()]),
        };
        // A token of a wrong length is decrypted as zeros of the right length, for constant time.
        let mut whole = vec![0; size];
        if ciphertext.len() == size {
            whole.copy_from_slice(ciphertext);
        }
        let plaintext = match &self.key {
            DecryptingKey::Oaep(key) => key.decrypt(&OAEP_SHA1_MGF1SHA1, &whole, &mut plain, None),
            DecryptingKey::Pkcs1(key) => key.decrypt(&whole, &mut plain),
        };
        let length = plaintext.map_or(0, |plaintext| plaintext.len());
        plain.truncate(length);
        plain
    }
}

impl fmt::Debug for Users {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} users", self.known.len())
    }
}

fn now_s() -> i64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(now.as_secs()).unwrap_or(i64::MAX)
}

fn bytes(path: &Path) -> Result<Vec<u8>, InteropError> {
    std::fs::read(path).map_err(|error| file(path, format!("cannot be read: {error}")))
}

fn file(path: &Path, what: impl Into<String>) -> InteropError {
    InteropError::File { path: path.to_owned(), what: what.into() }
}

fn no_public_key(path: &Path) -> InteropError {
    file(
        path,
        "is not a public RSA key of 2048 to 8192 bits in PEM format; create one with: openssl pkey -in PRIVATE.pem -pubout -out PUBLIC.pem",
    )
}

fn no_private_key(path: &Path) -> InteropError {
    file(
        path,
        "is not a private RSA key of 2048 to 8192 bits in PEM format without a passphrase; create one with: openssl genrsa -out PRIVATE.pem 2048; \
         remove a passphrase with: openssl rsa -in WITH.pem -out PRIVATE.pem",
    )
}

/// The key as PKCS #8; converts PKCS #1, which older versions of openssl write.
fn private_key(path: &Path) -> Result<Vec<u8>, InteropError> {
    match PrivateKeyDer::from_pem_slice(&bytes(path)?) {
        Ok(PrivateKeyDer::Pkcs8(key)) => Ok(key.secret_pkcs8_der().to_vec()),
        Ok(PrivateKeyDer::Pkcs1(key)) => Ok(wrapped(key.secret_pkcs1_der())),
        _ => Err(no_private_key(path)),
    }
}

/// A PKCS #1 key within PKCS #8 (RFC 5208): version 0, rsaEncryption, the key.
fn wrapped(key: &[u8]) -> Vec<u8> {
    const FRONT: [u8; 18] = [2, 1, 0, 0x30, 13, 6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1, 5, 0];
    let element = |tag: u8, parts: &[&[u8]]| {
        let length: usize = parts.iter().map(|part| part.len()).sum();
        let digits = (length as u32).to_be_bytes();
        // DER has no more digits than it needs.
        let digits = &digits[digits.iter().position(|digit| *digit > 0).unwrap_or(3)..];
        let mut bytes = vec![tag];
        if length > 127 {
            bytes.push(0x80 | digits.len() as u8);
        }
        bytes.extend_from_slice(digits);
        parts.iter().for_each(|part| bytes.extend_from_slice(part));
        bytes
    };
    element(0x30, &[&FRONT, &element(4, &[key])])
}

/// The users of a file.
fn known(path: &Path) -> Result<Vec<(String, [u8; 32])>, InteropError> {
    let text = String::from_utf8(bytes(path)?).map_err(|_| file(path, "is not UTF-8 text"))?;
    let mut known = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim_end();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let user = line.split_once(',').and_then(|(name, hash)| Some((name.to_owned(), hex(hash.trim())?)));
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

/// 32 bytes as hexadecimal digits.
fn hex(digits: &str) -> Option<[u8; 32]> {
    let mut bytes = [0; 32];
    if digits.len() != 64 || !digits.is_ascii() {
        return None;
    }
    for (at, byte) in bytes.iter_mut().enumerate() {
        *byte = u8::from_str_radix(&digits[2 * at..2 * at + 2], 16).ok()?;
    }
    Some(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use aws_lc_rs::encoding::{AsDer, Pkcs8V1Der, PublicKeyX509Der};
    use aws_lc_rs::rsa::KeySize;
    use proptest::prelude::*;
    use proptest::test_runner::{Config, TestRunner};

    fn keys() -> (tempfile::TempDir, PrivateDecryptingKey) {
        let (folder, key) = (tempfile::tempdir().unwrap(), PrivateDecryptingKey::generate(KeySize::Rsa2048).unwrap());
        let pem = |label: &str, der: &[u8]| {
            format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", STANDARD.encode(der))
        };
        let private: Pkcs8V1Der<'static> = key.as_der().unwrap();
        let public: PublicKeyX509Der<'static> = key.public_key().as_der().unwrap();
        std::fs::write(folder.path().join("private.pem"), pem("PRIVATE KEY", private.as_ref())).unwrap();
        std::fs::write(folder.path().join("public.pem"), pem("PUBLIC KEY", public.as_ref())).unwrap();
        // rsaEncryption and version 0 stand before the key that PKCS #1 has alone: 4 + 18 + 4 bytes.
        std::fs::write(folder.path().join("older.pem"), pem("RSA PRIVATE KEY", &private.as_ref()[26..])).unwrap();
        let hash = "# users\nmario,bf7a49a846d44b454a5d11e7acfaf13d138bbe0b7483aa3e050879700572709b\n";
        std::fs::write(folder.path().join("users.csv"), hash).unwrap();
        (folder, key)
    }

    #[test]
    fn a_user_is_admitted_with_the_right_password_at_the_right_time() {
        let (folder, _) = keys();
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
        let (folder, _) = keys();
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
        let (folder, key) = keys();
        let file = |name: &str| folder.path().join(name);
        let public = Pkcs1PublicEncryptingKey::new(key.public_key()).unwrap();
        let ciphertext = |text: &[u8]| {
            let mut ciphertext = vec![0; public.ciphertext_size()];
            STANDARD.encode(public.encrypt(text, &mut ciphertext).unwrap())
        };
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
}
