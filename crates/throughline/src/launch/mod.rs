//! Measurements whose two ends are started by a launcher (mpirun, pvm_spawn) instead of being found at a HOST. The far end's
//! agent then listens at any free port, and where that is comes over the transport itself as an [`Offer`].

pub mod far;
pub mod mpi;
pub mod pvm;

use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;

use control::agent::Workers;
use control::proto::auth::Token;
use engine::transport::Launcher;

use crate::failure::Failure;

/// Where an agent listens and what it must be shown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    token: String,
    /// Addresses with ports, the first that answers is as good as any.
    pub places: Vec<String>,
}

impl Offer {
    /// As one line: the token, then the addresses.
    pub fn line(&self) -> String {
        format!("{} {}\n", self.token, self.places.join(" "))
    }

    /// Reads what [`line`](Self::line) wrote.
    pub fn parse(line: &str) -> Option<Self> {
        let mut words = line.split_whitespace().map(str::to_owned);
        let token = words.next()?;
        let places: Vec<String> = words.collect();
        (!places.is_empty()).then_some(Self { token, places })
    }

    /// The token.
    pub fn token(&self) -> Option<Token> {
        Token::new(&self.token)
    }
}

/// The variable that tells a command that it is the supervisor of a process which mpirun started, and what its far end's
/// offer is. Its standard input is then the socket of the worker that it has been given.
const SUPERVISES: &str = "THRU_SUPERVISES";

/// What the process that started this one has prepared for it; `None` for a command that a user started.
pub fn supervised() -> Option<Offer> {
    Offer::parse(&std::env::var(SUPERVISES).ok()?)
}

/// Whether another process of the same mpirun says the same: they all read the same command line.
pub fn is_echo(failure: &Failure) -> bool {
    failure.code() == Failure::usage("").code() && engine::transport::mpi::launched().is_some_and(|rank| rank > 0)
}

/// Why a HOST has no place in a measurement that a launcher starts.
pub fn no_host(launcher: Launcher, host: &str) -> String {
    match launcher {
        Launcher::Mpirun => {
            format!(
                "mpi measures between the two processes of `mpirun -n 2`, not with {host}: leave HOST and --from out"
            )
        }
        Launcher::PvmSpawn => {
            format!("pvm starts its far end in the virtual machine by itself, not at {host}: leave HOST and --from out")
        }
    }
}

/// The worker at the other end of standard input.
pub fn waiting_worker() -> Result<Workers, Failure> {
    let socket = std::io::stdin().as_fd().try_clone_to_owned();
    let socket = socket.map_err(|error| Failure::other(format!("cannot speak to the measuring process: {error}")))?;
    Ok(Workers::waiting(UnixStream::from(socket)))
}

/// What tells whether two processes reach each other over loopback: the same boot of the same machine, and the same network
/// namespace.
pub fn place_of_this_process() -> String {
    let boot = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    let network = std::fs::read_link("/proc/self/ns/net").unwrap_or_default();
    format!("{} {}", boot.trim(), network.display())
}

/// Reads a line from a socket, and not a byte more.
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
    fn an_offer_survives_its_line() {
        let offer = Offer { token: "0123ab".into(), places: vec!["127.0.0.1:99".into(), "[fe80::1]:99".into()] };
        assert_eq!(Offer::parse(&offer.line()), Some(offer));
        assert_eq!(Offer::parse("token"), None);
        assert_eq!(Offer::parse(""), None);
    }

    #[test]
    fn a_line_is_read_without_what_follows() {
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
