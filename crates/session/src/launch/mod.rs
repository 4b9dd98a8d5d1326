//! Measurements whose two ends a launcher starts (mpirun, pvm_spawn). The far end's agent listens on any free port and sends its
//! address over the transport itself, as an [`Offer`].

pub mod far;
pub mod mpi;
pub mod pvm;

use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use bus::Buses;
use command::Failure;
use control::Access;
use control::agent::Workers;
use control::proof::auth::Token;
use control::proof::fingerprint::Fingerprint;
use engine::transport::Launcher;
use text::{Text, say};

/// The addresses, the token and the key of an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    token: String,
    key: Fingerprint,
    /// Addresses with ports; any of them will do.
    pub addresses: Vec<String>,
}

impl Offer {
    /// One line: the token, the key, then the addresses.
    pub fn line(&self) -> String {
        format!("{} {} {}\n", self.token, self.key, self.addresses.join(" "))
    }

    /// Reads the format of [`line`](Self::line).
    pub fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace().map(str::to_owned);
        let token = words.next()?;
        let key = words.next()?.parse().ok()?;
        let addresses: Vec<String> = words.collect();
        (!addresses.is_empty()).then_some(Self { token, key, addresses })
    }

    /// The token.
    pub fn token(&self) -> Option<Token> {
        Token::new(&self.token)
    }

    /// How the agent is recognized.
    #[must_use]
    pub fn access(&self) -> Access {
        Access::to(self.key, self.token(), Buses::default())
    }
}

/// The variable that makes a command the supervisor of a process that mpirun started. Its value is the offer of the far end, and the
/// command's standard input is the socket of its worker.
const SUPERVISES: &str = "THRU_SUPERVISES";

/// The offer from the parent process; `None` for a command that a user started.
pub fn supervised() -> Option<Offer> {
    Offer::parse(&std::env::var(SUPERVISES).ok()?)
}

/// Whether another process of the same mpirun prints the same error: all have the same command line.
pub fn is_repeated(failure: &Failure) -> bool {
    failure.code() == Failure::usage("").code() && engine::transport::mpi::launched().is_some_and(|rank| rank > 0)
}

/// The error for a HOST in a measurement that a launcher starts.
pub fn no_host(launcher: Launcher, host: &str) -> Text {
    match launcher {
        Launcher::Mpirun => {
            say!("mpi measures between the two processes of `mpirun -n 2`, not with {host}: omit HOST and `--from`")
        }
        Launcher::PvmSpawn => {
            say!("pvm starts its far end in the virtual machine, not on {host}: omit HOST and `--from`")
        }
    }
}

/// The worker at the other end of standard input.
pub fn waiting_worker() -> Result<Workers, Failure> {
    let socket = std::io::stdin().as_fd().try_clone_to_owned();
    let socket = socket.map_err(|error| Failure::other(format!("cannot connect to the measuring process: {error}")))?;
    Ok(Workers::waiting(UnixStream::from(socket)))
}

/// Identifies the boot of the machine and the network namespace. Two processes with the same identity reach each other over
/// loopback.
pub fn network_identity() -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let network = std::fs::read_link("/proc/self/ns/net").unwrap_or_default();
    format!("{} {}", boot.trim(), network.display())
}

/// Reads a line from a socket, without reading further.
pub fn read_line(mut socket: &UnixStream) -> std::io::Result<String> {
    let mut line = Vec::new();
    let mut byte = [0];
    while line.len() < 64 << 10 {
        if socket.read(&mut byte)? == 0 {
            return Err(std::io::ErrorKind::UnexpectedEof.into());
        }
        if byte[0] == b'\n' {
            return String::from_utf8(line).map_err(std::io::Error::other);
        }
        line.push(byte[0]);
    }
    Err(std::io::ErrorKind::InvalidData.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    #[test]
    fn an_offer_is_read_back_from_its_line() {
        let key = Fingerprint::of(b"key");
        let offer =
            Offer { token: "0123ab".into(), key, addresses: vec!["127.0.0.1:99".into(), "[fe80::1]:99".into()] };
        assert_eq!(Offer::parse(&offer.line()), Some(offer));
        assert_eq!(Offer::parse("token"), None);
        assert_eq!(Offer::parse("token 127.0.0.1:99"), None);
        assert_eq!(Offer::parse(""), None);
    }

    #[test]
    fn a_line_is_read_without_the_bytes_after_it() {
        let (mut from, to) = UnixStream::pair().expect("a pair");
        from.write_all(b"one\ntwo").expect("written");
        assert_eq!(read_line(&to).expect("a line"), "one");
        drop(from);
        let mut rest = String::new();
        (&to).read_to_string(&mut rest).expect("the rest");
        assert_eq!(rest, "two");
        assert!(read_line(&to).is_err());
    }
}
