//! What the agents and the helper use, every few seconds.

use std::fs;
use std::time::Instant;

use program::agent::children_called;
use program::process::eventually;
use program::series::Series;

use crate::shared::CYCLE;
use crate::world::World;

/// A process at one moment.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Reading {
    pub(crate) resident_kib: f64,
    pub(crate) descriptors: f64,
    pub(crate) threads: f64,
    pub(crate) children: f64,
    pub(crate) zombies: f64,
}

/// One process over the whole soak.
#[derive(Debug)]
pub(crate) struct Subject {
    pub(crate) name: &'static str,
    pid: u32,
    /// Before the first client of the soak.
    pub(crate) start: Reading,
    readings: Vec<Reading>,
}

/// A quantity of a process: its name, and how it is read.
pub(crate) type Quantity = (&'static str, fn(&Reading) -> f64);

pub(crate) const QUANTITIES: [Quantity; 5] = [
    ("RSS, KiB", |reading| reading.resident_kib),
    ("descriptors", |reading| reading.descriptors),
    ("threads", |reading| reading.threads),
    ("children", |reading| reading.children),
    ("zombies", |reading| reading.zombies),
];

#[derive(Debug)]
pub(crate) struct Samples {
    begun: Instant,
    pub(crate) at: Vec<f64>,
    pub(crate) subjects: Vec<Subject>,
    pub(crate) clients: Vec<f64>,
    connections: Vec<f64>,
}

impl Samples {
    pub(crate) fn begin(world: &World) -> Self {
        let helper = world.helper().expect("an agent of root has a helper");
        let subjects = [("agent of root", world.root.pid()), ("helper", helper), ("open agent", world.open.pid())];
        let subject = |(name, pid)| Subject { name, pid, start: at_rest(pid), readings: Vec::new() };
        let subjects = subjects.map(subject).into();
        Self { begun: Instant::now(), at: Vec::new(), subjects, clients: Vec::new(), connections: Vec::new() }
    }

    pub(crate) fn take(&mut self, world: &World, clients: usize) {
        self.at.push(self.begun.elapsed().as_secs_f64());
        self.subjects.iter_mut().for_each(|subject| subject.readings.push(read(subject.pid)));
        self.clients.push(clients as f64);
        self.connections.push(connections(world) as f64);
    }

    pub(crate) fn taken(&self) -> u32 {
        self.at.len() as u32
    }

    pub(crate) fn series(&self, subject: &Subject, read: fn(&Reading) -> f64) -> Series {
        self.over_time(subject.readings.iter().map(read).collect())
    }

    fn over_time(&self, values: Vec<f64>) -> Series {
        Series { at: self.at.clone(), values, cycle: CYCLE }
    }

    pub(crate) fn print(&self) {
        println!("\n| what | start | min | median | max | first third | second third | last third |");
        println!("| --- | ---: | ---: | ---: | ---: | ---: | ---: | ---: |");
        for subject in &self.subjects {
            for (quantity, read) in QUANTITIES {
                let name = format!("{}: {quantity}", subject.name);
                self.series(subject, read).print(&name, read(&subject.start));
            }
        }
        self.over_time(self.clients.clone()).print("clients", 0.0);
        self.over_time(self.connections.clone()).print("connections to the agents", 0.0);
    }
}

impl Subject {
    pub(crate) fn now(&self) -> Reading {
        read(self.pid)
    }
}

/// A process whose workers of an earlier measurement have ended and were waited for.
fn at_rest(pid: u32) -> Reading {
    eventually("it waits for nobody", || {
        let workers = children_called(pid, "worker").len();
        workers == 0 && read(pid).zombies == 0.0
    });
    read(pid)
}

/// proc(5), status and fd. Zeros for a process that has ended.
fn read(pid: u32) -> Reading {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let field = |name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name)).unwrap_or_default();
        line.trim().trim_end_matches(" kB").parse().unwrap_or(0.0)
    };
    let states = states(pid);
    let zombies = states.iter().filter(|state| state.starts_with('Z')).count() as f64;
    Reading {
        resident_kib: field("VmRSS:"),
        descriptors: fs::read_dir(format!("/proc/{pid}/fd")).map_or(0, Iterator::count) as f64,
        threads: field("Threads:"),
        children: states.len() as f64 - zombies,
        zombies,
    }
}

/// The states of its children, those of all of its threads.
fn states(pid: u32) -> Vec<String> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let lists = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let numbers = lists.flat_map(|list| list.split_whitespace().map(str::to_owned).collect::<Vec<_>>());
    let stats = numbers.filter_map(|number| fs::read_to_string(format!("/proc/{number}/stat")).ok());
    stats.filter_map(|stat| Some(stat.rsplit_once(") ")?.1.to_owned())).collect()
}

/// Established connections to the agents' own ports, as their kernel has them (proc(5), net/tcp).
pub(crate) fn connections(world: &World) -> usize {
    let ports = [world.root.port(), world.open.port()].map(|port| format!("{port:04X}"));
    let table = fs::read_to_string(format!("/proc/{}/net/tcp", world.root.pid())).unwrap_or_default();
    let open = |line: &&str| {
        let mut fields = line.split_whitespace().skip(1);
        let local = fields.next().is_some_and(|local| ports.iter().any(|port| local.ends_with(port.as_str())));
        // State 1 is established.
        local && fields.nth(1) == Some("01")
    };
    table.lines().filter(open).count()
}
