//! PVM: two tasks of a parallel virtual machine, over its messages. Any process may join; pvm_spawn starts the far
//! end's agent ([`Task`]), and the two workers find each other by their task numbers.

use std::io;
use std::os::fd::BorrowedFd;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use model::{Direction, NamedTransport, SocketFacts, Spec};
use text::say;

use super::exclusive::{Exclusive, ExclusiveHandle};
use crate::core::{EngineError, now_ns};
use crate::transport::handshake::WELCOME;
use crate::transport::sys::pvm::{Pvm, Tid};
use crate::transport::{
    Breaker, Capabilities, Channel, Cookie, FlowHello, HELLO_BYTES, Kind, Launcher, Link, ListenOptions, Listener,
    Rendezvous, Transport,
};

/// The transport.
pub(crate) struct VirtualMachine;

/// Tags of messages outside trials.
const CONTROL: i32 = 1;
const HELLO: i32 = 2;
const WELCOMED: i32 = 3;
const EXITED: i32 = 4;
/// First tag of trials; each has one for its payload and one for receipts.
const FIRST_TAG: i32 = 16;
const TAGS: u32 = 1 << 20;
const ANYBODY: Tid = -1;

/// How long a blocking call waits before its machine checks the stop flag.
const WAIT_US: u32 = 20_000;
/// How long the two ends wait for each other at the beginning.
const HELLO_LIMIT_NS: u64 = 10_000_000_000;
/// How long a closing channel waits for the other end's last message.
const CLOSE_NS: u64 = 5_000_000_000;
/// PVM accepts messages until memory is full. A sender therefore stops at this much without a receipt, and a receiver
/// sends one after a quarter of it. Each message counts for at least [`MIN_MESSAGE_BYTES`], because it takes memory
/// beside its bytes.
const WINDOW: u64 = 4 << 20;
const MIN_MESSAGE_BYTES: u64 = 32 << 10;

/// libpvm exists once per process.
static PVM: Exclusive<Pvm> = Exclusive::new();

/// This process as a task of the virtual machine, for one caller.
struct Membership {
    pvm: ExclusiveHandle<Pvm>,
    tid: Tid,
    /// Leaves with the caller, so that nothing of a trial is left in the virtual machine.
    leaves: bool,
}

impl Membership {
    /// Joins; the first call opens the library.
    fn take(deadline_ns: u64) -> Result<Self, EngineError> {
        static OPENING: Mutex<()> = Mutex::new(());
        let opening = OPENING.lock().unwrap_or_else(PoisonError::into_inner);
        if !PVM.is_started() {
            PVM.start(Pvm::open()?);
        }
        drop(opening);
        let busy = || EngineError::Thread("PVM is still busy with the previous trial".into());
        let pvm = PVM.wait(deadline_ns).ok_or_else(busy)?;
        let tid = pvm.join()?;
        Ok(Self { pvm, tid, leaves: true })
    }

    fn stay(mut self) -> Self {
        self.leaves = false;
        self
    }
}

impl Drop for Membership {
    fn drop(&mut self) {
        if self.leaves {
            self.pvm.leave();
        }
    }
}

/// This process as a task: what happens before the measuring.
#[derive(Debug, Clone, Copy)]
pub struct Task(Tid);

impl Task {
    /// Starts `program` with `arguments` as another task, on a host that PVM chooses, and waits at most `limit_ns` for
    /// the first text that it sends to its parent, which is returned. The path must be valid on every host.
    pub fn spawn(program: &Path, arguments: &[&str], limit_ns: u64) -> Result<String, EngineError> {
        let membership = Membership::take(now_ns())?.stay();
        let pvm = &membership.pvm;
        let failed = |source| EngineError::socket("start a PVM task of", program.display(), source);
        let task = pvm.spawn(program, arguments).map_err(failed)?;
        let deadline = now_ns() + limit_ns;
        let text = receive_control(pvm, task, CONTROL, deadline).map_err(failed)?.1;
        String::from_utf8(text).map_err(|_| failed(io::ErrorKind::InvalidData.into()))
    }

    /// The task that started this process. An error for a process that pvm_spawn did not start.
    pub fn parent() -> Result<Self, EngineError> {
        let parent = Membership::take(now_ns())?.stay().pvm.parent();
        parent.map(Self).ok_or_else(|| EngineError::unsupported("a task without a parent", "pvm_spawn starts it"))
    }

    /// Sends a text to it.
    pub fn send(&self, text: &str) -> Result<(), EngineError> {
        let failed = |source| EngineError::socket("send a message to", format!("PVM task {:x}", self.0), source);
        Membership::take(now_ns() + CLOSE_NS)?.stay().pvm.send(self.0, CONTROL, text.as_bytes()).map_err(failed)
    }

    /// Whether it has ended.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        PVM.take().is_some_and(|pvm| pvm.has_ended(self.0))
    }
}

/// Leaves the virtual machine, where this process has joined it.
pub fn leave() {
    if let Some(pvm) = PVM.take() {
        pvm.leave();
    }
}

/// Waits for a message outside trials: its sender and its bytes. Ends early if `from` is a task that has ended.
fn receive_control(pvm: &Pvm, from: Tid, tag: i32, deadline_ns: u64) -> io::Result<(Tid, Vec<u8>)> {
    loop {
        if let Some(message) = pvm.next(from, tag, WAIT_US)? {
            let mut bytes = vec![0; message.length];
            pvm.take(&mut bytes)?;
            return Ok((message.from, bytes));
        }
        if from != ANYBODY && pvm.has_ended(from) {
            return Err(io::Error::new(io::ErrorKind::ConnectionReset, "it has ended"));
        }
        if now_ns() > deadline_ns {
            return Err(io::ErrorKind::TimedOut.into());
        }
    }
}

impl Transport for VirtualMachine {
    fn named(&self) -> &'static NamedTransport {
        &model::transport::PVM
    }

    fn about(&self) -> &'static str {
        "messages between two tasks of a parallel virtual machine (PVM 3)"
    }

    fn capabilities(&self) -> Capabilities {
        Capabilities { pollable: false, ..Capabilities::STREAM }
    }

    fn launcher(&self) -> Option<Launcher> {
        Some(Launcher::PvmSpawn)
    }

    fn check(&self, spec: &Spec) -> Result<(), EngineError> {
        let twice = spec.direction == Direction::Both && spec.is_stream();
        if spec.flows != 1 || twice {
            return Err(EngineError::unsupported(
                if twice { "a stream in both directions on pvm" } else { "several flows on pvm" },
                say!("its two tasks have one channel; leave `--flows` and `--both` out"),
            ));
        }
        Ok(())
    }

    fn meets_in_sight(&self) -> bool {
        false
    }

    fn listen(&self, _: &Spec, listen: &ListenOptions) -> Result<Box<dyn Listener>, EngineError> {
        let membership = Membership::take(now_ns() + CLOSE_NS)?;
        Ok(Box::new(TaskListener { tid: membership.tid, membership: Some(membership), cookie: listen.cookie }))
    }

    fn connect(&self, _: &Spec, to: &Rendezvous, hello: &FlowHello) -> Result<Link, EngineError> {
        let membership = Membership::take(now_ns() + CLOSE_NS)?;
        let failed = |source| EngineError::socket("meet", "the other PVM task", source);
        let number = to.path.as_deref().and_then(Path::to_str).and_then(|text| text.parse().ok());
        let other: Tid = number.ok_or_else(|| failed(io::ErrorKind::InvalidInput.into()))?;
        membership.pvm.send(other, HELLO, &hello.encode()).map_err(failed)?;
        let answer = receive_control(&membership.pvm, other, WELCOMED, now_ns() + HELLO_LIMIT_NS).map_err(failed)?.1;
        if answer != [WELCOME] {
            return Err(EngineError::Peer { peer: "the other PVM task".into(), what: "is not thru".into() });
        }
        Ok(Link::of(TaskChannel::new(membership, other, hello).map_err(failed)?))
    }
}

struct TaskListener {
    tid: Tid,
    /// Passed on to the channel.
    membership: Option<Membership>,
    cookie: Cookie,
}

impl Listener for TaskListener {
    fn rendezvous(&self) -> Rendezvous {
        Rendezvous { path: Some(PathBuf::from(self.tid.to_string())), cookie: self.cookie, ..Rendezvous::default() }
    }

    fn accept(&mut self, deadline_ns: u64) -> Result<(FlowHello, Link), EngineError> {
        let failed = |source| EngineError::socket("wait for", "the other PVM task", source);
        let membership = self.membership.take().ok_or_else(|| failed(io::ErrorKind::Unsupported.into()))?;
        loop {
            let (from, bytes) = receive_control(&membership.pvm, ANYBODY, HELLO, deadline_ns).map_err(failed)?;
            // Other senders, and remains of a failed trial, are not answered.
            if bytes.len() == HELLO_BYTES
                && let Some(hello) = FlowHello::decode(&bytes, [&self.cookie])
            {
                membership.pvm.send(from, WELCOMED, &[WELCOME]).map_err(failed)?;
                return Ok((hello, Link::of(TaskChannel::new(membership, from, &hello).map_err(failed)?)));
            }
        }
    }
}

/// A stream of bytes whose parts are PVM messages: each send is one message, and an empty one is the last.
struct TaskChannel {
    membership: Membership,
    other: Tid,
    tag: i32,
    blocking: bool,
    finished: bool,
    ended: bool,
    /// Bytes of the message that is being taken.
    left: usize,
    /// Bytes sent, and how many of them the other end is known to have received.
    sent: u64,
    receipted: u64,
    /// Bytes received, and how many of them the other end knows of.
    received: u64,
    reported: u64,
}

impl TaskChannel {
    fn new(membership: Membership, other: Tid, hello: &FlowHello) -> io::Result<Self> {
        membership.pvm.notify_exit(other, EXITED)?;
        Ok(Self {
            membership,
            other,
            tag: FIRST_TAG + 2 * i32::try_from(hello.trial % TAGS).unwrap_or_default(),
            blocking: true,
            finished: false,
            ended: false,
            left: 0,
            sent: 0,
            receipted: 0,
            received: 0,
            reported: 0,
        })
    }

    fn wait_us(&self) -> u32 {
        if self.blocking { WAIT_US } else { 0 }
    }

    /// Nothing has arrived: it is early, or the other end has ended.
    #[cold]
    fn nothing(&self) -> io::Error {
        let ended =
            self.blocking && self.membership.pvm.next(ANYBODY, EXITED, 0).is_ok_and(|message| message.is_some());
        if ended { io::ErrorKind::ConnectionReset.into() } else { io::ErrorKind::WouldBlock.into() }
    }

    /// Takes receipts until the window has room again.
    fn make_room(&mut self) -> io::Result<()> {
        while self.sent - self.receipted >= WINDOW {
            let receipt = self.membership.pvm.next(self.other, self.tag + 1, self.wait_us())?;
            receipt.filter(|message| message.length == 8).ok_or_else(|| self.nothing())?;
            let mut bytes = [0; 8];
            self.membership.pvm.take(&mut bytes)?;
            // A receipt that is older than an answer has no new information.
            self.receipted = u64::from_be_bytes(bytes).clamp(self.receipted, self.sent);
        }
        Ok(())
    }

    /// The next message: its length.
    #[inline]
    fn next(&mut self, wait_us: u32) -> io::Result<Option<usize>> {
        let Some(message) = self.membership.pvm.next(self.other, self.tag, wait_us)? else { return Ok(None) };
        // An end that answers has received what was sent before.
        self.receipted = self.sent;
        self.ended |= message.length == 0;
        self.received += cost(message.length);
        if self.received - self.reported >= WINDOW / 4 && !self.ended {
            self.membership.pvm.send(self.other, self.tag + 1, &self.received.to_be_bytes())?;
            self.reported = self.received;
        }
        Ok(Some(message.length))
    }

    /// Sends the last message and waits for the other end's, so that nothing of this trial is left.
    fn close_handshake(&mut self) -> io::Result<()> {
        let deadline = now_ns() + CLOSE_NS;
        self.finish_sending()?;
        while !self.ended {
            if self.next(WAIT_US)?.is_none() && (now_ns() > deadline || self.membership.pvm.has_ended(self.other)) {
                return Err(io::ErrorKind::TimedOut.into());
            }
        }
        while self.membership.pvm.next(self.other, self.tag + 1, 0)?.is_some() {}
        Ok(())
    }
}

fn cost(length: usize) -> u64 {
    (length as u64).max(MIN_MESSAGE_BYTES)
}

impl Channel for TaskChannel {
    const KIND: Kind = Kind::Stream;

    #[inline]
    fn send(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if self.sent - self.receipted >= WINDOW {
            self.make_room()?;
        }
        self.membership.pvm.send(self.other, self.tag, bytes)?;
        self.sent += cost(bytes.len());
        // A reply tells the other end that its messages were received.
        self.reported = self.received;
        Ok(bytes.len())
    }

    #[inline]
    fn recv(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.left == 0 {
            if self.ended {
                return Ok(0);
            }
            self.left = self.next(self.wait_us())?.ok_or_else(|| self.nothing())?;
        }
        let count = self.left.min(into.len());
        self.membership.pvm.take(&mut into[..count])?;
        self.left -= count;
        Ok(count)
    }

    fn set_nonblocking(&mut self, on: bool) -> io::Result<()> {
        self.blocking = !on;
        Ok(())
    }

    fn poll_fd(&self) -> Option<BorrowedFd<'_>> {
        None
    }

    fn finish_sending(&mut self) -> io::Result<()> {
        if std::mem::replace(&mut self.finished, true) {
            return Ok(());
        }
        self.membership.pvm.send(self.other, self.tag, &[])
    }

    fn facts(&self) -> SocketFacts {
        SocketFacts {
            local: Some(format!("task t{:x}", self.membership.tid)),
            peer: Some(format!("task t{:x}", self.other)),
            ..SocketFacts::default()
        }
    }

    fn breaker(&self) -> Breaker {
        Breaker::default()
    }
}

impl Drop for TaskChannel {
    fn drop(&mut self) {
        // An end that does not answer has ended, and its agent reports it.
        let _ = self.close_handshake();
    }
}
