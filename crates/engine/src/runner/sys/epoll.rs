//! epoll_wait with a resolution of nanoseconds: epoll_pwait rounds up to milliseconds, which would delay paced sends
//! and probes.

use std::io;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use rustix::event::epoll;
use rustix::time::Timespec;

/// Whether this kernel lacks epoll_pwait2 (Linux 5.11); the first call finds out.
static COARSE: AtomicBool = AtomicBool::new(false);

/// Adds the ready entries of `set` to `events`, up to its capacity; sleeps at most for `pause` if there are none.
/// Before Linux 5.11 the pause is rounded up to milliseconds. An interrupted call returns nothing.
pub(in crate::runner) fn wait(set: BorrowedFd<'_>, events: &mut Vec<epoll::Event>, pause: Duration) -> io::Result<()> {
    if !COARSE.load(Ordering::Relaxed) {
        match pwait2(set, events, pause) {
            Err(error) if error.raw_os_error() == Some(libc::ENOSYS) => COARSE.store(true, Ordering::Relaxed),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => return Ok(()),
            other => return other,
        }
    }
    let limit = Timespec { tv_sec: pause.as_secs() as i64, tv_nsec: pause.subsec_nanos().into() };
    match epoll::wait(set, rustix::buffer::spare_capacity(events), Some(&limit)) {
        Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
        Err(error) => Err(error.into()),
    }
}

fn pwait2(set: BorrowedFd<'_>, events: &mut Vec<epoll::Event>, pause: Duration) -> io::Result<()> {
    let limit = libc::timespec { tv_sec: pause.as_secs() as _, tv_nsec: pause.subsec_nanos().into() };
    let spare = events.spare_capacity_mut();
    // SAFETY: rustix's Event has the layout of the kernel's epoll_event; the kernel writes at most as many as there is room for,
    // and reads the limit, which outlives the call. There is no signal mask.
    let count = unsafe {
        libc::syscall(
            libc::SYS_epoll_pwait2,
            set.as_raw_fd(),
            spare.as_mut_ptr(),
            spare.len().min(i32::MAX as usize) as libc::c_int,
            &raw const limit,
            std::ptr::null::<libc::sigset_t>(),
            0_usize,
        )
    };
    let count = usize::try_from(count).map_err(|_| io::Error::last_os_error())?;
    // SAFETY: the kernel has written so many behind those that were there.
    unsafe { events.set_len(events.len() + count) };
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::fd::AsFd;

    use super::*;

    #[test]
    fn a_ready_descriptor_is_returned_at_once_with_its_data() {
        let set = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
        let (one, other) = std::os::unix::net::UnixStream::pair().unwrap();
        epoll::add(&set, &one, epoll::EventData::new_u64(7), epoll::EventFlags::IN).unwrap();
        let mut events = Vec::with_capacity(4);
        wait(set.as_fd(), &mut events, Duration::from_micros(10)).unwrap();
        assert!(events.is_empty());
        rustix::io::write(&other, b"x").unwrap();
        wait(set.as_fd(), &mut events, Duration::from_secs(60)).unwrap();
        assert_eq!((events.len(), events[0].data.u64()), (1, 7));
    }
}
