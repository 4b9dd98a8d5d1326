//! The messages of a stream: one letter, a number of eight bytes, and bytes.
//!
//! | letter | number | bytes |
//! | --- | --- | --- |
//! | O | 0: the stream begins | |
//! | D | of this message, from 1 | data |
//! | C | of this message: no data follow | |
//! | A | of the next message that is expected | if they say more than that: the number of the next message that the reader has not taken, and the number of the question that this answers, or 0 |
//! | Q | of this question, from 1: what has arrived? | |
//! | R | 0: there is no such stream | |

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
    /// What has arrived.
    Ack(Ack),
    /// Asks for an acknowledgement with this number.
    Ask(u64),
    /// There is no such stream.
    Reset,
}

/// How far a stream has come at its receiver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Ack {
    /// All messages before this one have arrived.
    pub(super) arrived: u64,
    /// All messages before this one have been taken by the reader.
    pub(super) taken: u64,
    /// The question that this answers, if not 0.
    pub(super) answers: u64,
}

/// Most bytes of data in a message: a server takes 1 MiB unless it is told otherwise.
pub(super) const MOST: usize = 32 << 10;

impl Packet {
    pub(super) fn encode(&self) -> Bytes {
        let (letter, number, data): (u8, u64, &[u8]) = match self {
            Self::Open => (b'O', 0, &[]),
            Self::Data(number, data) => (b'D', *number, data),
            Self::Close(number) => (b'C', *number, &[]),
            Self::Ack(ack) => (b'A', ack.arrived, &[]),
            Self::Ask(number) => (b'Q', *number, &[]),
            Self::Reset => (b'R', 0, &[]),
        };
        let mut bytes = BytesMut::with_capacity(25 + data.len());
        bytes.put_u8(letter);
        bytes.put_u64(number);
        bytes.put_slice(data);
        if let Self::Ack(ack) = self
            && (ack.taken != ack.arrived || ack.answers != 0)
        {
            bytes.put_u64(ack.taken);
            bytes.put_u64(ack.answers);
        }
        bytes.freeze()
    }

    /// `None` for what is no message of a stream.
    pub(super) fn decode(bytes: &[u8]) -> Option<Self> {
        let (letter, rest) = bytes.split_first()?;
        let (number, data) = rest.split_first_chunk()?;
        let number = u64::from_be_bytes(*number);
        match (letter, data.len()) {
            // A copy: the buffer of the connection holds the messages of others, too.
            (b'D', 1..=MOST) => Some(Self::Data(number, Bytes::copy_from_slice(data))),
            (b'O', 0) => Some(Self::Open),
            (b'C', 0) => Some(Self::Close(number)),
            (b'A', 0) => Some(Self::Ack(Ack { arrived: number, taken: number, answers: 0 })),
            (b'A', 16) => {
                let (taken, answers) = data.split_first_chunk()?;
                let (taken, answers) = (u64::from_be_bytes(*taken), u64::from_be_bytes(*answers.first_chunk()?));
                Some(Self::Ack(Ack { arrived: number, taken, answers }))
            }
            (b'Q', 0) => Some(Self::Ask(number)),
            (b'R', 0) => Some(Self::Reset),
            _ => None,
        }
    }

    /// Bytes of data.
    pub(super) fn len(&self) -> usize {
        if let Self::Data(_, data) = self { data.len() } else { 0 }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(number: u64, taken: u64, answers: u64, data in proptest::collection::vec(any::<u8>(), 1..200)) {
            for packet in [
                Packet::Open,
                Packet::Data(number, data.clone().into()),
                Packet::Close(number),
                Packet::Ack(Ack { arrived: number, taken, answers }),
                Packet::Ack(Ack { arrived: number, taken: number, answers: 0 }),
                Packet::Ask(number),
                Packet::Reset,
            ] {
                prop_assert_eq!(Packet::decode(&packet.encode()), Some(packet));
            }
        }

        #[test]
        fn bytes_of_others_are_no_packet_or_one_that_encodes_to_them(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
            if let Some(packet) = Packet::decode(&bytes) {
                let again = packet.encode();
                prop_assert_eq!(again[0], bytes[0]);
                prop_assert!(again.len() == bytes.len() || matches!(packet, Packet::Ack(_)));
            }
        }
    }
}
