//! Sets the socket options of a spec, and reads back what the kernel made of them.

use std::io;
use std::net::SocketAddr;
use std::os::fd::BorrowedFd;
use std::sync::OnceLock;
use std::time::Duration;

use model::{Ecn, EndOptions, SocketFacts, Spec};
use socket2::{SockRef, Socket, TcpKeepalive};
use text::{Said, Text};

use super::scope::{scope_of, scoped};
use super::sys::sockopt::{self, Buffer};
use super::tcp_info::TcpInfo;
use crate::core::EngineError;

/// Sets the options that must precede `listen` or `connect`.
pub(crate) fn before_handshake(socket: BorrowedFd<'_>, end: &EndOptions, tcp: bool) -> Result<(), EngineError> {
    let borrowed = socket;
    let socket = SockRef::from(&socket);
    if let Some(bytes) = end.sndbuf {
        set(format!("a send buffer of {bytes} bytes"), "", socket.set_send_buffer_size(int(bytes)))?;
        if socket.send_buffer_size().is_ok_and(|got| got < int(bytes).saturating_mul(2)) {
            force(borrowed, Buffer::Send, bytes);
        }
    }
    if let Some(bytes) = end.rcvbuf {
        set(format!("a receive buffer of {bytes} bytes"), "", socket.set_recv_buffer_size(int(bytes)))?;
        if socket.recv_buffer_size().is_ok_and(|got| got < int(bytes).saturating_mul(2)) {
            force(borrowed, Buffer::Receive, bytes);
        }
    }
    if let Some(device) = &end.device {
        let hint = "; binding to a device needs an existing interface, and root before Linux 5.7";
        set(format!("the device {device}"), hint, socket.bind_device(Some(device.as_bytes())))?;
    }
    if tcp && let Some(mss) = end.mss {
        set(format!("an MSS of {mss} bytes"), "; the kernel takes 88 to 32767", socket.set_tcp_mss(mss))?;
    }
    Ok(())
}

/// Sets a buffer beyond net.core.wmem_max or rmem_max. Without CAP_NET_ADMIN and without [`assist_with`] the kernel's bound
/// applies, and the socket's facts show the result.
fn force(socket: BorrowedFd<'_>, buffer: Buffer, bytes: u64) {
    let option = PrivilegedOption::Buffer(buffer, bytes);
    if set_privileged(socket, &option).is_err()
        && let Some(assist) = ASSIST.get()
    {
        let _ = assist(socket, &option);
    }
}

/// Sets a congestion control. One that is not open to every user, or that the kernel has yet to load, needs CAP_NET_ADMIN, or
/// [`assist_with`].
fn set_congestion(socket: BorrowedFd<'_>, name: &str) -> Result<(), AssistError> {
    let option = PrivilegedOption::Congestion(name);
    set_privileged(socket, &option).or_else(|error| match ASSIST.get() {
        Some(assist) => assist(socket, &option),
        None => Err(error.into()),
    })
}

/// A socket option that needs CAP_NET_ADMIN for some values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PrivilegedOption<'a> {
    /// A congestion control of TCP, by its name in the kernel.
    Congestion(&'a str),
    /// A buffer of this many bytes, beyond the host's limit.
    Buffer(Buffer, u64),
}

/// Sets an option that needs CAP_NET_ADMIN, with the rights of this process.
///
/// # Errors
/// The kernel refuses it.
pub fn set_privileged(socket: BorrowedFd<'_>, option: &PrivilegedOption<'_>) -> io::Result<()> {
    match option {
        PrivilegedOption::Congestion(name) => SockRef::from(&socket).set_tcp_congestion(name.as_bytes()),
        PrivilegedOption::Buffer(buffer, bytes) => {
            sockopt::force_buffer(socket, *buffer, i32::try_from(*bytes).unwrap_or(i32::MAX))
        }
    }
}

/// Why a privileged option is not set.
#[derive(Debug, thiserror::Error, Said)]
pub enum AssistError {
    /// The kernel refuses it, or nobody else is reached who may set it.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// The process that may set it refuses, in its words.
    #[error("{}", _0.plain())]
    Refused(Text),
}

type Assist = dyn Fn(BorrowedFd<'_>, &PrivilegedOption<'_>) -> Result<(), AssistError> + Send + Sync;

static ASSIST: OnceLock<Box<Assist>> = OnceLock::new();

/// From now on, `assist` sets privileged options that this process may not set. Only the first call counts.
pub fn assist_with(
    assist: impl Fn(BorrowedFd<'_>, &PrivilegedOption<'_>) -> Result<(), AssistError> + Send + Sync + 'static,
) {
    let _ = ASSIST.set(Box::new(assist));
}

/// Sets the options that act on a connected socket.
pub(crate) fn connected(socket: BorrowedFd<'_>, end: &EndOptions, spec: &Spec, tcp: bool) -> Result<(), EngineError> {
    let borrowed = socket;
    let socket = SockRef::from(&socket);
    if tcp {
        // A round trip must not wait for Nagle's algorithm; a stream keeps the kernel's default, like the peers'.
        let nodelay = end.nodelay.unwrap_or(!spec.is_stream() || spec.rate_bps.is_some());
        set(format!("TCP_NODELAY {nodelay}"), "", socket.set_tcp_nodelay(nodelay))?;
        if let Some(cork) = end.cork {
            set(format!("TCP_CORK {cork}"), "", socket.set_tcp_cork(cork))?;
        }
        if let Some(name) = &end.cc {
            let option = format!("the congestion control '{name}'");
            set_congestion(borrowed, name).map_err(|error| match error {
                AssistError::Io(source) => EngineError::Option { option, source, hint: CC_HINT.into() },
                AssistError::Refused(reason) => EngineError::Refused { option, reason, hint: CC_HINT },
            })?;
        }
        if let Some(bytes) = end.notsent_lowat.or_else(|| unsent_if_paced(spec)) {
            set(format!("TCP_NOTSENT_LOWAT {bytes}"), "", socket.set_tcp_notsent_lowat(bytes))?;
        }
        if let Some(ms) = end.user_timeout_ms {
            let limit = Some(Duration::from_millis(u64::from(ms)));
            set(format!("TCP_USER_TIMEOUT {ms} ms"), "", socket.set_tcp_user_timeout(limit))?;
        }
        if let Some(seconds) = end.keepalive_s {
            let span = Duration::from_secs(u64::from(seconds.max(1)));
            let keepalive = TcpKeepalive::new().with_time(span).with_interval(span).with_retries(3);
            set(format!("keepalive every {seconds} s"), "", socket.set_tcp_keepalive(&keepalive))?;
        }
    }
    if end.dscp.is_some() || end.ecn.is_some() {
        let (dscp, ecn) = (end.dscp.unwrap_or(0), end.ecn.map_or(0, Ecn::bits));
        let tos = u32::from(dscp << 2 | ecn);
        let v6 = socket.domain().is_ok_and(|domain| domain == socket2::Domain::IPV6);
        let set_class = if v6 { socket.set_tclass_v6(tos) } else { socket.set_tos_v4(tos) };
        set(format!("DSCP {dscp} and ECN {ecn:#04b}"), "", set_class)?;
    }
    if let Some(priority) = end.priority {
        // After the DSCP, which sets a priority, too (ip(7)).
        let hint = "; 7 and more need CAP_NET_ADMIN";
        set(format!("the priority {priority}"), hint, socket.set_priority(priority))?;
    }
    if let Some(bps) = end.max_pacing_bps {
        set(format!("a pacing rate of {bps} bit/s"), "", sockopt::set_max_pacing_rate(borrowed, bps.div_ceil(8)))?;
    }
    if let Some(us) = end.busy_poll_us {
        let hint = "; raising SO_BUSY_POLL above net.core.busy_read needs CAP_NET_ADMIN";
        set(format!("busy polling for {us} µs"), hint, socket.set_busy_poll(us))?;
    }
    Ok(())
}

/// Unsent bytes above which a paced stream's socket takes no more, if the spec does not say: what waits for a slow path
/// waits with the pacer, which knows its time, and not in a buffer that goes on top of the rate later.
fn unsent_if_paced(spec: &Spec) -> Option<u32> {
    spec.rate_bps.filter(|_| spec.is_stream() && spec.speak.is_none())?;
    Some(u32::try_from(2 * spec.block).unwrap_or(u32::MAX).max(UNSENT_IF_PACED))
}

const UNSENT_IF_PACED: u32 = 16 << 10;

/// Binds the near end's address and port, where the spec names any.
pub(crate) fn bind_near(
    socket: &Socket,
    near: &EndOptions,
    target: SocketAddr,
    link: Option<u32>,
) -> Result<(), EngineError> {
    if near.data_addr.is_none() && near.port.is_none() {
        return Ok(());
    }
    let any =
        if target.is_ipv4() { std::net::Ipv4Addr::UNSPECIFIED.into() } else { std::net::Ipv6Addr::UNSPECIFIED.into() };
    let port = near.port.zip(link).map_or(0, |(first, link)| first.wrapping_add(link as u16));
    // A link-local address is on the link of the address that is connected to.
    let local = scoped(near.data_addr.unwrap_or(any), port, scope_of(&target));
    socket
        .set_reuse_address(true)
        .and_then(|()| socket.bind(&local.into()))
        .map_err(|source| EngineError::socket("bind to", local, source))
}

/// Switches off the mechanisms by which TCP sends fewer segments; other sockets have none of them and refuse the
/// option.
pub(crate) fn prompt(socket: BorrowedFd<'_>) {
    let socket = SockRef::from(&socket);
    let _ = socket.set_tcp_cork(false);
    let _ = socket.set_tcp_nodelay(true);
}

const CC_HINT: &str = "; `thru host` lists those of this host, net.ipv4.tcp_allowed_congestion_control those that any \
    user may set";

/// The kernel's TCP figures of one socket's path, read with one call.
pub(crate) fn brief_facts(socket: BorrowedFd<'_>) -> SocketFacts {
    TcpInfo::of(socket).map_or_else(SocketFacts::default, |info| info.brief())
}

/// The kernel's facts about a socket.
pub(crate) fn facts(socket: BorrowedFd<'_>) -> SocketFacts {
    let borrowed = socket;
    let socket = SockRef::from(&socket);
    let address = |address: io::Result<socket2::SockAddr>| {
        let address = address.ok()?;
        let ip = address.as_socket().map(|address| address.to_string());
        ip.or_else(|| address.as_vsock_address().map(|(cid, port)| format!("vsock:{cid}:{port}")))
    };
    let info = TcpInfo::of(borrowed);
    let mut facts = SocketFacts {
        local: address(socket.local_addr()),
        peer: address(socket.peer_addr()),
        sndbuf: socket.send_buffer_size().ok().map(|bytes| bytes as u64),
        rcvbuf: socket.recv_buffer_size().ok().map(|bytes| bytes as u64),
        ..info.as_ref().map_or_else(SocketFacts::default, TcpInfo::brief)
    };
    if let Some(info) = info {
        facts.nodelay = socket.tcp_nodelay().ok();
        facts.cc =
            socket.tcp_congestion().ok().map(|name| String::from_utf8_lossy(&name).trim_end_matches('\0').to_owned());
        info.negotiated(&mut facts);
    }
    facts.forced = [(Buffer::Send, facts.sndbuf, "wmem_max"), (Buffer::Receive, facts.rcvbuf, "rmem_max")]
        .into_iter()
        .any(|(buffer, bytes, bound)| {
            sockopt::is_set(borrowed, buffer) && bytes.is_some_and(|bytes| bytes > bound_of(bound))
        });
    facts.busy_poll_us = sockopt::busy_poll_us(borrowed).filter(|us| *us > 0);
    facts.mptcp_subflows = sockopt::mptcp_subflows(borrowed);
    facts
}

/// The largest buffer that a socket gets without force, as the kernel reports it: twice net.core.rmem_max or wmem_max.
/// If that cannot be read, nothing counts as forced.
fn bound_of(name: &str) -> u64 {
    let text = std::fs::read_to_string(format!("/proc/sys/net/core/{name}")).unwrap_or_default();
    text.trim().parse().map_or(u64::MAX, |bytes: u64| bytes.saturating_mul(2))
}

fn int(bytes: u64) -> usize {
    usize::try_from(bytes).unwrap_or(usize::MAX).min(i32::MAX as usize)
}

fn set(option: String, hint: &'static str, result: io::Result<()>) -> Result<(), EngineError> {
    result.map_err(|source| EngineError::Option { option, source, hint: hint.into() })
}
