//! Entry points for coverage-guided tests of what runs during a trial: the machines of all patterns over a channel whose other
//! end says what the input says.

use std::cell::RefCell;
use std::io;
use std::os::fd::BorrowedFd;
use std::sync::atomic::Ordering;

use model::{Direction, Pattern, Role, SocketFacts, Spec};

use super::sequence::{Arrival, Sequence};
use super::{Env, Pace, Part, machine, open_leg, receive_leg};
use crate::core::{Counters, LegHeader, LegStop, Payload, RttRecorder, Signals, Turn};
use crate::transport::{Breaker, Channel, Kind, SIGNAL_BYTES, Signal, read_hello};

/// Bytes of a block, a response and a buffer.
const BLOCK: usize = 100;
/// Calls of a machine that got no further with its input.
const IDLE: u32 = 3;

/// A channel whose other end says what the input says. Each datagram begins with its length, and a length beyond
/// [`BLOCK`] makes a signal of the bytes that follow.
struct Scripted<const DATAGRAMS: bool> {
    said: Vec<u8>,
    at: usize,
    /// Messages that were taken.
    taken: u64,
    /// What a call without input answers.
    end: io::ErrorKind,
}

impl<const DATAGRAMS: bool> Scripted<DATAGRAMS> {
    fn new(said: &[u8], end: io::ErrorKind) -> Self {
        Self { said: said.to_vec(), at: 0, taken: 0, end }
    }

    fn take(&mut self, most: usize) -> &[u8] {
        let from = self.at;
        self.at = (from + most).min(self.said.len());
        &self.said[from..self.at]
    }
}

impl<const DATAGRAMS: bool> Channel for Scripted<DATAGRAMS> {
    const KIND: Kind = if DATAGRAMS { Kind::Datagram } else { Kind::Stream };

    fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        Ok(bytes.len())
    }

    fn recv(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let Some(length) = self.said.get(self.at) else { return Err(self.end.into()) };
        let length = usize::from(*length);
        self.taken += 1;
        if !DATAGRAMS {
            let part = self.take(into.len().min(length + 1));
            into[..part.len()].copy_from_slice(part);
            return Ok(part.len());
        }
        self.at += 1;
        if length <= BLOCK {
            let part = self.take(length.min(into.len()));
            into[..part.len()].copy_from_slice(part);
            return Ok(part.len());
        }
        // A signal of this connection: kind, number, header.
        let mut datagram = Signal::Ready.encode(0);
        let part = self.take(SIGNAL_BYTES - 8 - 15);
        datagram[15..15 + part.len()].copy_from_slice(part);
        let count = datagram.len().min(into.len());
        into[..count].copy_from_slice(&datagram[..count]);
        Ok(count)
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

    fn receive_room(&self, _: usize) -> Option<u64> {
        Some(8)
    }

    fn waited_ns(&self) -> u64 {
        1
    }

    fn facts(&self) -> SocketFacts {
        SocketFacts::default()
    }

    fn breaker(&self) -> Breaker {
        Breaker::default()
    }
}

thread_local! {
    /// Round trips and the pace: too large to be made for each input.
    static RECORDERS: RefCell<[RttRecorder; 2]> = RefCell::new([RttRecorder::new(), RttRecorder::new()]);
}

/// A machine over a channel of datagrams. The first two bytes choose it.
///
/// # Panics
/// If more datagrams are counted than came.
pub fn datagrams(bytes: &[u8]) {
    let Some(([choice, options], said)) = bytes.split_first_chunk::<2>() else { return };
    if *choice == u8::MAX {
        let header = LegHeader { leg: 1, block: 1, reply: 1, quota: 1 };
        let _ = open_leg(&mut Scripted::<true>::new(said, io::ErrorKind::NotConnected), &header, 0);
        let _ = receive_leg(&mut Scripted::<true>::new(said, io::ErrorKind::NotConnected), None, 1, 0);
        return;
    }
    let mut channel = Scripted::<true>::new(said, io::ErrorKind::WouldBlock);
    let counters = run(&mut channel, *choice, *options);
    let [received, duplicates] =
        [&counters.datagrams_received, &counters.duplicates].map(|counter| counter.load(Ordering::Relaxed));
    assert!(received + duplicates <= channel.taken, "each datagram is counted once");
}

/// A machine over a stream, the agreement on a leg, and the hello within tls and quic.
pub fn stream(bytes: &[u8]) {
    let Some(([choice, options], said)) = bytes.split_first_chunk::<2>() else { return };
    if *choice == u8::MAX {
        let header = LegHeader { leg: 1, block: 1, reply: 1, quota: 1 };
        let ended = || Scripted::<false>::new(said, io::ErrorKind::NotConnected);
        let _ = open_leg(&mut ended(), &header, 0);
        let _ = receive_leg(&mut ended(), None, 1, 0);
        let _ = read_hello(&mut ended(), &[7; 16], std::time::Duration::ZERO);
        return;
    }
    run(&mut Scripted::<false>::new(said, io::ErrorKind::WouldBlock), *choice, *options);
}

/// Lets a machine take all that the other end says.
fn run<const DATAGRAMS: bool>(channel: &mut Scripted<DATAGRAMS>, choice: u8, options: u8) -> Counters {
    let (counters, signals) = (Counters::default(), Signals::new());
    let (spec, part) = part(choice, options);
    // A pattern that this kind of channel does not carry is refused before a trial.
    let carried = !DATAGRAMS || matches!(spec.pattern, Pattern::Stream | Pattern::Rr);
    if !carried {
        return counters;
    }
    let mut machine = machine(&spec, &part);
    RECORDERS.with_borrow_mut(|[rtt, pace]| {
        let mut tx = Payload::new(&spec, 2 * BLOCK, false, 1);
        let (mut rx, mut marks) = ([0; 2 * BLOCK], Vec::new());
        let mut env =
            Env { tx: &mut tx, rx: &mut rx, marks: &mut marks, rtt, pace, counters: &counters, signals: &signals };
        let mut idle = 0;
        while idle < IDLE {
            let before = channel.at;
            if options & 0x80 != 0 && before * 2 > channel.said.len() {
                signals.stop();
            }
            match machine.advance(channel, &mut env) {
                Ok(Turn::Done | Turn::Next(_)) | Err(_) => break,
                Ok(_) => {}
            }
            idle = if channel.at == before { idle + 1 } else { 0 };
        }
    });
    counters
}

/// A part of a trial with small blocks.
fn part(choice: u8, options: u8) -> (Spec, Part) {
    let is = |bit: u8| options >> bit & 1 == 1;
    let pattern =
        [Pattern::Stream, Pattern::Rr, Pattern::Pingpong, Pattern::Crr, Pattern::Transfer][usize::from(choice) % 5];
    let outstanding = is(0).then_some(4);
    let reply = if is(1) { 8 } else { BLOCK as u64 };
    let spec = Spec { block: BLOCK as u64, reply: Some(reply), outstanding, ..Spec::new("udp", pattern) };
    let stop = match choice / 5 % 3 {
        0 => LegStop::Clock,
        1 if spec.is_stream() => LegStop::Bytes(1_000),
        _ if spec.is_stream() => LegStop::Bytes(u64::MAX - 1),
        1 => LegStop::Transactions(10),
        _ => LegStop::Transactions(u64::MAX - 1),
    };
    let part = Part {
        role: if is(2) { Role::Passive } else { Role::Active },
        direction: if is(3) { Direction::Reverse } else { Direction::Send },
        block: BLOCK,
        reply: reply as usize,
        stop,
        leg: 1,
        path: model::PathTimes::default(),
        last: is(4),
        pace: is(5).then_some(Pace { gap_ns: 1.0, catch_up_ns: 0.0, blocked_ns: 0.0, spread_ns: 0.0, burst_ns: 0.0 }),
        drain: None,
        to_receiver: is(6),
        shares: is(0),
        spins: !is(0),
        singly: is(5),
        opening: 0,
    };
    (spec, part)
}

/// Numbers of datagrams, eight bytes each.
///
/// # Panics
/// If a number that was just seen is not a duplicate.
pub fn sequence(bytes: &[u8]) {
    let mut sequence = Sequence::new();
    for number in bytes.as_chunks::<8>().0.iter().map(|number| u64::from_le_bytes(*number)) {
        let first = sequence.arrive(number);
        let next = sequence.next();
        let again = sequence.arrive(number);
        assert!(first != Arrival::New || again == Arrival::Duplicate, "{number} came twice: {again:?}");
        assert!((next > number || number == u64::MAX) && sequence.next() == next, "{number}: {next}");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_receiver_may_claim_any_time_that_a_grant_waited() {
        // Kind, datagrams passed, leg, room, drops, time, received.
        let credit =
            [&[9][..], &[0; 8], &1_u32.to_be_bytes(), &8_u64.to_be_bytes(), &[0; 8], &[0xff; 8], &[0; 12]].concat();
        datagrams(&[&[0, 0x40, 0xff][..], &credit].concat());
    }
}
