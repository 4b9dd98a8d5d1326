//! The frame around a request and around each part of an answer: `struct nlmsghdr` (netlink(7), linux/netlink.h, RFC 3549).

use super::{u16_at, u32_at};

/// Size of the frame's header: length, type, flags, sequence number, port.
const HEADER: usize = 16;
const REQUEST: u16 = 0x1;
const ACKNOWLEDGE: u16 = 0x4;
const DUMP: u16 = 0x300;
const ERROR: u16 = 2;
const DONE: u16 = 3;

/// What the kernel sends back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Message<'a> {
    /// A part of the answer, after its family's header.
    Part(&'a [u8]),
    /// The answer is complete, or a change was made.
    End,
    /// Refused, with an error number.
    Refused(i32),
}

/// A request for one object, or (`dump`) for a list of all. In both cases a message marks the end of the answer: the
/// kernel ends lists by itself, and acknowledges the other requests.
pub(crate) fn request(kind: u16, dump: bool, sequence: u32, body: &[u8]) -> Vec<u8> {
    let flags = REQUEST | ACKNOWLEDGE | if dump { DUMP } else { 0 };
    let mut message = Vec::with_capacity(HEADER + body.len());
    message.extend(((HEADER + body.len()) as u32).to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend(flags.to_ne_bytes());
    message.extend(sequence.to_ne_bytes());
    message.extend([0; 4]); // the port, which the kernel knows
    message.extend(body);
    message
}

/// The messages of a datagram that answer the request of that number. What does not parse ends them.
pub(crate) struct Messages<'a> {
    rest: &'a [u8],
    sequence: u32,
}

impl<'a> Messages<'a> {
    pub(crate) fn new(datagram: &'a [u8], sequence: u32) -> Self {
        Self { rest: datagram, sequence }
    }
}

impl<'a> Iterator for Messages<'a> {
    type Item = Message<'a>;

    fn next(&mut self) -> Option<Message<'a>> {
        loop {
            let length = u32_at(self.rest, 0)? as usize;
            let (kind, sequence) = (u16_at(self.rest, 4)?, u32_at(self.rest, 8)?);
            let body = self.rest.get(HEADER..length)?;
            self.rest = self.rest.get(length.next_multiple_of(4)..).unwrap_or_default();
            if sequence == self.sequence {
                return Some(match kind {
                    DONE => Message::End,
                    ERROR => match u32_at(body, 0).map_or(0, u32::cast_signed) {
                        0 => Message::End,
                        code => Message::Refused(code.wrapping_neg()),
                    },
                    _ => Message::Part(body),
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// A message as the kernel sends it.
    fn message(kind: u16, sequence: u32, body: &[u8]) -> Vec<u8> {
        let mut bytes = request(kind, false, sequence, body);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes
    }

    #[test]
    fn answers_to_an_earlier_request_are_passed_over() {
        let refusal = [(-13_i32).to_ne_bytes(), [0; 4]].concat();
        let parts =
            [message(24, 7, b"late"), message(24, 8, b"first"), message(24, 8, b""), message(ERROR, 8, &refusal)];
        let datagram = parts.concat();
        let messages: Vec<_> = Messages::new(&datagram, 8).collect();
        assert_eq!(messages, [Message::Part(b"first"), Message::Part(b""), Message::Refused(13)]);
        assert_eq!(Messages::new(&message(ERROR, 1, &[0; 4]), 1).next(), Some(Message::End));
        assert_eq!(Messages::new(&message(DONE, 1, &[]), 1).next(), Some(Message::End));
    }

    #[test]
    fn a_list_is_requested_by_its_flags() {
        let flags = |dump| u16_at(&request(18, dump, 1, &[0; 16]), 6);
        assert_eq!((flags(false), flags(true)), (Some(0x5), Some(0x305)));
        assert_eq!(u32_at(&request(18, true, 1, &[0; 16]), 0), Some(32));
    }

    proptest! {
        #[test]
        fn a_datagram_that_was_cut_yields_the_messages_that_came_whole(
            bodies in vec(vec(any::<u8>(), 0..40), 0..6),
            cut in any::<prop::sample::Index>(),
        ) {
            let datagram = bodies.iter().map(|body| message(24, 5, body)).collect::<Vec<_>>().concat();
            let whole: Vec<_> = bodies.iter().map(|body| Message::Part(body)).collect();
            prop_assert_eq!(&Messages::new(&datagram, 5).collect::<Vec<_>>(), &whole);
            let kept: Vec<_> = Messages::new(&datagram[..cut.index(datagram.len() + 1)], 5).collect();
            prop_assert_eq!(kept.as_slice(), &whole[..kept.len()]);
        }

        #[test]
        fn whatever_bytes_come_the_reading_ends(bytes in vec(any::<u8>(), 0..256), sequence in 0_u32..3) {
            prop_assert!(Messages::new(&bytes, sequence).count() <= bytes.len() / HEADER);
        }
    }
}
