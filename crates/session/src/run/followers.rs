//! Runs that other processes of this user follow while they are conducted, such as the page of `thru web`.
//!
//! A follower listens on a Unix socket in [`directory`]. A run connects to each that it finds there when it begins, and looks again
//! about once a second. It writes one [`Line`] of JSON for each event, never waits for a follower, and drops what one does not read
//! in time: measuring goes first. Of trials only the totals are sent, and only of a run with one cell or of a comparison; a follower
//! reads the rest from the store.

use std::fs;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use model::{Ending, Event, RunHeader, RunKind, Trial};
use rustix::net::{AddressFamily, SendFlags, SocketAddrUnix, SocketFlags, SocketType, connect, send, socket_with};
use serde::{Deserialize, Serialize};

/// Time between two looks for new followers.
const LOOK: Duration = Duration::from_secs(1);
/// The most bytes that wait for a follower; one that reads less is given up.
const MOST_WAITING: usize = 1 << 20;
/// Below this, events for display are still added behind what waits.
const FEW_WAITING: usize = 64 << 10;

/// What a follower receives.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[allow(clippy::large_enum_variant, reason = "each is written or read once")]
pub enum Line {
    /// The run begins, or began before the follower was found.
    Run(Began),
    /// An event for display, or a trial's end.
    Event {
        /// The event.
        event: Event,
    },
    /// The store has more of the run.
    Stored,
    /// The run ended.
    End(Ending),
}

/// The run that a process conducts.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Began {
    /// Its header, without the hosts; of several cells none, but both of a comparison.
    pub header: RunHeader,
    /// How many cells it has.
    pub cells: usize,
    /// The file that it is stored in, if it is.
    pub store: Option<PathBuf>,
}

/// Where followers listen, for this user only: below `$XDG_RUNTIME_DIR`, else in /run/user or, as root, in /run.
#[must_use]
pub fn directory() -> Option<PathBuf> {
    let user = rustix::process::geteuid();
    let own = PathBuf::from(format!("/run/user/{}", user.as_raw()));
    let runtime = std::env::var_os("XDG_RUNTIME_DIR").map(PathBuf::from);
    let runtime = runtime.filter(|path| path.is_absolute()).or_else(|| own.is_dir().then_some(own));
    let base = runtime.or_else(|| user.is_root().then(|| PathBuf::from("/run")))?;
    Some(base.join("throughline").join("followers"))
}

/// The followers of a run.
#[derive(Debug, Default)]
pub(crate) struct Followers {
    directory: Option<PathBuf>,
    began: Option<Began>,
    all: Vec<Follower>,
    looked: Option<Instant>,
}

impl Followers {
    /// Those of this user, of a run that is stored in `store`.
    pub(crate) fn new() -> Self {
        Self { directory: directory(), ..Self::default() }
    }

    /// Tells them of an event, and whether it was stored.
    pub(crate) fn event(&mut self, event: &Event, store: Option<&Path>, stored: bool) {
        if let Event::Run(header) = event {
            self.began = Some(began(header, store));
            self.looked = None;
            self.all.clear();
        }
        self.look();
        if self.all.is_empty() {
            return;
        }
        match event {
            Event::Run(_) => {}
            Event::End(ending) => self.tell(&Line::End(ending.clone()), true),
            // Live figures and the estimate so far need a trial's totals; a run of many cells has neither.
            Event::Trial(trial) if self.began.as_ref().is_some_and(|began| !began.header.cells.is_empty()) => {
                self.tell(&Line::Event { event: Event::Trial(totals(trial)) }, false);
            }
            shown if shown.is_transient() => self.tell(&Line::Event { event: event.clone() }, false),
            _ => {}
        }
        if stored {
            self.tell(&Line::Stored, false);
        }
    }

    /// Finds new followers.
    fn look(&mut self) {
        let (Some(directory), Some(began)) = (&self.directory, &self.began) else { return };
        if self.looked.is_some_and(|looked| looked.elapsed() < LOOK) {
            return;
        }
        self.looked = Some(Instant::now());
        let Ok(entries) = fs::read_dir(directory) else { return };
        for path in entries.flatten().map(|entry| entry.path()) {
            let new = path.extension().is_some_and(|end| end == "sock") && self.all.iter().all(|one| one.path != path);
            let Some(mut follower) = new.then(|| Follower::connect(path)).flatten() else { continue };
            follower.tell(&text(&Line::Run(began.clone())), true);
            self.all.push(follower);
        }
    }

    fn tell(&mut self, line: &Line, must: bool) {
        let text = text(line);
        self.all.iter_mut().for_each(|one| one.tell(&text, must));
        self.all.retain(|one| one.socket.is_some());
    }
}

fn began(header: &RunHeader, store: Option<&Path>) -> Began {
    let cells = header.cells.len();
    let mut header = RunHeader { near: Default::default(), far: Default::default(), ..header.clone() };
    if cells > 1 && header.kind != RunKind::Ab {
        header.cells.clear();
    }
    Began { header, cells, store: store.map(|path| path.canonicalize().unwrap_or_else(|_| path.to_owned())) }
}

/// A trial without its series and samples.
fn totals(trial: &Trial) -> Trial {
    let mut trial = trial.clone();
    for end in [&mut trial.near, &mut trial.far] {
        end.intervals = Vec::new();
        end.flows.iter_mut().for_each(|flow| flow.tcp = Vec::new());
    }
    trial
}

fn text(line: &Line) -> Vec<u8> {
    let mut text = serde_json::to_vec(line).unwrap_or_default();
    text.push(b'\n');
    text
}

#[derive(Debug)]
struct Follower {
    path: PathBuf,
    /// `None` once it is gone.
    socket: Option<OwnedFd>,
    /// What it has not read yet.
    waiting: Vec<u8>,
}

impl Follower {
    /// `None` if nobody listens there, or not without waiting.
    fn connect(path: PathBuf) -> Option<Self> {
        let flags = SocketFlags::NONBLOCK | SocketFlags::CLOEXEC;
        let socket = socket_with(AddressFamily::UNIX, SocketType::STREAM, flags, None).ok()?;
        connect(&socket, &SocketAddrUnix::new(&path).ok()?).ok()?;
        Some(Self { path, socket: Some(socket), waiting: Vec::new() })
    }

    /// Sends what it takes now. What is only for display is left out while much waits.
    fn tell(&mut self, line: &[u8], must: bool) {
        if must || self.waiting.len() < FEW_WAITING {
            self.waiting.extend_from_slice(line);
        }
        while let Some(socket) = self.socket.as_ref().filter(|_| !self.waiting.is_empty()) {
            match send(socket, &self.waiting, SendFlags::NOSIGNAL) {
                Ok(sent) => drop(self.waiting.drain(..sent)),
                Err(rustix::io::Errno::INTR) => {}
                Err(rustix::io::Errno::AGAIN) if self.waiting.len() <= MOST_WAITING => break,
                Err(_) => self.socket = None,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};
    use std::os::unix::net::UnixListener;

    use model::{Cell, Pattern, Phase, Spec};

    use super::*;

    fn header() -> RunHeader {
        RunHeader {
            id: "20261126-091506-d3df".into(),
            cells: vec![Cell::new(0, Spec::new("tcp", Pattern::Stream))],
            ..Default::default()
        }
    }

    fn phase(activity: &str) -> Event {
        Event::Phase(Phase { activity: activity.into(), ..Phase::default() })
    }

    /// The name of a line.
    fn name(line: &str) -> String {
        match serde_json::from_str(line).unwrap() {
            serde_json::Value::String(name) => name,
            serde_json::Value::Object(object) => object.into_iter().next().unwrap().0,
            other => panic!("{other}"),
        }
    }

    fn lines(reader: &mut impl BufRead, count: usize) -> Vec<String> {
        reader.lines().take(count).map(|line| name(&line.unwrap())).collect()
    }

    #[test]
    fn a_follower_is_told_of_a_run_also_if_it_comes_late() {
        let folder = tempfile::tempdir().unwrap();
        let first = UnixListener::bind(folder.path().join("1.sock")).unwrap();
        std::fs::write(folder.path().join("2.sock"), "no socket").unwrap();
        let mut followers = Followers { directory: Some(folder.path().to_owned()), ..Followers::default() };
        followers.event(&Event::Run(header()), None, false);
        followers.event(&phase("trial 1"), None, false);
        followers.event(&phase("trial 2"), None, true);
        let mut first = BufReader::new(first.accept().unwrap().0);
        assert_eq!(lines(&mut first, 4), ["run", "event", "event", "stored"]);

        let late = UnixListener::bind(folder.path().join("3.sock")).unwrap();
        followers.event(&phase("trial 2"), None, false);
        followers.looked = None;
        followers.event(&Event::End(Ending::default()), None, true);
        let mut late = BufReader::new(late.accept().unwrap().0);
        assert_eq!(lines(&mut late, 3), ["run", "end", "stored"]);
        assert_eq!(lines(&mut first, 3), ["event", "end", "stored"]);
    }

    #[test]
    fn a_follower_that_does_not_read_is_not_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let listener = UnixListener::bind(folder.path().join("1.sock")).unwrap();
        let mut followers = Followers { directory: Some(folder.path().to_owned()), ..Followers::default() };
        followers.event(&Event::Run(header()), None, false);
        for _ in 0..10_000 {
            followers.event(&phase(&"x".repeat(1_000)), None, false);
        }
        assert!(followers.all[0].waiting.len() < 2 * FEW_WAITING);
        // What it missed is left out; the end arrives.
        let ended = std::thread::scope(|scope| {
            let reader = scope
                .spawn(|| BufReader::new(listener.accept().unwrap().0).lines().map_while(Result::ok).last().unwrap());
            followers.event(&Event::End(Ending::default()), None, false);
            let follower = &mut followers.all[0];
            while follower.socket.is_some() && !follower.waiting.is_empty() {
                std::thread::yield_now();
                follower.tell(&[], true);
            }
            drop(followers);
            reader.join().unwrap()
        });
        assert_eq!(name(&ended), "end");
    }
}
