//! The data side of the agent's port: passes each data connection to the worker that expects it.

use std::collections::{HashMap, HashSet};
use std::io;
use std::net::SocketAddr;
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixDatagram;
use std::sync::{Arc, Mutex, PoisonError};

use engine::transport::{Admission, Cookie, DatagramListener, FlowHello, local, udp};
use tokio::io::Interest;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;

/// Workers that wait for connections, by the cookie that authenticates them.
#[derive(Default)]
pub(crate) struct DataAcceptor {
    expected: Mutex<HashMap<Cookie, Vec<WorkerLinks>>>,
}

/// One worker and its links.
pub(crate) struct WorkerLinks {
    trial: u32,
    links: Range<u32>,
    /// The link of the probe, in addition.
    probe: Option<u32>,
    /// Links whose connection has arrived.
    taken: HashSet<u32>,
    /// Connections that the worker has not received yet: there is room for one of each link.
    queue: mpsc::Sender<(FlowHello, OwnedFd)>,
    forwarder: JoinHandle<()>,
}

impl WorkerLinks {
    /// Passes the connections of `links` and `probe` of that trial to the worker at the other end of `worker`.
    pub(crate) fn new(trial: u32, links: Range<u32>, probe: Option<u32>, worker: UnixDatagram) -> io::Result<Self> {
        // Only the forwarder waits for room in the socket, never the agent.
        worker.set_nonblocking(true)?;
        let worker = tokio::net::UnixDatagram::from_std(worker)?;
        let (queue, arrivals) = mpsc::channel(links.len() + usize::from(probe.is_some()));
        let forwarder = tokio::spawn(forward(worker, arrivals));
        Ok(Self { trial, links, probe, taken: HashSet::new(), queue, forwarder })
    }

    fn accepts(&self, hello: &FlowHello) -> bool {
        let own = self.links.contains(&hello.link) || self.probe == Some(hello.link);
        own && hello.trial == self.trial && !self.taken.contains(&hello.link)
    }
}

impl Drop for WorkerLinks {
    fn drop(&mut self) {
        self.forwarder.abort();
    }
}

/// Passes connections to a worker as fast as it receives them.
async fn forward(worker: tokio::net::UnixDatagram, mut arrivals: mpsc::Receiver<(FlowHello, OwnedFd)>) {
    while let Some((hello, socket)) = arrivals.recv().await {
        let pass = || local::send_fd(&worker, socket.as_fd(), &hello.encode());
        if worker.async_io(Interest::WRITABLE, pass).await.is_err() {
            return;
        }
    }
}

/// A registered cookie; dropping it removes the cookie.
pub(crate) struct Registration {
    data_acceptor: Arc<DataAcceptor>,
    cookie: Cookie,
}

impl DataAcceptor {
    /// Passes connections that show `cookie` to `workers` from now on.
    pub(crate) fn register(self: &Arc<Self>, cookie: Cookie, workers: Vec<WorkerLinks>) -> Registration {
        self.lock().insert(cookie, workers);
        Registration { data_acceptor: self.clone(), cookie }
    }

    /// The hello in `bytes`, if it shows a registered cookie: of a measurement, or of a reachability token.
    pub(crate) fn read(&self, bytes: &[u8]) -> Option<FlowHello> {
        FlowHello::decode(bytes, self.lock().keys())
    }

    /// Passes the connection that `socket` returns to its worker. An unexpected connection is dropped, which closes it: an
    /// unknown cookie, a second connection of a link, or one that arrives after all links are up.
    pub(crate) fn deliver(&self, hello: &FlowHello, socket: impl FnOnce() -> io::Result<OwnedFd>) -> io::Result<()> {
        let mut expected = self.lock();
        let workers = expected.get_mut(&hello.cookie).ok_or(io::ErrorKind::NotFound)?;
        let worker = workers.iter_mut().find(|worker| worker.accepts(hello)).ok_or(io::ErrorKind::NotFound)?;
        let socket = socket()?;
        worker.taken.insert(hello.link);
        worker.queue.try_send((*hello, socket)).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    /// Registers the cookie of a reachability token: its holder gets the proof that this agent knows it, and nothing else.
    pub(crate) fn register_token(self: &Arc<Self>, cookie: Cookie) -> Registration {
        self.register(cookie, Vec::new())
    }

    /// Whether `cookie` belongs to a reachability token of this agent.
    pub(crate) fn is_token(&self, cookie: &Cookie) -> bool {
        self.lock().get(cookie).is_some_and(Vec::is_empty)
    }

    /// The hello in a datagram, if it belongs to a measurement that expects connections.
    fn read_datagram(&self, bytes: &[u8]) -> Option<FlowHello> {
        let expected = self.lock();
        FlowHello::decode(bytes, expected.iter().filter(|(_, workers)| !workers.is_empty()).map(|(cookie, _)| cookie))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Cookie, Vec<WorkerLinks>>> {
        self.expected.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        self.data_acceptor.lock().remove(&self.cookie);
    }
}

/// Serves the UDP side of the port without end; `guard` has its own key.
pub(crate) async fn serve_udp(
    socket: tokio::net::UdpSocket,
    address: SocketAddr,
    data_acceptor: Arc<DataAcceptor>,
    mut guard: DatagramListener,
) {
    let mut buffer = [0; 2048];
    loop {
        // An error belongs to a single datagram (an ICMP answer to one of ours); the next one may be fine.
        let Ok((count, from)) = socket.recv_from(&mut buffer).await else { continue };
        match guard.judge(from, &buffer[..count], |hello| data_acceptor.read_datagram(hello)) {
            Admission::Answer(bytes) => {
                let _ = socket.send_to(&bytes, from).await;
            }
            Admission::Admit(hello) => {
                let _ = data_acceptor.deliver(&hello, || udp::connected_twin(address, from, None).map(Into::into));
            }
            Admission::Ignore => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixStream;
    use std::time::Duration;

    use super::*;

    fn connection() -> io::Result<OwnedFd> {
        Ok(UnixStream::pair()?.0.into())
    }

    #[tokio::test]
    async fn a_worker_that_receives_nothing_blocks_nobody_and_each_link_has_one_connection() {
        let (mine, worker) = UnixDatagram::pair().unwrap();
        let data_acceptor = Arc::new(DataAcceptor::default());
        let cookie = [7; 16];
        let registration = data_acceptor.register(cookie, vec![WorkerLinks::new(3, 0..600, Some(900), mine).unwrap()]);
        let hello = |trial, link| FlowHello::new(cookie, trial, link).unwrap();
        // More than the kernel's queue holds.
        for link in (0..600).chain([900]) {
            data_acceptor.deliver(&hello(3, link), connection).unwrap();
            tokio::task::yield_now().await;
        }
        for (trial, link) in [(3, 0), (3, 900), (3, 600), (2, 5)] {
            let refused = data_acceptor.deliver(&hello(trial, link), || panic!("no socket is made for it"));
            assert_eq!(refused.unwrap_err().kind(), io::ErrorKind::NotFound, "{trial} {link}");
        }
        let (taken, taker) = mpsc::unbounded_channel();
        let mut taker = taker;
        std::thread::spawn(move || {
            worker.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            let mut bytes = [0; 32];
            while let Ok((_, Some(_))) = local::recv_fd(&worker, &mut bytes) {
                let link = FlowHello::decode(&bytes, [&cookie]).unwrap().link;
                if taken.send(link).is_err() || link == 900 {
                    break;
                }
            }
        });
        let mut links = Vec::new();
        while let Some(link) = taker.recv().await {
            links.push(link);
        }
        assert_eq!(links, (0..600).chain([900]).collect::<Vec<_>>());
        drop(registration);
        assert!(
            data_acceptor.deliver(&hello(3, 1), connection).is_err()
                && data_acceptor.read(&hello(3, 1).encode()).is_none()
        );
    }
}
