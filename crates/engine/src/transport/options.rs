//! Sets the socket options of a spec, and reads back what the kernel made of them.

use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::Duration;

use model::{EndOptions, Role, SocketFacts, Spec, Strategy};
use rustix::thread::CpuSet;
use socket2::{SockRef, TcpKeepalive};

use super::sys::sockopt;
use super::tcp_info::TcpInfo;
use crate::EngineError;
use crate::plan::is_stream;

/// Sets the options that must precede `listen` or `connect`.
pub(crate) fn before_handshake(socket: BorrowedFd<'_>, end: &EndOptions, tcp: bool) -> Result<(), EngineError> {
    let borrowed = socket;
    let socket = SockRef::from(&socket);
    if let Some(bytes) = end.sndbuf {
        set(format!("a send buffer of {bytes} bytes"), "", socket.set_send_buffer_size(int(bytes)))?;
        if socket.send_buffer_size().is_ok_and(|got| got < int(bytes).saturating_mul(2)) {
            force(borrowed, sockopt::Buffer::Send, bytes);
        }
    }
    if let Some(bytes) = end.rcvbuf {
        set(format!("a receive buffer of {bytes} bytes"), "", socket.set_recv_buffer_size(int(bytes)))?;
        if socket.recv_buffer_size().is_ok_and(|got| got < int(bytes).saturating_mul(2)) {
            force(borrowed, sockopt::Buffer::Receive, bytes);
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

/// Sets a buffer beyond net.core.wmem_max or rmem_max. Without CAP_NET_ADMIN the kernel's bound applies, and the
/// socket's facts show the result.
fn force(socket: BorrowedFd<'_>, buffer: sockopt::Buffer, bytes: u64) {
    let _ = sockopt::force_buffer(socket, buffer, i32::try_from(bytes).unwrap_or(i32::MAX));
}

/// Sets the options that act on a connected socket.
pub(crate) fn connected(socket: BorrowedFd<'_>, end: &EndOptions, spec: &Spec, tcp: bool) -> Result<(), EngineError> {
    let borrowed = socket;
    let socket = SockRef::from(&socket);
    if tcp {
        // A round trip must not wait for Nagle's algorithm; a stream keeps the kernel's default, like the peers'.
        let nodelay = end.nodelay.unwrap_or(!is_stream(spec));
        set(format!("TCP_NODELAY {nodelay}"), "", socket.set_tcp_nodelay(nodelay))?;
        if let Some(cork) = end.cork {
            set(format!("TCP_CORK {cork}"), "", socket.set_tcp_cork(cork))?;
        }
        if let Some(name) = &end.cc {
            set(format!("the congestion control '{name}'"), CC_HINT, socket.set_tcp_congestion(name.as_bytes()))?;
        }
        if let Some(bytes) = end.notsent_lowat {
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
    if let Some(dscp) = end.dscp {
        let tos = u32::from(dscp) << 2;
        let v6 = socket.domain().is_ok_and(|domain| domain == socket2::Domain::IPV6);
        set(format!("DSCP {dscp}"), "", if v6 { socket.set_tclass_v6(tos) } else { socket.set_tos_v4(tos) })?;
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

/// Switches off the mechanisms by which TCP sends fewer segments; other sockets have none of them and refuse the
/// option.
pub(crate) fn prompt(socket: BorrowedFd<'_>) {
    let socket = SockRef::from(&socket);
    let _ = socket.set_tcp_cork(false);
    let _ = socket.set_tcp_nodelay(true);
}

const CC_HINT: &str = "; `thru host` lists the names of this host, net.ipv4.tcp_allowed_congestion_control those \
    open to every user";

/// Whether this host supports the spec's options at the end of `role`: tried on an unconnected socket, so that a wrong
/// name is refused before the measurement.
pub fn check_end(role: Role, spec: &Spec) -> Result<(), EngineError> {
    let end = spec.end(role);
    check_cores(&end.pin)?;
    check_files(spec)?;
    let transport = super::transport(spec.transport.as_str())?;
    transport.check_host()?;
    transport.check_engine(spec, role)?;
    if spec.strategy == Strategy::Uring {
        super::uring::check()?;
    }
    let facts = transport.facts();
    if facts.ip.is_none() {
        return Ok(());
    }
    let tcp = facts.is_over_tcp();
    let trial = if tcp {
        super::tcp::open(spec, (std::net::Ipv4Addr::LOCALHOST, 0).into())
    } else {
        socket2::Socket::new(socket2::Domain::IPV4, socket2::Type::DGRAM, None)
    };
    let trial = trial.map_err(|source| EngineError::socket("open a socket for", &spec.transport, source))?;
    before_handshake(trial.as_fd(), end, tcp)?;
    connected(trial.as_fd(), end, spec, tcp)
}

/// Descriptors that a measuring process needs besides its flows' own.
const BESIDES: u64 = 64;

/// Whether a measuring process may open all its connections: it inherits this one's limit.
fn check_files(spec: &Spec) -> Result<(), EngineError> {
    if !super::transport(spec.transport.as_str())?.capabilities().pollable {
        return Ok(());
    }
    let both = is_stream(spec) && spec.direction == model::Direction::Both;
    let each = match spec.pattern.as_str() {
        // A flow keeps its first connection and, for a moment, that of the previous transaction.
        "crr" => 3,
        _ if both => 2,
        _ => 1,
    };
    let flows = u64::from(spec.flows).div_ceil(u64::from(spec.processes.max(1)));
    let limit = rustix::process::getrlimit(rustix::process::Resource::Nofile).current;
    match limit.filter(|limit| flows * each + BESIDES > *limit) {
        None => Ok(()),
        Some(limit) => Err(EngineError::unsupported(
            format!("{flows} flows in one process, where it may open {limit} files"),
            "raise the limit of open files (ulimit -Hn, or LimitNOFILE= of a service), use --processes, or use \
                fewer --flows",
        )),
    }
}

/// Whether measuring threads may run on these cores.
fn check_cores(cores: &[u32]) -> Result<(), EngineError> {
    let allowed = rustix::thread::sched_getaffinity(None).map_err(|error| EngineError::Thread(error.to_string()))?;
    let runs = |core: u32| (core as usize) < CpuSet::MAX_CPU && allowed.is_set(core as usize);
    match cores.iter().find(|core| !runs(**core)) {
        None => Ok(()),
        Some(core) => {
            let given: Vec<String> =
                (0..CpuSet::MAX_CPU as u32).filter(|core| runs(*core)).map(|core| core.to_string()).collect();
            Err(EngineError::unsupported(
                format!("--pin to core {core}"),
                format!("this process may use the cores {}", given.join(", ")),
            ))
        }
    }
}

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
    facts.forced =
        [(sockopt::Buffer::Send, facts.sndbuf, "wmem_max"), (sockopt::Buffer::Receive, facts.rcvbuf, "rmem_max")]
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
    result.map_err(|source| EngineError::Option { option, source, hint })
}
