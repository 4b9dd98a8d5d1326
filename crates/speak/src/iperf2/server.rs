//! The server's end of a stream over TCP: tells a header from data.

use super::{error, header::Header, word};
use crate::{SpeakError, Turn};

/// What the server's driver has to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// The client said what it wants; where it is to receive, send to it.
    Requested(Header),
    /// The last so many of the bytes taken until now are data, and all that comes next is.
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
    /// Takes what arrived. Headers and data follow each other without a mark, so that what begins as a header is one.
    ///
    /// # Errors
    /// What a header has that cannot be, or is not spoken.
    pub fn receive(&mut self, input: &[u8], turn: &mut Turn<Action>) -> Result<(), SpeakError> {
        if self.failed {
            return Err(error("after an error", format!("{} more bytes came", input.len())));
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
                        error("while reading the header", what)
                    })?;
                    if !header.reverse {
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

    /// What it means that the stream ends here.
    ///
    /// # Errors
    /// Where it ends within a header.
    pub fn ended(&self) -> Result<(), SpeakError> {
        let within = self.front.len() >= 4 && !self.data;
        if within { Err(error("while reading the header", "the client closed the connection")) } else { Ok(()) }
    }
}
