//! The calls that no safe crate has: perf_event_open(2) and what its descriptors take.
#![allow(unsafe_code, reason = "each block states why it is sound")]

use std::io;
use std::mem::size_of;
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};

/// The first published form of struct perf_event_attr (PERF_ATTR_SIZE_VER0, 64 bytes), which every kernel takes.
#[repr(C)]
#[derive(Default)]
struct Attributes {
    kind: u32,
    size: u32,
    config: u64,
    sample_period: u64,
    sample_type: u64,
    read_format: u64,
    flags: u64,
    wakeup_events: u32,
    bp_type: u32,
    bp_addr: u64,
}

const _: () = assert!(size_of::<Attributes>() == 64, "PERF_ATTR_SIZE_VER0");

/// Bits of the flags.
const DISABLED: u64 = 1;
const INHERIT: u64 = 1 << 1;
const EXCLUDE_HYPERVISOR: u64 = 1 << 6;
/// PERF_FORMAT_TOTAL_TIME_ENABLED and PERF_FORMAT_TOTAL_TIME_RUNNING.
const FORMAT: u64 = 1 | 2;
const PERF_FLAG_FD_CLOEXEC: libc::c_ulong = 1 << 3;
/// PERF_EVENT_IOC_ENABLE and PERF_EVENT_IOC_DISABLE, which take inherited counters along.
const ENABLE: libc::Ioctl = 0x2400;
const DISABLE: libc::Ioctl = 0x2401;

/// The scope of a counter.
#[derive(Clone, Copy)]
pub(crate) enum Whose {
    /// The calling thread and threads that it starts later, from the time it is enabled.
    ThisThread,
    /// Everything that runs on a core, from now on.
    Core(u32),
}

/// An open counter.
#[derive(Debug)]
pub(crate) struct Descriptor(OwnedFd);

impl Descriptor {
    pub(crate) fn open((kind, config): (u32, u64), whose: Whose) -> io::Result<Self> {
        let (thread, core, flags): (libc::pid_t, libc::c_int, u64) = match whose {
            Whose::ThisThread => (0, -1, DISABLED | INHERIT),
            Whose::Core(core) => (-1, core.try_into().map_err(io::Error::other)?, 0),
        };
        let attributes = Attributes {
            kind,
            size: size_of::<Attributes>() as u32,
            config,
            read_format: FORMAT,
            flags: flags | EXCLUDE_HYPERVISOR,
            ..Attributes::default()
        };
        let no_group: libc::c_int = -1;
        // SAFETY: the pointer is to a live structure that contains its own length; the kernel only reads it.
        let fd = unsafe {
            libc::syscall(
                libc::SYS_perf_event_open,
                std::ptr::from_ref(&attributes),
                thread,
                core,
                no_group,
                PERF_FLAG_FD_CLOEXEC,
            )
        };
        if fd < 0 {
            return Err(io::Error::last_os_error());
        }
        let fd = libc::c_int::try_from(fd).map_err(io::Error::other)?;
        // SAFETY: the kernel has just made this descriptor, and no other code knows it.
        Ok(Self(unsafe { OwnedFd::from_raw_fd(fd) }))
    }

    pub(crate) fn enable(&self) -> io::Result<()> {
        self.control(ENABLE)
    }

    pub(crate) fn disable(&self) -> io::Result<()> {
        self.control(DISABLE)
    }

    /// The count, and for how long it was enabled and had the processor's counter, ns.
    pub(crate) fn read(&self) -> io::Result<[u64; 3]> {
        let mut bytes = [0; 24];
        if rustix::io::read(&self.0, &mut bytes)? != bytes.len() {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        let (words, _) = bytes.as_chunks::<8>();
        Ok([words[0], words[1], words[2]].map(u64::from_ne_bytes))
    }

    fn control(&self, request: libc::Ioctl) -> io::Result<()> {
        // SAFETY: these requests take a number, not a pointer, and the descriptor is a live counter.
        let result = unsafe { libc::ioctl(self.0.as_raw_fd(), request, 0) };
        if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
    }
}
