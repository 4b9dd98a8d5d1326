//! RSA by aws-lc's own functions: `aws-lc-rs` reaches them through a table of all of its algorithms, 0.7 MB more.
#![allow(unsafe_code, reason = "aws-lc is C")]

use std::ptr::NonNull;

use aws_lc_sys::{
    ERR_clear_error, RSA, RSA_PKCS1_OAEP_PADDING, RSA_PKCS1_PADDING, RSA_bits, RSA_decrypt, RSA_encrypt, RSA_free,
    RSA_private_key_from_bytes, RSA_public_key_from_bytes, RSA_size,
};

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

/// A key; freed when it is dropped.
pub(super) struct RsaKey(NonNull<RSA>);

// SAFETY: aws-lc locks what a key computes when it is first used; all else of it only changes when it is freed.
unsafe impl Send for RsaKey {}
// SAFETY: as above.
unsafe impl Sync for RsaKey {}

impl Drop for RsaKey {
    fn drop(&mut self) {
        // SAFETY: the key came from aws-lc and is not used after this.
        unsafe { RSA_free(self.0.as_ptr()) }
    }
}

impl RsaKey {
    /// A public key from DER as PKCS #1 has it (RFC 8017, A.1.1); `None` if it is none of 2048 to 8192 bits.
    pub(super) fn public(der: &[u8]) -> Option<Self> {
        // SAFETY: the bytes are read during the call only; the caller owns what it returns.
        Self::new(unsafe { RSA_public_key_from_bytes(der.as_ptr(), der.len()) })
    }

    /// A private key from DER as PKCS #1 has it (RFC 8017, A.1.2), whose numbers fit together.
    pub(super) fn private(der: &[u8]) -> Option<Self> {
        // SAFETY: as in `public`.
        Self::new(unsafe { RSA_private_key_from_bytes(der.as_ptr(), der.len()) })
    }

    fn new(key: *mut RSA) -> Option<Self> {
        // SAFETY: it has no arguments; it clears this thread's list of errors, which nobody reads.
        unsafe { ERR_clear_error() };
        let key = Self(NonNull::new(key)?);
        // SAFETY: the key is valid.
        let bits = unsafe { RSA_bits(key.0.as_ptr()) };
        BITS.contains(&bits).then_some(key)
    }

    /// Bytes of what is encrypted with it.
    pub(super) fn size(&self) -> usize {
        // SAFETY: the key is valid.
        unsafe { RSA_size(self.0.as_ptr()) as usize }
    }

    /// Encrypts; `None` if the text is too long for the key.
    pub(super) fn encrypt(&self, padding: Padding, text: &[u8]) -> Option<Vec<u8>> {
        self.converted(RSA_encrypt, padding, text)
    }

    /// Decrypts with a private key; `None` if the padding is wrong.
    pub(super) fn decrypt(&self, padding: Padding, ciphertext: &[u8]) -> Option<Vec<u8>> {
        self.converted(RSA_decrypt, padding, ciphertext)
    }

    fn converted(&self, by: Conversion, padding: Padding, from: &[u8]) -> Option<Vec<u8>> {
        let padding = match padding {
            // With SHA-1, also in its mask, and without a label.
            Padding::Oaep => RSA_PKCS1_OAEP_PADDING,
            Padding::Pkcs1 => RSA_PKCS1_PADDING,
        };
        let mut into = vec![0; self.size()];
        let mut length = 0;
        // SAFETY: the key is valid, `into` has the room that is told, and both ranges last during the call.
        let done = unsafe {
            by(self.0.as_ptr(), &raw mut length, into.as_mut_ptr(), into.len(), from.as_ptr(), from.len(), padding)
        };
        // SAFETY: as in `new`.
        unsafe { ERR_clear_error() };
        into.truncate(length);
        (done == 1).then_some(into)
    }
}

/// `RSA_encrypt` and `RSA_decrypt`: the key, the length of the result, where it goes with its room, what is converted, the padding.
type Conversion = unsafe extern "C" fn(*mut RSA, *mut usize, *mut u8, usize, *const u8, usize, i32) -> i32;
