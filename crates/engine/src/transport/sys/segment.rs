//! Memory shared between two processes: the published state of each end, then a byte ring in each direction.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::ptr::NonNull;

use rustix::fs::{MemfdFlags, SealFlags, fcntl_add_seals, fcntl_get_seals, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};

use super::ends::{End, LAYOUT};
use super::memory::{Ordering, SharedByte};

const ENDS: usize = 2 * size_of::<End>();

/// One end's mapping of a segment.
pub(super) struct Segment {
    base: NonNull<u8>,
    length: usize,
    own: NonNull<End>,
    other: NonNull<End>,
    outgoing: NonNull<[SharedByte]>,
    incoming: NonNull<[SharedByte]>,
    fd: OwnedFd,
}

// SAFETY: the mapping belongs to no thread. It consists of atomics, and of bytes that are only copied (`memory.rs`).
unsafe impl Send for Segment {}

impl Segment {
    /// Bytes of a segment with two rings of `capacity`.
    pub(super) fn bytes(capacity: usize) -> usize {
        capacity.saturating_mul(2).saturating_add(ENDS)
    }

    /// Makes a segment, all zeros, and maps it. `capacity` must be a power of two. Its size is sealed (memfd_create(2)): a file that
    /// shrinks under a mapping would end this process by SIGBUS.
    pub(super) fn create(capacity: usize) -> io::Result<Self> {
        debug_assert!(capacity.is_power_of_two(), "positions wrap by a mask");
        let fd = memfd_create("thru-ring", MemfdFlags::CLOEXEC | MemfdFlags::ALLOW_SEALING)?;
        ftruncate(&fd, Self::bytes(capacity) as u64)?;
        fcntl_add_seals(&fd, SealFlags::SHRINK | SealFlags::GROW | SealFlags::SEAL)?;
        let segment = Self::map(fd, capacity, 0)?;
        segment.own().state.layout.store(LAYOUT, Ordering::SeqCst);
        Ok(segment)
    }

    /// Maps a segment that the other end created and sealed.
    pub(super) fn join(fd: OwnedFd, capacity: usize) -> io::Result<Self> {
        if !fcntl_get_seals(&fd).is_ok_and(|seals| seals.contains(SealFlags::SHRINK)) {
            let what = "the shared segment can shrink: run the same version of thru at both ends";
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        let segment = Self::map(fd, capacity, 1)?;
        if segment.other().state.layout.load(Ordering::SeqCst) == LAYOUT {
            return Ok(segment);
        }
        let what = "the other end uses another layout of the shared segment: run the same version of thru at both ends";
        Err(io::Error::new(io::ErrorKind::InvalidData, what))
    }

    fn map(fd: OwnedFd, capacity: usize, own: usize) -> io::Result<Self> {
        let length = Self::bytes(capacity);
        let actual = rustix::fs::fstat(&fd)?.st_size;
        if !capacity.is_power_of_two() || (actual as u64) < length as u64 {
            let what = "the shared segment is smaller than its rings: run the same version of thru at both ends";
            return Err(io::Error::new(io::ErrorKind::InvalidData, what));
        }
        // SAFETY: a new shared mapping of `length` bytes within the file, at an address of the kernel's choice.
        let base = unsafe {
            mmap(
                std::ptr::null_mut(),
                length,
                ProtFlags::READ | ProtFlags::WRITE,
                MapFlags::SHARED | MapFlags::POPULATE,
                fd.as_fd(),
                0,
            )?
        };
        let base =
            NonNull::new(base.cast::<u8>()).ok_or_else(|| io::Error::other("the kernel mapped the segment at zero"))?;
        // SAFETY: for an index of 0 or 1 it lies within the mapping, whose length was checked.
        let end = |index| unsafe { base.cast::<End>().add(index) };
        // SAFETY: the same.
        let ring = |index| unsafe { base.add(ENDS + index * capacity) };
        let ring = |index| NonNull::slice_from_raw_parts(ring(index).cast::<SharedByte>(), capacity);
        Ok(Self { base, length, own: end(own), other: end(1 - own), outgoing: ring(own), incoming: ring(1 - own), fd })
    }

    /// What to pass to the other process.
    pub(super) fn fd(&self) -> &OwnedFd {
        &self.fd
    }

    /// What this end says.
    #[inline]
    pub(super) fn own(&self) -> &End {
        // SAFETY: within the mapping (see `map`) for as long as `self`, aligned (the mapping is to a page, an end to 128 bytes)
        // and made of integers only, for which any bytes are valid.
        unsafe { self.own.as_ref() }
    }

    /// What the other end says.
    #[inline]
    pub(super) fn other(&self) -> &End {
        // SAFETY: as in `own`.
        unsafe { self.other.as_ref() }
    }

    /// The ring that this end pushes into: a power of two of bytes, at least one.
    #[inline]
    pub(super) fn outgoing(&self) -> &[SharedByte] {
        // SAFETY: within the mapping (see `map`) for as long as `self`; any bytes are valid, and the other process may write them
        // behind a reference to them.
        unsafe { self.outgoing.as_ref() }
    }

    /// The ring that it pops from, as long.
    #[inline]
    pub(super) fn incoming(&self) -> &[SharedByte] {
        // SAFETY: as in `outgoing`.
        unsafe { self.incoming.as_ref() }
    }
}

impl Drop for Segment {
    fn drop(&mut self) {
        // SAFETY: the mapping made by `map`, unmapped once; no reference into it outlives `self`.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.length) };
    }
}
