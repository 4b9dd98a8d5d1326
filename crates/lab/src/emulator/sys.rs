//! The calls that no safe crate has: the TUN device's requests and the scheduler's.
#![allow(unsafe_code, reason = "ioctl(2) and sched_setscheduler(2) have no safe face elsewhere")]

use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::Path;

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// Requests and flags of linux/if_tun.h.
const TUNSETIFF: libc::c_ulong = 0x4004_54ca;
const TUNSETOFFLOAD: libc::c_ulong = 0x4004_54d0;
const IFF_TUN: libc::c_short = 0x0001;
const IFF_NO_PI: libc::c_short = 0x1000;
const IFF_VNET_HDR: libc::c_short = 0x4000;
/// Checksums, TSO for IPv4 and IPv6, and TSO with ECN.
const TSO: libc::c_ulong = 0x01 | 0x02 | 0x04 | 0x08;
/// USO for IPv4 and IPv6 (Linux 6.2).
const USO: libc::c_ulong = 0x20 | 0x40;

/// A TUN device whose packets have virtio headers and are not segmented. It is removed with this.
#[derive(Debug)]
pub(crate) struct Tun {
    file: OwnedFd,
}

impl Tun {
    /// Makes a device called `name` in the network namespace of the calling thread.
    pub(crate) fn new(name: &str) -> io::Result<Self> {
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let file = rustix::fs::open("/dev/net/tun", flags, Mode::empty())?;
        // SAFETY: ifreq is plain data, for which zeroes are a value.
        let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
        // The last byte stays zero.
        for (target, byte) in request.ifr_name[..libc::IFNAMSIZ - 1].iter_mut().zip(name.bytes()) {
            *target = byte as libc::c_char;
        }
        request.ifr_ifru.ifru_flags = IFF_TUN | IFF_NO_PI | IFF_VNET_HDR;
        // SAFETY: the descriptor is open and the request is a whole ifreq that outlives the call.
        check(unsafe { libc::ioctl(file.as_raw_fd(), TUNSETIFF as _, &raw mut request) })?;
        let offload = |flags: libc::c_ulong| {
            // SAFETY: the descriptor is open; this request takes its argument by value.
            check(unsafe { libc::ioctl(file.as_raw_fd(), TUNSETOFFLOAD as _, flags) })
        };
        offload(TSO | USO).or_else(|_| offload(TSO))?;
        Ok(Self { file })
    }

    /// Reads a packet; `AGAIN` when there is none.
    pub(crate) fn read(&self, into: &mut [u8]) -> Result<usize, Errno> {
        rustix::io::read(&self.file, into)
    }

    /// Hands a packet to the host.
    pub(crate) fn write(&self, packet: &[u8]) -> Result<usize, Errno> {
        rustix::io::write(&self.file, packet)
    }
}

impl AsFd for Tun {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Calls `work` with this thread in the network namespace called `name`, and returns to the old one.
pub(crate) fn within<T>(name: &str, work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
    let own = File::open("/proc/thread-self/ns/net")?;
    let there = File::open(Path::new("/run/netns").join(name))?;
    move_into_link_name_space(there.as_fd(), Some(LinkNameSpaceType::Network))?;
    let done = work();
    move_into_link_name_space(own.as_fd(), Some(LinkNameSpaceType::Network))?;
    done
}

/// Gives this thread priority over all ordinary ones (SCHED_FIFO, sched(7)). Threads that it starts are ordinary
/// again.
pub(crate) fn realtime(priority: i32) -> io::Result<()> {
    // The kernel's sched_param has this number alone. musl's function for the call only fails.
    let policy = libc::SCHED_FIFO | libc::SCHED_RESET_ON_FORK;
    // SAFETY: 0 is the calling thread, and the priority outlives the call, which only reads it.
    let result = unsafe { libc::syscall(libc::SYS_sched_setscheduler, 0, policy, &raw const priority) };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
