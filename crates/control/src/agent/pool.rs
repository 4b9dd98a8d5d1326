//! The worker processes of one measurement.

use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};

use text::Said;
use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use tokio::sync::mpsc;

use crate::ControlError;
use crate::connection_end::ConnectionEnd;
use crate::wire::{Sender, Wire};
use protocol::coordinator::DialogueError;
use protocol::worker_message::{FromWorker, ToWorker};

/// Where an agent's worker processes come from.
#[derive(Debug)]
pub enum Workers {
    /// The agent starts them, as `PROGRAM worker`.
    Program {
        /// The program.
        path: PathBuf,
        /// Limits that each process sets for itself before its first command.
        limits: Option<WorkerLimits>,
    },
    /// One existing process at the other end of this socket ([`crate::worker::serve_one`]), which has started the agent.
    Waiting(Mutex<Option<UnixStream>>),
}

/// Limits of a worker process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WorkerLimits {
    /// Memory of its own, bytes.
    pub memory_bytes: u64,
    /// Threads of its user; `None` if the user has other processes.
    pub tasks: Option<u64>,
}

impl WorkerLimits {
    /// Limits this process.
    ///
    /// # Errors
    /// The kernel refuses it.
    pub fn apply(self) -> std::io::Result<()> {
        host::confine::limit_memory_and_tasks(self.memory_bytes, self.tasks)
    }

    /// The arguments of `thru worker`.
    fn arguments(self) -> Vec<String> {
        let memory = ("--memory", Some(self.memory_bytes));
        let limits = [memory, ("--tasks", self.tasks)].into_iter();
        limits.filter_map(|(flag, limit)| Some(format!("{flag}={}", limit?))).collect()
    }
}

impl Workers {
    /// The process that waits at the other end of `socket`.
    #[must_use]
    pub fn waiting(socket: UnixStream) -> Self {
        Self::Waiting(Mutex::new(Some(socket)))
    }
}

/// The workers of one measurement; dropping the pool kills them.
pub(crate) struct WorkerPool {
    workers: Vec<Worker>,
    /// Messages of the workers, each with the worker's index.
    messages: mpsc::Receiver<(usize, Result<FromWorker, ConnectionEnd>)>,
}

/// A command reaches no worker process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error, Said)]
#[error("a worker process has ended")]
pub(crate) struct WorkerEnded;

struct Worker {
    /// Killed when dropped; `None` for an existing process.
    process: Option<Child>,
    commands: Sender<ToWorker>,
    /// Delivers data connections.
    sockets: Option<UnixDatagram>,
    listener: tokio::task::JoinHandle<()>,
}

impl WorkerPool {
    /// Starts `count` processes.
    pub(crate) fn start(source: &Workers, count: usize) -> Result<Self, ControlError> {
        let (sender, messages) = mpsc::channel(256);
        let workers = match source {
            Workers::Program { path, limits } => {
                let start = |index| Worker::start(path, *limits, index, sender.clone());
                (0..count).map(start).collect::<Result<_, _>>()?
            }
            Workers::Waiting(slot) => {
                let socket = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
                let one = socket.filter(|_| count == 1).ok_or_else(|| DialogueError::Setup {
                    address: "this host".into(),
                    reason: "there is only one worker process, and it has ended or several were requested".into(),
                })?;
                vec![Worker::attach(one, None, None, 0, sender)?]
            }
        };
        Ok(Self { workers, messages })
    }

    pub(crate) fn len(&self) -> usize {
        self.workers.len()
    }

    /// Process ids of the workers that this pool started and that still run.
    pub(crate) fn processes(&self) -> Vec<u32> {
        self.workers.iter().filter_map(|worker| worker.process.as_ref()?.id()).collect()
    }

    /// Sends `command` to worker `index`.
    pub(crate) async fn send(&self, index: usize, command: &ToWorker) -> Result<(), WorkerEnded> {
        self.workers[index].commands.send(command).await.map_err(|_| WorkerEnded)
    }

    /// Sends `command` to all workers.
    pub(crate) async fn send_all(&self, command: &ToWorker) -> Result<(), WorkerEnded> {
        for index in 0..self.workers.len() {
            self.send(index, command).await?;
        }
        Ok(())
    }

    /// The next message of any worker; an error if one has ended.
    pub(crate) async fn message(&mut self) -> (usize, Result<FromWorker, ConnectionEnd>) {
        self.messages.recv().await.unwrap_or((0, Err(ConnectionEnd::Closed)))
    }

    /// The socket that passes data connections to worker `index`.
    pub(crate) fn sockets(&self, index: usize) -> Result<UnixDatagram, ControlError> {
        let failed = |source| ControlError::io("share a socket with a worker process", source);
        let sockets = self.workers[index].sockets.as_ref();
        sockets.ok_or_else(|| failed(std::io::ErrorKind::Unsupported.into()))?.try_clone().map_err(failed)
    }
}

impl Worker {
    fn start(
        program: &Path,
        limits: Option<WorkerLimits>,
        index: usize,
        messages: mpsc::Sender<(usize, Result<FromWorker, ConnectionEnd>)>,
    ) -> Result<Self, ControlError> {
        let failed = |source| ControlError::io(format!("start a worker process of {}", program.display()), source);
        let (mine, commands) = UnixStream::pair().map_err(failed)?;
        let (sockets, theirs) = UnixDatagram::pair().map_err(failed)?;
        // Standard input and output are the two descriptors that any process can inherit. One carries messages in both
        // directions, the other carries sockets.
        let process = Command::new(program)
            .arg("worker")
            .args(limits.map(WorkerLimits::arguments).unwrap_or_default())
            // A PVM daemon sets this for the task that it starts and would take a child with it for that task.
            .env_remove("PVMEPID")
            .stdin(Stdio::from(OwnedFd::from(commands)))
            .stdout(Stdio::from(OwnedFd::from(theirs)))
            // Ctrl-C at the terminal is for the coordinator and must not kill its workers.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(failed)?;
        Self::attach(mine, Some(process), Some(sockets), index, messages)
    }

    /// The worker at the other end of `socket`.
    fn attach(
        socket: UnixStream,
        process: Option<Child>,
        sockets: Option<UnixDatagram>,
        index: usize,
        messages: mpsc::Sender<(usize, Result<FromWorker, ConnectionEnd>)>,
    ) -> Result<Self, ControlError> {
        let failed = |source: std::io::Error| ControlError::io("connect to a worker process", source);
        socket.set_nonblocking(true).map_err(failed)?;
        let stream = tokio::net::UnixStream::from_std(socket).map_err(failed)?;
        // A worker sends nothing while it measures: no pings, and no limit on silence. Its end closes the socket.
        let mut wire = Wire::<ToWorker, FromWorker>::quiet(stream);
        let commands = wire.sender();
        let listener = tokio::spawn(async move {
            loop {
                let message = wire.recv().await;
                let over = message.is_err();
                if messages.send((index, message)).await.is_err() || over {
                    return;
                }
            }
        });
        Ok(Self { process, commands, sockets, listener })
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.listener.abort();
        // tokio collects a dropped process at the runtime's next event, which may be the next client. Waiting for it is such an event.
        let (process, runtime) = (self.process.take(), Handle::try_current());
        if let (Some(mut process), Ok(runtime)) = (process, runtime) {
            let _ = process.start_kill();
            runtime.spawn(async move { process.wait().await });
        }
    }
}

/// First flow of worker `index` of `count`.
pub(super) fn first_flow_of(flows: u32, index: usize, count: usize) -> u32 {
    (u64::from(flows) * index as u64 / count.max(1) as u64) as u32
}
