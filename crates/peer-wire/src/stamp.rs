//! STAMP (RFC 8762) and TWAMP Light (RFC 5357, appendix I), unauthenticated: datagrams that a reflector sends back with its own
//! times in them. There is no control connection; both ends are configured.

mod error;

pub use error::StampError;

use crate::{Peer, WireError};

/// STAMP and its port, which is UDP's.
pub const PEER: Peer = Peer { name: "stamp", port: 862 };

/// Bytes of a STAMP datagram without extensions or padding, in both directions.
pub const BASE_BYTES: usize = 44;

/// Bytes of the shortest request: TWAMP's, without padding.
pub const SHORTEST_BYTES: usize = 14;

/// Bytes of a TWAMP reply without padding.
pub const SHORTEST_REPLY_BYTES: usize = 41;

/// Bytes of a reply up to the request's error estimate: some reflectors of TWAMP Light end here, without the time to live.
pub const LEAST_REPLY_BYTES: usize = 38;

/// The value for an unknown time to live (RFC 5357, 4.2.1).
pub const TTL_UNKNOWN: u8 = 255;

/// Bytes before the value of an extension: flags, type, length (RFC 8972, 4).
const TLV_HEAD_BYTES: usize = 4;

/// How far the times in a reply may be from now, ns.
const RETURN_NS: u64 = 60_000_000_000;

/// Seconds from 1900, NTP's epoch, to 1970.
const NTP_TO_UNIX_S: u64 = 2_208_988_800;

/// A time as NTP writes it: seconds since 1900, modulo 2^32, and a fraction of 2^-32 s.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Timestamp(pub u64);

impl Timestamp {
    /// The time `unix_ns` nanoseconds after 1970, rounded down to 2^-32 s.
    #[must_use]
    pub fn of_unix_ns(unix_ns: u64) -> Self {
        let seconds = unix_ns / 1_000_000_000 + NTP_TO_UNIX_S;
        let fraction = ((unix_ns % 1_000_000_000) << 32) / 1_000_000_000;
        Self(seconds << 32 | fraction)
    }

    /// Nanoseconds from `earlier` to this; correct across NTP's wrap in 2036 for spans of up to 68 years.
    #[must_use]
    pub fn ns_since(self, earlier: Self) -> i64 {
        let units = i128::from(self.0.wrapping_sub(earlier.0) as i64);
        ((units * 1_000_000_000) >> 32) as i64
    }
}

/// How far a clock may be off, and whether it follows UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorEstimate(pub u16);

impl ErrorEstimate {
    /// The least estimate that covers `ns` nanoseconds.
    #[must_use]
    pub fn covering(ns: u64, synchronised: bool) -> Self {
        let mut multiplier = (u128::from(ns) << 32).div_ceil(1_000_000_000).max(1);
        let mut scale = 0_u16;
        while multiplier > 255 {
            multiplier = multiplier.div_ceil(2);
            scale += 1;
        }
        Self(u16::from(synchronised) << 15 | scale << 8 | multiplier as u16)
    }

    /// Whether the clock follows an outside source of UTC.
    #[must_use]
    pub fn synchronised(self) -> bool {
        self.0 & 0x8000 != 0
    }

    /// Whether the times beside it are PTP's instead of NTP's, which are not read here.
    #[must_use]
    pub fn is_ptp(self) -> bool {
        self.0 & 0x4000 != 0
    }

    /// The clock's error in seconds; `None` if the estimate is invalid.
    #[must_use]
    pub fn seconds(self) -> Option<f64> {
        let multiplier = f64::from(self.0 & 0xff);
        let scale = i32::from(self.0 >> 8 & 0x3f);
        (multiplier > 0.0).then(|| multiplier * 2_f64.powi(scale - 32))
    }
}

/// A sender's datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StampRequest {
    /// From 0, one more for each, modulo 2^32.
    pub sequence: u32,
    /// When it left.
    pub sent: Timestamp,
    /// How far that may be off.
    pub error: ErrorEstimate,
    /// The session's number (RFC 8972); 0 for none.
    pub session: u16,
}

/// A reflector's datagram.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reply {
    /// A stateless reflector's copy of the sender's number; a stateful one's own count.
    pub sequence: u32,
    /// When it left the reflector.
    pub sent: Timestamp,
    /// How far the reflector's times may be off.
    pub error: ErrorEstimate,
    /// The session's number, if the reflector supports it.
    pub session: u16,
    /// When the request reached the reflector.
    pub received: Timestamp,
    /// The request, as the reflector saw it.
    pub request: StampRequest,
    /// The request's time to live on arrival; 255 where the reflector cannot tell.
    pub ttl: u8,
}

/// Times of one round trip, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Trip {
    /// The round trip without the reflector's own time. It does not depend on synchronised clocks.
    pub round_ns: i64,
    /// Outbound, by two clocks: wrong by up to the sum of their errors.
    pub there_ns: i64,
    /// Return, likewise.
    pub back_ns: i64,
    /// In the reflector.
    pub reflector_ns: i64,
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> [u8; N] {
    let mut array = [0; N];
    for (to, from) in array.iter_mut().zip(bytes.iter().skip(at)) {
        *to = *from;
    }
    array
}

/// Turns the bytes beyond [`BASE_BYTES`] into an Extra Padding extension (RFC 8972, 4.1) if its head fits.
/// Reflectors with support for extensions would take plain padding for broken ones; others ignore it.
pub fn pad(request: &mut [u8]) {
    let Some(beyond) = request.get_mut(BASE_BYTES..).filter(|beyond| beyond.len() >= TLV_HEAD_BYTES) else { return };
    let length = (beyond.len() - TLV_HEAD_BYTES) as u16;
    // A sender sets the unrecognised flag of each extension; a reflector that knows it clears the flag (RFC
    // 8972, 4).
    beyond[..2].copy_from_slice(&[0x80, 1]);
    beyond[2..TLV_HEAD_BYTES].copy_from_slice(&length.to_be_bytes());
}

impl StampRequest {
    /// Writes the datagram; bytes beyond [`BASE_BYTES`] stay as padding.
    ///
    /// # Errors
    /// Where `into` is shorter than [`BASE_BYTES`].
    pub fn write(&self, into: &mut [u8]) -> Result<(), WireError> {
        let have = into.len();
        let base = into.get_mut(..BASE_BYTES).ok_or_else(|| {
            PEER.error("while writing a request", StampError::NoRoom { bytes: have, needed: BASE_BYTES })
        })?;
        base.fill(0);
        base[..4].copy_from_slice(&self.sequence.to_be_bytes());
        base[4..12].copy_from_slice(&self.sent.0.to_be_bytes());
        base[12..14].copy_from_slice(&self.error.0.to_be_bytes());
        base[14..16].copy_from_slice(&self.session.to_be_bytes());
        Ok(())
    }

    /// Parses a sender's datagram of STAMP or TWAMP Light. Its time may be PTP's: a reply returns it as it came, beside the reflector's own
    /// in NTP format, which each error estimate declares (RFC 8762, 4.2.1).
    ///
    /// # Errors
    /// Where it is too short.
    pub fn read(datagram: &[u8]) -> Result<Self, WireError> {
        let step = "while reading a request";
        if datagram.len() < SHORTEST_BYTES {
            return Err(PEER.error(step, StampError::Short { bytes: datagram.len(), least: SHORTEST_BYTES }));
        }
        let request = Self::at(datagram, 0);
        // After its 14 bytes a TWAMP request has padding, usually pseudo-random; a STAMP request has the
        // session number and zeros.
        let rest = datagram.get(16..BASE_BYTES);
        let is_stamp = rest.is_some_and(|rest| rest.iter().all(|byte| *byte == 0));
        let session = if is_stamp { u16::from_be_bytes(array(datagram, 14)) } else { 0 };
        Ok(Self { session, ..request })
    }

    fn at(datagram: &[u8], at: usize) -> Self {
        Self {
            sequence: u32::from_be_bytes(array(datagram, at)),
            sent: Timestamp(u64::from_be_bytes(array(datagram, at + 4))),
            error: ErrorEstimate(u16::from_be_bytes(array(datagram, at + 12))),
            session: 0,
        }
    }
}

/// Whether a datagram that arrives `now` is a reflector's answer to one that this host has sent, or that one itself: where a request has
/// zeros or random bytes, it has a time of this host's clock within the last minute. Two reflectors that take replies for requests
/// answer each other without end.
#[must_use]
pub fn returns(datagram: &[u8], now: Timestamp) -> bool {
    // When a request reached this host, and when this host's datagram left it.
    [16, 28].into_iter().any(|at| {
        let time = Timestamp(u64::from_be_bytes(array(datagram, at)));
        datagram.len() >= at + 8 && now.ns_since(time).unsigned_abs() <= RETURN_NS
    })
}

impl Reply {
    /// Turns the request in `datagram` into this reply, in place: with the same length, so that nothing is
    /// amplified. The bytes beyond the reply are unchanged.
    ///
    /// # Errors
    /// Where there is no room for a reply, which takes [`SHORTEST_REPLY_BYTES`].
    pub fn write(&self, datagram: &mut [u8]) -> Result<(), WireError> {
        let have = datagram.len();
        if have < SHORTEST_REPLY_BYTES {
            let what = StampError::NoRoom { bytes: have, needed: SHORTEST_REPLY_BYTES };
            return Err(PEER.error("while writing a reply", what));
        }
        datagram[..4].copy_from_slice(&self.sequence.to_be_bytes());
        datagram[4..12].copy_from_slice(&self.sent.0.to_be_bytes());
        datagram[12..14].copy_from_slice(&self.error.0.to_be_bytes());
        datagram[14..16].copy_from_slice(&self.session.to_be_bytes());
        datagram[16..24].copy_from_slice(&self.received.0.to_be_bytes());
        datagram[24..28].copy_from_slice(&self.request.sequence.to_be_bytes());
        datagram[28..36].copy_from_slice(&self.request.sent.0.to_be_bytes());
        datagram[36..38].copy_from_slice(&self.request.error.0.to_be_bytes());
        datagram[38..40].fill(0);
        datagram[40] = self.ttl;
        datagram[SHORTEST_REPLY_BYTES..have.min(BASE_BYTES)].fill(0);
        Ok(())
    }

    /// Parses a reflector's datagram of STAMP or TWAMP Light.
    ///
    /// # Errors
    /// Where it ends before the request's error estimate, or its timestamps are not in NTP format.
    pub fn read(datagram: &[u8]) -> Result<Self, WireError> {
        let step = "while reading a reply";
        if datagram.len() < LEAST_REPLY_BYTES {
            return Err(PEER.error(step, StampError::Short { bytes: datagram.len(), least: LEAST_REPLY_BYTES }));
        }
        let own = StampRequest::at(datagram, 0);
        if own.error.is_ptp() {
            return Err(PEER.error(step, StampError::Ptp));
        }
        let session = u16::from_be_bytes(array(datagram, 14));
        Ok(Self {
            sequence: own.sequence,
            sent: own.sent,
            error: own.error,
            session,
            received: Timestamp(u64::from_be_bytes(array(datagram, 16))),
            request: StampRequest { session, ..StampRequest::at(datagram, 24) },
            ttl: datagram.get(40).copied().unwrap_or(TTL_UNKNOWN),
        })
    }

    /// The times of the round trip whose reply arrived at `arrived`, by the sender's clock.
    #[must_use]
    pub fn trip(&self, arrived: Timestamp) -> Trip {
        let reflector_ns = self.sent.ns_since(self.received);
        Trip {
            round_ns: arrived.ns_since(self.request.sent).saturating_sub(reflector_ns),
            there_ns: self.received.ns_since(self.request.sent),
            back_ns: arrived.ns_since(self.sent),
            reflector_ns,
        }
    }
}
