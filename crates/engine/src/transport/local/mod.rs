//! Rendezvous between two processes of one machine: a Unix stream socket at a path, over which a file descriptor may
//! be passed to the active side. Its modules are the transports of one machine.

pub(super) mod memcpy;
pub(super) mod shm;
pub(super) mod unix;
pub(super) mod vsock;

use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::time::Duration;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};

use super::stream::{exchange_hello, read_hello};
use super::{Cookie, FlowHello, ListenOptions, Rendezvous};
use crate::core::{EngineError, now_ns};

/// The passive side's socket; its path is removed with it.
pub(crate) struct LocalListener {
    listener: UnixListener,
    path: PathBuf,
    cookie: Cookie,
}

impl LocalListener {
    /// Listens at a fresh path in `listen.directory`, for this user (and root) only.
    pub(crate) fn open(listen: &ListenOptions) -> Result<Self, EngineError> {
        let tag = hex::encode(&listen.cookie[..6]);
        // Several worker processes may listen for one measurement, each for its own flows.
        let path = listen.directory.join(format!("thru-{tag}-{}.sock", std::process::id()));
        let failed = |source: io::Error| EngineError::socket("listen on", path.display(), source);
        let listener = UnixListener::bind(&path).map_err(failed)?;
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        Ok(Self { listener, path, cookie: listen.cookie })
    }

    pub(crate) fn rendezvous(&self) -> Rendezvous {
        Rendezvous { address: None, path: Some(self.path.clone()), cookie: self.cookie, ..Rendezvous::default() }
    }

    /// The next connection that shows the cookie.
    pub(crate) fn accept(&self, deadline_ns: u64) -> Result<(FlowHello, UnixStream), EngineError> {
        let failed = |source: io::Error| EngineError::socket("accept on", self.path.display(), source);
        loop {
            match self.listener.accept() {
                Ok((stream, _)) => {
                    stream.set_nonblocking(false).map_err(failed)?;
                    let socket = socket2::Socket::from(OwnedFd::from(stream));
                    if let Ok(Some(hello)) = read_hello(&socket, &self.cookie, Duration::ZERO) {
                        return Ok((hello, OwnedFd::from(socket).into()));
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    if now_ns() > deadline_ns {
                        return Err(failed(io::ErrorKind::TimedOut.into()));
                    }
                    std::thread::sleep(Duration::from_millis(1));
                }
                Err(error) => return Err(failed(error)),
            }
        }
    }
}

impl Drop for LocalListener {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Connects to a passive side, which answers with its welcome.
pub(crate) fn connect(to: &Rendezvous, hello: &FlowHello) -> Result<UnixStream, EngineError> {
    let path = path_of(to)?;
    let stream =
        UnixStream::connect(path).map_err(|source| EngineError::socket("connect to", path.display(), source))?;
    let socket = socket2::Socket::from(OwnedFd::from(stream));
    exchange_hello(&socket, hello, &path.display().to_string(), Duration::ZERO)?;
    Ok(OwnedFd::from(socket).into())
}

fn path_of(to: &Rendezvous) -> Result<&Path, EngineError> {
    to.path.as_deref().ok_or_else(|| EngineError::unsupported("a rendezvous without a path", "this is a defect"))
}

/// Passes `fd`, with bytes that carry it.
pub fn send_fd(through: impl AsFd, fd: BorrowedFd<'_>, bytes: &[u8]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let fds = [fd];
    control.push(SendAncillaryMessage::ScmRights(&fds));
    sendmsg(through, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL)?;
    Ok(())
}

/// Receives what [`send_fd`] passed; `None` if the message carried no descriptor (or the other side closed).
pub fn recv_fd(through: impl AsFd, bytes: &mut [u8]) -> io::Result<(usize, Option<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = recvmsg(through, &mut [IoSliceMut::new(bytes)], &mut control, RecvFlags::CMSG_CLOEXEC)?;
    let fd = control.drain().find_map(|message| match message {
        RecvAncillaryMessage::ScmRights(mut fds) => fds.next(),
        _ => None,
    });
    Ok((received.bytes, fd))
}
