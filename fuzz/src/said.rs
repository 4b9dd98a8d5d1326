//! A host whose every answer comes from an input.

use std::io;
use std::sync::Mutex;

use host::sys::{Address, DriverInfo, ProcessorEvents, Qdisc, Sys, Uname};
use model::SplitMix64;

/// Most names in a directory.
const NAMES: u64 = 3;

/// A host that says what an input says: each answer is a length (one byte; 255 refuses the question), then so many bytes.
pub struct Said(Mutex<(Vec<u8>, usize)>);

impl Said {
    /// The host that says `bytes`.
    #[must_use]
    pub fn new(bytes: &[u8]) -> Self {
        Self(Mutex::new((bytes.to_vec(), 0)))
    }

    fn answer(&self) -> io::Result<Vec<u8>> {
        let mut said = self.0.lock().map_err(|_| io::ErrorKind::Other)?;
        let (bytes, at) = &mut *said;
        let length = bytes.get(*at).copied().filter(|length| *length < u8::MAX);
        *at += 1;
        let length = usize::from(length.ok_or(io::ErrorKind::NotFound)?);
        let from = (*at).min(bytes.len());
        *at = (from + length).min(bytes.len());
        Ok(bytes[from..*at].to_vec())
    }

    fn text(&self) -> io::Result<String> {
        Ok(String::from_utf8_lossy(&self.answer()?).into_owned())
    }

    fn maybe(&self) -> Option<String> {
        self.text().ok()
    }
}

impl Sys for Said {
    fn read(&self, _: &str) -> io::Result<String> {
        self.text()
    }

    fn read_bytes(&self, _: &str, most: usize) -> io::Result<Vec<u8>> {
        let mut bytes = self.answer()?;
        bytes.truncate(most);
        Ok(bytes)
    }

    fn list(&self, _: &str) -> io::Result<Vec<String>> {
        // Names of interfaces, cores and queues are numbered.
        let text = self.text()?;
        Ok(text.split_whitespace().take(NAMES as usize).map(str::to_owned).collect())
    }

    fn resolve(&self, _: &str) -> io::Result<String> {
        self.text()
    }

    fn now_ns(&self) -> u64 {
        SplitMix64::new(self.0.lock().map_or(0, |said| said.1 as u64)).next_u64() >> 8
    }

    fn ticks_per_second(&self) -> u64 {
        100
    }

    fn coarse_clock_ns(&self) -> io::Result<u64> {
        Ok(4_000_000)
    }

    fn lldpd(&self) -> io::Result<String> {
        self.text()
    }

    fn uname(&self) -> io::Result<Uname> {
        Ok(Uname { hostname: self.text()?, release: self.text()?, version: self.text()?, machine: self.text()? })
    }

    fn addresses(&self) -> io::Result<Vec<Address>> {
        let (interface, text) = (self.text()?, self.text()?);
        let address = text.parse().map_err(io::Error::other)?;
        Ok(vec![Address { interface, address, prefix: 24 }])
    }

    fn thread_ns(&self) -> u64 {
        self.now_ns()
    }

    fn page_size(&self) -> u64 {
        4_096
    }

    fn qdiscs(&self) -> io::Result<Vec<Qdisc>> {
        Ok(Vec::new())
    }

    fn driver_statistics(&self, _: &str) -> io::Result<Vec<(String, u64)>> {
        Ok(vec![(self.text()?, self.now_ns())])
    }

    fn processor_events(&self) -> io::Result<Box<dyn ProcessorEvents>> {
        Err(io::ErrorKind::NotFound.into())
    }

    fn netlink(&self, _: &host::netlink::NetlinkRequest) -> io::Result<Vec<Vec<u8>>> {
        (0..NAMES).map_while(|_| self.answer().ok()).map(Ok).collect()
    }

    fn driver(&self, _: &str) -> io::Result<DriverInfo> {
        Ok(DriverInfo { driver: self.maybe(), version: self.maybe(), firmware: self.maybe(), bus: self.maybe() })
    }

    fn kernel_log(&self) -> io::Result<Vec<String>> {
        Ok(self.text()?.lines().map(str::to_owned).collect())
    }
}
