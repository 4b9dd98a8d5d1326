//! The agent's one port: sorts what comes in, and hands data connections to the worker that expects them.

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

/// Workers that wait for connections, by the secret that these must show.
#[derive(Default)]
pub(crate) struct DataAcceptor {
    expected: Mutex<HashMap<Cookie, Vec<Expected>>>,
}

/// One worker and the links that are its own.
pub(crate) struct Expected {
    trial: u32,
    links: Range<u32>,
    /// One link besides.
    probe: Option<u32>,
    /// Those that have come.
    taken: HashSet<u32>,
    /// What has come and the worker has not taken yet: one connection a link at most.
    queue: mpsc::UnboundedSender<(FlowHello, OwnedFd)>,
    porter: JoinHandle<()>,
}

impl Expected {
    /// Connections of `links` and `probe` of that trial go to the worker at the other end of `worker`.
    pub(crate) fn new(trial: u32, links: Range<u32>, probe: Option<u32>, worker: UnixDatagram) -> io::Result<Self> {
        // The porter waits for room there, never the agent.
        worker.set_nonblocking(true)?;
        let worker = tokio::net::UnixDatagram::from_std(worker)?;
        let (queue, arrivals) = mpsc::unbounded_channel();
        let porter = tokio::spawn(carry(worker, arrivals));
        Ok(Self { trial, links, probe, taken: HashSet::new(), queue, porter })
    }

    fn wants(&self, hello: &FlowHello) -> bool {
        let own = self.links.contains(&hello.link) || self.probe == Some(hello.link);
        own && hello.trial == self.trial && !self.taken.contains(&hello.link)
    }
}

impl Drop for Expected {
    fn drop(&mut self) {
        self.porter.abort();
    }
}

/// Hands connections to a worker as fast as it takes them.
async fn carry(worker: tokio::net::UnixDatagram, mut arrivals: mpsc::UnboundedReceiver<(FlowHello, OwnedFd)>) {
    while let Some((hello, socket)) = arrivals.recv().await {
        let hand = || local::send_fd(&worker, socket.as_fd(), &hello.encode());
        if worker.async_io(Interest::WRITABLE, hand).await.is_err() {
            return;
        }
    }
}

/// Ends the expectation when it is dropped.
pub(crate) struct Expectation {
    data_acceptor: Arc<DataAcceptor>,
    cookie: Cookie,
}

impl DataAcceptor {
    /// From now on, connections that show `cookie` go to `workers`.
    pub(crate) fn expect(self: &Arc<Self>, cookie: Cookie, workers: Vec<Expected>) -> Expectation {
        self.lock().insert(cookie, workers);
        Expectation { data_acceptor: self.clone(), cookie }
    }

    /// The hello in `bytes`, of a measurement that expects connections or of who has a voucher.
    pub(crate) fn read(&self, bytes: &[u8]) -> Option<FlowHello> {
        FlowHello::decode(bytes, self.lock().keys())
    }

    /// Hands a connection in, which is made of what `socket` returns; one that nobody expects is closed by being dropped. Each link
    /// has one: a second one, and one that comes when all are there, nobody expects.
    pub(crate) fn hand_in(&self, hello: &FlowHello, socket: impl FnOnce() -> io::Result<OwnedFd>) -> io::Result<()> {
        let mut expected = self.lock();
        let workers = expected.get_mut(&hello.cookie).ok_or(io::ErrorKind::NotFound)?;
        let worker = workers.iter_mut().find(|worker| worker.wants(hello)).ok_or(io::ErrorKind::NotFound)?;
        let socket = socket()?;
        worker.taken.insert(hello.link);
        worker.queue.send((*hello, socket)).map_err(|_| io::ErrorKind::BrokenPipe.into())
    }

    /// From now on, who has `cookie` is told that this agent knows it, and nothing else.
    pub(crate) fn vouch(self: &Arc<Self>, cookie: Cookie) -> Expectation {
        self.expect(cookie, Vec::new())
    }

    /// Whether `cookie` is one that this agent vouches by.
    pub(crate) fn vouches(&self, cookie: &Cookie) -> bool {
        self.lock().get(cookie).is_some_and(Vec::is_empty)
    }

    /// The hello in a datagram, of a measurement that expects connections.
    fn read_datagram(&self, bytes: &[u8]) -> Option<FlowHello> {
        let expected = self.lock();
        FlowHello::decode(bytes, expected.iter().filter(|(_, workers)| !workers.is_empty()).map(|(cookie, _)| cookie))
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, HashMap<Cookie, Vec<Expected>>> {
        self.expected.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Expectation {
    fn drop(&mut self) {
        self.data_acceptor.lock().remove(&self.cookie);
    }
}

/// Serves the UDP side of the port for ever; `guard` has a key of its own.
pub(crate) async fn serve_udp(
    socket: tokio::net::UdpSocket,
    address: SocketAddr,
    data_acceptor: Arc<DataAcceptor>,
    mut guard: DatagramListener,
) {
    let mut buffer = [0; 2048];
    loop {
        // Errors here belong to single datagrams (ICMP answers to our own); the next one may be fine.
        let Ok((count, from)) = socket.recv_from(&mut buffer).await else { continue };
        match guard.judge(from, &buffer[..count], |hello| data_acceptor.read_datagram(hello)) {
            Admission::Answer(bytes) => {
                let _ = socket.send_to(&bytes, from).await;
            }
            Admission::Admit(hello) => {
                let _ = data_acceptor.hand_in(&hello, || udp::connected_twin(address, from, None).map(Into::into));
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
    async fn a_worker_that_takes_nothing_holds_nobody_up_and_each_link_has_one_connection() {
        let (mine, worker) = UnixDatagram::pair().unwrap();
        let data_acceptor = Arc::new(DataAcceptor::default());
        let cookie = [7; 16];
        let expectation = data_acceptor.expect(cookie, vec![Expected::new(3, 0..600, Some(900), mine).unwrap()]);
        let hello = |trial, link| FlowHello::new(cookie, trial, link).unwrap();
        // The kernel's queue holds a few of them.
        for link in (0..600).chain([900]) {
            data_acceptor.hand_in(&hello(3, link), connection).unwrap();
            tokio::task::yield_now().await;
        }
        for (trial, link) in [(3, 0), (3, 900), (3, 600), (2, 5)] {
            let refused = data_acceptor.hand_in(&hello(trial, link), || panic!("no socket is made for it"));
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
        drop(expectation);
        assert!(
            data_acceptor.hand_in(&hello(3, 1), connection).is_err()
                && data_acceptor.read(&hello(3, 1).encode()).is_none()
        );
    }
}
