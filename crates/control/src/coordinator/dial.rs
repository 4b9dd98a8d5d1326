//! How a coordinator connects to the port of an agent.

use std::io;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

use engine::transport::{lacks_scope, scope_hint};
use model::Family;
use text::say;
use tokio::net::{TcpSocket, TcpStream};
use tokio::task::JoinSet;

use super::address::{label, split};
use crate::{Answers, ControlError};

/// Time limit for a connection attempt to one address: on a path with a round trip of 20 s the answer takes that long, and on one that
/// loses much the kernel repeats the request several times meanwhile. [`Answers`] of other hosts shorten it.
const CONNECT_LIMIT: Duration = Duration::from_secs(25);
/// Time limit of the look for other programs' servers; a host that is there has refused the connection to the agent before, or let it wait
/// longer.
const PORT_LIMIT: Duration = Duration::from_secs(3);
/// How often a connection attempt checks whether other hosts have answered.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// How long an address may stay silent before the next one of the same name is tried as well.
const NEXT_AFTER: Duration = Duration::from_secs(1);
/// Bytes of a segment: those of the smallest packets that every path of IPv6 carries. What is measured may find out that a path drops
/// larger ones; its control must not be lost to them.
const SEGMENT: u32 = 1_220;

/// Connects to the agent at `host`.
///
/// # Errors
/// The name does not resolve, a link-local address has no interface, or none of the addresses answers.
pub(super) async fn dial(host: &str, family: Family, answers: &Answers) -> Result<TcpStream, ControlError> {
    let (name, port) = split(host)?;
    let addresses = addresses(name, port, family).await?;
    if let Some(address) = addresses.iter().find(|address| lacks_scope(address)) {
        return Err(ControlError::NoInterface { host: name.into(), hint: scope_hint(address.ip()) });
    }
    match first_to_answer(&addresses, answers).await {
        Ok(stream) => Ok(stream),
        Err(Some((address, source))) => Err(unreachable_at(&label(host, address), source)),
        Err(None) => Err(ControlError::Resolve {
            host: name.into(),
            source: io::Error::new(io::ErrorKind::NotFound, "it has no address of the requested IP version"),
        }),
    }
}

/// The addresses of a host, of that IP version.
pub(super) async fn addresses(name: &str, port: u16, family: Family) -> Result<Vec<SocketAddr>, ControlError> {
    let resolved = tokio::net::lookup_host((name, port))
        .await
        .map_err(|source| ControlError::Resolve { host: name.into(), source })?;
    let fits = |address: &SocketAddr| match family {
        Family::Any => true,
        Family::V4 => address.is_ipv4(),
        Family::V6 => address.is_ipv6(),
    };
    Ok(resolved.filter(fits).collect())
}

/// The first of these ports on which something at `host` accepts a connection, whatever port `host` names.
///
/// # Errors
/// The name does not resolve.
pub async fn first_open_port(host: &str, family: Family, ports: &[u16]) -> Result<Option<u16>, ControlError> {
    let (name, _) = split(host)?;
    let mut tries = Vec::with_capacity(ports.len());
    for port in ports {
        for address in addresses(name, *port, family).await? {
            let accepts = tokio::time::timeout(PORT_LIMIT, TcpStream::connect(address));
            tries.push((*port, tokio::spawn(async move { matches!(accepts.await, Ok(Ok(_))) })));
        }
    }
    for (port, accepts) in tries {
        if accepts.await.unwrap_or(false) {
            return Ok(Some(port));
        }
    }
    Ok(None)
}

/// A connection to the first address that answers; the error is that of the last one that failed. An address is tried when the one before
/// has failed or stayed silent for [`NEXT_AFTER`].
async fn first_to_answer(
    addresses: &[SocketAddr],
    answers: &Answers,
) -> Result<TcpStream, Option<(SocketAddr, io::Error)>> {
    let mut attempts = JoinSet::new();
    let mut left = addresses.iter().copied();
    let mut failure = None;
    let mut next = left.next();
    loop {
        if let Some(address) = next.take() {
            let answers = answers.clone();
            attempts.spawn(async move { connect(address, &answers).await.map_err(|source| (address, source)) });
        }
        let silent =
            async { if left.len() == 0 { std::future::pending().await } else { tokio::time::sleep(NEXT_AFTER).await } };
        tokio::select! {
            ended = attempts.join_next() => match ended {
                Some(Ok(Ok(stream))) => return Ok(stream),
                Some(Ok(Err(failed))) => failure = Some(failed),
                Some(Err(_)) => {}
                None if left.len() == 0 => return Err(failure),
                None => {}
            },
            () = silent => {}
        }
        next = left.next();
    }
}

/// A connection to the agent at an address. The time that it took is added to `answers`.
///
/// # Errors
/// The kernel's error.
pub(super) async fn connect(address: SocketAddr, answers: &Answers) -> io::Result<TcpStream> {
    let socket = if address.is_ipv4() { TcpSocket::new_v4()? } else { TcpSocket::new_v6()? };
    let _ = socket2::SockRef::from(&socket).set_tcp_mss(SEGMENT);
    let (begun, connected) = (Instant::now(), socket.connect(address));
    tokio::pin!(connected);
    loop {
        let left = answers.limit(CONNECT_LIMIT).saturating_sub(begun.elapsed());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        if let Ok(connected) = tokio::time::timeout(left.min(LOOK_EVERY), &mut connected).await {
            if connected.is_ok() {
                answers.heard(begun.elapsed());
            }
            return connected;
        }
    }
}

/// The error for an address that is not reached, with the remedy.
pub(super) fn unreachable_at(address: &str, source: io::Error) -> ControlError {
    let remedy = match source.kind() {
        io::ErrorKind::ConnectionRefused => {
            say!(
                "run `thru serve --invite` there, and here the line that it prints (without flags it serves loopback only)"
            )
        }
        io::ErrorKind::TimedOut => {
            say!(
                "perhaps the host is down, a firewall drops the port (open TCP and UDP 6280, or the port of `--listen`), or the path loses \
                 nearly everything"
            )
        }
        _ => "check the address and the route to it".into(),
    };
    ControlError::Unreachable { address: address.into(), source, remedy }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_first_address_that_answers_is_used() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let open = listener.local_addr().unwrap();
        let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
        let reached = first_to_answer(&[closed, open], &Answers::default()).await.unwrap();
        assert_eq!(reached.peer_addr().unwrap(), open);
        assert!(socket2::SockRef::from(&reached).tcp_mss().unwrap() <= SEGMENT);
        let (address, source) = first_to_answer(&[closed], &Answers::default()).await.unwrap_err().unwrap();
        assert_eq!((address, source.kind()), (closed, io::ErrorKind::ConnectionRefused));
        assert!(first_to_answer(&[], &Answers::default()).await.unwrap_err().is_none());
    }

    #[test]
    fn a_host_is_waited_for_as_the_others_have_answered() {
        let answers = Answers::default();
        assert_eq!(answers.limit(CONNECT_LIMIT), CONNECT_LIMIT);
        answers.heard(Duration::from_secs(1));
        answers.heard(Duration::from_millis(1));
        assert_eq!(answers.limit(CONNECT_LIMIT), Duration::from_secs(9));
        answers.heard(Duration::from_secs(20));
        assert_eq!(answers.limit(CONNECT_LIMIT), CONNECT_LIMIT);
    }

    #[tokio::test]
    async fn a_link_local_address_needs_an_interface() {
        let message = dial("[fe80::1]:7000", Family::Any, &Answers::default()).await.unwrap_err().to_string();
        assert!(message.contains("fe80::1%"), "{message}");
    }

    #[test]
    fn a_silent_host_is_not_said_to_be_down() {
        let message = unreachable_at("b", io::ErrorKind::TimedOut.into()).to_string();
        assert!(message.contains("perhaps the host is down") && message.contains("path"), "{message}");
    }
}
