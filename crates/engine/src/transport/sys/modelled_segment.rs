//! `segment.rs` for loom: memory of two threads.

use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::ends::End;
use super::memory::SharedByte;

struct Shared {
    ends: [End; 2],
    rings: [Vec<SharedByte>; 2],
}

pub(super) struct Segment {
    shared: Arc<Shared>,
    own: usize,
}

impl Segment {
    /// Both ends of one segment.
    pub(super) fn pair(capacity: usize) -> [Self; 2] {
        let ring = || (0..capacity).map(|_| SharedByte::default()).collect();
        let shared = Arc::new(Shared { ends: [End::default(), End::default()], rings: [ring(), ring()] });
        [0, 1].map(|own| Self { shared: shared.clone(), own })
    }

    pub(super) fn create(_: usize) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn join(_: OwnedFd, _: usize) -> io::Result<Self> {
        Err(io::ErrorKind::Unsupported.into())
    }

    pub(super) fn fd(&self) -> &OwnedFd {
        unimplemented!("a model has no file")
    }

    pub(super) fn own(&self) -> &End {
        &self.shared.ends[self.own]
    }

    pub(super) fn other(&self) -> &End {
        &self.shared.ends[1 - self.own]
    }

    pub(super) fn outgoing(&self) -> &[SharedByte] {
        &self.shared.rings[self.own]
    }

    pub(super) fn incoming(&self) -> &[SharedByte] {
        &self.shared.rings[1 - self.own]
    }
}
