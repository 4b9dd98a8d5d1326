//! How a data connection says which measurement and flow it belongs to.
//!
//! Stream transports send one hello and read one byte back. Datagram transports first prove that they can receive where they
//! claim to be (a reflected flood is thereby impossible): HELLO, CHALLENGE with a nonce, PROOF with that nonce, READY.

use std::collections::HashMap;
use std::net::SocketAddr;

use super::Cookie;

/// Length of a hello on the wire: magic, cookie, trial, flow.
pub const HELLO_BYTES: usize = 32;
const MAGIC: &[u8; 8] = b"THRUDATA";
/// What the passive end answers to a hello that it takes.
pub(crate) const WELCOME: u8 = b'K';

/// Ties a connection to a measurement, a trial and a link.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct FlowHello {
    /// The measurement's secret.
    pub cookie: Cookie,
    /// Number of the trial.
    pub trial: u32,
    /// Number of the link within the trial.
    pub link: u32,
}

impl FlowHello {
    /// Its 32 bytes on the wire; numbers are big-endian.
    #[must_use]
    pub fn encode(&self) -> [u8; HELLO_BYTES] {
        let mut bytes = [0; HELLO_BYTES];
        bytes[..8].copy_from_slice(MAGIC);
        bytes[8..24].copy_from_slice(&self.cookie);
        bytes[24..28].copy_from_slice(&self.trial.to_be_bytes());
        bytes[28..].copy_from_slice(&self.link.to_be_bytes());
        bytes
    }

    /// Reads what [`encode`](Self::encode) wrote; `None` for anything else.
    #[must_use]
    pub fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; HELLO_BYTES] = bytes.try_into().ok()?;
        (&bytes[..8] == MAGIC).then(|| Self {
            cookie: bytes[8..24].try_into().unwrap_or_default(),
            trial: u32::from_be_bytes([bytes[24], bytes[25], bytes[26], bytes[27]]),
            link: u32::from_be_bytes([bytes[28], bytes[29], bytes[30], bytes[31]]),
        })
    }
}

/// Messages of the datagram handshake and of the legs that follow it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Signal {
    /// Active: this is my hello.
    Hello(FlowHello),
    /// Passive: send me this back.
    Challenge(u64),
    /// Active: here it is, with the hello again.
    Proof(u64, FlowHello),
    /// Passive: the connected socket is ready.
    Ready,
    /// Active: the next leg; see `LegHeader`.
    Leg(crate::pattern::LegHeader),
    /// Passive: that leg is open.
    LegOpen(u32),
    /// Sender: I sent this many datagrams and stop.
    Finish(u64),
    /// Receiver: I know.
    Finished,
    /// Receiver of a paced stream: of leg `leg`, all datagrams before number `passed` have come or are lost, and `room` more
    /// have room here; `received` have come, `drops` were dropped at this socket, and the last one waited in it for `waited_ns`.
    Credit { leg: u32, passed: u64, room: u64, received: u64, drops: u64, waited_ns: u64 },
    /// Sender of a paced stream: I sent this many datagrams and wait for credit.
    Waiting(u64),
}

/// Length of every signal on the wire, so that payload of other sizes needs no look at its bytes.
pub(crate) const SIGNAL_BYTES: usize = 72;
const SIGNAL_MAGIC: &[u8; 15] = b"THRUsignal/1\r\n\0";

impl Signal {
    pub(crate) fn encode(&self) -> [u8; SIGNAL_BYTES] {
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
        };
        bytes[15] = kind;
        bytes[16..24].copy_from_slice(&number.to_be_bytes());
        if let Some(hello) = hello {
            bytes[24..56].copy_from_slice(&hello.encode());
        }
        bytes
    }

    /// `None` for payload.
    #[inline]
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        if bytes.len() != SIGNAL_BYTES || &bytes[..15] != SIGNAL_MAGIC {
            return None;
        }
        let number = u64::from_be_bytes(bytes[16..24].try_into().ok()?);
        Some(match bytes[15] {
            1 => Self::Hello(FlowHello::decode(&bytes[24..56])?),
            2 => Self::Challenge(number),
            3 => Self::Proof(number, FlowHello::decode(&bytes[24..56])?),
            4 => Self::Ready,
            5 => Self::Leg(crate::pattern::LegHeader::decode(&bytes[24..56])?),
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
            _ => return None,
        })
    }
}

/// The passive half of the datagram handshake, without I/O: what to answer to a datagram from a stranger.
#[derive(Debug)]
pub struct DatagramDoor {
    secret: u64,
    admitted: HashMap<(SocketAddr, FlowHello), ()>,
}

/// What to do with a datagram from a stranger.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Admission {
    /// Send these bytes back. Never more than came in.
    Answer(Vec<u8>),
    /// The sender proved its address: make a socket connected to it.
    Admit(FlowHello),
    /// Nothing: not ours, not known, or already let in.
    Ignore,
}

impl DatagramDoor {
    /// A door whose nonces cannot be guessed without `secret`.
    #[must_use]
    pub fn new(secret: u64) -> Self {
        Self { secret, admitted: HashMap::new() }
    }

    /// Judges a datagram; `known` says whether a cookie belongs to a measurement that expects connections.
    pub fn judge(&mut self, from: SocketAddr, bytes: &[u8], known: impl Fn(&Cookie) -> bool) -> Admission {
        match Signal::decode(bytes) {
            Some(Signal::Hello(hello)) if known(&hello.cookie) => {
                Admission::Answer(Signal::Challenge(self.nonce(from, &hello)).encode().to_vec())
            }
            Some(Signal::Proof(nonce, hello)) if known(&hello.cookie) && nonce == self.nonce(from, &hello) => {
                if self.admitted.len() > 100_000 {
                    self.admitted.clear();
                }
                match self.admitted.insert((from, hello), ()) {
                    None => Admission::Admit(hello),
                    Some(()) => Admission::Ignore,
                }
            }
            _ => Admission::Ignore,
        }
    }

    fn nonce(&self, from: SocketAddr, hello: &FlowHello) -> u64 {
        use std::hash::{Hash, Hasher};
        // SipHash with fixed keys over a secret prefix: enough to stop an off-path sender, which is all it is for.
        let mut hasher = std::hash::DefaultHasher::new();
        (self.secret, from, hello).hash(&mut hasher);
        hasher.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pattern::LegHeader;
    use proptest::prelude::*;

    const HELLO: FlowHello = FlowHello { cookie: [7; 16], trial: 3, link: 9 };

    #[test]
    fn a_stranger_must_prove_its_address_before_it_is_let_in() {
        let mut door = DatagramDoor::new(42);
        let home: SocketAddr = "127.0.0.1:1000".parse().unwrap();
        let elsewhere: SocketAddr = "127.0.0.2:1000".parse().unwrap();
        let known = |cookie: &Cookie| *cookie == [7; 16];
        let Admission::Answer(answer) = door.judge(home, &Signal::Hello(HELLO).encode(), known) else {
            panic!("no challenge")
        };
        let Some(Signal::Challenge(nonce)) = Signal::decode(&answer) else { panic!("not a challenge") };
        assert!(answer.len() <= SIGNAL_BYTES, "never amplifies");
        let proof = Signal::Proof(nonce, HELLO).encode();
        assert_eq!(door.judge(elsewhere, &proof, known), Admission::Ignore);
        assert_eq!(door.judge(home, &proof, |_| false), Admission::Ignore);
        assert_eq!(door.judge(home, &proof, known), Admission::Admit(HELLO));
        assert_eq!(door.judge(home, &proof, known), Admission::Ignore, "let in once");
    }

    proptest! {
        #[test]
        fn any_bytes_are_judged_without_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let mut door = DatagramDoor::new(1);
            let _ = door.judge("127.0.0.1:9".parse().unwrap(), &bytes, |_| true);
            let _ = FlowHello::decode(&bytes);
        }

        #[test]
        fn signals_survive_the_wire(number in any::<u64>(), trial in any::<u32>(), link in any::<u32>(), cookie in any::<[u8; 16]>()) {
            let hello = FlowHello { cookie, trial, link };
            let header = LegHeader { leg: trial, block: u64::from(link) + 1, reply: 1, quota: number };
            for signal in [Signal::Hello(hello), Signal::Challenge(number), Signal::Proof(number, hello), Signal::Ready,
                           Signal::Leg(header), Signal::LegOpen(link), Signal::Finish(number), Signal::Finished,
                           Signal::Credit {
                               leg: trial, passed: number, room: u64::from(link), received: number / 5, drops: number / 2,
                               waited_ns: number / 3,
                           }, Signal::Waiting(number)] {
                prop_assert_eq!(Signal::decode(&signal.encode()), Some(signal));
            }
        }
    }
}
