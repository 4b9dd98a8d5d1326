//! Frames: a 32-bit big-endian length, then that many bytes of JSON.

use serde::de::DeserializeOwned;
use text::Said;

use crate::message::Message;

/// The largest frame before the peer is authenticated.
pub const MAX_GREETING: usize = 16 << 10;
/// The largest frame that a coordinator without a token accepts from the agent it connected to: the inventory of a host with
/// hundreds of interfaces.
pub const MAX_WELCOME: usize = 2 << 20;

/// Invalid bytes on a control connection.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error, Said)]
pub enum FrameError {
    /// The length is beyond the limit.
    #[error("a message of {length} bytes is over the limit of {limit}")]
    TooLong {
        /// As announced.
        length: usize,
        /// What is allowed.
        limit: usize,
    },
    /// The content is not a message.
    #[error("a message cannot be read: {0}")]
    Content(String),
}

/// The frame of `message`.
pub fn encode<M: Message>(message: &M) -> Result<Vec<u8>, FrameError> {
    let limit = M::MAX_FRAME;
    let mut bytes = vec![0; 4];
    serde_json::to_writer(&mut bytes, message).map_err(|error| FrameError::Content(error.to_string()))?;
    let length = bytes.len() - 4;
    if length > limit {
        return Err(FrameError::TooLong { length, limit });
    }
    bytes[..4].copy_from_slice(&(length as u32).to_be_bytes());
    Ok(bytes)
}

/// Splits a stream of bytes into messages.
#[derive(Debug)]
pub struct Decoder {
    bytes: Vec<u8>,
    /// Bytes at the front that were taken. They are removed when more are pushed: once for each push, not for each message.
    taken: usize,
    /// Bytes of the last message that was taken.
    last: usize,
    /// The largest frame accepted.
    pub limit: usize,
}

impl Decoder {
    /// A decoder that accepts frames of up to `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self { bytes: Vec::new(), taken: 0, last: 0, limit }
    }

    /// Adds received bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..std::mem::take(&mut self.taken));
        self.bytes.extend_from_slice(bytes);
    }

    /// The next complete message, if there is one. After an error the stream cannot be used any more.
    pub fn take<T: DeserializeOwned>(&mut self) -> Result<Option<T>, FrameError> {
        let Some((prefix, rest)) = self.bytes[self.taken..].split_first_chunk::<4>() else { return Ok(None) };
        let length = u32::from_be_bytes(*prefix) as usize;
        if length > self.limit {
            return Err(FrameError::TooLong { length, limit: self.limit });
        }
        let Some(content) = rest.get(..length) else { return Ok(None) };
        let message = std::str::from_utf8(content)
            .map_err(|error| error.to_string())
            .and_then(|text| serde_json::from_str(text).map_err(|error| error.to_string()))
            .map_err(FrameError::Content);
        self.taken += 4 + length;
        self.last = length;
        message.map(Some)
    }

    /// Whether a part of a message has arrived.
    #[must_use]
    pub fn is_partial(&self) -> bool {
        self.bytes.len() > self.taken
    }

    /// Bytes of the last message that was taken.
    #[must_use]
    pub fn last(&self) -> usize {
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::{FromAgent, RefusalCause, ToAgent};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn messages_survive_any_cutting_of_the_stream(texts in prop::collection::vec(".{0,40}", 1..8), cut in 1usize..50) {
            let messages: Vec<FromAgent> = texts.iter().map(|text| FromAgent::Refused { reason: text.as_str().into(), cause: RefusalCause::default() }).collect();
            let stream: Vec<u8> = messages.iter().flat_map(|message| encode(message).unwrap()).collect();
            let mut decoder = Decoder::new(FromAgent::MAX_FRAME);
            let mut back = Vec::new();
            for piece in stream.chunks(cut) {
                decoder.push(piece);
                while let Some(message) = decoder.take::<FromAgent>().unwrap() {
                    back.push(message);
                }
            }
            prop_assert_eq!(back, messages);
        }

        #[test]
        fn any_bytes_end_in_a_message_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let mut decoder = Decoder::new(MAX_GREETING);
            decoder.push(&bytes);
            while let Ok(Some(_)) = decoder.take::<ToAgent>() {}
        }

        #[test]
        fn framed_garbage_is_an_error(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut decoder = Decoder::new(MAX_GREETING);
            decoder.push(&(bytes.len() as u32).to_be_bytes());
            decoder.push(&bytes);
            if let Ok(message) = decoder.take::<ToAgent>() {
                prop_assert!(message.is_some(), "a whole frame never waits for more");
            }
        }
    }
}
