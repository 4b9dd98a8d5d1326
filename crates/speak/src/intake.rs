//! Messages put together from bytes as they arrive.

/// A message of `N` bytes.
#[derive(Debug, Clone)]
pub(crate) struct Fixed<const N: usize> {
    bytes: [u8; N],
    have: usize,
}

impl<const N: usize> Fixed<N> {
    pub(crate) const fn new() -> Self {
        Self { bytes: [0; N], have: 0 }
    }

    /// Takes what it needs off the front of `input`; the message once it is whole.
    pub(crate) fn take(&mut self, input: &mut &[u8]) -> Option<[u8; N]> {
        let (mine, rest) = input.split_at(input.len().min(N - self.have));
        self.bytes[self.have..self.have + mine.len()].copy_from_slice(mine);
        self.have += mine.len();
        *input = rest;
        (self.have == N).then_some(self.bytes)
    }

    /// What has arrived so far.
    pub(crate) fn so_far(&self) -> &[u8] {
        &self.bytes[..self.have]
    }
}

/// A length of 32 bits, big-endian, and that many bytes.
#[derive(Debug, Clone)]
pub(crate) struct Framed {
    length: Fixed<4>,
    body: Vec<u8>,
    limit: usize,
}

impl Framed {
    /// Takes bodies of up to `limit` bytes.
    pub(crate) const fn new(limit: usize) -> Self {
        Self { length: Fixed::new(), body: Vec::new(), limit }
    }

    /// Takes what it needs off the front of `input`; the body once it is whole. The body grows with what arrives: a length
    /// alone costs nothing, and one beyond the limit is refused before its first byte.
    pub(crate) fn take(&mut self, input: &mut &[u8]) -> Result<Option<Vec<u8>>, String> {
        let Some(length) = self.length.take(input) else { return Ok(None) };
        let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
        if length > self.limit {
            return Err(format!("a message of {length} bytes; up to {} are taken", self.limit));
        }
        let (mine, rest) = input.split_at(input.len().min(length - self.body.len()));
        self.body.extend_from_slice(mine);
        *input = rest;
        Ok((self.body.len() == length).then(|| std::mem::take(&mut self.body)))
    }
}

/// `body` with its length before it.
pub(crate) fn framed(body: &[u8], into: &mut Vec<u8>) {
    // Our own messages are far below 4 GiB.
    let length = u32::try_from(body.len()).unwrap_or(u32::MAX);
    into.extend_from_slice(&length.to_be_bytes());
    into.extend_from_slice(body);
}
