//! What a host is and what it does meanwhile.
//!
//! [`inventory()`] states the facts about a host that shape a measurement; [`observe`] watches its counters while one runs;
//! [`clock`] says what a clock read costs, [`capture`] keeps the packets of a measurement. All of them see the host through
//! [`sys::Sys`], so that tests can show them a recorded host instead. Only [`tune`] changes the host, and writes down before
//! how to undo it.
//!
//! ```
//! let facts = host::inventory(&host::RealSys);
//! assert!(facts.cores.is_some_and(|cores| cores > 0));
//! ```

pub mod capture;
pub mod clock;
pub mod conditions;
pub mod inventory;
pub mod netlink;
pub mod observe;
mod own;
pub mod path;
pub mod sys;
pub mod tune;

pub use capture::Capturing;
pub use clock::clock_read_cost_ns;
pub use conditions::conditions;
pub use inventory::{TrafficSample, inventory, note_traffic};
pub use observe::{Live, Options as WatchOptions, Watch};
pub use own::own_directory;
pub use path::probe_path;
pub use sys::{KeptFile, ProcessorEvents, Qdisc, RealSys, Sys};
