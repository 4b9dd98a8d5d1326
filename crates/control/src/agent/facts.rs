//! The inventory in a welcome. Reading and encoding it take many milliseconds, so both run outside the thread that all
//! sessions share, and once for all callers that wait.

use std::sync::Arc;
use std::time::Instant;

use host::tune::Namespace;
use tokio::sync::Mutex;
use tokio::task::JoinError;

use super::Shared;
use super::session_end::SessionEnd;
use crate::connection_end::ConnectionEnd;
use protocol::frame::{FrameError, encode};
use protocol::message::FromAgent;

/// The frame of a welcome, or the error.
pub(super) type Welcome = Result<Vec<u8>, FrameError>;

impl Shared {
    /// The welcome with the current inventory of this host.
    pub(super) async fn welcome(self: &Arc<Self>) -> Result<Vec<u8>, SessionEnd> {
        let shared = self.clone();
        let read = move || {
            let mut inventory = host::inventory(&host::RealSys);
            inventory.selftest = (shared.options.selftest)(&inventory);
            let namespace = Namespace::current().ok().map(|namespace| namespace.inode);
            let clock_ns = host::clock_read_cost_ns();
            encode(&FromAgent::Welcome { inventory: Box::new(inventory), clock_ns, namespace })
        };
        let welcome: Welcome = self.welcomes.read(read).await.map_err(SessionEnd::Inventory)?.as_ref().clone();
        Ok(welcome.map_err(ConnectionEnd::from)?)
    }
}

/// The last reading, with its start; several callers share it.
pub(super) struct SharedReading<T>(Mutex<Option<(Instant, Arc<T>)>>);

impl<T> Default for SharedReading<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<T: Send + Sync + 'static> SharedReading<T> {
    /// A reading that began after this call: another caller's, or a new one by `read`. Any number of simultaneous calls needs at
    /// most two readings.
    async fn read(&self, read: impl FnOnce() -> T + Send + 'static) -> Result<Arc<T>, JoinError> {
        let requested = Instant::now();
        let mut last = self.0.lock().await;
        if let Some((begun, reading)) = &*last
            && *begun >= requested
        {
            return Ok(reading.clone());
        }
        let begun = Instant::now();
        let reading = Arc::new(tokio::task::spawn_blocking(read).await?);
        *last = Some((begun, reading.clone()));
        Ok(reading)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use super::*;

    #[test]
    fn waiting_callers_share_a_reading_and_later_ones_get_a_newer_one() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let (readings, count) = (Arc::new(SharedReading::default()), Arc::new(AtomicUsize::new(0)));
            let read = || {
                let (readings, count) = (readings.clone(), count.clone());
                async move {
                    let read = move || {
                        std::thread::sleep(std::time::Duration::from_millis(20));
                        count.fetch_add(1, Ordering::SeqCst)
                    };
                    readings.read(read).await
                }
            };
            let callers: Vec<_> = (0..100).map(|_| tokio::spawn(read())).collect();
            for caller in callers {
                caller.await.unwrap().unwrap();
            }
            let so_far = count.load(Ordering::SeqCst);
            assert!((1..=2).contains(&so_far), "{so_far} readings");
            assert_eq!(*read().await.unwrap(), so_far, "a reading of its own");
        });
    }
}
