//! How the two ends agree on the next leg over the data connection itself, so that a curve needs no control round
//! trips.
//!
//! The active end announces the leg (block, response, quota); the passive end answers when it is ready. On datagram
//! transports both messages are repeated until they are confirmed.

use std::io;

use crate::core::{EngineError, LegHeader, not_now, now_ns};
use crate::transport::{Channel, Kind, Signal};

const OPEN: &[u8; 4] = b"OPEN";
/// Time limit on a path of usual length.
const LIMIT_NS: u64 = 10_000_000_000;
/// Pause before the first repetition, and the one at which its doubling ends.
const RETRY_NS: u64 = 50_000_000;
const LAST_RETRY_NS: u64 = 800_000_000;

/// Active end, first half: announces the leg.
pub(crate) fn send_leg<C: Channel>(channel: &mut C, header: &LegHeader, patience_ns: u64) -> Result<(), EngineError> {
    match C::KIND {
        Kind::Alone => Ok(()),
        Kind::Stream => write_all(channel, &header.encode(), patience_ns),
        Kind::Datagram => send_signal(channel, Signal::Leg(*header)),
    }
}

/// Active end, second half: waits until the passive end is ready.
pub(crate) fn open_leg<C: Channel>(channel: &mut C, header: &LegHeader, patience_ns: u64) -> Result<(), EngineError> {
    match C::KIND {
        Kind::Alone => Ok(()),
        Kind::Stream => {
            let mut answer = [0; 4];
            read_all(channel, &mut answer, patience_ns)?;
            if &answer == OPEN {
                Ok(())
            } else {
                Err(surprise("sent an unexpected answer at the start of a measurement"))
            }
        }
        Kind::Datagram => {
            let (begun, mut pause) = (now_ns(), RETRY_NS);
            let (deadline, mut retry) = (begun + LIMIT_NS + patience_ns, begun + pause);
            let mut buffer = vec![0; 1 << 16];
            while now_ns() < deadline {
                match channel.recv(&mut buffer) {
                    Ok(count) => {
                        if Signal::decode(&buffer[..count], channel.nonce()) == Some(Signal::LegOpen(header.leg)) {
                            return Ok(());
                        }
                    }
                    Err(error) if not_now(&error) => {}
                    Err(error) => return Err(EngineError::socket("start a measurement with", "the other end", error)),
                }
                if now_ns() > retry {
                    send_leg(channel, header, patience_ns)?;
                    pause = (2 * pause).min(LAST_RETRY_NS);
                    retry = now_ns() + pause;
                }
            }
            Err(surprise(&format!("did not start the measurement within {}", limit(patience_ns))))
        }
    }
}

/// Passive end: waits for the announcement of leg `due` (`pending` holds one that came early) and answers.
pub(crate) fn receive_leg<C: Channel>(
    channel: &mut C,
    pending: Option<LegHeader>,
    due: u32,
    patience_ns: u64,
) -> Result<LegHeader, EngineError> {
    let header = match (C::KIND, pending) {
        (_, Some(header)) => header,
        (Kind::Datagram, None) => receive_datagram_leg(channel, due, patience_ns)?,
        (_, None) => {
            let mut bytes = [0; 32];
            read_all(channel, &mut bytes, patience_ns)?;
            LegHeader::decode(&bytes).ok_or_else(|| surprise("sent an unexpected message instead of a measurement"))?
        }
    };
    match C::KIND {
        Kind::Datagram => send_signal(channel, Signal::LegOpen(header.leg))?,
        _ => write_all(channel, OPEN, patience_ns)?,
    }
    Ok(header)
}

fn receive_datagram_leg<C: Channel>(channel: &mut C, due: u32, patience_ns: u64) -> Result<LegHeader, EngineError> {
    let deadline = now_ns() + LIMIT_NS + patience_ns;
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
            Err(error) if not_now(&error) => {}
            Err(error) => return Err(EngineError::socket("wait for a measurement from", "the other end", error)),
        }
    }
    Err(surprise(&format!("announced no measurement within {}", limit(patience_ns))))
}

fn send_signal<C: Channel>(channel: &mut C, signal: Signal) -> Result<(), EngineError> {
    let bytes = signal.encode(channel.nonce());
    write_all(channel, &bytes, 0)
}

fn write_all<C: Channel>(channel: &mut C, mut bytes: &[u8], patience_ns: u64) -> Result<(), EngineError> {
    let deadline = now_ns() + LIMIT_NS + patience_ns;
    while !bytes.is_empty() {
        match channel.send(bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(error) if not_now(&error) && now_ns() < deadline => {}
            Err(error) => return Err(EngineError::socket("agree on a measurement with", "the other end", error)),
        }
    }
    Ok(())
}

fn read_all<C: Channel>(channel: &mut C, into: &mut [u8], patience_ns: u64) -> Result<(), EngineError> {
    let deadline = now_ns() + LIMIT_NS + patience_ns;
    let mut filled = 0;
    while filled < into.len() {
        match channel.recv(&mut into[filled..]) {
            Ok(0) => {
                return Err(EngineError::socket(
                    "agree on a measurement with",
                    "the other end",
                    io::Error::from(io::ErrorKind::UnexpectedEof),
                ));
            }
            Ok(count) => filled += count,
            Err(error) if not_now(&error) && now_ns() < deadline => {}
            Err(error) => return Err(EngineError::socket("agree on a measurement with", "the other end", error)),
        }
    }
    Ok(())
}

fn limit(patience_ns: u64) -> String {
    format!("{} s", (LIMIT_NS + patience_ns).div_ceil(1_000_000_000))
}

fn surprise(what: &str) -> EngineError {
    EngineError::Peer { peer: "the other end".into(), what: what.into() }
}
