//! A service of ours in a thread, as the tests of all programs have it.
#![allow(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::cell::Cell;
use std::io::Write;
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

use model::Program;
use peers::{MachineUse, Service, ServiceLimits, protocol};

/// Limits that none of these tests reaches.
pub(crate) const LIMITS: ServiceLimits =
    ServiceLimits { unauthenticated: 8, hold_ns: 3_600_000_000_000, flows: 128, rate_bps: None, memory_bytes: 8 << 30 };

/// Which clients are admitted.
pub(crate) type Admit = Box<dyn Fn() -> Option<MachineUse> + Send + Sync>;

/// All clients at the same time.
pub(crate) fn everyone() -> Admit {
    Box::new(|| Some(Box::new(())))
}

/// One at a time: a client holds the second reference.
pub(crate) fn one_by_one() -> Admit {
    let place = Arc::new(Mutex::new(()));
    Box::new(move || (Arc::strong_count(&place) == 1).then(|| Box::new(place.clone()) as MachineUse))
}

/// A program's service on a port of its own, which ends when this is dropped.
pub(crate) struct Served {
    service: Arc<Service>,
    thread: Option<JoinHandle<()>>,
    pub(crate) address: SocketAddr,
    said: Arc<Mutex<String>>,
    /// Number of clients, for tests that number them.
    pub(crate) clients: Cell<u32>,
}

impl Served {
    /// On 127.0.0.1.
    pub(crate) fn of(program: Program, options: &str, limits: ServiceLimits, admit: Admit) -> Self {
        Self::at("127.0.0.1:0", program, options, limits, admit)
    }

    pub(crate) fn at(address: &str, program: Program, options: &str, limits: ServiceLimits, admit: Admit) -> Self {
        let (tell, reported) = channel();
        let said: Arc<Mutex<String>> = Arc::default();
        let log = said.clone();
        let service = Arc::new(Service {
            addresses: vec![address.parse().unwrap()],
            options: options.into(),
            users: None,
            limits,
            admit,
            log: Box::new(move |_, line| log.lock().unwrap().push_str(&format!("{}\n", line.plain()))),
            listening: Box::new(move |address| tell.send(address).unwrap()),
            stop: AtomicBool::new(false),
        });
        let serving = service.clone();
        let thread = std::thread::spawn(move || protocol(program).serve(&serving).unwrap());
        Self { service, thread: Some(thread), address: reported.recv().unwrap(), said, clients: Cell::new(0) }
    }

    /// Its log lines so far.
    pub(crate) fn log(&self) -> String {
        self.said.lock().unwrap().clone()
    }

    /// Opens a connection and sends `bytes`.
    pub(crate) fn dial(&self, bytes: &[u8]) -> TcpStream {
        let mut socket = TcpStream::connect(self.address).unwrap();
        socket.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        socket.write_all(bytes).unwrap();
        socket
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        self.service.stop.store(true, Ordering::SeqCst);
        let ended = self.thread.take().map(JoinHandle::join);
        assert!(std::thread::panicking() || ended.is_some_and(|ended| ended.is_ok()), "{}", self.log());
    }
}
