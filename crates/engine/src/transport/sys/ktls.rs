//! Kernel TLS: the upper-layer protocol of a TCP socket, its keys, and records with their types (linux/tls.h; the kernel's
//! Documentation/networking/tls.rst).

use std::io;
use std::mem::{size_of, zeroed};
use std::os::fd::{AsFd, AsRawFd};

/// The bytes that a control message with a record's type takes, in words so that it is aligned.
type Control = [u64; 4];

/// Enables TLS on a connected TCP socket; nothing is encrypted before keys are set. ENOENT if the kernel has no TLS;
/// ENOTCONN if it has, but the socket is not connected.
pub(crate) fn attach(socket: impl AsFd) -> io::Result<()> {
    set(socket, libc::IPPROTO_TCP, libc::TCP_ULP, b"tls")
}

/// Sets the keys of what is sent (TLS_TX) by a `tls12_crypto_info_*` structure.
pub(crate) fn encrypt(socket: impl AsFd, crypto_info: &[u8]) -> io::Result<()> {
    set(socket, libc::SOL_TLS, libc::TLS_TX, crypto_info)
}

/// Sets the keys of what is received (TLS_RX), beginning with what is in the socket already.
pub(crate) fn decrypt(socket: impl AsFd, crypto_info: &[u8]) -> io::Result<()> {
    set(socket, libc::SOL_TLS, libc::TLS_RX, crypto_info)
}

fn set(socket: impl AsFd, level: libc::c_int, option: libc::c_int, value: &[u8]) -> io::Result<()> {
    let length = value.len() as libc::socklen_t;
    // SAFETY: the pointer and length describe live bytes for the length of the call, and the kernel only reads them.
    let result = unsafe { libc::setsockopt(socket.as_fd().as_raw_fd(), level, option, value.as_ptr().cast(), length) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Sends a record of a type other than application data, entirely or not at all.
pub(crate) fn send_record(socket: impl AsFd, kind: u8, body: &[u8]) -> io::Result<()> {
    let mut control: Control = [0; 4];
    // SAFETY: an all-zero msghdr is valid; body and control buffer outlive the call, the kernel only reads them, and the one
    // control message lies within the buffer, which is larger than CMSG_SPACE(1).
    let result = unsafe {
        let mut part = libc::iovec { iov_base: body.as_ptr().cast_mut().cast(), iov_len: body.len() };
        let mut header: libc::msghdr = zeroed();
        header.msg_iov = &raw mut part;
        header.msg_iovlen = 1;
        header.msg_control = control.as_mut_ptr().cast();
        header.msg_controllen = libc::CMSG_SPACE(1) as _;
        let message = libc::CMSG_FIRSTHDR(&raw const header);
        (*message).cmsg_level = libc::SOL_TLS;
        (*message).cmsg_type = libc::TLS_SET_RECORD_TYPE;
        (*message).cmsg_len = libc::CMSG_LEN(1) as _;
        libc::CMSG_DATA(message).write(kind);
        libc::sendmsg(socket.as_fd().as_raw_fd(), &raw const header, libc::MSG_NOSIGNAL)
    };
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// Receives bytes of records of one type: how many, and the type if the kernel reports one. It reports none at the end
/// of the connection.
#[inline]
pub(crate) fn receive(socket: impl AsFd, into: &mut [u8]) -> io::Result<(usize, Option<u8>)> {
    let mut control: Control = [0; 4];
    // SAFETY: an all-zero msghdr is valid; both buffers outlive the call and the kernel writes no more than their lengths. The
    // CMSG functions stay within what the kernel wrote, and a message of this level and type carries one byte.
    unsafe {
        let mut part = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
        let mut header: libc::msghdr = zeroed();
        header.msg_iov = &raw mut part;
        header.msg_iovlen = 1;
        header.msg_control = control.as_mut_ptr().cast();
        header.msg_controllen = size_of::<Control>() as _;
        let result = libc::recvmsg(socket.as_fd().as_raw_fd(), &raw mut header, 0);
        if result < 0 {
            return Err(io::Error::last_os_error());
        }
        let mut message = libc::CMSG_FIRSTHDR(&raw const header);
        while !message.is_null() {
            if ((*message).cmsg_level, (*message).cmsg_type) == (libc::SOL_TLS, libc::TLS_GET_RECORD_TYPE) {
                return Ok((result as usize, Some(libc::CMSG_DATA(message).read())));
            }
            message = libc::CMSG_NXTHDR(&raw const header, message);
        }
        Ok((result as usize, None))
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn without_tls_bytes_come_without_a_type_and_so_does_the_end() {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let (far, _) = listener.accept().unwrap();
        near.write_all(b"plain").unwrap();
        let mut received = [0; 8];
        assert_eq!(receive(&far, &mut received).unwrap(), (5, None));
        assert_eq!(&received[..5], b"plain");
        drop(near);
        assert_eq!(receive(&far, &mut received).unwrap(), (0, None));
    }

    #[test]
    fn an_unconnected_socket_shows_whether_the_kernel_has_tls() {
        let socket = socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::STREAM, None).unwrap();
        let code = attach(&socket).unwrap_err().raw_os_error();
        assert!(matches!(code, Some(libc::ENOENT | libc::ENOTCONN)), "{code:?}");
    }
}
