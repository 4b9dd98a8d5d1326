//! Greetings of the connections that a listener accepts. Each has a thread of its own, so that a silent connection delays no other.

use std::io::{self, ErrorKind};
use std::os::fd::AsFd;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{FlowHello, Link};
use crate::core::{EngineError, now_ns};

/// Most greetings at once; a connection more is closed.
const MOST: usize = 4_096;
/// Interval of the checks for the end.
const STEP_NS: i64 = 100_000_000;
/// The same while a greeting is under way, whose end should be seen soon.
const SHORT_STEP_NS: i64 = 1_000_000;
const STACK: usize = 128 << 10;

/// What a greeting yields: a connection with the right hello, nothing for any other, or an error that ends the trial.
pub(crate) type Greeted = Result<Option<(FlowHello, Link)>, EngineError>;

/// The rest of an accepted connection's set-up.
pub(crate) type Greeting = Box<dyn FnOnce() -> Greeted + Send>;

/// The greetings under way of one listener.
pub(crate) struct Greetings {
    done: Sender<Greeted>,
    ended: Receiver<Greeted>,
    /// Counted by its clones: one for each thread, and this.
    running: Arc<()>,
}

impl Greetings {
    pub(crate) fn new() -> Self {
        let (done, ended) = channel();
        Self { done, ended, running: Arc::default() }
    }

    /// The next connection with the right hello, waited for until `deadline_ns`. `accept` takes a connection from `socket` and returns
    /// its greeting; it must not wait, and `WouldBlock` or `Interrupted` mean that there is none.
    ///
    /// # Errors
    /// Those of `accept` and of greetings, and [`ErrorKind::TimedOut`] as `failed` wraps it.
    pub(crate) fn next(
        &self,
        socket: impl AsFd,
        deadline_ns: u64,
        mut accept: impl FnMut() -> io::Result<Greeting>,
        failed: impl Fn(io::Error) -> EngineError,
    ) -> Result<(FlowHello, Link), EngineError> {
        loop {
            while let Ok(greeted) = self.ended.try_recv() {
                if let Some(connection) = greeted? {
                    return Ok(connection);
                }
            }
            // Also while connections arrive all the time.
            if now_ns() > deadline_ns {
                return Err(failed(ErrorKind::TimedOut.into()));
            }
            match accept() {
                Ok(greeting) => self.start(greeting),
                Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted) => {
                    let step = if self.under_way() == 0 { STEP_NS } else { SHORT_STEP_NS };
                    let step = Timespec { tv_sec: 0, tv_nsec: step };
                    let _ = poll(&mut [PollFd::new(&socket, PollFlags::IN)], Some(&step));
                }
                Err(error) => return Err(failed(error)),
            }
        }
    }

    fn under_way(&self) -> usize {
        Arc::strong_count(&self.running) - 1
    }

    fn start(&self, greeting: Greeting) {
        if self.under_way() >= MOST {
            return;
        }
        let (done, running) = (self.done.clone(), self.running.clone());
        let thread = std::thread::Builder::new().name("greeting".into()).stack_size(STACK);
        // Without a thread the connection is closed, and its owner reports that.
        let _ = thread.spawn(move || {
            // The listener may have all its connections already.
            let _ = done.send(greeting());
            drop(running);
        });
    }
}

#[cfg(test)]
mod tests {
    use std::net::{Ipv4Addr, TcpStream};
    use std::time::Duration;

    use model::{Pattern, Spec};

    use crate::transport::stream::HELLO_LIMIT;
    use crate::transport::{ListenOptions, transport};

    use super::*;

    #[test]
    fn silent_connections_delay_no_other() {
        for name in ["tcp", "tls"] {
            let (transport, spec, cookie) = (transport(name).unwrap(), Spec::new(name, Pattern::Stream), [7; 16]);
            let options = ListenOptions::new(Ipv4Addr::LOCALHOST.into(), std::env::temp_dir(), cookie);
            let mut listener = transport.listen(&spec, &options).unwrap();
            let to = listener.rendezvous();
            let _silent: Vec<TcpStream> = (0..5).map(|_| TcpStream::connect(to.address.unwrap()).unwrap()).collect();
            let hello = FlowHello::new(cookie, 3, 0).unwrap();
            let connecting = std::thread::spawn(move || transport.connect(&spec, &to, &hello).map(drop));
            // Less than the silent ones may take.
            let limit = HELLO_LIMIT - Duration::from_secs(1);
            let (arrived, _) = listener.accept(now_ns() + limit.as_nanos() as u64).unwrap();
            assert_eq!(arrived, hello, "{name}");
            connecting.join().unwrap().unwrap();
        }
    }
}
