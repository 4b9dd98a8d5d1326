//! Assembles messages from bytes as they arrive.

use crate::WireProblem;

/// Calls `take` to remove messages from the front of `input` until it is empty or one is invalid.
pub(crate) fn each<E>(mut input: &[u8], mut take: impl FnMut(&mut &[u8]) -> Result<(), E>) -> Result<(), E> {
    while !input.is_empty() {
        take(&mut input)?;
    }
    Ok(())
}

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

    /// Removes what it needs from the front of `input`; returns the message once it is complete.
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

    /// Removes what it needs from the front of `input`; returns the body once it is complete. The buffer grows
    /// with the data that arrives, so a length alone allocates nothing, and a length above the limit is refused
    /// at once.
    pub(crate) fn take(&mut self, input: &mut &[u8]) -> Result<Option<Vec<u8>>, WireProblem> {
        let Some(length) = self.length.take(input) else { return Ok(None) };
        let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
        if length > self.limit {
            return Err(WireProblem::MessageTooLong { bytes: length, limit: self.limit });
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

/// Lines of text that end in LF, each of up to `limit` bytes without it.
#[derive(Debug, Clone)]
pub(crate) struct Lines {
    line: Vec<u8>,
    limit: usize,
}

impl Lines {
    pub(crate) const fn new(limit: usize) -> Self {
        Self { line: Vec::new(), limit }
    }

    /// Removes what it needs from the front of `input`; returns the line once it is complete, without CR and
    /// LF. Invalid UTF-8 is replaced.
    pub(crate) fn take(&mut self, input: &mut &[u8]) -> Result<Option<String>, WireProblem> {
        let end = input.iter().position(|byte| *byte == b'\n');
        let (mine, rest) = input.split_at(end.unwrap_or(input.len()));
        if self.line.len() + mine.len() > self.limit {
            return Err(WireProblem::LineTooLong { limit: self.limit });
        }
        self.line.extend_from_slice(mine);
        *input = rest.get(usize::from(end.is_some())..).unwrap_or_default();
        if end.is_none() {
            return Ok(None);
        }
        let line = std::mem::take(&mut self.line);
        let line = line.strip_suffix(b"\r").unwrap_or(&line);
        Ok(Some(String::from_utf8_lossy(line).into_owned()))
    }
}
