//! The datagrams that begin and end a transfer over UDP.

/// A mark.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mark {
    /// `BOD0`, `BOD1`: data follows; the receiver's clock starts at the last one.
    Begin(u8),
    /// `EOD0` to `EOD4`: the data is over; the first that arrives ends the transfer.
    End(u8),
}

impl Mark {
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
pub fn mark(datagram: &[u8]) -> Option<Mark> {
    let (word, [number @ b'0'..=b'9']) = datagram.split_at_checked(3)? else { return None };
    match word {
        b"BOD" => Some(Mark::Begin(number - b'0')),
        b"EOD" => Some(Mark::End(number - b'0')),
        _ => None,
    }
}
