//! The cookie that ties data streams to their control connection.

use super::error;
use crate::SpeakError;
use crate::intake::Fixed;

/// Bytes of a cookie on the wire: 36 characters and a NUL.
pub const COOKIE_BYTES: usize = 37;

/// The characters that iperf3 draws cookies from.
pub const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// A cookie. What a peer made need not be of iperf3's alphabet: iperf3 compares cookies and looks no closer.
#[derive(Debug, Clone, Copy, Eq)]
pub struct Cookie([u8; COOKIE_BYTES]);

impl Cookie {
    /// A cookie of random bytes, of which five bits each count.
    #[must_use]
    pub fn of(random: &[u8; COOKIE_BYTES - 1]) -> Self {
        let mut bytes = [0; COOKIE_BYTES];
        for (to, from) in bytes.iter_mut().zip(random) {
            *to = ALPHABET[usize::from(from % 32)];
        }
        Self(bytes)
    }

    /// The bytes as they were on the wire.
    #[must_use]
    pub fn from_wire(bytes: [u8; COOKIE_BYTES]) -> Self {
        Self(bytes)
    }

    /// The bytes for the wire.
    #[must_use]
    pub fn bytes(&self) -> &[u8; COOKIE_BYTES] {
        &self.0
    }
}

impl PartialEq for Cookie {
    /// In the same time wherever they differ: the cookie is all that keeps strangers out of a test.
    fn eq(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
    }
}

/// A new connection to a server until its cookie is there: a control connection's or a data stream's, which only the cookie
/// tells apart.
#[derive(Debug, Clone)]
pub struct StreamHello(Fixed<COOKIE_BYTES>);

impl Default for StreamHello {
    fn default() -> Self {
        Self(Fixed::new())
    }
}

impl StreamHello {
    /// Takes the cookie off the front of `input`; what is left there belongs to the connection's next step.
    pub fn take(&mut self, input: &mut &[u8]) -> Option<Cookie> {
        self.0.take(input).map(Cookie)
    }

    /// What it means that the connection ends here.
    ///
    /// # Errors
    /// Always: it ended before its cookie was whole.
    pub fn ended(&self) -> Result<(), SpeakError> {
        let have = self.0.so_far().len();
        Err(error("while reading the cookie", format!("the connection ended after {have} of {COOKIE_BYTES} bytes")))
    }
}
