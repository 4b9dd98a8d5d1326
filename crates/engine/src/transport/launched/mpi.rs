//! MPI: two processes that `mpirun -n 2` started, over whatever MPI uses between them.
//!
//! The library of the MPI that started the process ([`launched`]) is opened at run time. MPI exists in that process
//! alone, so it must be the worker itself; [`Rank`] is what the program needs to make it one.

mod rank;

use std::io;
use std::os::fd::BorrowedFd;

use model::{Direction, NamedTransport, SocketFacts, Spec};
use text::say;

use super::exclusive::{Exclusive, ExclusiveHandle};
use crate::core::{EngineError, now_ns};
use crate::transport::handshake::WELCOME;
use crate::transport::sys::mpi::{Flavour, Mpi, Pending};
use crate::transport::{
    Breaker, Capabilities, Channel, FlowHello, HELLO_BYTES, Kind, Launcher, Link, ListenOptions, Listener, Rendezvous,
    Transport,
};

pub use rank::Rank;

/// The transport.
pub(crate) struct MessagePassing;

/// Tags of messages outside trials.
const CONTROL: i32 = 0;
const HELLO: i32 = 1;
const WELCOMED: i32 = 2;
const OVER: i32 = 3;
/// First tag of trials. A tag may go up to 32,767 in every MPI (MPI 3.1, 8.1.2).
const FIRST_TAG: i32 = 16;
const TAGS: u32 = 32_000;

/// How long a call waits for a message before its machine checks the stop flag.
const WAIT_NS: u64 = 20_000_000;
/// How long the active end waits for the passive one's welcome.
const HELLO_LIMIT_NS: u64 = 10_000_000_000;
/// How long a closing channel waits for the other end's last message.
const CLOSE_NS: u64 = 5_000_000_000;
/// Messages that may be in flight before one is sent in synchronous mode; MPI itself lets a sender fill the memory
/// ahead of a receiver.
const UNMARKED: u32 = 64;
/// Longer messages wait for their receiver anyway: MPIs send some ten KiB ahead of the receiver at most.
const LONGEST_MARK: usize = 64 << 10;

/// MPI exists once per process.
static MPI: Exclusive<Mpi> = Exclusive::new();

/// The rank that mpirun gave this process, and the MPI; `None` for a process that mpirun did not start.
fn launcher() -> Option<(Flavour, u32)> {
    let number = |name| std::env::var(name).ok()?.parse().ok();
    number("OMPI_COMM_WORLD_RANK")
        .map(|rank| (Flavour::OpenMpi, rank))
        .or_else(|| number("PMI_RANK").map(|rank| (Flavour::Mpich, rank)))
}

/// The rank that mpirun gave this process; `None` for a process that mpirun did not start.
#[must_use]
pub fn launched() -> Option<u32> {
    launcher().map(|(_, rank)| rank)
}

/// Whether mpirun set an environment variable for its own process only: a child that inherits it would take itself for
/// another rank.
#[must_use]
pub fn is_launchers(variable: &str) -> bool {
    const PREFIXES: [&str; 9] = ["OMPI_", "PMIX_", "PMI_", "PMI2_", "ORTE_", "OPAL_", "HYDRA_", "HYDI_", "MPI_LOCAL"];
    PREFIXES.iter().any(|prefix| variable.starts_with(prefix))
}

/// The right to call MPI.
struct Turn(ExclusiveHandle<Mpi>);

impl Turn {
    fn wait(deadline_ns: u64) -> Result<Self, EngineError> {
        if !MPI.is_started() {
            return Err(EngineError::unsupported(
                "mpi in a process that mpirun did not start",
                say!("use `mpirun -n 2 thru curve --transport mpi`, without HOST"),
            ));
        }
        let busy = || EngineError::Thread("MPI is still busy with the previous trial".into());
        MPI.wait(deadline_ns).map(Self).ok_or_else(busy)
    }

    /// The other end's rank; there are two.
    fn other(&self) -> u32 {
        1 - self.0.rank
    }

    /// Sends a message outside trials.
    fn send_control(&self, tag: i32, bytes: &[u8]) -> io::Result<()> {
        self.0.send(self.other(), tag, bytes, HELLO_LIMIT_NS, &mut || Ok(()))
    }

    /// Waits for a message outside trials.
    fn receive_control(&self, tag: i32, deadline_ns: u64) -> io::Result<Vec<u8>> {
        loop {
            if let Some(length) = self.0.probe(self.other(), tag)? {
                let mut bytes = vec![0; length];
                self.0.receive(self.other(), tag, &mut bytes)?;
                return Ok(bytes);
            }
            if now_ns() > deadline_ns {
                return Err(io::ErrorKind::TimedOut.into());
            }
            std::thread::sleep(std::time::Duration::from_micros(200));
        }
    }
}

impl Transport for MessagePassing {
    fn named(&self) -> &'static NamedTransport {
        &model::transport::MPI
    }

    fn about(&self) -> &'static str {
        "messages between the two processes of `mpirun -n 2` (OpenMPI, MPICH)"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { pollable: false, ..Capabilities::STREAM }
    }

    fn launcher(&self) -> Option<Launcher> {
        Some(Launcher::Mpirun)
    }

    fn check(&self, spec: &Spec) -> Result<(), EngineError> {
        let twice = spec.direction == Direction::Both && spec.is_stream();
        if spec.flows != 1 || spec.processes != 1 || twice {
            return Err(EngineError::unsupported(
                if twice { "a stream in both directions on mpi" } else { "several flows or processes on mpi" },
                say!("its two processes have one channel; leave `--flows`, `--processes` and `--both` out"),
            ));
        }
        Ok(())
    }

    fn meets_in_sight(&self) -> bool {
        false
    }

    fn listen(&self, spec: &Spec, listen: &ListenOptions) -> Result<Box<dyn Listener>, EngineError> {
        let turn = Turn::wait(now_ns() + CLOSE_NS)?;
        Ok(Box::new(MpiListener { turn: Some(turn), cookie: listen.cookie, stall_ns: spec.stall_ns }))
    }

    fn connect(&self, spec: &Spec, _: &Rendezvous, hello: &FlowHello) -> Result<Link, EngineError> {
        let turn = Turn::wait(now_ns() + CLOSE_NS)?;
        let failed = |source| EngineError::socket("meet", "the other MPI process", source);
        turn.send_control(HELLO, &hello.encode()).map_err(failed)?;
        let answer = turn.receive_control(WELCOMED, now_ns() + HELLO_LIMIT_NS).map_err(failed)?;
        if answer != [WELCOME] {
            return Err(EngineError::Peer { peer: "the other MPI process".into(), what: "is not thru".into() });
        }
        Ok(Link::of(MpiChannel::new(turn, hello, spec.stall_ns)))
    }
}

struct MpiListener {
    /// Passed on to the channel.
    turn: Option<Turn>,
    cookie: crate::transport::Cookie,
    stall_ns: u64,
}

impl Listener for MpiListener {
    fn rendezvous(&self) -> Rendezvous {
        Rendezvous { cookie: self.cookie, ..Rendezvous::default() }
    }

    fn accept(&mut self, deadline_ns: u64) -> Result<(FlowHello, Link), EngineError> {
        let failed = |source| EngineError::socket("wait for", "the other MPI process", source);
        let turn = self.turn.take().ok_or_else(|| failed(io::ErrorKind::Unsupported.into()))?;
        loop {
            let bytes = turn.receive_control(HELLO, deadline_ns).map_err(failed)?;
            // One of an earlier trial that failed is not answered.
            if bytes.len() == HELLO_BYTES
                && let Some(hello) = FlowHello::decode(&bytes, [&self.cookie])
            {
                turn.send_control(WELCOMED, &[WELCOME]).map_err(failed)?;
                return Ok((hello, Link::of(MpiChannel::new(turn, &hello, self.stall_ns))));
            }
        }
    }
}

/// A stream of bytes whose parts are MPI messages: each send is one message, and an empty one is the last.
struct MpiChannel {
    turn: Turn,
    tag: i32,
    stall_ns: u64,
    finished: bool,
    ended: bool,
    /// Messages sent since the last received or synchronous one.
    unmarked: u32,
    mark: Pending,
    /// What arrived while a send was waiting, or exceeded its buffer.
    early: Early,
}

/// Bytes that wait for room. The memory is reused.
#[derive(Default)]
struct Early {
    memory: Vec<u8>,
    from: usize,
    to: usize,
}

impl Early {
    fn is_empty(&self) -> bool {
        self.from == self.to
    }

    /// Room for `length` bytes behind those that wait; they are counted as filled.
    fn room(&mut self, length: usize) -> &mut [u8] {
        let from = self.to;
        self.to += length;
        if self.memory.len() < self.to {
            self.memory.resize(self.to, 0);
        }
        &mut self.memory[from..self.to]
    }

    /// Moves as many as fit.
    fn take(&mut self, into: &mut [u8]) -> usize {
        let count = (self.to - self.from).min(into.len());
        into[..count].copy_from_slice(&self.memory[self.from..self.from + count]);
        self.from += count;
        if self.is_empty() {
            (self.from, self.to) = (0, 0);
        }
        count
    }
}

impl MpiChannel {
    fn new(turn: Turn, hello: &FlowHello, stall_ns: u64) -> Self {
        Self {
            turn,
            tag: FIRST_TAG + i32::try_from(hello.trial % TAGS).unwrap_or_default(),
            stall_ns,
            finished: false,
            ended: false,
            unmarked: 0,
            mark: Pending::default(),
            early: Early::default(),
        }
    }

    /// Sends a message, the empty one too.
    fn deliver(&mut self, bytes: &[u8]) -> io::Result<()> {
        let (mpi, other, tag, ended) = (&*self.turn.0, self.turn.other(), self.tag, &mut self.ended);
        let early = &mut self.early;
        let limit = 2 * self.stall_ns + CLOSE_NS;
        // Two ends that both send a large block must not wait for each other.
        mpi.send(other, tag, bytes, limit, &mut || {
            if !*ended && let Some(length) = mpi.probe(other, tag)? {
                *ended = length == 0;
                mpi.receive(other, tag, early.room(length))?;
            }
            Ok(())
        })
    }

    /// Sends a message once an earlier one of this kind has been received, to limit the number in flight.
    fn mark(&mut self, bytes: &[u8]) -> io::Result<()> {
        let deadline = now_ns() + WAIT_NS;
        while !self.turn.0.taken(&mut self.mark)? {
            if now_ns() > deadline {
                return Err(io::ErrorKind::WouldBlock.into());
            }
        }
        self.turn.0.send_marked(self.turn.other(), self.tag, bytes, &mut self.mark)?;
        self.unmarked = 0;
        Ok(())
    }

    /// The next message, found by polling, as MPI does.
    #[inline]
    fn next(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let (mpi, other) = (&*self.turn.0, self.turn.other());
        let late = || io::Error::from(io::ErrorKind::WouldBlock);
        if into.len() > SMALL_ROOM {
            return mpi.receive_within(WAIT_NS, other, self.tag, into)?.ok_or_else(late);
        }
        // MPI truncates a message that is longer than its buffer. A message of several small blocks is split here.
        let count = mpi.receive_within(WAIT_NS, other, self.tag, self.early.room(LONGEST_MARK));
        self.early.to = *count.as_ref().unwrap_or(&None).as_ref().unwrap_or(&0);
        match count? {
            Some(_) => Ok(self.early.take(into)),
            None => Err(late()),
        }
    }

    /// Sends the last message and waits for the other end's, so that nothing of this trial is left in MPI.
    fn close_handshake(&mut self) -> io::Result<()> {
        let deadline = now_ns() + CLOSE_NS;
        if !self.finished {
            self.finish_sending()?;
        }
        let mut sink = Vec::new();
        while !self.ended || !self.turn.0.taken(&mut self.mark)? {
            if let Some(length) = self.turn.0.probe(self.turn.other(), self.tag)? {
                self.ended |= length == 0;
                sink.resize(length, 0);
                self.turn.0.receive(self.turn.other(), self.tag, &mut sink)?;
            }
            if now_ns() > deadline {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
        Ok(())
    }
}

/// Smaller buffers are filled by way of a larger one.
const SMALL_ROOM: usize = 1024;

impl Channel for MpiChannel {
    const KIND: Kind = Kind::Stream;

    #[inline]
    fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.unmarked >= UNMARKED && bytes.len() <= LONGEST_MARK {
            self.mark(bytes)?;
        } else {
            self.deliver(bytes)?;
            self.unmarked += 1;
        }
        Ok(bytes.len())
    }

    #[inline]
    fn recv(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if !self.early.is_empty() {
            self.unmarked = 0;
            return Ok(self.early.take(into));
        }
        if self.ended {
            return Ok(0);
        }
        let count = self.next(into)?;
        self.unmarked = 0;
        self.ended = count == 0;
        Ok(count)
    }

    fn set_nonblocking(&mut self, _: bool) -> io::Result<()> {
        // A thread has one channel, and MPI spins in any case.
        Ok(())
    }

    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn finish_sending(&mut self) -> io::Result<()> {
        if std::mem::replace(&mut self.finished, true) { Ok(()) } else { self.deliver(&[]) }
    }

    fn facts(&self) -> SocketFacts {
        let mpi = &*self.turn.0;
        SocketFacts {
            local: Some(format!("rank {} ({})", mpi.rank, mpi.version)),
            peer: Some(format!("rank {}", self.turn.other())),
            ..SocketFacts::default()
        }
    }

    fn breaker(&self) -> Breaker {
        Breaker::default()
    }
}

impl Drop for MpiChannel {
    fn drop(&mut self) {
        // An end that does not answer is about to be ended by its mpirun, together with this one.
        let _ = self.close_handshake();
    }
}
