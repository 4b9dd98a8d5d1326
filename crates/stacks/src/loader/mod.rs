//! The loader, if it was built in.

use std::os::fd::OwnedFd;

#[cfg(not(feature = "load"))]
mod disabled;
#[cfg(feature = "load")]
mod enabled;
#[cfg(feature = "load")]
mod registered;

#[cfg(not(feature = "load"))]
use disabled as chosen;
#[cfg(feature = "load")]
use enabled as chosen;

pub(crate) use chosen::load_pinned;
pub use chosen::{BUILT, load};

/// Any user may choose it (TCP_CONG_NON_RESTRICTED, include/net/tcp.h).
#[cfg(feature = "load")]
const NON_RESTRICTED: u32 = 1;

/// A stack that this process has registered with the kernel. All sockets of the host can use it until this is dropped
/// or the process ends; connections that use it then keep it until they close.
#[derive(Debug)]
pub struct LoadedStack {
    name: String,
    /// This descriptor's kernel object is the registration.
    _link: OwnedFd,
}

impl LoadedStack {
    /// Its name in the kernel.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }
}
