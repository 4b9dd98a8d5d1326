//! How a data connection identifies its measurement and flow.
//!
//! Stream transports send one hello and read one byte back. Datagram transports first prove that they receive at their
//! claimed address, which makes a reflected flood impossible: HELLO, CHALLENGE with a nonce, PROOF with that nonce,
//! READY. Every signal carries the nonce that the active end's worker chose for the connection: a sender that has not
//! received from it can send nothing that it answers. See ADR 0031.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;

use ring::hmac;

use crate::core::{EngineError, LegHeader, random};

/// Length of a hello on the wire: magic, nonce, tag, trial and link (masked).
pub const HELLO_BYTES: usize = 32;
/// Length of the answer to a hello with a reachability token.
pub const REACH_PROOF_BYTES: usize = 16;
const MAGIC: &[u8; 8] = b"THRUDATA";
/// The passive end's answer to an accepted hello.
pub(crate) const WELCOME: u8 = b'K';

/// The secret that ties a connection to a measurement.
pub type Cookie = [u8; 16];

/// Assigns a connection to a measurement, a trial and a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FlowHello {
    /// The measurement's secret.
    pub cookie: Cookie,
    /// Number of the trial.
    pub trial: u32,
    /// Number of the link within the trial.
    pub link: u32,
    /// Chosen by the process that sends it, and known only to the end that receives it.
    pub nonce: u64,
}

impl FlowHello {
    /// One with a fresh nonce.
    ///
    /// # Errors
    /// When the kernel gives no random numbers.
    pub fn new(cookie: Cookie, trial: u32, link: u32) -> Result<Self, EngineError> {
        let nonce = random().map_err(|source| EngineError::socket("draw", "a random number", source))?;
        Ok(Self { cookie, trial, link, nonce: u64::from_be_bytes(nonce) })
    }

    /// Its 32 bytes on the wire; numbers are big-endian. A party that knows the cookie controls nothing after the
    /// magic: the nonce is random, and a MAC over it, keyed with the cookie, is the tag and masks the two numbers.
    #[must_use]
    pub fn encode(&self) -> [u8; HELLO_BYTES] {
        let stream = self.mac(b"throughline data");
        let mut bytes = [0; HELLO_BYTES];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..16].copy_from_slice(&self.nonce.to_be_bytes());
        bytes[16..24].copy_from_slice(&stream[..8]);
        bytes[24..28].copy_from_slice(&self.trial.to_be_bytes());
        bytes[28..].copy_from_slice(&self.link.to_be_bytes());
        bytes[24..].iter_mut().zip(&stream[8..16]).for_each(|(byte, mask)| *byte ^= mask);
        bytes
    }

    /// Reads what [`encode`](Self::encode) wrote with one of these cookies; `None` for anything else.
    #[must_use]
    pub fn decode<'a>(bytes: &[u8], cookies: impl IntoIterator<Item = &'a Cookie>) -> Option<Self> {
        let bytes: &[u8; HELLO_BYTES] = bytes.try_into().ok()?;
        if &bytes[..8] != MAGIC {
            return None;
        }
        let number = |at: usize| u64::from_be_bytes(bytes[at..at + 8].try_into().unwrap_or_default());
        cookies.into_iter().find_map(|cookie| {
            let hello = Self { cookie: *cookie, trial: 0, link: 0, nonce: number(8) };
            let stream = hello.mac(b"throughline data");
            let mask = u64::from_be_bytes(stream[8..16].try_into().unwrap_or_default());
            let numbers = number(24) ^ mask;
            (bytes[16..24] == stream[..8]).then_some(Self {
                trial: (numbers >> 32) as u32,
                link: numbers as u32,
                ..hello
            })
        })
    }

    /// An agent's answer to a hello keyed with one of its own reachability tokens.
    #[must_use]
    pub fn reach_proof(&self) -> [u8; REACH_PROOF_BYTES] {
        self.mac(b"throughline reach")[..REACH_PROOF_BYTES].try_into().unwrap_or_default()
    }

    /// HMAC-SHA256 (RFC 2104), keyed with the cookie, over a text and the nonce.
    fn mac(&self, text: &[u8]) -> [u8; 32] {
        keyed(&self.cookie, &[text, &self.nonce.to_be_bytes()])
    }
}

fn keyed(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    let mut mac = hmac::Context::with_key(&hmac::Key::new(hmac::HMAC_SHA256, key));
    parts.iter().for_each(|part| mac.update(part));
    let mut made = [0; 32];
    made.copy_from_slice(mac.sign().as_ref());
    made
}

/// Messages of the datagram handshake and of the legs that follow it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signal {
    /// Active: this is my hello.
    Hello([u8; HELLO_BYTES]),
    /// Passive: send me this back.
    Challenge(u64),
    /// Active: here it is, with the hello again.
    Proof(u64, [u8; HELLO_BYTES]),
    /// Passive: the connected socket is ready.
    Ready,
    /// Active: the next leg; see `LegHeader`.
    Leg(LegHeader),
    /// Passive: that leg is open.
    LegOpen(u32),
    /// Sender: I have sent this many datagrams and stop.
    Finish(u64),
    /// Receiver: acknowledged.
    Finished,
    /// Sender: I know that you acknowledged it.
    Parted,
    /// Receiver of a paced stream: in leg `leg`, all datagrams before number `passed` have arrived or are lost, and
    /// `room` more have room here; `received` have arrived, `drops` were dropped at this socket, and the last one
    /// waited in it for `waited_ns`.
    Credit { leg: u32, passed: u64, room: u64, received: u64, drops: u64, waited_ns: u64 },
    /// Sender of a paced stream: I have sent this many datagrams and wait for credit.
    Waiting(u64),
    /// With another connection's nonce: a late one of an earlier connection, or a forgery.
    Strange,
}

/// Length of every signal on the wire, so that payload of other sizes need not be inspected.
pub(crate) const SIGNAL_BYTES: usize = 72;
const SIGNAL_MAGIC: &[u8; 15] = b"THRUsignal/1\r\n\0";
/// Offset of the connection's nonce.
const NONCE_AT: usize = 64;

impl Signal {
    /// On the connection whose nonce is `nonce`.
    pub(crate) fn encode(&self, nonce: u64) -> [u8; SIGNAL_BYTES] {
        let mut bytes = [0; SIGNAL_BYTES];
        bytes[..15].copy_from_slice(SIGNAL_MAGIC);
        let (kind, number, hello) = match self {
            Self::Hello(hello) => (1, 0, Some(hello)),
            Self::Challenge(nonce) => (2, *nonce, None),
            Self::Proof(nonce, hello) => (3, *nonce, Some(hello)),
            Self::Ready => (4, 0, None),
            Self::Leg(header) => {
                bytes[24..56].copy_from_slice(&header.encode());
                (5, 0, None)
            }
            Self::LegOpen(leg) => (6, u64::from(*leg), None),
            Self::Finish(sent) => (7, *sent, None),
            Self::Finished => (8, 0, None),
            Self::Credit { leg, passed, room, received, drops, waited_ns } => {
                bytes[24..28].copy_from_slice(&leg.to_be_bytes());
                bytes[28..36].copy_from_slice(&room.to_be_bytes());
                bytes[36..44].copy_from_slice(&drops.to_be_bytes());
                bytes[44..52].copy_from_slice(&waited_ns.to_be_bytes());
                bytes[52..60].copy_from_slice(&received.to_be_bytes());
                (9, *passed, None)
            }
            Self::Waiting(sent) => (10, *sent, None),
            Self::Parted => (11, 0, None),
            Self::Strange => (0, 0, None),
        };
        bytes[15] = kind;
        bytes[16..24].copy_from_slice(&number.to_be_bytes());
        if let Some(hello) = hello {
            bytes[24..56].copy_from_slice(hello);
        }
        bytes[NONCE_AT..].copy_from_slice(&nonce.to_be_bytes());
        bytes
    }

    /// On the connection whose nonce is `nonce`; `None` for payload.
    #[inline]
    pub(crate) fn decode(bytes: &[u8], nonce: u64) -> Option<Self> {
        if bytes.len() != SIGNAL_BYTES || &bytes[..15] != SIGNAL_MAGIC {
            return None;
        }
        if bytes[NONCE_AT..] != nonce.to_be_bytes() {
            return Some(Self::Strange);
        }
        Self::read(bytes)
    }

    /// The signal in 72 bytes with the magic, of any connection.
    pub(super) fn read(bytes: &[u8]) -> Option<Self> {
        let number = u64::from_be_bytes(bytes[16..24].try_into().ok()?);
        Some(match bytes[15] {
            1 => Self::Hello(bytes[24..56].try_into().ok()?),
            2 => Self::Challenge(number),
            3 => Self::Proof(number, bytes[24..56].try_into().ok()?),
            4 => Self::Ready,
            5 => Self::Leg(LegHeader::decode(&bytes[24..56])?),
            6 => Self::LegOpen(u32::try_from(number).ok()?),
            7 => Self::Finish(number),
            8 => Self::Finished,
            9 => Self::Credit {
                leg: u32::from_be_bytes(bytes[24..28].try_into().ok()?),
                passed: number,
                room: u64::from_be_bytes(bytes[28..36].try_into().ok()?),
                drops: u64::from_be_bytes(bytes[36..44].try_into().ok()?),
                waited_ns: u64::from_be_bytes(bytes[44..52].try_into().ok()?),
                received: u64::from_be_bytes(bytes[52..60].try_into().ok()?),
            },
            10 => Self::Waiting(number),
            11 => Self::Parted,
            _ => return None,
        })
    }
}

/// The passive half of the datagram handshake, without I/O: the answer to a datagram from an unauthenticated sender.
#[derive(Debug)]
pub struct DatagramListener {
    /// Random, of this listener only, never sent.
    key: [u8; 32],
    admitted: HashMap<(SocketAddr, FlowHello), ()>,
}

/// What to do with a datagram from an unauthenticated sender.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Admission {
    /// Send these bytes back. Never more than were received.
    Answer(Vec<u8>),
    /// The sender proved its address: make a socket connected to it.
    Admit(FlowHello),
    /// Nothing: not ours, unknown, or already admitted.
    Ignore,
}

impl DatagramListener {
    /// With a random key.
    ///
    /// # Errors
    /// When the kernel gives no random numbers.
    pub fn new() -> io::Result<Self> {
        Ok(Self { key: random()?, admitted: HashMap::new() })
    }

    /// Classifies a datagram; `read` decodes the hello of a measurement that expects connections.
    pub fn judge(
        &mut self,
        from: SocketAddr,
        bytes: &[u8],
        read: impl Fn(&[u8; HELLO_BYTES]) -> Option<FlowHello>,
    ) -> Admission {
        if bytes.len() != SIGNAL_BYTES || &bytes[..15] != SIGNAL_MAGIC {
            return Admission::Ignore;
        }
        let (hello, proof) = match Signal::read(bytes) {
            Some(Signal::Hello(hello)) => (hello, None),
            Some(Signal::Proof(number, hello)) => (hello, Some(number)),
            _ => return Admission::Ignore,
        };
        let Some(known) = read(&hello) else { return Admission::Ignore };
        let wanted = self.challenge(from, &hello);
        match proof {
            None => Admission::Answer(Signal::Challenge(wanted).encode(known.nonce).to_vec()),
            Some(number) if number == wanted => {
                if self.admitted.len() > 100_000 {
                    self.admitted.clear();
                }
                match self.admitted.insert((from, known), ()) {
                    None => Admission::Admit(known),
                    Some(()) => Admission::Ignore,
                }
            }
            Some(_) => Admission::Ignore,
        }
    }

    /// What only a host that receives at `from` can know.
    fn challenge(&self, from: SocketAddr, hello: &[u8; HELLO_BYTES]) -> u64 {
        let mac = keyed(&self.key, &[from.to_string().as_bytes(), hello]);
        u64::from_be_bytes(mac[..8].try_into().unwrap_or_default())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const COOKIE: Cookie = [7; 16];
    const HELLO: FlowHello = FlowHello { cookie: COOKIE, trial: 3, link: 9, nonce: 5 };

    fn known(hello: &[u8; HELLO_BYTES]) -> Option<FlowHello> {
        FlowHello::decode(hello, [&COOKIE])
    }

    #[test]
    fn a_sender_must_prove_its_address_before_it_is_admitted() {
        let mut listener = DatagramListener::new().unwrap();
        let home: SocketAddr = "127.0.0.1:1000".parse().unwrap();
        let elsewhere: SocketAddr = "127.0.0.2:1000".parse().unwrap();
        let hello = Signal::Hello(HELLO.encode()).encode(HELLO.nonce);
        let Admission::Answer(answer) = listener.judge(home, &hello, known) else { panic!("no challenge") };
        let Some(Signal::Challenge(nonce)) = Signal::decode(&answer, HELLO.nonce) else { panic!("not a challenge") };
        assert!(answer.len() <= SIGNAL_BYTES, "never amplifies");
        let proof = Signal::Proof(nonce, HELLO.encode()).encode(HELLO.nonce);
        assert_eq!(listener.judge(elsewhere, &proof, known), Admission::Ignore);
        assert_eq!(listener.judge(home, &proof, |_| None), Admission::Ignore);
        assert_eq!(
            DatagramListener::new().unwrap().judge(home, &proof, known),
            Admission::Ignore,
            "each listener has its key"
        );
        assert_eq!(listener.judge(home, &proof, known), Admission::Admit(HELLO));
        assert_eq!(listener.judge(home, &proof, known), Admission::Ignore, "let in once");
    }

    #[test]
    fn a_signal_of_another_connection_is_neither_payload_nor_obeyed() {
        let bytes = Signal::Ready.encode(5);
        assert_eq!(Signal::decode(&bytes, 5), Some(Signal::Ready));
        assert_eq!(Signal::decode(&bytes, 6), Some(Signal::Strange));
        assert_eq!(Signal::decode(&bytes[1..], 5), None);
    }

    #[test]
    fn a_hello_shows_nothing_that_a_coordinator_chose() {
        let chosen = FlowHello { cookie: *b"\r\nflush_all\r\n   ", trial: 0x0d0a_0d0a, link: 1, nonce: 7 };
        let (bytes, other_bytes) = (chosen.encode(), FlowHello { nonce: 8, ..chosen }.encode());
        assert!(bytes.iter().zip(&other_bytes).skip(15).filter(|(one, other)| one == other).count() < 5);
        assert!(!bytes.windows(4).any(|part| part == &chosen.cookie[..4] || part == b"\r\n\r\n"));
        assert_eq!(FlowHello::decode(&bytes, [&COOKIE]), None);
        assert_eq!(FlowHello::decode(&bytes, [&COOKIE, &chosen.cookie]), Some(chosen));
        assert_ne!(chosen.reach_proof(), FlowHello { nonce: 8, ..chosen }.reach_proof());
    }

    proptest! {
        #[test]
        fn any_bytes_are_judged_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut listener = DatagramListener::new().unwrap();
            let _ = listener.judge("127.0.0.1:9".parse().unwrap(), &bytes, |_| Some(HELLO));
            let _ = FlowHello::decode(&bytes, [&COOKIE]);
            let _ = Signal::decode(&bytes, 0);
        }

        #[test]
        fn signals_survive_the_wire(
            number in any::<u64>(), trial in any::<u32>(), link in any::<u32>(), cookie in any::<[u8; 16]>(), nonce in any::<u64>(),
        ) {
            let hello = FlowHello { cookie, trial, link, nonce };
            prop_assert_eq!(FlowHello::decode(&hello.encode(), [&COOKIE, &cookie]), Some(hello));
            let hello = hello.encode();
            let header = LegHeader { leg: trial, block: u64::from(link) + 1, reply: 1, quota: number };
            for signal in [Signal::Hello(hello), Signal::Challenge(number), Signal::Proof(number, hello), Signal::Ready,
                           Signal::Leg(header), Signal::LegOpen(link), Signal::Finish(number), Signal::Finished, Signal::Parted,
                           Signal::Credit {
                               leg: trial, passed: number, room: u64::from(link), received: number / 5, drops: number / 2,
                               waited_ns: number / 3,
                           }, Signal::Waiting(number)] {
                prop_assert_eq!(Signal::decode(&signal.encode(nonce), nonce), Some(signal));
            }
        }
    }
}
