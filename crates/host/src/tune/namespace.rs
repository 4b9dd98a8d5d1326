//! Network namespaces: which one this is, and running code in another one.

use std::fs::File;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;

use rustix::net::{AddressFamily, SocketFlags, SocketType};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};
use serde::{Deserialize, Serialize};

use crate::sys::sockopt;

/// A network namespace. Inode numbers are reused; the cookie is not, until the host restarts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Namespace {
    /// Inode of /proc/self/ns/net.
    pub inode: u64,
    /// SO_NETNS_COOKIE, where the kernel has it (Linux 5.14).
    pub cookie: Option<u64>,
}

/// Where programs keep names of namespaces.
const NAMED: [&str; 2] = ["/run/netns", "/run/docker/netns"];

impl Namespace {
    /// That of the calling thread.
    ///
    /// # Errors
    /// If /proc is not mounted.
    pub fn current() -> io::Result<Self> {
        let inode = std::fs::metadata("/proc/thread-self/ns/net")?.ino();
        let flags = SocketFlags::CLOEXEC;
        let socket = rustix::net::socket_with(AddressFamily::UNIX, SocketType::DGRAM, flags, None);
        Ok(Self { inode, cookie: socket.ok().and_then(|socket| cookie(&socket).ok()) })
    }

    /// Whether both are the same one.
    #[must_use]
    pub fn is(&self, other: &Self) -> bool {
        match (self.cookie, other.cookie) {
            (Some(one), Some(other)) => one == other,
            _ => self.inode == other.inode,
        }
    }

    /// Runs `work` in it: directly if this is it, else in a thread that moves there. `None` if no name and no process
    /// of this host leads to it any more.
    ///
    /// # Errors
    /// Moving there needs CAP_SYS_ADMIN.
    pub fn within<T: Send>(&self, work: impl FnOnce() -> T + Send) -> io::Result<Option<T>> {
        if Self::current()?.is(self) {
            return Ok(Some(work()));
        }
        let Some(handle) = self.handle() else { return Ok(None) };
        std::thread::scope(|scope| {
            let there = scope.spawn(|| {
                move_into_link_name_space(handle.as_fd(), Some(LinkNameSpaceType::Network))?;
                // A reused number leads to another namespace.
                Ok(if Self::current()?.is(self) { Some(work()) } else { None })
            });
            there.join().unwrap_or_else(|_| Err(io::Error::other("the thread in the namespace panicked")))
        })
    }

    /// An open file that refers to it.
    fn handle(&self) -> Option<File> {
        let named = NAMED.iter().filter_map(|directory| std::fs::read_dir(directory).ok()).flatten();
        let named = named.filter_map(|entry| Some(entry.ok()?.path()));
        let processes = std::fs::read_dir("/proc").ok()?.filter_map(|entry| {
            let entry = entry.ok()?;
            let number: u32 = entry.file_name().to_str()?.parse().ok()?;
            Some(PathBuf::from(format!("/proc/{number}/ns/net")))
        });
        let found =
            named.chain(processes).find(|path| std::fs::metadata(path).is_ok_and(|facts| facts.ino() == self.inode));
        File::open(found?).ok()
    }
}

/// The cookie of a socket's network namespace, which no other namespace gets until the host restarts (SO_NETNS_COOKIE,
/// Linux 5.14; socket(7)).
fn cookie(socket: impl AsFd) -> io::Result<u64> {
    sockopt::get(socket, libc::SOL_SOCKET, libc::SO_NETNS_COOKIE).map(u64::from_ne_bytes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reused_number_is_another_namespace() {
        let one = Namespace { inode: 7, cookie: Some(1) };
        assert!(!one.is(&Namespace { inode: 7, cookie: Some(2) }));
        assert!(one.is(&Namespace { inode: 8, cookie: Some(1) }));
        assert!(one.is(&Namespace { inode: 7, cookie: None }));
    }

    #[test]
    fn here_is_here() {
        let here = Namespace::current().unwrap_or_else(|error| panic!("{error}"));
        assert_eq!(here.within(|| 5).ok(), Some(Some(5)));
    }
}
