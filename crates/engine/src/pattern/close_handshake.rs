//! How a datagram end announces that it has sent its last datagram, repeated until the other end confirms; and how an
//! end handles signals between the payload.

use std::io;

use super::machine::Env;
use crate::core::{Interest, Turn, not_now, now_ns};
use crate::transport::{Channel, Signal};

/// Pause between two attempts, and their number: 8 s in all, because a receiver of many flows may be far behind. The
/// coordinator waits a little longer.
const RETRY_NS: u64 = 20_000_000;
const TRIES: u32 = 400;

/// Repeats Finish until Finished comes.
#[derive(Default)]
pub(super) struct CloseHandshake {
    tries: u32,
    retry_ns: u64,
}

impl CloseHandshake {
    /// Whether it has begun.
    pub(super) fn begun(&self) -> bool {
        self.tries > 0
    }

    /// Announces that `sent` datagrams were sent in leg `leg`, or waits for the confirmation.
    pub(super) fn turn<C: Channel>(
        &mut self,
        channel: &mut C,
        env: &mut Env<'_>,
        sent: u64,
        leg: u32,
    ) -> io::Result<Turn> {
        if !self.begun() {
            env.counters.stop_sending(now_ns());
            if self.send_finish(channel, sent) {
                return Ok(Turn::Done);
            }
        }
        // Receive before the next attempt: on a Unix socket, a send to a closed peer discards what it had sent.
        match channel.recv(env.rx) {
            Ok(count) => return Ok(after_finish(channel, &env.rx[..count], leg)),
            Err(error) if not_now(&error) => {}
            Err(error) => return Err(error),
        }
        if now_ns() >= self.retry_ns && (self.tries > TRIES || self.send_finish(channel, sent)) {
            return Ok(Turn::Done);
        }
        Ok(Turn::Wait(Interest::Read, self.retry_ns))
    }

    /// One attempt. True when the other end has closed and needs no announcement.
    fn send_finish<C: Channel>(&mut self, channel: &mut C, sent: u64) -> bool {
        self.tries += 1;
        self.retry_ns = now_ns() + RETRY_NS;
        channel
            .send(&Signal::Finish(sent).encode(channel.nonce()))
            .is_err_and(|error| error.kind() == io::ErrorKind::NotConnected)
    }
}

/// Handles `bytes` received after this end has sent Finish.
fn after_finish<C: Channel>(channel: &mut C, bytes: &[u8], leg: u32) -> Turn {
    match Signal::decode(bytes, channel.nonce()) {
        Some(Signal::Finished) => Turn::Done,
        Some(signal @ Signal::Leg(_)) => answer_signal(channel, signal, leg).unwrap_or(Turn::Again),
        _ => Turn::Again,
    }
}

/// Handles a signal between the payload of leg `leg`; `Some` ends the leg.
pub(super) fn answer_signal<C: Channel>(channel: &mut C, signal: Signal, leg: u32) -> Option<Turn> {
    match signal {
        Signal::Finish(_) => {
            // Three copies, because this end does not repeat it after it has closed.
            for _ in 0..3 {
                let _ = channel.send(&Signal::Finished.encode(channel.nonce()));
            }
            Some(Turn::Done)
        }
        Signal::Leg(header) if header.leg > leg => Some(Turn::Next(header)),
        // The other end repeats its announcement: it has not received that this leg is open.
        Signal::Leg(header) if header.leg == leg => {
            let _ = channel.send(&Signal::LegOpen(leg).encode(channel.nonce()));
            None
        }
        Signal::Proof(..) => {
            let _ = channel.send(&Signal::Ready.encode(channel.nonce()));
            None
        }
        _ => None,
    }
}
