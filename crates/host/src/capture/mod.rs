//! Captures the packets of a measurement: a packet socket on the interface that they use, read by its own thread
//! through a ring in shared memory, written to a pcapng file.
//!
//! It begins before the measurement's connections are opened, so that it sees their first packets, and keeps nothing
//! until it knows which connections they are.
//!
//! A capture never stops the measurement: a failure (no permission, full disk) is reported in its result.

mod error;
mod file;
mod filter;
#[cfg(any(test, feature = "fuzzing"))]
pub(crate) mod fuzzing;
mod own;
mod packet;
mod relay;
mod sequence;
mod sys;

use std::error::Error;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use model::Capture;
use pcap_file::DataLink;
use serde::{Deserialize, Serialize};

pub use error::CaptureError;
pub use filter::Wanted;
pub use own::Own;

use file::PacketFile;
use own::Sorter;
use packet::Segment;
use relay::{Relayed, Totals};
use sequence::Connections;
use sys::{Frame, RETIRE, Ring, thread_ns};

/// Maximum size of one file: captures must not fill a host's disk unnoticed.
pub const FILE_LIMIT: u64 = 1 << 30;
/// ARPHRD_ETHER and ARPHRD_LOOPBACK of linux/if_arp.h, whose packets have an Ethernet header.
const ETHERNET: [u16; 2] = [1, 772];
/// How long the ring is read after the socket was closed: the kernel hands over its last block after [`RETIRE`].
const DRAIN: Duration = RETIRE.saturating_mul(4);
/// Minimum bytes read of each packet: the options of its TCP header identify the connection.
pub const HEADERS: u32 = 134;
/// Bytes of packets that wait in memory until their connections are known.
const EARLY: usize = 4 << 20;

/// What to capture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CaptureRequest {
    /// The file; its folder must exist.
    pub file: PathBuf,
    /// Bytes kept of each packet.
    pub snaplen: u32,
    /// Keeps no payload, however large `snaplen` is.
    pub headers_only: bool,
    /// Which packets are inspected; [`Capturing::keep`] decides which of them are kept.
    pub wanted: Wanted,
    /// An address of the other end, if known: the packets use the interface that leads there.
    pub peer: Option<IpAddr>,
    /// This end's address, if the other's is not known.
    pub here: Option<IpAddr>,
}

/// A running capture, or the reason why there is none. Dropping it ends it; its file stays.
pub struct Capturing {
    stop: Arc<AtomicBool>,
    own: Arc<OnceLock<Own>>,
    thread: Result<JoinHandle<Capture>, CaptureError>,
    snaplen: u32,
}

impl Capturing {
    /// Starts the capture with the packets that `open` gives it: those of [`Tap::open`], or of a process with more privileges that
    /// calls it. A failure is reported by [`finish`](Self::finish).
    #[must_use]
    pub fn start<E: Into<Box<dyn Error + Send + Sync>>>(
        request: &CaptureRequest,
        open: impl FnOnce(&Tap) -> Result<Packets, E>,
    ) -> Self {
        let (stop, own) = (Arc::new(AtomicBool::new(false)), Arc::new(OnceLock::new()));
        let thread = Job::new(request, open).and_then(|job| {
            let (stop, own) = (stop.clone(), own.clone());
            let thread = std::thread::Builder::new().name("capture".into());
            thread.spawn(move || job.run(&stop, &own)).map_err(CaptureError::Thread)
        });
        Self { stop, own, thread, snaplen: request.snaplen }
    }

    /// A capture that cannot start, with the reason.
    #[must_use]
    pub fn missing(snaplen: u32, why: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        let thread = Err(CaptureError::Caller(why.into()));
        Self { stop: Arc::default(), own: Arc::default(), thread, snaplen }
    }

    /// Sets whose packets are kept, including those that have passed already; before this call, and of other
    /// connections, none are. Only the first call counts.
    pub fn keep(&self, own: Own) {
        let _ = self.own.set(own);
    }

    /// Ends it, after all packets up to now are in the file: some tens of milliseconds later. Blocks.
    #[must_use]
    pub fn finish(mut self) -> Capture {
        self.stop.store(true, Ordering::SeqCst);
        let thread = std::mem::replace(&mut self.thread, Err(CaptureError::Panicked));
        let ended = thread.and_then(|thread| thread.join().map_err(|_| CaptureError::Panicked));
        ended.unwrap_or_else(|error| Capture {
            snaplen: self.snaplen,
            missing: Some(error.to_string()),
            ..Capture::default()
        })
    }
}

impl Drop for Capturing {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
    }
}

/// The data of the capturing thread.
struct Job {
    packets: Packets,
    keeper: Keeper,
    interface: String,
    loopback: bool,
}

impl Job {
    fn new<E: Into<Box<dyn Error + Send + Sync>>>(
        request: &CaptureRequest,
        open: impl FnOnce(&Tap) -> Result<Packets, E>,
    ) -> Result<Self, CaptureError> {
        let (interface, index) = interface(request)?;
        let loopback = interface == LOOPBACK;
        let packets = open(&Tap {
            wanted: request.wanted.clone(),
            snaplen: request.snaplen.max(HEADERS),
            interface: index,
            // On loopback each packet passes twice, on its way out and in.
            outgoing: !loopback,
        })
        .map_err(|error| CaptureError::Caller(error.into()))?;
        let file = PacketFile::create(&request.file, &interface, request.snaplen, FILE_LIMIT)
            .map_err(|source| CaptureError::File { path: request.file.clone(), source })?;
        Ok(Self { packets, keeper: Keeper::new(file, request), interface, loopback })
    }

    fn run(mut self, stop: &AtomicBool, own: &OnceLock<Own>) -> Capture {
        let mut closed: Option<Instant> = None;
        while self.keeper.failed.is_none() {
            if closed.is_none() && stop.load(Ordering::SeqCst) {
                self.keeper.failed = self.packets.close().err();
                closed = Some(Instant::now());
            }
            self.keeper.learn(own);
            let Self { packets, keeper, loopback, .. } = &mut self;
            let taken = packets.take(&mut |frame| {
                if !(*loopback && frame.outgoing) {
                    keeper.see(&frame);
                }
            });
            match taken {
                Ok(true) => {}
                Ok(false) if closed.is_some_and(|at| self.packets.is_over(at)) => break,
                Ok(false) => self.packets.wait(),
                Err(error) => self.keeper.failed = Some(error),
            }
        }
        let Totals { drops, cost_ns } = self.packets.totals();
        let Keeper { mut file, connections, snaplen, early, failed, .. } = self.keeper;
        let failed = failed.or_else(|| file.finish().err());
        let missing = failed.map(|error| CaptureError::ended(error, file.path()).to_string());
        Capture {
            file: Some(file.path().display().to_string()),
            interface: Some(self.interface),
            snaplen,
            packets: file.packets,
            bytes: file.bytes,
            drops: drops.map(|drops| drops + early.drops),
            cost_ns: thread_ns() + cost_ns,
            missing,
            sequence: connections.longest(),
            ..Capture::default()
        }
    }
}

/// Keeps the packets of the trial, once its connections are known.
struct Keeper {
    file: PacketFile,
    connections: Connections,
    snaplen: u32,
    headers_only: bool,
    sorter: Option<Sorter>,
    early: Early,
    failed: Option<io::Error>,
}

impl Keeper {
    fn new(file: PacketFile, request: &CaptureRequest) -> Self {
        let (connections, early) = (Connections::default(), Early::default());
        let CaptureRequest { snaplen, headers_only, .. } = *request;
        Self { file, connections, snaplen, headers_only, sorter: None, early, failed: None }
    }

    fn learn(&mut self, own: &OnceLock<Own>) {
        if self.sorter.is_none()
            && let Some(own) = own.get()
        {
            self.sorter = Some(Sorter::new(own));
            std::mem::take(&mut self.early.packets).iter().for_each(|packet| self.see(&packet.frame()));
        }
    }

    fn see(&mut self, frame: &Frame<'_>) {
        let network = frame.network.min(frame.data.len());
        let Some(sorter) = &mut self.sorter else { return self.early.add(frame) };
        if self.failed.is_none() && sorter.has(&frame.data[network..]) {
            self.failed = self.write(frame, network).err();
        }
    }

    fn write(&mut self, frame: &Frame<'_>, network: usize) -> io::Result<()> {
        let length = frame.length.saturating_sub(frame.network as u32);
        if let Some(segment) = Segment::parse(&frame.data[network..], length) {
            self.connections.see(frame.at, &segment);
        }
        let most = if self.headers_only { network + packet::headers(&frame.data[network..]) } else { usize::MAX };
        let kept = &frame.data[..frame.data.len().min(self.snaplen as usize).min(most)];
        if ETHERNET.contains(&frame.hardware) {
            self.file.add(DataLink::ETHERNET, frame.at, frame.length, kept)
        } else {
            // Packets of other link types are kept without their link header.
            self.file.add(DataLink::RAW, frame.at, length, &kept[network.min(kept.len())..])
        }
    }
}

/// Packets that passed before their connections were known.
#[derive(Default)]
struct Early {
    packets: Vec<Packet>,
    bytes: usize,
    /// Packets that found no room.
    drops: u64,
}

/// A packet in its own memory.
struct Packet {
    at: Duration,
    length: u32,
    data: Vec<u8>,
    network: usize,
    hardware: u16,
}

impl Packet {
    fn frame(&self) -> Frame<'_> {
        let Self { at, length, network, hardware, .. } = *self;
        Frame { at, length, data: &self.data, network, hardware, outgoing: false }
    }
}

impl Early {
    fn add(&mut self, frame: &Frame<'_>) {
        if self.bytes + frame.data.len() > EARLY {
            self.drops += 1;
            return;
        }
        self.bytes += frame.data.len();
        let Frame { at, length, data, network, hardware, .. } = *frame;
        self.packets.push(Packet { at, length, data: data.to_vec(), network, hardware });
    }
}

/// What a capture receives: packets of one interface that its filter lets pass.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tap {
    /// The packets.
    pub wanted: Wanted,
    /// Bytes of each packet.
    pub snaplen: u32,
    /// Number of the interface.
    pub interface: u32,
    /// Whether packets that leave this host are among them.
    pub outgoing: bool,
}

impl Tap {
    /// Opens a packet socket for it. Needs CAP_NET_RAW.
    ///
    /// # Errors
    /// No port, no permission, or no packet sockets in this kernel.
    pub fn open(&self) -> Result<Packets, CaptureError> {
        if self.wanted.ports.is_empty() {
            return Err(CaptureError::NoPort);
        }
        let ring = sys::packet_socket(&filter::program(&self.wanted, self.snaplen))
            .and_then(|socket| Ring::open(socket, self.interface, !self.outgoing));
        let ring = ring.map_err(CaptureError::socket)?;
        Ok(Packets(Source::Ring { ring, outgoing: self.outgoing }))
    }
}

/// The packets of a [`Tap`].
pub struct Packets(Source);

enum Source {
    /// A packet socket of this process.
    Ring { ring: Ring, outgoing: bool },
    /// Records that another process reads.
    Relayed(Relayed),
}

impl Packets {
    /// Those that another process passes on over `stream` ([`pass_on`](Self::pass_on)).
    ///
    /// # Errors
    /// The kernel refuses a time limit.
    pub fn relayed(stream: UnixStream) -> io::Result<Self> {
        Ok(Self(Source::Relayed(Relayed::new(stream)?)))
    }

    /// Passes them on until the other side of `stream` ends the capture. Blocks.
    ///
    /// # Errors
    /// The other side is gone, or they are not of this process.
    pub fn pass_on(self, stream: &UnixStream) -> io::Result<()> {
        match self.0 {
            Source::Ring { ring, outgoing } => relay::pass_on(ring, outgoing, stream),
            Source::Relayed(_) => Err(io::ErrorKind::Unsupported.into()),
        }
    }

    /// Blocks further packets.
    fn close(&mut self) -> io::Result<()> {
        match &mut self.0 {
            Source::Ring { ring, .. } => ring.close(),
            Source::Relayed(relayed) => relayed.close(),
        }
    }

    /// Passes what is there to `each`; `false` if nothing is.
    fn take(&mut self, each: &mut dyn FnMut(Frame<'_>)) -> io::Result<bool> {
        match &mut self.0 {
            Source::Ring { ring, .. } => Ok(ring.take(each)),
            Source::Relayed(relayed) => relayed.take(each),
        }
    }

    /// Waits for more; those of another process were waited for.
    fn wait(&self) {
        if let Source::Ring { ring, .. } = &self.0 {
            ring.wait(RETIRE);
        }
    }

    /// Whether all packets up to `closed` have been taken, when it was closed.
    fn is_over(&self, closed: Instant) -> bool {
        match &self.0 {
            Source::Ring { .. } => closed.elapsed() > DRAIN,
            Source::Relayed(relayed) => relayed.totals().is_some(),
        }
    }

    /// Dropped packets since the last call, and the cost in another process.
    fn totals(&self) -> Totals {
        match &self.0 {
            Source::Ring { ring, .. } => Totals { drops: ring.drops().ok(), cost_ns: 0 },
            Source::Relayed(relayed) => relayed.totals().unwrap_or(Totals { drops: None, cost_ns: 0 }),
        }
    }
}

const LOOPBACK: &str = "lo";

/// Name and number of the interface that the packets use.
fn interface(request: &CaptureRequest) -> Result<(String, u32), CaptureError> {
    let known = if_addrs::get_if_addrs().map_err(CaptureError::Interfaces)?;
    let of = |address: IpAddr| known.iter().find(|interface| interface.ip() == address.to_canonical());
    let found = match (request.peer.map(|peer| peer.to_canonical()), request.here) {
        // Packets to an address of this host do not leave it.
        (Some(peer), _) if peer.is_loopback() || of(peer).is_some() => {
            known.iter().find(|interface| interface.name == LOOPBACK)
        }
        (Some(peer), _) => of(source(peer).map_err(|source| CaptureError::Route { peer, source })?),
        (None, Some(here)) => of(here),
        (None, None) => None,
    };
    let found = found.ok_or(CaptureError::NoInterface)?;
    let interface = found.name.clone();
    match found.index {
        Some(index) => Ok((interface, index)),
        None => Err(CaptureError::NoNumber { interface }),
    }
}

/// Whether packets to this address stay within this host.
#[must_use]
pub fn is_own(address: IpAddr) -> bool {
    let address = address.to_canonical();
    let known = || if_addrs::get_if_addrs().unwrap_or_default();
    address.is_loopback() || known().iter().any(|interface| interface.ip() == address)
}

/// The address that this host uses towards `peer`: the kernel chooses it when a datagram socket is connected, without
/// sending a packet.
fn source(peer: IpAddr) -> io::Result<IpAddr> {
    let any: IpAddr = if peer.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    let socket = UdpSocket::bind(SocketAddr::new(any, 0))?;
    socket.connect(SocketAddr::new(peer, 9))?;
    Ok(socket.local_addr()?.ip())
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};
    use std::path::Path;

    use super::*;

    fn request(folder: &Path, port: u16) -> CaptureRequest {
        let peer = Some(Ipv4Addr::LOCALHOST.into());
        CaptureRequest {
            file: folder.join("test.pcapng"),
            snaplen: 96,
            headers_only: false,
            wanted: Wanted { protocol: 6, ports: vec![port], address: peer },
            peer,
            here: None,
        }
    }

    /// Packets that another process, here a thread, passes on.
    fn through_another(tap: &Tap) -> Result<Packets, CaptureError> {
        let packets = tap.open()?;
        let (to, from) = UnixStream::pair().unwrap();
        std::thread::spawn(move || packets.pass_on(&to));
        Packets::relayed(from).map_err(CaptureError::Socket)
    }

    #[test]
    fn packets_over_loopback_are_kept_once() {
        kept_once(Tap::open);
    }

    #[test]
    fn packets_that_another_process_passes_on_are_kept_once() {
        kept_once(through_another);
    }

    fn kept_once(open: fn(&Tap) -> Result<Packets, CaptureError>) {
        let folder = tempfile::tempdir().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let capturing = Capturing::start(&request(folder.path(), address.port()), open);
        let mut near = TcpStream::connect(address).unwrap();
        let (mut far, _) = listener.accept().unwrap();
        // Another connection to the same port.
        let mut other = TcpStream::connect(address).unwrap();
        let (mut others, _) = listener.accept().unwrap();
        other.write_all(&[2; 900]).unwrap();
        capturing.keep(Own { connections: [[near.local_addr().unwrap(), address]].into(), ..Own::default() });
        let mut buffer = [0; 1_000];
        others.read_exact(&mut buffer[..900]).unwrap();
        for _ in 0..50 {
            near.write_all(&[1; 1_000]).unwrap();
            far.read_exact(&mut buffer).unwrap();
        }
        let capture = capturing.finish();
        if let Some(missing) = &capture.missing {
            println!(
                "SKIPPED: packets_over_loopback_are_kept_once, packets_that_another_process_passes_on_are_kept_once: {missing}"
            );
            return;
        }
        assert_eq!((capture.interface.as_deref(), capture.drops), (Some("lo"), Some(0)));
        let sequence = capture.sequence.unwrap();
        assert_eq!(sequence.receiver, address.to_string());
        assert_eq!(sequence.data.last().unwrap().1, 50_000, "each byte once: {sequence:?}");
        assert_eq!((sequence.retransmitted, sequence.data.len()), (0, 50));
        // The handshake has three packets, each block one and at most one acknowledgement.
        assert!((53..=110).contains(&capture.packets), "{}", capture.packets);
        assert!(capture.bytes > 50 * 1_066 && capture.cost_ns > 0);
        let size = std::fs::metadata(capture.file.as_ref().unwrap()).unwrap().len();
        assert!(size > capture.packets * 66 && size < 100 + capture.packets * 136, "{size}");
        let file = std::fs::read(capture.file.unwrap()).unwrap();
        assert!(!file.windows(8).any(|bytes| bytes == [2; 8]) && file.windows(8).any(|bytes| bytes == [1; 8]));
    }

    #[test]
    fn a_missing_requirement_is_reported_with_its_remedy() {
        let refusal = |errno| CaptureError::socket(io::Error::from_raw_os_error(errno)).to_string();
        assert!(refusal(libc::EPERM).contains("CAP_NET_RAW") && refusal(libc::EAFNOSUPPORT).contains("CONFIG_PACKET"));
        let folder = tempfile::tempdir().unwrap();
        let elsewhere =
            CaptureRequest { peer: None, here: Some(Ipv4Addr::new(192, 0, 2, 77).into()), ..request(folder.path(), 1) };
        let capture = Capturing::start(&elsewhere, Tap::open).finish();
        assert!(capture.missing.unwrap().contains("no interface") && capture.file.is_none());
        let nowhere = CaptureRequest { file: "/proc/none/a.pcapng".into(), ..request(folder.path(), 1) };
        let capture = Capturing::start(&nowhere, Tap::open).finish();
        let missing = capture.missing.unwrap();
        assert!(missing.contains("/proc/none/a.pcapng") || missing.contains("CAP_NET_RAW"), "{missing}");
        let full = CaptureError::ended(io::Error::from_raw_os_error(libc::ENOSPC), Path::new("/x/a.pcapng"));
        assert_eq!(full.to_string(), "ended before the trial: the disk of /x is full");
    }
}
