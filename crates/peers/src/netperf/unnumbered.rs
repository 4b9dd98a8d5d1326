//! netperf's datagrams: payload alone, and empty ones at the end.

use std::net::UdpSocket;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use engine::transport::programs::DatagramHeader;

/// Number of end marks: each may be lost.
const END_MARKS: usize = 3;

/// Datagrams without numbers, counted as they arrive; an empty one is the end mark.
#[derive(Default)]
pub(super) struct Unnumbered {
    next: u64,
    ended: Arc<AtomicBool>,
}

impl Unnumbered {
    /// With a flag that is set by the end mark.
    pub(super) fn new(ended: Arc<AtomicBool>) -> Self {
        Self { next: 0, ended }
    }
}

impl DatagramHeader for Unnumbered {
    fn write(&mut self, _: &mut [u8], _: u64) {}

    fn read(&mut self, datagram: &[u8]) -> Option<u64> {
        if datagram.is_empty() {
            self.ended.store(true, Ordering::Relaxed);
            return None;
        }
        self.next += 1;
        Some(self.next - 1)
    }
}

/// Sends the end marks over a connected socket.
pub(super) fn send_end_marks(socket: &UdpSocket) {
    for _ in 0..END_MARKS {
        // Ignored: the server may have ended already.
        let _ = socket.send(&[]);
    }
}
