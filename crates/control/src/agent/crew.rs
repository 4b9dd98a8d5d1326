//! The worker processes of one measurement.

use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::Path;
use std::process::Stdio;

use tokio::process::{Child, Command};
use tokio::sync::mpsc;

use crate::ControlError;
use crate::proto::message::{FromWorker, ToWorker};
use crate::wire::{Sender, Wire};

/// Workers that were started together; they die with it.
pub(crate) struct Crew {
    workers: Vec<Worker>,
    /// Their words, with the number of who said it.
    words: mpsc::Receiver<(usize, Result<FromWorker, String>)>,
}

struct Worker {
    /// Killed when dropped.
    _process: Child,
    orders: Sender<ToWorker>,
    /// Where data connections are handed in.
    sockets: UnixDatagram,
    listener: tokio::task::JoinHandle<()>,
}

impl Crew {
    /// Starts `count` processes of `program worker`.
    pub(crate) fn start(program: &Path, count: usize) -> Result<Self, ControlError> {
        let (said, words) = mpsc::channel(256);
        let workers = (0..count).map(|index| Worker::start(program, index, said.clone())).collect::<Result<_, _>>()?;
        Ok(Self { workers, words })
    }

    pub(crate) fn len(&self) -> usize {
        self.workers.len()
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
        self.workers[index]
            .sockets
            .try_clone()
            .map_err(|source| ControlError::io("share a socket with a measuring process", source))
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
            .stdin(Stdio::from(OwnedFd::from(orders)))
            .stdout(Stdio::from(OwnedFd::from(theirs)))
            // Ctrl-C at the terminal is for the coordinator to judge, not for its workers to die of.
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .map_err(failed)?;
        mine.set_nonblocking(true).map_err(failed)?;
        let stream = tokio::net::UnixStream::from_std(mine).map_err(failed)?;
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
        Ok(Self { _process: process, orders, sockets, listener })
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.listener.abort();
    }
}
