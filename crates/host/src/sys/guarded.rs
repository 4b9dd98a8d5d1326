//! Memory for an answer of the kernel whose length the kernel alone decides.

use std::io;
use std::ptr::NonNull;

use rustix::mm::{MapFlags, MprotectFlags, ProtFlags, mmap_anonymous, mprotect, munmap};

/// Words that end at a page without access: the kernel answers EFAULT to a call that would write beyond them, where it
/// would overwrite what happens to follow a piece of the heap.
#[derive(Debug)]
pub(super) struct Guarded {
    base: NonNull<u8>,
    /// Bytes of the mapping, the last page included.
    mapped: usize,
    words: usize,
}

impl Guarded {
    /// `words` zeros.
    pub(super) fn new(words: usize) -> io::Result<Self> {
        let page = rustix::param::page_size();
        let bytes = words.checked_mul(size_of::<u64>()).and_then(|bytes| bytes.checked_next_multiple_of(page));
        let open = bytes.ok_or(io::ErrorKind::OutOfMemory)?;
        let mapped = open.checked_add(page).ok_or(io::ErrorKind::OutOfMemory)?;
        // SAFETY: a new mapping at an address of the kernel's choice.
        let base = unsafe { mmap_anonymous(std::ptr::null_mut(), mapped, ProtFlags::empty(), MapFlags::PRIVATE)? };
        let base = NonNull::new(base.cast()).ok_or_else(|| io::Error::other("the kernel mapped memory at zero"))?;
        // From here on `drop` unmaps it.
        let guarded = Self { base, mapped, words };
        if open > 0 {
            // SAFETY: the first `open` bytes of the mapping, to which nothing refers yet.
            unsafe { mprotect(base.as_ptr().cast(), open, MprotectFlags::READ | MprotectFlags::WRITE)? };
        }
        Ok(guarded)
    }

    /// The first of the words; the last ends where the page without access begins.
    fn start(&self) -> NonNull<u64> {
        let before = self.mapped - rustix::param::page_size() - self.words * size_of::<u64>();
        // SAFETY: `new` made the open part at least as long as the words.
        unsafe { self.base.add(before) }.cast()
    }

    pub(super) fn words(&self) -> &[u64] {
        // SAFETY: so many words are mapped as long as `self` and aligned: a page's end less a multiple of eight. They are zeros
        // or were written since, and `words_mut` needs `self` alone.
        unsafe { std::slice::from_raw_parts(self.start().as_ptr(), self.words) }
    }

    pub(super) fn words_mut(&mut self) -> &mut [u64] {
        // SAFETY: as in `words`, and `self` is borrowed alone.
        unsafe { std::slice::from_raw_parts_mut(self.start().as_ptr(), self.words) }
    }
}

impl Drop for Guarded {
    fn drop(&mut self) {
        // SAFETY: the mapping that `new` made, unmapped once; no reference into it outlives `self`.
        let _ = unsafe { munmap(self.base.as_ptr().cast(), self.mapped) };
    }
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::fd::AsRawFd;

    use super::*;

    /// What read(2) answers when it may write `bytes` bytes of ones to the word at `at` and on.
    fn filled(guarded: &mut Guarded, at: usize, bytes: usize) -> io::Result<usize> {
        let ones = memfd(bytes);
        let to = guarded.words_mut()[at..].as_mut_ptr();
        // SAFETY: on purpose longer than the memory: beyond it is a page without access, to which the kernel writes nothing.
        let result = unsafe { libc::read(ones.as_raw_fd(), to.cast(), bytes) };
        usize::try_from(result).map_err(|_| io::Error::last_os_error())
    }

    /// A file of `bytes` ones.
    fn memfd(bytes: usize) -> File {
        use std::io::{Seek, Write};
        let mut file = File::from(rustix::fs::memfd_create("guarded", rustix::fs::MemfdFlags::CLOEXEC).unwrap());
        file.write_all(&vec![1; bytes]).unwrap();
        file.rewind().unwrap();
        file
    }

    #[test]
    fn the_kernel_writes_nothing_beyond_the_words() {
        for words in [1, 3, 511, 512, 513, 1024] {
            let mut guarded = Guarded::new(words).unwrap();
            assert_eq!(guarded.words(), vec![0; words]);
            // As many as fit, and not one byte more.
            match filled(&mut guarded, 0, words * 8 + 4096) {
                Ok(count) => assert_eq!(count, words * 8),
                Err(error) => assert_eq!(error.raw_os_error(), Some(libc::EFAULT)),
            }
            let end = guarded.words_mut().as_mut_ptr_range().end;
            // SAFETY: on purpose at the page without access, to which the kernel writes nothing.
            let beyond = unsafe { libc::read(memfd(1).as_raw_fd(), end.cast(), 1) };
            assert_eq!((beyond, io::Error::last_os_error().raw_os_error()), (-1, Some(libc::EFAULT)), "{words}");
        }
    }

    #[test]
    fn an_answer_that_fits_is_there() {
        let mut guarded = Guarded::new(3).unwrap();
        assert_eq!(filled(&mut guarded, 1, 16).unwrap(), 16);
        assert_eq!(guarded.words(), [0, u64::from_ne_bytes([1; 8]), u64::from_ne_bytes([1; 8])]);
        assert!(Guarded::new(0).unwrap().words().is_empty());
        assert!(Guarded::new(usize::MAX / 8).is_err() && Guarded::new(usize::MAX).is_err());
    }
}
