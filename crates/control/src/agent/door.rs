//! The agent's one port: sorts what comes in, and hands data connections to the worker that expects them.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::os::fd::AsFd;
use std::os::unix::net::UnixDatagram;
use std::sync::{Arc, Mutex, PoisonError};

use engine::transport::{Admission, Cookie, DatagramDoor, FlowHello, local, udp};

/// Workers that wait for connections, by the secret that these must show.
#[derive(Default)]
pub(crate) struct Door {
    expected: Mutex<HashMap<Cookie, Vec<Expected>>>,
}

/// One worker and the links that are its own.
pub(crate) struct Expected {
    pub(crate) links: Range<u32>,
    /// One link besides.
    pub(crate) probe: Option<u32>,
    pub(crate) worker: UnixDatagram,
}

/// Ends the expectation when it is dropped.
pub(crate) struct Expectation {
    door: Arc<Door>,
    cookie: Cookie,
}

impl Door {
    /// From now on, connections that show `cookie` go to `workers`.
    pub(crate) fn expect(self: &Arc<Self>, cookie: Cookie, workers: Vec<Expected>) -> Expectation {
        self.lock().insert(cookie, workers);
        Expectation { door: self.clone(), cookie }
    }

    /// Hands a connection in; one that nobody expects is closed by being dropped.
    pub(crate) fn hand_in(&self, hello: &FlowHello, socket: impl AsFd) -> io::Result<()> {
        let expected = self.lock();
        let workers = expected.get(&hello.cookie).ok_or(io::ErrorKind::NotFound)?;
        let worker = workers
            .iter()
            .find(|worker| worker.links.contains(&hello.link) || worker.probe == Some(hello.link))
            .ok_or(io::ErrorKind::NotFound)?;
        local::send_fd(&worker.worker, socket.as_fd(), &hello.encode())
    }

    /// From now on, who shows `cookie` is told that this agent knows it, and nothing else.
    pub(crate) fn vouch(self: &Arc<Self>, cookie: Cookie) -> Expectation {
        self.expect(cookie, Vec::new())
    }

    /// Whether `cookie` is one that this agent vouches by.
    pub(crate) fn vouches(&self, cookie: &Cookie) -> bool {
        self.lock().get(cookie).is_some_and(Vec::is_empty)
    }

    fn knows(&self, cookie: &Cookie) -> bool {
        self.lock().get(cookie).is_some_and(|workers| !workers.is_empty())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Cookie, Vec<Expected>>> {
        self.expected.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Expectation {
    fn drop(&mut self) {
        self.door.lock().remove(&self.cookie);
    }
}

/// Serves the UDP side of the port for ever.
pub(crate) async fn serve_udp(socket: tokio::net::UdpSocket, address: SocketAddr, door: Arc<Door>, secret: u64) {
    let mut guard = DatagramDoor::new(secret);
    let mut buffer = [0; 2048];
    loop {
        // Errors here belong to single datagrams (ICMP answers to our own); the next one may be fine.
        let Ok((count, from)) = socket.recv_from(&mut buffer).await else { continue };
        match guard.judge(from, &buffer[..count], |cookie| door.knows(cookie)) {
            Admission::Answer(bytes) => {
                let _ = socket.send_to(&bytes, from).await;
            }
            Admission::Admit(hello) => {
                if let Ok(twin) = udp::connected_twin(address, from, None) {
                    let _ = door.hand_in(&hello, &twin);
                }
            }
            Admission::Ignore => {}
        }
    }
}
