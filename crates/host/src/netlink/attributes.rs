//! Attributes: what a message holds after its family's header, and what an attribute may hold itself (netlink(7)).

const NESTED: u16 = 0x8000;
/// The upper two bits of an attribute's type are flags.
const TYPE: u16 = 0x3fff;
const ATTRIBUTE_HEADER: usize = 4;

/// Appends an attribute to `message`.
pub(crate) fn put(message: &mut Vec<u8>, kind: u16, value: &[u8]) {
    let length = (ATTRIBUTE_HEADER + value.len()) as u16;
    message.extend(length.to_ne_bytes());
    message.extend(kind.to_ne_bytes());
    message.extend(value);
    message.resize(message.len().next_multiple_of(4), 0);
}

/// Appends an attribute that holds attributes.
pub(crate) fn put_nested(message: &mut Vec<u8>, kind: u16, attributes: &[u8]) {
    put(message, kind | NESTED, attributes);
}

/// The attributes in a range of bytes. What does not parse ends it: a truncated answer yields its complete part.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Attributes<'a>(pub(crate) &'a [u8]);

impl<'a> Iterator for Attributes<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let length = usize::from(u16_at(self.0, 0)?);
        let kind = u16_at(self.0, 2)? & TYPE;
        let value = self.0.get(ATTRIBUTE_HEADER..length)?;
        self.0 = self.0.get(length.next_multiple_of(4)..).unwrap_or_default();
        Some((kind, value))
    }
}

impl<'a> Attributes<'a> {
    /// The attributes after a header of `bytes`.
    pub(crate) fn after(message: &'a [u8], bytes: usize) -> Self {
        Self(message.get(bytes..).unwrap_or_default())
    }

    /// The value of the first attribute of this kind.
    pub(crate) fn get(mut self, kind: u16) -> Option<&'a [u8]> {
        self.find(|(found, _)| *found == kind).map(|(_, value)| value)
    }

    /// Attributes within an attribute.
    pub(crate) fn nested(self, kind: u16) -> Option<Self> {
        self.get(kind).map(Attributes)
    }

    /// A number of one, two, four or eight bytes.
    pub(crate) fn number(self, kind: u16) -> Option<u64> {
        match *self.get(kind)? {
            [byte] => Some(byte.into()),
            [a, b] => Some(u16::from_ne_bytes([a, b]).into()),
            [a, b, c, d] => Some(u32::from_ne_bytes([a, b, c, d]).into()),
            [a, b, c, d, e, f, g, h] => Some(u64::from_ne_bytes([a, b, c, d, e, f, g, h])),
            _ => None,
        }
    }

    /// The same where it fits in 32 bits.
    pub(crate) fn number32(self, kind: u16) -> Option<u32> {
        self.number(kind).and_then(|number| number.try_into().ok())
    }

    /// A text, without the zero that may end it.
    pub(crate) fn text(self, kind: u16) -> Option<String> {
        let bytes = self.get(kind)?;
        let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
        Some(String::from_utf8_lossy(&bytes[..end]).into_owned())
    }
}

/// The 16 bits at `offset`.
pub(crate) fn u16_at(bytes: &[u8], offset: usize) -> Option<u16> {
    bytes.get(offset..offset + 2)?.try_into().ok().map(u16::from_ne_bytes)
}

/// The 32 bits at `offset`.
pub(crate) fn u32_at(bytes: &[u8], offset: usize) -> Option<u32> {
    bytes.get(offset..offset + 4)?.try_into().ok().map(u32::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;
    use proptest::sample::Index;

    use super::*;

    #[test]
    fn attributes_are_read_as_they_were_written() {
        let mut inner = Vec::new();
        put(&mut inner, 2, b"eth0\0");
        put(&mut inner, 9, &7_u32.to_ne_bytes());
        let mut message = vec![0; 12];
        put_nested(&mut message, 18, &inner);
        put(&mut message, 1, &[1]);
        assert_eq!(message.len() % 4, 0);
        let attributes = Attributes::after(&message, 12);
        let nested = attributes.nested(18).unwrap();
        assert_eq!(nested.text(2).as_deref(), Some("eth0"));
        assert_eq!((nested.number(9), attributes.number(1), attributes.number(5)), (Some(7), Some(1), None));
    }

    proptest! {
        #[test]
        fn whatever_bytes_come_the_reading_ends_within_them(bytes in vec(any::<u8>(), 0..256)) {
            for (_, value) in Attributes(&bytes) {
                prop_assert!(value.len() + ATTRIBUTE_HEADER <= bytes.len());
            }
            let attributes = Attributes(&bytes);
            let _ = (attributes.number(1), attributes.text(1), attributes.nested(1).map(Iterator::count));
        }

        #[test]
        fn a_message_that_was_cut_yields_those_of_the_whole_in_their_order(
            written in vec((1..TYPE, vec(any::<u8>(), 0..20)), 0..8),
            cut in any::<Index>(),
        ) {
            let mut message = Vec::new();
            written.iter().for_each(|(kind, value)| put(&mut message, *kind, value));
            let whole: Vec<_> = Attributes(&message).map(|(kind, value)| (kind, value.to_vec())).collect();
            prop_assert_eq!(&whole, &written);
            let kept: Vec<_> = Attributes(&message[..cut.index(message.len() + 1)]).collect();
            prop_assert!(kept.len() <= whole.len());
            for ((kind, value), (of, expected)) in kept.into_iter().zip(&whole) {
                prop_assert_eq!((kind, value), (*of, expected.as_slice()));
            }
        }
    }

    #[test]
    fn a_truncated_answer_or_one_with_a_wrong_length_yields_its_complete_part() {
        let mut message = Vec::new();
        put(&mut message, 1, &[1]);
        put(&mut message, 2, b"whole of it");
        for cut in 0..message.len() {
            let kinds: Vec<u16> = Attributes(&message[..cut]).map(|(kind, _)| kind).collect();
            assert!(kinds.len() <= 2 && (cut < 5 || kinds[0] == 1), "{cut}: {kinds:?}");
        }
        // A length below the attribute's own header would never get any further.
        assert_eq!(Attributes(&[0, 0, 1, 0, 0, 0]).next(), None);
        assert_eq!(Attributes(&[3, 0, 1, 0]).next(), None);
        assert_eq!(Attributes(&[0xff, 0xff, 1, 0, 9]).next(), None);
    }
}
