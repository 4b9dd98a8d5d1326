//! How a datagram end announces that it has sent its last datagram, repeated until the other end confirms; and how an
//! end handles signals between the payload.

use std::io;

use super::machine::Env;
use crate::core::{Interest, Turn, not_now, now_ns};
use crate::transport::{Channel, Signal};

/// Pause between the first two attempts, and the one at which its doubling ends: on a slow link, repetitions would queue before the
/// answer.
const RETRY_NS: u64 = 20_000_000;
const LAST_RETRY_NS: u64 = 320_000_000;
/// How long to try on a path of usual length: a receiver of many flows may be far behind. The coordinator waits a little longer.
const LIMIT_NS: u64 = 8_000_000_000;

/// How often an answer is sent whose loss would cost time.
const COPIES: usize = 3;

/// Repeats Finish until Finished comes.
pub(super) struct CloseHandshake {
    patience_ns: u64,
    tries: u32,
    pause_ns: u64,
    retry_ns: u64,
    end_ns: u64,
}

impl CloseHandshake {
    /// For a path that may take this much longer than usual for an answer.
    pub(super) fn new(patience_ns: u64) -> Self {
        Self { patience_ns, tries: 0, pause_ns: RETRY_NS, retry_ns: 0, end_ns: 0 }
    }

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
            let now = now_ns();
            self.end_ns = now + LIMIT_NS + self.patience_ns;
            env.counters.stop_sending(now);
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
        let now = now_ns();
        if now >= self.retry_ns && (now >= self.end_ns || self.send_finish(channel, sent)) {
            return Ok(Turn::Done);
        }
        Ok(Turn::Wait(Interest::Read, self.retry_ns))
    }

    /// One attempt. True when the other end has closed and needs no announcement.
    fn send_finish<C: Channel>(&mut self, channel: &mut C, sent: u64) -> bool {
        self.tries += 1;
        self.retry_ns = now_ns() + self.pause_ns;
        self.pause_ns = (2 * self.pause_ns).min(LAST_RETRY_NS + self.patience_ns / 32);
        channel
            .send(&Signal::Finish(sent).encode(channel.nonce()))
            .is_err_and(|error| error.kind() == io::ErrorKind::NotConnected)
    }
}

/// Handles `bytes` received after this end has sent Finish.
fn after_finish<C: Channel>(channel: &mut C, bytes: &[u8], leg: u32) -> Turn {
    match Signal::decode(bytes, channel.nonce()) {
        Some(Signal::Finished) => {
            // Without an answer the other end stays for a while.
            for _ in 0..COPIES {
                let _ = channel.send(&Signal::Parted.encode(channel.nonce()));
            }
            Turn::Done
        }
        Some(signal @ Signal::Leg(_)) => answer_signal(channel, signal, leg).unwrap_or(Turn::Again),
        _ => Turn::Again,
    }
}

/// Keeps an end that has sent Finished after the last leg until the other one has received it: all copies can be lost.
pub(crate) struct Parting {
    patience_ns: u64,
    /// When the other end would have repeated Finish.
    until_ns: u64,
}

impl Parting {
    /// For a path that may take this much longer than usual for an answer.
    pub(crate) fn new(patience_ns: u64) -> Self {
        let mut parting = Self { patience_ns, until_ns: 0 };
        parting.stay();
        parting
    }

    fn stay(&mut self) {
        self.until_ns = now_ns() + 2 * LAST_RETRY_NS + self.patience_ns;
    }

    /// Answers what has come. True when this end may leave.
    pub(crate) fn is_over<C: Channel>(&mut self, channel: &mut C, rx: &mut [u8]) -> bool {
        loop {
            match channel.recv(rx) {
                Ok(count) => match Signal::decode(&rx[..count], channel.nonce()) {
                    Some(Signal::Parted) => return true,
                    Some(Signal::Finish(_)) => {
                        let _ = channel.send(&Signal::Finished.encode(channel.nonce()));
                        self.stay();
                    }
                    _ => {}
                },
                Err(error) => return !not_now(&error) || now_ns() >= self.until_ns,
            }
        }
    }
}

/// Handles a signal between the payload of leg `leg`; `Some` ends the leg.
pub(super) fn answer_signal<C: Channel>(channel: &mut C, signal: Signal, leg: u32) -> Option<Turn> {
    match signal {
        Signal::Finish(_) => {
            for _ in 0..COPIES {
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

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;
    use std::os::fd::BorrowedFd;

    use model::SocketFacts;

    use super::*;
    use crate::transport::{Breaker, Kind, SIGNAL_BYTES};

    /// A channel whose other end has said `inbox`.
    #[derive(Default)]
    struct Wire {
        inbox: VecDeque<Signal>,
        outbox: Vec<Signal>,
    }

    impl Channel for Wire {
        const KIND: Kind = Kind::Datagram;

        fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.outbox.extend(Signal::decode(bytes, 0));
            Ok(bytes.len())
        }

        fn recv(&mut self, into: &mut [u8]) -> io::Result<usize> {
            let signal = self.inbox.pop_front().ok_or(io::ErrorKind::WouldBlock)?;
            into[..SIGNAL_BYTES].copy_from_slice(&signal.encode(0));
            Ok(SIGNAL_BYTES)
        }

        fn set_nonblocking(&mut self, _: bool) -> io::Result<()> {
            Ok(())
        }

        fn renew(&mut self) -> io::Result<()> {
            Ok(())
        }

        fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
            None
        }

        fn finish_sending(&mut self) -> io::Result<()> {
            Ok(())
        }

        fn facts(&self) -> SocketFacts {
            SocketFacts::default()
        }

        fn breaker(&self) -> Breaker {
            Breaker::default()
        }
    }

    #[test]
    fn an_end_leaves_when_the_other_one_has_its_confirmation_or_is_silent() {
        let (mut wire, mut rx) = (Wire::default(), [0; SIGNAL_BYTES]);
        let mut parting = Parting::new(0);
        assert!(!parting.is_over(&mut wire, &mut rx));
        wire.inbox.extend([Signal::Finish(7), Signal::Finish(7)]);
        assert!(!parting.is_over(&mut wire, &mut rx));
        assert_eq!(wire.outbox, [Signal::Finished; 2], "each repetition is answered");
        wire.inbox.push_back(Signal::Parted);
        assert!(parting.is_over(&mut wire, &mut rx));
        parting.until_ns = now_ns();
        assert!(parting.is_over(&mut wire, &mut rx), "its time is over");
    }

    #[test]
    fn a_confirmation_is_answered() {
        let mut wire = Wire::default();
        assert!(matches!(after_finish(&mut wire, &Signal::Finished.encode(0), 0), Turn::Done));
        assert_eq!(wire.outbox, [Signal::Parted; COPIES]);
    }
}
