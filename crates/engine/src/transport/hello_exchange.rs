//! The hello and its answer over channels whose protocol runs in this process (tls, quic): there they are encrypted like
//! everything else. Transports of other crates use them, too.

use std::io;
use std::time::Duration;

use super::handshake::WELCOME;
use super::stream::HELLO_LIMIT;
use super::{Channel, Cookie, FlowHello, HELLO_BYTES};
use crate::core::{EngineError, not_now, now_ns};

/// Active side: sends the hello and waits until the passive end, at `address`, has accepted the connection. `patience` is how much
/// longer than usual the path may take for the answer.
///
/// # Errors
/// The other end did not answer, or is none that waits for this hello.
pub fn exchange_hello(
    channel: &mut impl Channel,
    hello: &FlowHello,
    address: &str,
    patience: Duration,
) -> Result<(), EngineError> {
    let deadline = deadline(patience);
    let mut answer = [0; 1];
    let result = write_all(channel, &hello.encode(), deadline).and_then(|()| read_all(channel, &mut answer, deadline));
    result.map_err(|source| match source.kind() {
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset => EngineError::Peer {
            peer: address.into(),
            what: "closed the data connection: it does not know this measurement, or has ended it".into(),
        },
        _ => EngineError::socket("send the hello of a data connection to", address, source),
    })?;
    if answer[0] == WELCOME {
        Ok(())
    } else {
        Err(EngineError::Peer { peer: address.into(), what: "is not a Throughline agent".into() })
    }
}

/// Passive side: reads the hello; `None` for anything else, or one without the cookie.
///
/// # Errors
/// The connection failed, or nothing came in time.
pub fn read_hello(channel: &mut impl Channel, cookie: &Cookie, patience: Duration) -> io::Result<Option<FlowHello>> {
    let mut bytes = [0; HELLO_BYTES];
    read_all(channel, &mut bytes, deadline(patience))?;
    Ok(FlowHello::decode(&bytes, [cookie]))
}

/// Passive side: confirms to the active end that its connection was accepted.
///
/// # Errors
/// The connection failed.
pub fn welcome(channel: &mut impl Channel) -> io::Result<()> {
    write_all(channel, &[WELCOME], deadline(Duration::ZERO))
}

fn deadline(patience: Duration) -> u64 {
    now_ns() + (HELLO_LIMIT + patience).as_nanos() as u64
}

fn write_all(channel: &mut impl Channel, mut bytes: &[u8], deadline_ns: u64) -> io::Result<()> {
    while !bytes.is_empty() {
        match channel.send(bytes) {
            Ok(count) => bytes = &bytes[count..],
            Err(error) if not_now(&error) && now_ns() < deadline_ns => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

fn read_all(channel: &mut impl Channel, into: &mut [u8], deadline_ns: u64) -> io::Result<()> {
    let mut filled = 0;
    while filled < into.len() {
        match channel.recv(&mut into[filled..]) {
            Ok(0) => return Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(count) => filled += count,
            Err(error) if not_now(&error) && now_ns() < deadline_ns => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
