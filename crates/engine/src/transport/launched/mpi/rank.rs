//! A process that mpirun started, before and after the measuring.

use std::io;

use text::say;

use super::{CLOSE_NS, CONTROL, HELLO_LIMIT_NS, MPI, OVER, Turn, launcher};
use crate::core::{EngineError, now_ns};
use crate::transport::sys::mpi::{Abort, Mpi};

/// This process as one of mpirun's two: what happens before and after the measuring.
#[derive(Debug)]
pub struct Rank {
    number: u32,
    abort: Abort,
}

impl Rank {
    /// Opens the library of the mpirun that started this process and joins the other one (MPI_Init_thread), waiting
    /// for it. Once per process. Any number of processes other than two is an error.
    pub fn join() -> Result<Self, EngineError> {
        let (flavour, _) = launcher().ok_or_else(|| {
            EngineError::unsupported("mpi without mpirun", say!("use `mpirun -n 2 thru curve --transport mpi`"))
        })?;
        let (mpi, abort) = Mpi::start(flavour)?;
        let (rank, size) = (mpi.rank, mpi.size);
        // It is the only one.
        MPI.start(mpi);
        let joined = Self { number: rank, abort };
        if size != 2 {
            joined.finish();
            return Err(EngineError::unsupported(
                say!("mpi between {size} processes (this is number {rank})"),
                say!("a measurement has two ends; use `mpirun -n 2`"),
            ));
        }
        Ok(joined)
    }

    /// 0 or 1.
    #[must_use]
    pub fn number(&self) -> u32 {
        self.number
    }

    /// Sends a text to the other process, which must [`receive`](Self::receive) it.
    pub fn send(&self, text: &str) -> Result<(), EngineError> {
        let failed = |source| EngineError::socket("send a message to", "the other MPI process", source);
        Turn::wait(now_ns() + HELLO_LIMIT_NS)?.send_control(CONTROL, text.as_bytes()).map_err(failed)
    }

    /// The text that the other process sends, waiting at most `limit_ns`.
    pub fn receive(&self, limit_ns: u64) -> Result<String, EngineError> {
        let failed = |source| EngineError::socket("receive a message from", "the other MPI process", source);
        let deadline = now_ns().saturating_add(limit_ns);
        let bytes = Turn::wait(deadline)?.receive_control(CONTROL, deadline).map_err(failed)?;
        String::from_utf8(bytes).map_err(|_| failed(io::ErrorKind::InvalidData.into()))
    }

    /// Announces to the other process that no trial will follow.
    pub fn end(&self) -> Result<(), EngineError> {
        let failed = |source| EngineError::socket("send a message to", "the other MPI process", source);
        Turn::wait(now_ns() + CLOSE_NS)?.send_control(OVER, &[]).map_err(failed)
    }

    /// Whether the other process has announced that no trial will follow. False while a trial runs.
    #[must_use]
    pub fn has_ended(&self) -> bool {
        let Some(turn) = MPI.take().map(Turn) else { return false };
        turn.0.probe(turn.other(), OVER).is_ok_and(|there| there.is_some())
            && turn.receive_control(OVER, u64::MAX).is_ok()
    }

    /// Ends MPI (MPI_Finalize), which waits for the other process to do the same. If a trial still runs, both
    /// processes are aborted.
    pub fn finish(self) {
        match Turn::wait(now_ns() + CLOSE_NS).ok().and_then(|turn| turn.0.into_inner()) {
            Some(mpi) => mpi.finalize(self.abort),
            None => self.abort(1),
        }
    }

    /// Ends both processes with an exit code (MPI_Abort).
    pub fn abort(self, code: u8) {
        self.abort.abort(i32::from(code));
    }
}
