//! Packets that pass from the process with the packet socket to the one that keeps them: a helper reads its ring and writes them to a
//! Unix socket, so that its agent has no socket that could send. The helper does not look into a packet.

use std::io::{self, ErrorKind, Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::time::{Duration, Instant};

use rustix::net::RecvFlags;

use super::DRAIN;
use super::sys::{Frame, MOST_KEPT, RETIRE, Ring, thread_ns};

/// The first byte of a packet, and of the totals at the end.
const PACKET: u8 = b'P';
const TOTALS: u8 = b'T';
/// Bytes before those of a packet: the first byte, time, length, kept bytes, link header, link type and direction.
const HEAD: usize = 1 + 8 + 4 + 4 + 4 + 2 + 2 + 1;
const TOTALS_BYTES: usize = 1 + 8 + 8;
/// The count of dropped packets if the kernel did not report it.
const UNKNOWN: u64 = u64::MAX;
/// Bytes that are read at once.
const PIECE: usize = 256 << 10;
/// How long the totals may take, once the capture is over.
const TOTALS_LIMIT: Duration = Duration::from_secs(5);

/// What is known at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Totals {
    /// Packets that found the ring full.
    pub(super) drops: Option<u64>,
    /// CPU time of the process with the ring, ns.
    pub(super) cost_ns: u64,
}

/// Writes the packets of the ring to `to` until its other side is closed or shut down, then what is left, and the totals. The ring
/// takes `outgoing` packets, too, or not. Blocks.
pub(super) fn pass_on(mut ring: Ring, outgoing: bool, mut to: &UnixStream) -> io::Result<()> {
    let mut bytes = Vec::new();
    let mut closed: Option<Instant> = None;
    loop {
        if closed.is_none() && has_left(to)? {
            ring.close()?;
            closed = Some(Instant::now());
        }
        bytes.clear();
        let got = ring.take(&mut |frame| {
            if outgoing || !frame.outgoing {
                write_packet(&mut bytes, &frame);
            }
        });
        // The block is the kernel's again before this may wait.
        to.write_all(&bytes)?;
        match closed {
            _ if got => {}
            Some(at) if at.elapsed() > DRAIN => break,
            _ => ring.wait(RETIRE),
        }
    }
    let mut totals = vec![TOTALS];
    totals.extend(ring.drops().unwrap_or(UNKNOWN).to_be_bytes());
    totals.extend(thread_ns().to_be_bytes());
    to.write_all(&totals)
}

/// Whether the other side sends nothing more: it never sends anything.
fn has_left(stream: &UnixStream) -> io::Result<bool> {
    match rustix::net::recv(stream, &mut [0; 1], RecvFlags::PEEK | RecvFlags::DONTWAIT) {
        Ok(_) => Ok(true),
        Err(rustix::io::Errno::AGAIN | rustix::io::Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn write_packet(into: &mut Vec<u8>, frame: &Frame<'_>) {
    let Frame { at, length, data, network, hardware, outgoing } = *frame;
    into.push(PACKET);
    into.extend(at.as_secs().to_be_bytes());
    into.extend(at.subsec_nanos().to_be_bytes());
    into.extend(length.to_be_bytes());
    into.extend((data.len() as u32).to_be_bytes());
    into.extend((network as u16).to_be_bytes());
    into.extend(hardware.to_be_bytes());
    into.push(outgoing.into());
    into.extend(data);
}

/// The packets that another process passes on.
pub(super) struct Relayed {
    stream: UnixStream,
    bytes: Vec<u8>,
    totals: Option<Totals>,
    closed: Option<Instant>,
}

impl Relayed {
    pub(super) fn new(stream: UnixStream) -> io::Result<Self> {
        stream.set_read_timeout(Some(RETIRE))?;
        Ok(Self { stream, bytes: Vec::new(), totals: None, closed: None })
    }

    /// Asks for the end: what has passed up to now still comes, and then the totals.
    pub(super) fn close(&mut self) -> io::Result<()> {
        self.closed = Some(Instant::now());
        self.stream.shutdown(Shutdown::Write)
    }

    /// Passes the packets that have arrived to `each`; `false` if none has for [`RETIRE`], or none will.
    ///
    /// # Errors
    /// The other process has ended, or sends something else.
    pub(super) fn take(&mut self, each: &mut dyn FnMut(Frame<'_>)) -> io::Result<bool> {
        if self.totals.is_some() {
            return Ok(false);
        }
        let before = self.bytes.len();
        self.bytes.resize(before + PIECE, 0);
        let read = self.stream.read(&mut self.bytes[before..]);
        self.bytes.truncate(before + *read.as_ref().unwrap_or(&0));
        match read {
            Ok(0) => return Err(io::Error::other("the helper has ended")),
            Ok(_) => {}
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                let late = self.closed.is_some_and(|at| at.elapsed() > DRAIN + TOTALS_LIMIT);
                return if late { Err(io::Error::other("the helper does not end the capture")) } else { Ok(false) };
            }
            Err(error) => return Err(error),
        }
        let mut rest = self.bytes.as_slice();
        while let Some(found) = next(rest)? {
            match found {
                Found::Packet(frame, after) => {
                    each(frame);
                    rest = after;
                }
                Found::Totals(totals) => {
                    self.totals = Some(totals);
                    break;
                }
            }
        }
        let taken = self.bytes.len() - rest.len();
        self.bytes.drain(..taken);
        Ok(true)
    }

    /// The totals, once everything has arrived.
    pub(super) fn totals(&self) -> Option<Totals> {
        self.totals
    }
}

enum Found<'a> {
    /// A packet, and the bytes after it.
    Packet(Frame<'a>, &'a [u8]),
    Totals(Totals),
}

/// What is first in `bytes`, if it is whole.
fn next(bytes: &[u8]) -> io::Result<Option<Found<'_>>> {
    match bytes.first() {
        None => Ok(None),
        Some(&PACKET) => {
            let Some((head, rest)) = bytes.split_at_checked(HEAD) else { return Ok(None) };
            let kept = word(head, 17) as usize;
            if kept > MOST_KEPT {
                return Err(io::Error::other(format!("the helper sent a packet of {kept} bytes")));
            }
            let Some((data, rest)) = rest.split_at_checked(kept) else { return Ok(None) };
            let half = |at: usize| u16::from_be_bytes([head[at], head[at + 1]]);
            let frame = Frame {
                at: Duration::from_secs(long(head, 1)) + Duration::from_nanos(word(head, 9).into()),
                length: word(head, 13),
                data,
                network: half(21).into(),
                hardware: half(23),
                outgoing: head[25] != 0,
            };
            Ok(Some(Found::Packet(frame, rest)))
        }
        Some(&TOTALS) if bytes.len() < TOTALS_BYTES => Ok(None),
        Some(&TOTALS) => {
            let drops = Some(long(bytes, 1)).filter(|drops| *drops != UNKNOWN);
            Ok(Some(Found::Totals(Totals { drops, cost_ns: long(bytes, 9) })))
        }
        Some(_) => Err(io::Error::other("the helper sent something other than packets")),
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

fn long(bytes: &[u8], at: usize) -> u64 {
    u64::from(word(bytes, at)) << 32 | u64::from(word(bytes, at + 4))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A packet in its own memory, with all that its frame says.
    type Kept = (Duration, u32, Vec<u8>, usize, u16, bool);

    fn kept(frame: &Frame<'_>) -> Kept {
        let Frame { at, length, data, network, hardware, outgoing } = *frame;
        (at, length, data.to_vec(), network, hardware, outgoing)
    }

    proptest! {
        #[test]
        fn packets_survive_any_cutting_of_the_stream(
            packets in prop::collection::vec((any::<u32>(), any::<u32>(), prop::collection::vec(any::<u8>(), 0..200), any::<u16>(), any::<bool>()), 0..20),
            cut in 1usize..300,
        ) {
            let sent: Vec<Kept> = packets
                .into_iter()
                .map(|(at, length, data, half, outgoing)| (Duration::from_nanos(u64::from(at) * 7), length, data, half.into(), half, outgoing))
                .collect();
            let mut bytes = Vec::new();
            for (at, length, data, network, hardware, outgoing) in &sent {
                let (at, length, network, hardware, outgoing) = (*at, *length, *network, *hardware, *outgoing);
                write_packet(&mut bytes, &Frame { at, length, data, network, hardware, outgoing });
            }
            bytes.push(TOTALS);
            bytes.extend(3_u64.to_be_bytes());
            bytes.extend(4_u64.to_be_bytes());
            let (mut to, from) = UnixStream::pair().unwrap();
            let mut relayed = Relayed::new(from).unwrap();
            let mut received = Vec::new();
            for piece in bytes.chunks(cut) {
                to.write_all(piece).unwrap();
                prop_assert!(relayed.take(&mut |frame| received.push(kept(&frame))).unwrap());
            }
            prop_assert_eq!(received, sent);
            prop_assert_eq!(relayed.totals(), Some(Totals { drops: Some(3), cost_ns: 4 }));
            prop_assert!(!relayed.take(&mut |_| unreachable!()).unwrap());
        }

        #[test]
        fn any_bytes_end_in_packets_or_an_error(bytes in prop::collection::vec(any::<u8>(), 0..400)) {
            let mut rest = bytes.as_slice();
            while let Ok(Some(Found::Packet(frame, after))) = next(rest) {
                prop_assert!(frame.data.len() <= bytes.len());
                rest = after;
            }
        }
    }

    #[test]
    fn a_helper_that_ends_early_is_an_error_and_one_that_is_silent_is_waited_for() {
        let (to, from) = UnixStream::pair().unwrap();
        let mut relayed = Relayed::new(from).unwrap();
        assert!(!relayed.take(&mut |_| unreachable!()).unwrap());
        assert!(!has_left(&to).unwrap());
        relayed.close().unwrap();
        assert!(has_left(&to).unwrap());
        drop(to);
        assert!(relayed.take(&mut |_| unreachable!()).unwrap_err().to_string().contains("has ended"));
    }
}
