//! The cookie that ties data streams to their control connection.

use super::PEER;
use crate::framing::Fixed;
use crate::{WireError, WireProblem};

/// Bytes of a cookie on the wire: 36 characters and a NUL.
pub const COOKIE_BYTES: usize = 37;

/// The characters that iperf3 draws cookies from.
pub const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// A cookie. A peer's cookie may use other characters than iperf3's: iperf3 only compares cookies.
#[derive(Debug, Clone, Copy, Eq)]
pub struct TestCookie([u8; COOKIE_BYTES]);

impl TestCookie {
    /// A cookie of random bytes; five bits of each are used.
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

impl PartialEq for TestCookie {
    /// Constant time: only the cookie keeps other hosts out of a test.
    fn eq(&self, other: &Self) -> bool {
        self.0.iter().zip(&other.0).fold(0, |differ, (a, b)| differ | (a ^ b)) == 0
    }
}

/// A new connection to a server until its cookie is complete. Only the cookie distinguishes a data stream from
/// a new control connection.
#[derive(Debug, Clone)]
pub struct StreamHello(Fixed<COOKIE_BYTES>);

impl Default for StreamHello {
    fn default() -> Self {
        Self(Fixed::new())
    }
}

impl StreamHello {
    /// Removes the cookie from the front of `input`; the rest belongs to the connection's next step.
    pub fn take(&mut self, input: &mut &[u8]) -> Option<TestCookie> {
        self.0.take(input).map(TestCookie)
    }

    /// Checks that the connection may end here.
    ///
    /// # Errors
    /// Always: it ended before its cookie was complete.
    pub fn ended(&self) -> Result<(), WireError> {
        let have = self.0.so_far().len();
        Err(PEER.error("while reading the cookie", WireProblem::CutOff { have, of: COOKIE_BYTES }))
    }
}
