//! Why there is no capture, or only a part of one.

use std::error::Error;
use std::io;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

/// Why packets are not captured, or why that ended.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CaptureError {
    /// A request without ports.
    #[error("a capture needs a port")]
    NoPort,
    /// The interfaces of this host cannot be listed.
    #[error("cannot list the interfaces: {0}")]
    Interfaces(#[source] io::Error),
    /// The kernel has no route to the other end.
    #[error("no route to {peer}: {source}")]
    Route {
        /// The other end.
        peer: IpAddr,
        /// The kernel's answer.
        source: io::Error,
    },
    /// No interface has the address of this end.
    #[error("no interface has the address that the packets use")]
    NoInterface,
    /// The interface has no index, which a packet socket is bound by.
    #[error("{interface} has no interface index")]
    NoNumber {
        /// Its name.
        interface: String,
    },
    /// The process has no right to open packet sockets.
    #[error(
        "no permission to capture packets: run thru as root, or give it CAP_NET_RAW (`setcap cap_net_raw+ep` on \
            its file)"
    )]
    Forbidden,
    /// The kernel has no packet sockets.
    #[error("this kernel has no packet sockets (CONFIG_PACKET; `modprobe af_packet`)")]
    Unsupported,
    /// The packet socket cannot be opened for another reason.
    #[error("cannot open a packet socket: {0}")]
    Socket(#[source] io::Error),
    /// The error of the caller, who did not get the packets.
    #[error(transparent)]
    Caller(Box<dyn Error + Send + Sync>),
    /// The file cannot be created.
    #[error("cannot create {}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The kernel's answer.
        source: io::Error,
    },
    /// The thread that reads the packets cannot be started.
    #[error("cannot start the capturing thread: {0}")]
    Thread(#[source] io::Error),
    /// That thread panicked.
    #[error("the capturing thread panicked")]
    Panicked,
    /// The disk became full.
    #[error("ended before the trial: the disk of {} is full", folder.display())]
    DiskFull {
        /// The folder of the file.
        folder: PathBuf,
    },
    /// Reading packets or writing them to the file failed.
    #[error("ended before the trial: {0}")]
    Ended(#[source] io::Error),
}

impl CaptureError {
    /// Why there is no packet socket.
    pub(super) fn socket(error: io::Error) -> Self {
        match error.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => Self::Forbidden,
            Some(libc::EAFNOSUPPORT | libc::EPROTONOSUPPORT) => Self::Unsupported,
            _ => Self::Socket(error),
        }
    }

    /// Why a capture to the file at `path` ended.
    pub(super) fn ended(error: io::Error, path: &Path) -> Self {
        match error.kind() {
            io::ErrorKind::StorageFull => Self::DiskFull { folder: path.parent().unwrap_or(path).into() },
            _ => Self::Ended(error),
        }
    }
}
