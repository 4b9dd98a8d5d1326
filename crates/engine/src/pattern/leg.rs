//! How the two ends agree on the next leg over the data connection itself, so that a curve needs no control round
//! trips.
//!
//! The active end announces the leg (block, response, quota); the passive end answers when it is ready. On datagram
//! transports both messages are repeated until they are confirmed.

use std::io;

use crate::EngineError;
use crate::now_ns;
use crate::transport::{Channel, Kind, Signal};

/// The active end's announcement of the next leg.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct LegHeader {
    /// Number of the leg within the trial.
    pub(crate) leg: u32,
    /// Bytes of a block or request.
    pub(crate) block: u64,
    /// Bytes of a response.
    pub(crate) reply: u64,
    /// Payload bytes (streams) or round trips after which it ends; 0 for "until one end says so".
    pub(crate) quota: u64,
}

const MAGIC: &[u8; 4] = b"LEG1";
const OPEN: &[u8; 4] = b"OPEN";
const LIMIT_NS: u64 = 10_000_000_000;
const RETRY_NS: u64 = 50_000_000;

impl LegHeader {
    /// Its 32 bytes on the wire; numbers are big-endian.
    pub(crate) fn encode(&self) -> [u8; 32] {
        let mut bytes = [0; 32];
        bytes[..4].copy_from_slice(MAGIC);
        bytes[4..8].copy_from_slice(&self.leg.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.block.to_be_bytes());
        bytes[16..24].copy_from_slice(&self.reply.to_be_bytes());
        bytes[24..].copy_from_slice(&self.quota.to_be_bytes());
        bytes
    }

    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let bytes: &[u8; 32] = bytes.try_into().ok()?;
        let number = |at: usize| bytes[at..at + 8].iter().fold(0u64, |value, byte| value << 8 | u64::from(*byte));
        (&bytes[..4] == MAGIC).then(|| Self {
            leg: u32::from_be_bytes([bytes[4], bytes[5], bytes[6], bytes[7]]),
            block: number(8),
            reply: number(16),
            quota: number(24),
        })
    }
}

/// Active end, first half: announces the leg.
pub(crate) fn send_leg<C: Channel>(channel: &mut C, header: &LegHeader) -> Result<(), EngineError> {
    match C::KIND {
        Kind::Alone => Ok(()),
        Kind::Stream => write_all(channel, &header.encode()),
        Kind::Datagram => send_signal(channel, Signal::Leg(*header)),
    }
}

/// Active end, second half: waits until the passive end is ready.
pub(crate) fn open_leg<C: Channel>(channel: &mut C, header: &LegHeader) -> Result<(), EngineError> {
    match C::KIND {
        Kind::Alone => Ok(()),
        Kind::Stream => {
            let mut answer = [0; 4];
            read_all(channel, &mut answer)?;
            if &answer == OPEN {
                Ok(())
            } else {
                Err(surprise(
                    "answered the announcement of a leg with an \
                unexpected message",
                ))
            }
        }
        Kind::Datagram => {
            let (deadline, mut retry) = (now_ns() + LIMIT_NS, now_ns() + RETRY_NS);
            let mut buffer = vec![0; 1 << 16];
            while now_ns() < deadline {
                match channel.recv(&mut buffer) {
                    Ok(count) => {
                        if Signal::decode(&buffer[..count], channel.nonce()) == Some(Signal::LegOpen(header.leg)) {
                            return Ok(());
                        }
                    }
                    Err(error) if super::not_now(&error) => {}
                    Err(error) => return Err(EngineError::socket("open a leg with", "the other end", error)),
                }
                if now_ns() > retry {
                    send_leg(channel, header)?;
                    retry = now_ns() + RETRY_NS;
                }
            }
            Err(surprise("did not open the leg within 10 s"))
        }
    }
}

/// Passive end: waits for the announcement of leg `due` (`pending` holds one that came early) and answers.
pub(crate) fn receive_leg<C: Channel>(
    channel: &mut C,
    pending: Option<LegHeader>,
    due: u32,
) -> Result<LegHeader, EngineError> {
    let header = match (C::KIND, pending) {
        (_, Some(header)) => header,
        (Kind::Datagram, None) => receive_datagram_leg(channel, due)?,
        (_, None) => {
            let mut bytes = [0; 32];
            read_all(channel, &mut bytes)?;
            LegHeader::decode(&bytes).ok_or_else(|| surprise("sent an unexpected message where a leg was due"))?
        }
    };
    match C::KIND {
        Kind::Datagram => send_signal(channel, Signal::LegOpen(header.leg))?,
        _ => write_all(channel, OPEN)?,
    }
    Ok(header)
}

fn receive_datagram_leg<C: Channel>(channel: &mut C, due: u32) -> Result<LegHeader, EngineError> {
    let deadline = now_ns() + LIMIT_NS;
    let mut buffer = vec![0; 1 << 16];
    while now_ns() < deadline {
        match channel.recv(&mut buffer) {
            Ok(count) => match Signal::decode(&buffer[..count], channel.nonce()) {
                // The announcement of an earlier leg is a late repetition.
                Some(Signal::Leg(header)) if header.leg >= due => return Ok(header),
                // The active end did not receive READY.
                Some(Signal::Proof(..)) => send_signal(channel, Signal::Ready)?,
                // The sender of the previous leg did not receive its end.
                Some(Signal::Finish(_)) => send_signal(channel, Signal::Finished)?,
                _ => {}
            },
            Err(error) if super::not_now(&error) => {}
            Err(error) => return Err(EngineError::socket("wait for a leg from", "the other end", error)),
        }
    }
    Err(surprise("announced no leg within 10 s"))
}

fn send_signal<C: Channel>(channel: &mut C, signal: Signal) -> Result<(), EngineError> {
    let bytes = signal.encode(channel.nonce());
    write_all(channel, &bytes)
}

fn write_all<C: Channel>(channel: &mut C, mut bytes: &[u8]) -> Result<(), EngineError> {
    let deadline = now_ns() + LIMIT_NS;
    while !bytes.is_empty() {
        match channel.send(bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(error) if super::not_now(&error) && now_ns() < deadline => {}
            Err(error) => return Err(EngineError::socket("agree on a leg with", "the other end", error)),
        }
    }
    Ok(())
}

fn read_all<C: Channel>(channel: &mut C, into: &mut [u8]) -> Result<(), EngineError> {
    let deadline = now_ns() + LIMIT_NS;
    let mut filled = 0;
    while filled < into.len() {
        match channel.recv(&mut into[filled..]) {
            Ok(0) => {
                return Err(EngineError::socket(
                    "agree on a leg with",
                    "the other end",
                    io::Error::from(io::ErrorKind::UnexpectedEof),
                ));
            }
            Ok(count) => filled += count,
            Err(error) if super::not_now(&error) && now_ns() < deadline => {}
            Err(error) => return Err(EngineError::socket("agree on a leg with", "the other end", error)),
        }
    }
    Ok(())
}

fn surprise(what: &str) -> EngineError {
    EngineError::Peer { peer: "the other end".into(), what: what.into() }
}
