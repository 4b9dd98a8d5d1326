//! A build without the feature `nats`: the same names, which refuse.

use std::io;
use std::net::IpAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::mpsc;

use crate::{BusAccess, BusError, Contact, Place, Present};

/// The buses of a process: there are none.
#[derive(Debug, Clone, Default)]
pub struct Buses {
    _none: (),
}

/// A connection to a bus: there is none.
#[derive(Debug, Clone)]
pub enum Bus {}

/// A byte stream over a bus: there is none.
#[derive(Debug)]
pub enum BusStream {}

/// A stream that a coordinator has opened: there is none.
#[derive(Debug)]
pub struct Arrival {
    /// Its bytes.
    pub stream: BusStream,
    /// The number of the coordinator's connection to the bus, for the log.
    pub client: String,
}

/// An agent's name on a bus: there is none.
#[derive(Debug)]
pub enum Attendance {}

impl Buses {
    /// None.
    #[must_use]
    pub fn new(_: BusAccess) -> Self {
        Self::default()
    }

    /// Refuses.
    ///
    /// # Errors
    /// [`BusError::Unsupported`].
    #[allow(clippy::unused_async)] // as the other build has it
    pub async fn to(&self, _: &Place) -> Result<Bus, BusError> {
        Err(BusError::Unsupported)
    }
}

#[allow(clippy::unused_async)] // as the other build has them
impl Bus {
    /// Refuses.
    ///
    /// # Errors
    /// [`BusError::Unsupported`].
    pub async fn connect(_: &Place, _: &BusAccess) -> Result<Self, BusError> {
        Err(BusError::Unsupported)
    }

    /// The address from which this host reaches the bus.
    #[must_use]
    pub fn own_address(&self) -> Option<IpAddr> {
        match *self {}
    }

    /// The agents that are there.
    ///
    /// # Errors
    /// None: there is no bus.
    pub async fn present(&self) -> Result<Vec<Present>, BusError> {
        match *self {}
    }

    /// A stream to an agent.
    ///
    /// # Errors
    /// None: there is no bus.
    pub async fn open(&self, _: &str) -> Result<(BusStream, Contact), BusError> {
        match *self {}
    }

    /// Appends records of a run.
    ///
    /// # Errors
    /// None: there is no bus.
    pub async fn append(&self, _: &str, _: &[(u64, Vec<u8>)]) -> Result<(), BusError> {
        match *self {}
    }

    /// The records of a run.
    ///
    /// # Errors
    /// None: there is no bus.
    pub async fn records(&self, _: &str) -> Result<Vec<Bytes>, BusError> {
        match *self {}
    }
}

impl Attendance {
    /// Gives the name back.
    #[allow(clippy::unused_async)] // as the other build has it
    pub async fn leave(self) {
        match self {}
    }
}

/// Refuses.
///
/// # Errors
/// None: there is no bus.
#[allow(clippy::unused_async)] // as the other build has it
pub async fn attend(
    bus: &Bus,
    _: &str,
    _: Contact,
    _: impl Fn(&str) + Send + Sync + 'static,
) -> Result<(Attendance, mpsc::Receiver<Arrival>), BusError> {
    match *bus {}
}

impl AsyncRead for BusStream {
    fn poll_read(self: Pin<&mut Self>, _: &mut Context<'_>, _: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match *self {}
    }
}

impl AsyncWrite for BusStream {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, _: &[u8]) -> Poll<io::Result<usize>> {
        match *self {}
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        match *self {}
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        match *self {}
    }
}
