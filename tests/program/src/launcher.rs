//! Launchers that start both ends of a measurement: mpirun and PVM.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Sandbox;
use crate::agent::children;
use crate::binary::thru;
use crate::process::{LIMIT, Process, Signal, eventually};

/// An MPI of this machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mpi {
    /// The name of its mpirun.
    pub program: &'static str,
    /// The file name of its library.
    pub library: &'static str,
    /// The package of both.
    pub package: &'static str,
    /// The variable with the rank of a process.
    rank: &'static str,
}

/// OpenMPI and MPICH, as Debian installs them side by side.
pub const MPIS: [Mpi; 2] = [
    Mpi { program: "mpirun.openmpi", library: "libmpi.so.40", package: "openmpi-bin", rank: "OMPI_COMM_WORLD_RANK" },
    Mpi { program: "mpirun.mpich", library: "libmpich.so.12", package: "mpich", rank: "PMI_RANK" },
];

/// The installed ones of [`MPIS`], in `make test` MPICH only; prints a line for each other one.
#[must_use]
pub fn mpis(test: &str) -> Vec<Mpi> {
    let wanted = |mpi: &Mpi| crate::thorough() || mpi.package == "mpich";
    let installed = |mpi: &Mpi| crate::skip::program(test, mpi.program, mpi.package);
    MPIS.into_iter().filter(wanted).filter(installed).collect()
}

impl Mpi {
    /// `mpirun -n 2 thru ...`, storing runs in a sandbox.
    pub fn command<S: AsRef<str>>(&self, sandbox: &Sandbox, args: &[S]) -> Command {
        let mut command = Command::new(self.program);
        // OpenMPI refuses to run as root, and two processes on one core, without these.
        command.envs([
            ("OMPI_ALLOW_RUN_AS_ROOT", "1"),
            ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1"),
            ("OMPI_MCA_rmaps_base_oversubscribe", "1"),
        ]);
        command.args(["-n", "2"]).arg(thru());
        sandbox.prepare(command, args)
    }

    /// The variable with the rank of a process, and rank 0.
    #[must_use]
    pub fn first(&self) -> (&'static str, &'static str) {
        (self.rank, "0")
    }

    /// The process of rank `rank` among the descendants of the mpirun `pid`.
    #[must_use]
    pub fn process(&self, pid: u32, rank: u32) -> Option<u32> {
        let wanted = format!("{}={rank}", self.rank);
        let mut generation = vec![pid];
        while !generation.is_empty() {
            generation = generation.into_iter().flat_map(children).collect();
            let found = generation.iter().find(|pid| {
                let environment = std::fs::read(format!("/proc/{pid}/environ")).unwrap_or_default();
                environment.split(|byte| *byte == 0).any(|entry| entry == wanted.as_bytes())
            });
            if let Some(found) = found {
                return Some(*found);
            }
        }
        None
    }

    /// The path of its library.
    #[must_use]
    pub fn library_file(&self) -> Option<String> {
        let listed = Command::new("/sbin/ldconfig").arg("-p").output().ok()?;
        let text = String::from_utf8_lossy(&listed.stdout).into_owned();
        let line = text.lines().find(|line| line.trim_start().starts_with(self.library))?;
        line.rsplit("=> ").next().map(str::to_owned).filter(|path| Path::new(path).exists())
    }
}

/// A parallel virtual machine on this host only, stopped when dropped. Its files are in the sandbox.
#[derive(Debug)]
pub struct VirtualMachine {
    daemon: Process,
    folder: PathBuf,
}

impl VirtualMachine {
    /// Starts its daemon, or prints why the test is skipped.
    ///
    /// # Panics
    /// The daemon does not start.
    #[must_use]
    pub fn start(sandbox: &Sandbox, test: &str) -> Option<Self> {
        if !crate::skip::program(test, "pvmd", "pvm") {
            return None;
        }
        let folder = sandbox.path("pvm");
        std::fs::create_dir(&folder).expect("a folder");
        let mut machine = Self { daemon: Process::spawn(environment(Command::new("pvmd"), &folder)), folder };
        eventually("the daemon listens", || {
            assert!(machine.daemon.ended().is_none(), "pvmd ended: {}", machine.daemon.stderr());
            // It prints the name of its socket once it takes tasks.
            machine.daemon.stdout().contains("pvmtmp")
        });
        Some(machine)
    }

    /// `thru ...` with the environment of this virtual machine.
    pub fn command<S: AsRef<str>>(&self, sandbox: &Sandbox, args: &[S]) -> Command {
        environment(sandbox.command(args), &self.folder)
    }

    /// The number of tasks: each has a socket.
    ///
    /// # Panics
    /// The folder does not exist.
    #[must_use]
    pub fn tasks(&self) -> usize {
        let entries = std::fs::read_dir(&self.folder).expect("the folder");
        let names = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok());
        // The daemon's own ends with .0.
        names.filter(|name| name.starts_with("pvmtmp") && !name.ends_with(".0")).count()
    }

    /// Its daemon's process number; far agents are its children.
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.daemon.pid()
    }
}

impl Drop for VirtualMachine {
    fn drop(&mut self) {
        // On SIGTERM the daemon ends its tasks, too. A dropped process gets SIGKILL, which leaves the tasks.
        self.daemon.signal(Signal::TERM);
        self.daemon.wait(LIMIT);
    }
}

/// The environment that PVM needs on Debian.
fn environment(mut command: Command, folder: &Path) -> Command {
    command.envs([("PVM_ROOT", "/usr/lib/pvm3"), ("PVM_ARCH", "LINUX64"), ("PVM_ALLOW_ROOT", "1")]);
    command.env("PVM_TMP", folder);
    command
}
