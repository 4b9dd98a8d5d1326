//! Labs that other processes hold: which there are, how to enter them, and what their holders are asked.

use std::ffi::OsStr;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use model::LabReport;

use crate::LabError;
use crate::available::privileged_ip;
use crate::ip::Ip;
use crate::journal::{Built, Journal, Record};

/// How long a holder may take to answer; one that takes its lab down may take longer.
const ANSWER: Duration = Duration::from_secs(5);
/// How long a holder may take to end its command and remove its lab.
const END: Duration = Duration::from_secs(30);

/// A lab that stands, or what is left of one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Standing {
    /// Its name.
    pub name: String,
    /// Its topology; `None` for a lab that another command made for itself, such as `thru selftest`.
    pub topology: Option<String>,
    /// Its hosts; none where the topology is `None`.
    pub hosts: Vec<String>,
    /// Whether it stays until it is taken down.
    pub stays: bool,
    /// The process that holds it.
    pub owner_pid: u32,
    /// Whether that process lives; if not, the next lab or [`reap_stale`](crate::reap_stale) removes what is left.
    pub lives: bool,
    directory: PathBuf,
}

/// All labs of this machine, by name.
///
/// # Errors
/// When the journal cannot be read.
pub fn labs() -> Result<Vec<Standing>, LabError> {
    let journal = Journal::open()?;
    let mut labs: Vec<_> = journal.states()?.into_iter().map(|state| Standing::of(state, &journal)).collect();
    labs.sort_by(|one, other| one.name.cmp(&other.name));
    Ok(labs)
}

impl Standing {
    fn of((record, lives): (Record, bool), journal: &Journal) -> Self {
        let (topology, hosts, stays) = match record.built {
            Some(Built { topology, hosts, stays }) => (Some(topology), hosts, stays),
            None => (None, Vec::new(), false),
        };
        let directory = journal.directory().to_owned();
        Self { name: record.lab, topology, hosts, stays, owner_pid: record.owner_pid, lives, directory }
    }

    /// The lab of that name, or the only one of `thru lab`.
    ///
    /// # Errors
    /// Where there is none, or without a name several.
    pub fn find(name: Option<&str>) -> Result<Self, LabError> {
        let mut labs: Vec<Self> = labs()?.into_iter().filter(|lab| lab.lives && lab.topology.is_some()).collect();
        let names = labs.iter().map(|lab| lab.name.clone()).collect::<Vec<_>>().join(", ");
        let there =
            if names.is_empty() { "`thru lab up TOPOLOGY` makes one".into() } else { format!("there are {names}") };
        match name {
            None if labs.len() > 1 => {
                Err(LabError::NoLab { name: "without a name".into(), there: format!("name one of {names}") })
            }
            None => labs.pop().ok_or(LabError::NoLab { name: "yet".into(), there }),
            Some(name) => {
                let found = labs.into_iter().find(|lab| lab.name == name);
                found.ok_or(LabError::NoLab { name: format!("'{name}'"), there })
            }
        }
    }

    /// A command that will run `program` on one of its hosts, as [`NetworkHost::command`](crate::NetworkHost::command) says.
    ///
    /// # Errors
    /// Where there is no such host, and without the means that [`available`](crate::available) checks.
    pub fn command(&self, host: &str, program: impl AsRef<OsStr>) -> Result<Command, LabError> {
        if !self.hosts.iter().any(|other| other == host) {
            return Err(LabError::NoHost { name: host.into(), hosts: self.hosts.join(", ") });
        }
        let ip: Ip = privileged_ip()?;
        Ok(ip.exec(&format!("{}-{host}", self.name), program.as_ref()))
    }

    /// A file that goes away with the lab: `token` for the secret of its agents, `sock` for its holder's socket.
    #[must_use]
    pub fn file(&self, end: &str) -> PathBuf {
        self.directory.join(format!("{}.{end}", self.name))
    }

    /// Makes its holder remove it, and waits until it is gone; returns what the emulated links did.
    ///
    /// # Errors
    /// [`LabError::Silent`] where the holder does not answer.
    pub fn take_down(&self) -> Result<LabReport, LabError> {
        let silent = |source| LabError::Silent { lab: self.name.clone(), pid: self.owner_pid, source };
        let mut holder = Holder::reach(&self.file("sock")).map_err(silent)?;
        holder.end().map_err(silent)
    }
}

/// A connection to the process that holds a lab. Requests and answers are lines: `report` is answered with a
/// [`LabReport`] as JSON of what happened since the connection's last one, `down` with the last report, after which the holder
/// removes its lab and closes the connection.
#[derive(Debug)]
pub struct Holder(BufReader<UnixStream>);

impl Holder {
    /// The environment variable that tells programs on a lab's hosts where the socket of its holder is.
    pub const VARIABLE: &'static str = "THRU_LAB_SOCKET";
    /// Asks for a report.
    pub const REPORT: &'static str = "report";
    /// Asks the holder to remove its lab.
    pub const DOWN: &'static str = "down";

    /// Connects to a holder's socket.
    ///
    /// # Errors
    /// Where nobody listens.
    pub fn reach(socket: &Path) -> io::Result<Self> {
        let stream = UnixStream::connect(socket)?;
        stream.set_read_timeout(Some(ANSWER))?;
        Ok(Self(BufReader::new(stream)))
    }

    /// The holder of the lab that this process runs in, with a first report taken; `None` elsewhere.
    #[must_use]
    pub fn of_this_host() -> Option<Self> {
        let mut holder = Self::reach(Path::new(&std::env::var_os(Self::VARIABLE)?)).ok()?;
        holder.report().ok()?;
        Some(holder)
    }

    /// What the emulated links did since the last report over this connection, or since they were made.
    ///
    /// # Errors
    /// Where the holder has ended, or answers with something else.
    pub fn report(&mut self) -> io::Result<LabReport> {
        self.ask(Self::REPORT)
    }

    fn end(&mut self) -> io::Result<LabReport> {
        self.0.get_ref().set_read_timeout(Some(END))?;
        let report = self.ask(Self::DOWN)?;
        // The connection closes when the lab is gone.
        match self.0.read_line(&mut String::new()) {
            Ok(_) => Ok(report),
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => Ok(report),
            Err(error) => Err(error),
        }
    }

    fn ask(&mut self, request: &str) -> io::Result<LabReport> {
        self.0.get_ref().write_all(format!("{request}\n").as_bytes())?;
        let mut line = String::new();
        self.0.read_line(&mut line)?;
        serde_json::from_str(&line).map_err(io::Error::other)
    }
}
