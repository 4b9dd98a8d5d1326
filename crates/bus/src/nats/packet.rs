//! The messages of a stream: one letter, a number of eight bytes, and bytes.
//!
//! | letter | number | bytes |
//! | --- | --- | --- |
//! | O | 0: the stream begins | |
//! | D | of this message, from 1 | data |
//! | C | of this message: no data follow | |
//! | A | of the next message that is expected | |
//! | R | 0: the receiver knows no such stream | |

use bytes::{BufMut, Bytes, BytesMut};

/// What a message says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Packet {
    /// The stream begins.
    Open,
    /// The next bytes.
    Data(u64, Bytes),
    /// There are no more.
    Close(u64),
    /// All messages before this number have arrived.
    Ack(u64),
    /// There is no such stream.
    Reset,
}

/// Most bytes of data in a message: a server takes 1 MiB unless it is told otherwise.
pub(super) const MOST: usize = 32 << 10;

impl Packet {
    pub(super) fn encode(&self) -> Bytes {
        let (letter, number, data): (u8, u64, &[u8]) = match self {
            Self::Open => (b'O', 0, &[]),
            Self::Data(number, data) => (b'D', *number, data),
            Self::Close(number) => (b'C', *number, &[]),
            Self::Ack(number) => (b'A', *number, &[]),
            Self::Reset => (b'R', 0, &[]),
        };
        let mut bytes = BytesMut::with_capacity(9 + data.len());
        bytes.put_u8(letter);
        bytes.put_u64(number);
        bytes.put_slice(data);
        bytes.freeze()
    }

    /// `None` for what is no message of a stream.
    pub(super) fn decode(bytes: &Bytes) -> Option<Self> {
        let number = u64::from_be_bytes(bytes.get(1..9)?.try_into().ok()?);
        let data = bytes.slice(9..);
        match (bytes[0], data.len()) {
            (b'D', 1..=MOST) => Some(Self::Data(number, data)),
            (b'O', 0) => Some(Self::Open),
            (b'C', 0) => Some(Self::Close(number)),
            (b'A', 0) => Some(Self::Ack(number)),
            (b'R', 0) => Some(Self::Reset),
            _ => None,
        }
    }

    /// Its place in the stream, if it has one.
    pub(super) fn number(&self) -> Option<u64> {
        match self {
            Self::Open => Some(0),
            Self::Data(number, _) | Self::Close(number) => Some(*number),
            Self::Ack(_) | Self::Reset => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(number: u64, data in proptest::collection::vec(any::<u8>(), 1..200)) {
            for packet in [
                Packet::Open, Packet::Data(number, data.clone().into()), Packet::Close(number), Packet::Ack(number), Packet::Reset,
            ] {
                prop_assert_eq!(Packet::decode(&packet.encode()), Some(packet));
            }
        }

        #[test]
        fn bytes_of_others_are_no_packet_or_one_that_encodes_to_them(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            let bytes = Bytes::from(bytes);
            if let Some(packet) = Packet::decode(&bytes) {
                let again = packet.encode();
                prop_assert_eq!(again[0], bytes[0]);
                prop_assert_eq!(again.len(), bytes.len());
            }
        }
    }
}
