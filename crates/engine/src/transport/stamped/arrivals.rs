//! Waits until the kernel stamps arrivals. It begins to do so some time after the first socket asks for it; until then a stream has no
//! stamps, and a datagram gets the time at which it is read (the kernel's net/core/dev.c, net_enable_timestamp, and net/socket.c).

use std::io;
use std::net::UdpSocket;
use std::os::fd::AsFd;
use std::time::Duration;

use crate::core::{now_ns, unix_ns};
use crate::transport::sys::stamps;

/// How long to wait at most: beyond, stamps are missing.
const LIMIT_NS: u64 = 500_000_000;
/// How long a datagram lies in its socket before it is read.
const REST: Duration = Duration::from_micros(200);

/// Returns once a datagram over loopback was stamped before it was read, or if that cannot be tried.
pub(super) fn wait_until_stamped() {
    let deadline = now_ns() + LIMIT_NS;
    let Ok(socket) = own_socket() else { return };
    while now_ns() < deadline && matches!(is_stamped(&socket), Ok(false)) {}
}

/// A socket that is connected to itself.
fn own_socket() -> io::Result<UdpSocket> {
    let socket = UdpSocket::bind("127.0.0.1:0")?;
    socket.connect(socket.local_addr()?)?;
    socket.set_nonblocking(true)?;
    stamps::enable(socket.as_fd(), false)?;
    Ok(socket)
}

fn is_stamped(socket: &UdpSocket) -> io::Result<bool> {
    socket.send(b"?")?;
    std::thread::sleep(REST);
    let before = unix_ns();
    match stamps::receive(socket.as_fd(), &mut [0; 1]) {
        Ok((_, stamp)) => Ok(stamp.software_ns.is_some_and(|ns| ns < before)),
        // It is still on its way.
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_datagram_that_lies_in_its_socket_is_stamped_before_it_is_read() {
        let Ok(socket) = own_socket() else {
            println!("SKIPPED: a_datagram_that_lies_in_its_socket_is_stamped_before_it_is_read: no time stamps");
            return;
        };
        wait_until_stamped();
        assert!(is_stamped(&socket).unwrap());
    }
}
