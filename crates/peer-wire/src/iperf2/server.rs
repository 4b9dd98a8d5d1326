//! The server's end of a stream over TCP: separates the header from the data.

use super::{PEER, flag, header::Header, word};
use crate::{Turn, WireError, WireProblem};

/// What the server's driver must do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// The client sent its header; if it requests reverse, send data.
    Requested(Header),
    /// The client measures round trips (--bounceback): send all back, the bytes so far as well.
    Bounce,
    /// So many of the last bytes are data, and so is everything after them.
    Data(usize),
}

/// The front of a stream.
#[derive(Debug, Clone, Default)]
pub struct Server {
    front: Vec<u8>,
    data: bool,
    failed: bool,
}

impl Server {
    /// Processes received bytes. Nothing separates header and data, so anything that begins like a header is
    /// one.
    ///
    /// # Errors
    /// The header's invalid or unsupported value.
    pub fn receive(&mut self, input: &[u8], turn: &mut Turn<Action>) -> Result<(), WireError> {
        if self.failed {
            return Err(PEER.error("after an error", WireProblem::Unexpected { bytes: input.len() }));
        }
        let mut rest = input;
        while !self.data && !rest.is_empty() {
            let wanted = if self.front.len() < 4 { 4 } else { Header::length(word(&self.front, 0)).unwrap_or(4) };
            let (mine, after) = rest.split_at(rest.len().min(wanted - self.front.len()));
            self.front.extend_from_slice(mine);
            rest = after;
            if self.front.len() < 4 {
                break;
            }
            if word(&self.front, 0) == flag::BOUNCE_BACK {
                self.data = true;
                turn.actions.push(Action::Bounce);
                return Ok(());
            }
            match Header::length(word(&self.front, 0)) {
                // The bytes of the front are data too.
                None => {
                    self.data = true;
                    turn.actions.push(Action::Data(self.front.len() + rest.len()));
                    return Ok(());
                }
                Some(length) if self.front.len() == length => {
                    let header = Header::from_bytes(&self.front).map_err(|what| {
                        self.failed = true;
                        PEER.error("while reading the header", what)
                    })?;
                    if !header.reverse && !header.full_duplex {
                        turn.send.extend_from_slice(&Header::acknowledgement());
                    }
                    turn.actions.push(Action::Requested(header));
                    self.data = true;
                }
                Some(_) => {}
            }
        }
        if self.data && !rest.is_empty() {
            turn.actions.push(Action::Data(rest.len()));
        }
        Ok(())
    }

    /// Checks that the stream may end here.
    ///
    /// # Errors
    /// Where it ends within a header.
    pub fn ended(&self) -> Result<(), WireError> {
        let within = self.front.len() >= 4 && !self.data;
        let closed = || PEER.error("while reading the header", WireProblem::Closed { end: "client" });
        if within { Err(closed()) } else { Ok(()) }
    }
}
