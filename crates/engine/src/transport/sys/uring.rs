//! Sends and receives by completion, many of them with one system call: io_uring(7).

use std::io;
use std::mem::ManuallyDrop;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::OnceLock;
use std::time::Duration;

use io_uring::{IoUring, opcode, squeue, types};
use text::{Text, say};

use crate::core::{EngineError, PageBuffer, Payload, now_ns};

/// An operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Op {
    /// Bytes of the ring's own payload.
    Send,
    /// Bytes that are discarded.
    Recv,
}

/// A completed operation.
#[derive(Debug)]
pub(crate) struct Completion {
    /// The flow's number among the sockets that the ring was made for.
    pub(crate) flow: usize,
    pub(crate) op: Op,
    /// Bytes moved; of a receive, 0 at the end.
    pub(crate) result: io::Result<usize>,
}

/// A ring over the sockets of one thread, which must be the thread that created it.
pub(crate) struct Uring {
    ring: IoUring,
    /// The source of sends, and the target of all receives, which overwrite each other. Only the kernel accesses them,
    /// so no reference to either is created. Freed only once no operation is outstanding.
    memory: ManuallyDrop<(Payload, PageBuffer)>,
    source: (*const u8, usize),
    sink: (*mut u8, usize),
    /// Operations submitted and not yet completed.
    out: usize,
}

/// Room for operations queued between two calls; a full queue is submitted early.
const OPERATIONS: usize = 4096;
/// How long a dropped ring waits for its operations to complete.
const RETURN_LIMIT_NS: u64 = 1_000_000_000;

/// Why this kernel gives us no rings, if so: found out once.
pub(crate) fn check() -> Result<(), EngineError> {
    static ANSWER: OnceLock<Option<i32>> = OnceLock::new();
    match ANSWER.get_or_init(|| build(8, 16).err().map(|error| error.raw_os_error().unwrap_or(0))) {
        None => Ok(()),
        Some(code) => Err(EngineError::unsupported(say!("`--wait uring` on this host"), remedy(*code))),
    }
}

fn remedy(code: i32) -> Text {
    match code {
        libc::EPERM | libc::EACCES => {
            say!(
                "its kernel refuses io_uring (sysctl kernel.io_uring_disabled, or a container's seccomp profile): use `--wait epoll`"
            )
        }
        libc::ENOSYS => say!("its kernel was built without io_uring: use `--wait epoll`"),
        libc::EINVAL => say!("its kernel is older than Linux 6.1: use `--wait epoll`"),
        code => say!("{}: use `--wait epoll`", io::Error::from_raw_os_error(code)),
    }
}

fn build(operations: usize, completions: usize) -> io::Result<IoUring> {
    IoUring::builder()
        // Completions are processed when this thread requests them, in one go, not whenever one arrives (Linux 6.1).
        .setup_single_issuer()
        .setup_defer_taskrun()
        .setup_cqsize(completions.next_power_of_two().clamp(16, 1 << 16) as u32)
        .build(operations.next_power_of_two().clamp(8, OPERATIONS) as u32)
}

impl Uring {
    /// A ring for `sockets`, with room for one send of `source` and one receive of `sink` bytes at most.
    pub(crate) fn new(sockets: &[BorrowedFd<'_>], source: Payload, sink: PageBuffer) -> io::Result<Self> {
        let ring = build(2 * sockets.len(), 4 * sockets.len())?;
        let numbers: Vec<_> = sockets.iter().map(AsRawFd::as_raw_fd).collect();
        ring.submitter().register_files(&numbers)?;
        let mut memory = ManuallyDrop::new((source, sink));
        let source = (memory.0.as_ptr(), memory.0.room());
        let sink = (memory.1.as_mut_ptr(), memory.1.len());
        Ok(Self { ring, memory, source, sink, out: 0 })
    }

    /// Queues one send or receive of `len` bytes, limited to the buffer. A flow has at most one of each outstanding.
    pub(crate) fn queue(&mut self, flow: usize, op: Op, len: usize) -> io::Result<()> {
        let socket = types::Fixed(flow as u32);
        let number = (flow as u64) << 1 | u64::from(op == Op::Recv);
        let entry = match op {
            Op::Send => {
                let len = len.min(self.source.1);
                // A slice that is as long as the room lies within the payload, wherever a block begins.
                let from = self.source.0.wrapping_add(self.memory.0.next(len));
                opcode::Send::new(socket, from, len as u32).flags(libc::MSG_NOSIGNAL).build()
            }
            Op::Recv => opcode::Recv::new(socket, self.sink.0, len.min(self.sink.1) as u32).build(),
        };
        self.push(&entry.user_data(number))
    }

    fn push(&mut self, entry: &squeue::Entry) -> io::Result<()> {
        loop {
            // SAFETY: the entry points into `source` or `sink`, which live until no operation is outstanding (see `drop`), are as long as
            // the entry says, and are touched by the kernel alone; its socket is registered with the ring.
            if unsafe { self.ring.submission().push(entry) }.is_ok() {
                self.out += 1;
                return Ok(());
            }
            self.ring.submit()?;
        }
    }

    /// Submits all operations and adds the completed ones to `done`. With a `pause` it sleeps for the first one, at
    /// most that long.
    pub(crate) fn turn(&mut self, pause: Duration, done: &mut Vec<Completion>) -> io::Result<()> {
        // Requesting one completion makes the kernel check for arrivals also if there is no time to wait.
        let limit = types::Timespec::from(pause);
        match self.ring.submitter().submit_with_args(1, &types::SubmitArgs::new().timespec(&limit)) {
            Ok(_) => {}
            Err(error) if matches!(error.raw_os_error(), Some(libc::ETIME | libc::EINTR | libc::EBUSY)) => {}
            Err(error) => return Err(error),
        }
        let before = done.len();
        done.extend(self.ring.completion().map(|entry| Completion {
            flow: (entry.user_data() >> 1) as usize,
            op: if entry.user_data() & 1 == 0 { Op::Send } else { Op::Recv },
            result: usize::try_from(entry.result()).map_err(|_| io::Error::from_raw_os_error(-entry.result())),
        }));
        self.out -= done.len() - before;
        Ok(())
    }
}

impl Drop for Uring {
    fn drop(&mut self) {
        let deadline = now_ns() + RETURN_LIMIT_NS;
        let mut done = Vec::new();
        while self.out > 0 && now_ns() < deadline {
            let all = types::CancelBuilder::any();
            // An operation that is completing cannot be cancelled; it completes with the rest.
            let _ = self
                .ring
                .submitter()
                .register_sync_cancel(Some(types::Timespec::from(Duration::from_millis(100))), all);
            if self.turn(Duration::from_millis(10), &mut done).is_err() {
                break;
            }
            done.clear();
        }
        // The kernel releases the sockets now, not when it cleans up the ring.
        let _ = self.ring.submitter().unregister_files();
        if self.out == 0 {
            // SAFETY: no operation is outstanding, so nothing points into the memory any more, and it is not used after this.
            unsafe { ManuallyDrop::drop(&mut self.memory) };
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use model::Pattern;
    use std::os::fd::AsFd;
    use std::os::unix::net::UnixStream;

    #[test]
    fn a_refusal_names_its_remedy() {
        for code in [libc::EPERM, libc::ENOSYS, libc::EINVAL, libc::ENOMEM] {
            let text = remedy(code).plain();
            assert!(text.contains("`--wait epoll`"), "{text}");
        }
        assert!(remedy(libc::EPERM).plain().contains("kernel.io_uring_disabled"));
    }

    #[test]
    fn operations_complete_with_their_flow_and_the_rest_are_cancelled() {
        if check().is_err() {
            println!("SKIPPED: operations_complete_with_their_flow_and_the_rest_are_cancelled: no io_uring");
            return;
        }
        let (one, two) = UnixStream::pair().unwrap();
        let sockets = [one.as_fd(), two.as_fd()];
        let payload = Payload::new(&model::Spec::new("tcp", Pattern::Stream), 64, false, 1);
        let mut ring = Uring::new(&sockets, payload, PageBuffer::filled(64, 0)).unwrap();
        let mut done = Vec::new();
        ring.queue(1, Op::Recv, 64).unwrap();
        ring.turn(Duration::ZERO, &mut done).unwrap();
        assert!(done.is_empty(), "nothing has arrived");
        ring.queue(0, Op::Send, 10).unwrap();
        while done.len() < 2 {
            ring.turn(Duration::from_millis(100), &mut done).unwrap();
        }
        done.sort_by_key(|completion| completion.flow);
        let reported: Vec<_> = done.iter().map(|one| (one.flow, one.op, one.result.as_ref().ok().copied())).collect();
        assert_eq!(reported, [(0, Op::Send, Some(10)), (1, Op::Recv, Some(10))]);
        ring.queue(1, Op::Recv, 64).unwrap();
        ring.turn(Duration::ZERO, &mut done).unwrap();
        drop(ring);
        std::io::Write::write_all(&mut &one, b"late").unwrap();
        let mut late = [0; 4];
        std::io::Read::read_exact(&mut &two, &mut late).unwrap();
        assert_eq!(&late, b"late", "no order took what came after the ring");
    }
}
