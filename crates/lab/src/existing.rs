//! Labs of other processes: listing them, entering them, and requests to their holders.

use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use model::{LabReport, Setting};

use crate::LabError;
use crate::available::privileged_ip;
use crate::ip::Ip;
use crate::journal::{Built, Journal, Record};

/// How long a holder may take to answer; one that takes its lab down may take longer.
const ANSWER: Duration = Duration::from_secs(5);
/// How long a holder may take to end its command and remove its lab.
const END: Duration = Duration::from_secs(30);

/// A lab that is up, or the remains of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExistingLab {
    /// Its name.
    pub name: String,
    /// Its topology; `None` for a lab that another command made for itself, such as `thru selftest`.
    pub topology: Option<String>,
    /// Its hosts; none where the topology is `None`.
    pub hosts: Vec<String>,
    /// Whether it stays up until it is taken down.
    pub stays: bool,
    /// The process that holds it.
    pub owner_pid: u32,
    /// Whether that process is alive; if not, the next lab or [`reap_stale`](crate::reap_stale) removes what is left.
    pub lives: bool,
    directory: PathBuf,
}

/// All labs of this machine, by name.
///
/// # Errors
/// If the journal cannot be read.
pub fn labs() -> Result<Vec<ExistingLab>, LabError> {
    let Some(journal) = Journal::existing()? else { return Ok(Vec::new()) };
    let mut labs: Vec<_> = journal.states()?.into_iter().map(|state| ExistingLab::of(state, &journal)).collect();
    labs.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(labs)
}

impl ExistingLab {
    fn of((record, lives): (Record, bool), journal: &Journal) -> Self {
        let (topology, hosts, stays) = match record.built {
            Some(Built { topology, hosts, stays }) => (Some(topology), hosts, stays),
            None => (None, Vec::new(), false),
        };
        let directory = journal.directory().to_owned();
        Self { name: record.lab, topology, hosts, stays, owner_pid: record.owner_pid, lives, directory }
    }

    /// The lab of that name, or the only lab of `thru lab`.
    ///
    /// # Errors
    /// If there is none, or several and no name is given.
    pub fn find(name: Option<&str>) -> Result<Self, LabError> {
        let mut labs: Vec<Self> = labs()?.into_iter().filter(|lab| lab.lives && lab.topology.is_some()).collect();
        let names = labs.iter().map(|lab| lab.name.clone()).collect::<Vec<_>>().join(", ");
        let there = if names.is_empty() {
            "`thru lab up TOPOLOGY` creates one".into()
        } else {
            format!("the labs are {names}")
        };
        match name {
            None if labs.len() > 1 => {
                Err(LabError::NoLab { name: "without a name".into(), there: format!("choose one of {names}") })
            }
            None => labs.pop().ok_or(LabError::NoLab { name: "yet".into(), there }),
            Some(name) => {
                let found = labs.into_iter().find(|lab| lab.name == name);
                found.ok_or(LabError::NoLab { name: format!("'{name}'"), there })
            }
        }
    }

    /// A command that will run `program` on one of its hosts, see
    /// [`NetworkHost::command`](crate::NetworkHost::command).
    ///
    /// # Errors
    /// If there is no such host, and without the means that [`available`](crate::available) checks.
    pub fn command(&self, host: &str, program: impl AsRef<OsStr>) -> Result<Command, LabError> {
        if !self.hosts.iter().any(|other| other == host) {
            return Err(LabError::NoHost { name: host.into(), hosts: self.hosts.join(", ") });
        }
        let ip: Ip = privileged_ip()?;
        Ok(ip.exec(&format!("{}-{host}", self.name), program.as_ref()))
    }

    /// A file that is removed with the lab: `token` for the secret of its agents, `sock` for its holder's socket.
    #[must_use]
    pub fn file(&self, end: &str) -> PathBuf {
        self.directory.join(format!("{}.{end}", self.name))
    }

    /// Makes its holder remove it, and waits until that is done; returns the counters of the emulated links.
    ///
    /// # Errors
    /// [`LabError::Silent`] if the holder does not answer.
    pub fn take_down(&self) -> Result<LabReport, LabError> {
        let silent = |source| LabError::Silent { lab: self.name.clone(), pid: self.owner_pid, source };
        Holder::at(&self.file("sock")).end().map_err(silent)
    }
}

/// A connection to the process that holds a lab. Requests and answers are lines: `report` is answered with a
/// [`LabReport`] as JSON of the time since the connection's last one, `down` with the last report, after which the
/// holder removes its lab and closes the connection. `links` and a JSON list of settings changes the links
/// ([`Network::set_links`](crate::Network::set_links)) and is answered by null when that is done, or a text with the error.
///
/// An answer that does not arrive ends the connection, so that a late one is not taken for the answer to the next
/// request.
#[derive(Debug)]
pub struct Holder {
    socket: PathBuf,
    connection: Option<BufReader<UnixStream>>,
    /// How long an answer may take.
    patience: Duration,
}

impl Holder {
    /// The environment variable with the path of the holder's socket, for programs on a lab's hosts.
    pub const VARIABLE: &'static str = "THRU_LAB_SOCKET";
    /// Requests a report.
    pub const REPORT: &'static str = "report";
    /// Requests other properties of the links.
    pub const LINKS: &'static str = "links ";
    /// Requests that the holder remove its lab.
    pub const DOWN: &'static str = "down";

    /// The holder of the lab that this process runs in, without a request yet; `None` outside labs.
    #[must_use]
    pub fn of_this_host() -> Option<Self> {
        Some(Self::at(Path::new(&std::env::var_os(Self::VARIABLE)?)))
    }

    /// The holder that answers at this socket, without a request yet.
    #[must_use]
    pub fn at(socket: &Path) -> Self {
        Self { socket: socket.into(), connection: None, patience: ANSWER }
    }

    /// Starts the period of the next [`report`](Self::report).
    ///
    /// # Errors
    /// If the holder has ended, does not answer in time, or answers with something else. There is no report then until
    /// another period has started.
    pub fn begin(&mut self) -> io::Result<()> {
        let connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.connect()?,
        };
        self.request(connection, Self::REPORT).map(drop)
    }

    /// The emulated links' counters since the last report or [`begin`](Self::begin), whichever was later.
    ///
    /// # Errors
    /// As [`begin`](Self::begin), and if no period has started.
    pub fn report(&mut self) -> io::Result<LabReport> {
        let connection = self.connection.take().ok_or(io::ErrorKind::NotConnected)?;
        self.request(connection, Self::REPORT)
    }

    /// Gives the lab's links these properties, and resets all others to the topology; returns when that is done.
    ///
    /// # Errors
    /// The holder has ended, does not answer in time, or refuses a setting.
    pub fn set_links(&self, settings: &[Setting]) -> io::Result<()> {
        let mut connection = Self { connection: None, patience: END, socket: self.socket.clone() }.connect()?;
        let settings = serde_json::to_string(settings)?;
        connection.get_ref().write_all(format!("{}{settings}\n", Self::LINKS).as_bytes())?;
        let mut line = String::new();
        connection.read_line(&mut line)?;
        let refused: Option<String> = serde_json::from_str(&line).map_err(io::Error::other)?;
        refused.map_or(Ok(()), |why| Err(io::Error::other(why)))
    }

    fn end(&mut self) -> io::Result<LabReport> {
        self.patience = END;
        let connection = self.connect()?;
        let report = self.request(connection, Self::DOWN)?;
        // The connection closes when the lab is removed.
        match self.connection.take().map_or(Ok(0), |mut connection| connection.read_line(&mut String::new())) {
            Ok(_) => Ok(report),
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(report),
            Err(error) => Err(error),
        }
    }

    fn connect(&self) -> io::Result<BufReader<UnixStream>> {
        let stream = UnixStream::connect(&self.socket)?;
        stream.set_read_timeout(Some(self.patience))?;
        Ok(BufReader::new(stream))
    }

    /// Keeps the connection for the next request only if this one is answered.
    fn request(&mut self, mut connection: BufReader<UnixStream>, request: &str) -> io::Result<LabReport> {
        connection.get_ref().write_all(format!("{request}\n").as_bytes())?;
        let mut line = String::new();
        connection.read_line(&mut line)?;
        let report = serde_json::from_str(&line).map_err(io::Error::other)?;
        self.connection = Some(connection);
        Ok(report)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::net::UnixListener;

    use super::*;

    /// Reads a request; answers with a report of this name.
    fn answer(connection: &mut BufReader<UnixStream>, name: &str) {
        assert_eq!(question(connection), "report\n");
        let report = LabReport { lab: name.into(), ..LabReport::default() };
        let line = serde_json::to_string(&report).unwrap() + "\n";
        connection.get_ref().write_all(line.as_bytes()).unwrap();
    }

    fn question(connection: &mut BufReader<UnixStream>) -> String {
        let mut line = String::new();
        connection.read_line(&mut line).unwrap();
        line
    }

    #[test]
    fn a_late_answer_is_not_taken_for_the_next() {
        let directory = tempfile::tempdir().unwrap();
        let socket = directory.path().join("sock");
        let listener = UnixListener::bind(&socket).unwrap();
        let mut holder = Holder::at(&socket);
        let accept = || BufReader::new(listener.accept().unwrap().0);
        std::thread::scope(|scope| {
            let first = scope.spawn(|| {
                let mut connection = accept();
                answer(&mut connection, "before");
                answer(&mut connection, "measured");
                connection
            });
            holder.begin().unwrap();
            assert_eq!(holder.report().unwrap().lab, "measured");
            let mut first = first.join().unwrap();

            // It receives a request, and does not answer within the time limit.
            let waits = Some(Duration::from_millis(10));
            holder.connection.as_ref().unwrap().get_ref().set_read_timeout(waits).unwrap();
            assert!(holder.begin().is_err());
            assert!(holder.report().is_err(), "no time has begun");
            assert_eq!(question(&mut first), "report\n");
            assert_eq!(question(&mut first), "", "the connection has ended");

            scope.spawn(|| {
                let mut connection = accept();
                answer(&mut connection, "since it was made");
                answer(&mut connection, "measured again");
            });
            holder.begin().unwrap();
            assert_eq!(holder.report().unwrap().lab, "measured again");
        });
        drop(listener);
        holder.connection = None;
        assert!(holder.begin().is_err(), "no holder listens");
    }
}
