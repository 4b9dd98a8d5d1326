//! The RSA keys of iperf3's login.

use rsa::pkcs1::DecodeRsaPrivateKey as _;
use rsa::pkcs8::{DecodePrivateKey as _, DecodePublicKey as _};
use rsa::traits::PublicKeyParts;
use rsa::{PrivateKey, PublicKey};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{PrivateKeyDer, SubjectPublicKeyInfoDer};
use sha1::Sha1;

/// Lengths of keys that are accepted, bits.
const BITS: std::ops::RangeInclusive<u32> = 2048..=8192;

/// Padding of the encrypted login; both ends must use the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Padding {
    /// RSAES-OAEP with SHA-1: iperf3 3.17 and newer.
    Oaep,
    /// RSAES-PKCS1-v1_5: iperf3 before 3.17, and newer ones with `--use-pkcs1-padding`.
    Pkcs1,
}

/// The public key of a PEM text; `None` if it has none of 2048 to 8192 bits.
pub(super) fn public_key(pem: &[u8]) -> Option<PublicKey> {
    let der = SubjectPublicKeyInfoDer::from_pem_slice(pem).ok()?;
    accepted(PublicKey::from_public_key_der(&der).ok()?)
}

/// The private key of a PEM text without a passphrase, in PKCS #8, or in PKCS #1, which older versions of openssl write; `None` if it
/// has none of 2048 to 8192 bits.
pub(super) fn private_key(pem: &[u8]) -> Option<PrivateKey> {
    let key = match PrivateKeyDer::from_pem_slice(pem).ok()? {
        PrivateKeyDer::Pkcs8(key) => PrivateKey::from_pkcs8_der(key.secret_pkcs8_der()).ok(),
        PrivateKeyDer::Pkcs1(key) => PrivateKey::from_pkcs1_der(key.secret_pkcs1_der()).ok(),
        _ => None,
    };
    key.and_then(accepted)
}

fn accepted<K: PublicKeyParts>(key: K) -> Option<K> {
    BITS.contains(&key.n().bit_width()).then_some(key)
}

/// Encrypts; `None` if the text is too long for the key.
pub(super) fn encrypt(key: &PublicKey, padding: Padding, text: &[u8]) -> Option<Vec<u8>> {
    match padding {
        Padding::Oaep => key.oaep_encrypt::<Sha1>(text).ok(),
        Padding::Pkcs1 => key.pkcs1v15_encrypt(text).ok(),
    }
}

/// Decrypts. A token of a wrong length is decrypted as zeros of the right length, and what has a wrong padding decrypts to another text
/// (PKCS #1) or to none, so that the time of the answer tells nothing.
pub(super) fn decrypt(key: &PrivateKey, padding: Padding, token: &[u8]) -> Vec<u8> {
    let mut whole = vec![0; key.size()];
    if token.len() == whole.len() {
        whole.copy_from_slice(token);
    }
    match padding {
        Padding::Oaep => key.oaep_decrypt::<Sha1>(&whole),
        Padding::Pkcs1 => key.pkcs1v15_decrypt(&whole),
    }
    .unwrap_or_default()
}
