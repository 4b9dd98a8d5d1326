//! The worker processes of one measurement.

use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Mutex, PoisonError};

use tokio::process::{Child, Command};
use tokio::sync::mpsc;

use crate::ControlError;
use crate::proto::message::{FromWorker, ToWorker};
use crate::wire::{Sender, Wire};

/// Where an agent's measuring processes come from.
#[derive(Debug)]
pub enum Workers {
    /// It starts them, as `PROGRAM worker`.
    Program(PathBuf),
    /// One is there already and takes orders at the other end of this socket ([`crate::worker::serve_one`]): the process
    /// that has to measure has started the agent, not the other way round.
    Waiting(Mutex<Option<UnixStream>>),
}

impl Workers {
    /// A process that waits at the other end of `socket`.
    #[must_use]
    pub fn waiting(socket: UnixStream) -> Self {
        Self::Waiting(Mutex::new(Some(socket)))
    }
}

/// Workers that were started together; they die with it.
pub(crate) struct WorkerPool {
    workers: Vec<Worker>,
    /// Their words, with the number of who said it.
    words: mpsc::Receiver<(usize, Result<FromWorker, String>)>,
}

struct Worker {
    /// Killed when dropped; `None` for one that was there before.
    process: Option<Child>,
    orders: Sender<ToWorker>,
    /// Where data connections are handed in.
    sockets: Option<UnixDatagram>,
    listener: tokio::task::JoinHandle<()>,
}

impl WorkerPool {
    /// Gets `count` processes.
    pub(crate) fn start(source: &Workers, count: usize) -> Result<Self, ControlError> {
        let (said, words) = mpsc::channel(256);
        let workers = match source {
            Workers::Program(program) => {
                (0..count).map(|index| Worker::start(program, index, said.clone())).collect::<Result<_, _>>()?
            }
            Workers::Waiting(slot) => {
                let socket = slot.lock().unwrap_or_else(PoisonError::into_inner).take();
                let one = socket.filter(|_| count == 1).ok_or_else(|| ControlError::Setup {
                    address: "this host".into(),
                    reason: "the process that measures is gone, or is one where several were asked for".into(),
                })?;
                vec![Worker::known(one, None, None, 0, said)?]
            }
        };
        Ok(Self { workers, words })
    }

    pub(crate) fn len(&self) -> usize {
        self.workers.len()
    }

    /// Process numbers of the workers that were started here and still run.
    pub(crate) fn processes(&self) -> Vec<u32> {
        self.workers.iter().filter_map(|worker| worker.process.as_ref()?.id()).collect()
    }

    /// Says `order` to worker `index`.
    pub(crate) async fn order(&self, index: usize, order: &ToWorker) -> Result<(), String> {
        self.workers[index].orders.send(order).await.map_err(|_| "a measuring process is gone".to_owned())
    }

    /// Says `order` to all.
    pub(crate) async fn order_all(&self, order: &ToWorker) -> Result<(), String> {
        for index in 0..self.workers.len() {
            self.order(index, order).await?;
        }
        Ok(())
    }

    /// The next word of any worker; an error when one has died.
    pub(crate) async fn word(&mut self) -> (usize, Result<FromWorker, String>) {
        match self.words.recv().await {
            Some(word) => word,
            None => (0, Err("the measuring processes are gone".into())),
        }
    }

    /// Where worker `index` takes data connections.
    pub(crate) fn sockets(&self, index: usize) -> Result<UnixDatagram, ControlError> {
        let failed = |source| ControlError::io("share a socket with a measuring process", source);
        let sockets = self.workers[index].sockets.as_ref();
        sockets.ok_or_else(|| failed(std::io::ErrorKind::Unsupported.into()))?.try_clone().map_err(failed)
    }
}

impl Worker {
    fn start(
        program: &Path,
        index: usize,
        said: mpsc::Sender<(usize, Result<FromWorker, String>)>,
    ) -> Result<Self, ControlError> {
        let failed = |source| ControlError::io(format!("start a measuring process of {}", program.display()), source);
        let (mine, orders) = UnixStream::pair().map_err(failed)?;
        let (sockets, theirs) = UnixDatagram::pair().map_err(failed)?;
        // Standard input and output are the two descriptors that every process can inherit without ado: orders come (and
        // words go) by the one, sockets come by the other.
        let process = Command::new(program)
            .arg("worker")
            // What a PVM daemon gave the task that it started; a child that shows it would be taken for that task.
            .env_remove("PVMEPID")
            .stdin(Stdio::from(OwnedFd::from(orders)))
            .stdout(Stdio::from(OwnedFd::from(theirs)))
            // Ctrl-C at the terminal is for the coordinator to judge, not for its workers to die of.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(failed)?;
        Self::known(mine, Some(process), Some(sockets), index, said)
    }

    /// The one at the other end of `socket`.
    fn known(
        socket: UnixStream,
        process: Option<Child>,
        sockets: Option<UnixDatagram>,
        index: usize,
        said: mpsc::Sender<(usize, Result<FromWorker, String>)>,
    ) -> Result<Self, ControlError> {
        let failed = |source: std::io::Error| ControlError::io("speak to a measuring process", source);
        socket.set_nonblocking(true).map_err(failed)?;
        let stream = tokio::net::UnixStream::from_std(socket).map_err(failed)?;
        // A worker has nothing to say while it measures: no pings, and no limit to its silence. It is watched by its exit.
        let mut wire = Wire::<ToWorker, FromWorker>::quiet(stream);
        let orders = wire.sender();
        let listener = tokio::spawn(async move {
            loop {
                let word = wire.recv().await;
                let over = word.is_err();
                if said.send((index, word)).await.is_err() || over {
                    return;
                }
            }
        });
        Ok(Self { process, orders, sockets, listener })
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.listener.abort();
    }
}
