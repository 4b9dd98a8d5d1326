//! What a host is and what it does during a measurement.
//!
//! [`inventory()`] collects the facts about a host that affect a measurement; [`observe`] reads its counters while one
//! runs; [`clock`] measures the cost of a clock read; [`capture`] keeps the packets of a measurement. All of them read
//! the host through [`sys::Sys`], so that tests can use a recorded host. Only [`tune`] changes the host, and it
//! records first how to undo the change.
//!
//! ```
//! let facts = host::inventory(&host::RealSys);
//! assert!(facts.cores.is_some_and(|cores| cores > 0));
//! ```

pub mod capture;
pub mod clock;
pub mod conditions;
pub mod confine;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
pub mod inventory;
pub mod netlink;
pub mod observe;
mod own;
pub mod path;
pub mod process;
pub mod sys;
pub mod tune;

pub use capture::Capturing;
pub use clock::clock_read_cost_ns;
pub use conditions::conditions;
pub use inventory::{TrafficSample, inventory, note_traffic};
pub use observe::{HostReader, Watch, WatchOptions};
pub use own::own_directory;
pub use path::probe_path;
pub use sys::{KeptFile, ProcessorEvents, Qdisc, RealSys, Sys};
