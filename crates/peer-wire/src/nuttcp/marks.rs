//! The datagrams that begin and end a transfer over UDP.

/// A mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PathMark {
    /// `BOD0`, `BOD1`: data follows; the receiver's clock starts at the last one.
    Begin(u8),
    /// `EOD0` to `EOD4`: the data is over; the first that arrives ends the transfer.
    End(u8),
}

impl PathMark {
    /// Marks that a sender sends before its data, a quarter of a second apart.
    pub const BEGINS: u8 = 2;
    /// Marks that it sends after it, half a second apart but for the first.
    pub const ENDS: u8 = 5;

    /// The datagram.
    #[must_use]
    pub fn bytes(self) -> [u8; 4] {
        let (word, number) = match self {
            Self::Begin(number) => (b"BOD", number),
            Self::End(number) => (b"EOD", number),
        };
        [word[0], word[1], word[2], b'0' + number.min(9)]
    }
}

/// Parses a mark. Data may begin with the same letters, so only a datagram of four bytes is a mark.
#[must_use]
pub fn mark(datagram: &[u8]) -> Option<PathMark> {
    let (word, [number @ b'0'..=b'9']) = datagram.split_at_checked(3)? else { return None };
    match word {
        b"BOD" => Some(PathMark::Begin(number - b'0')),
        b"EOD" => Some(PathMark::End(number - b'0')),
        _ => None,
    }
}

/// Where a datagram has the bytes that were sent up to its end.
const SENT_AT: usize = 24;

/// Datagrams that were sent up to this one, which says so in the byte order of its sender; `None` if it is too short or
/// its number of bytes is not one of whole datagrams.
#[must_use]
pub fn sent_so_far(datagram: &[u8]) -> Option<u64> {
    let bytes = datagram.get(SENT_AT..)?.first_chunk::<8>()?;
    let size = datagram.len() as u64;
    let [little, big] = [u64::from_le_bytes(*bytes), u64::from_be_bytes(*bytes)];
    let sent = little.min(big);
    (sent > 0 && sent.is_multiple_of(size)).then(|| sent / size)
}

/// Writes into a datagram how many bytes have been sent with it. Interim reports of its receiver count losses by that; a datagram that is
/// too short has none.
pub fn count_sent(datagram: &mut [u8], bytes: u64) {
    if let Some(place) = datagram.get_mut(SENT_AT..).and_then(|rest| rest.first_chunk_mut::<8>()) {
        *place = bytes.to_ne_bytes();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datagram_says_what_was_sent_before() {
        // The front of the third datagram of nuttcp 6.1.2 on x86-64: -u -l1000.
        let mut datagram = [0x40; 1000];
        datagram[24..32].copy_from_slice(&[0xb8, 0x0b, 0, 0, 0, 0, 0, 0]);
        assert_eq!(sent_so_far(&datagram), Some(3));
        datagram[24..32].copy_from_slice(&3_000_u64.to_be_bytes());
        assert_eq!(sent_so_far(&datagram), Some(3), "a sender with the other byte order");
        datagram[24..32].copy_from_slice(&1_001_u64.to_le_bytes());
        assert_eq!((sent_so_far(&datagram), sent_so_far(&datagram[..31])), (None, None));
    }

    #[test]
    fn a_datagram_has_what_was_sent_with_it() {
        let mut datagram = [0x1d; 1_000];
        count_sent(&mut datagram, 3_000);
        assert_eq!(sent_so_far(&datagram), Some(3));
        assert_eq!((datagram[23], datagram[32]), (0x1d, 0x1d));
        count_sent(&mut datagram[..31], 5_000);
        assert_eq!(sent_so_far(&datagram), Some(3), "too short for it");
    }
}
