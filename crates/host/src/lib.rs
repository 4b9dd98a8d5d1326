//! What a host is and what it does meanwhile.
//!
//! [`inventory()`] states the facts about a host that shape a measurement; [`observe`] watches its counters while one runs;
//! [`clock`] says what a clock read costs. All of them see the host through [`sys::Sys`], so that tests can show them a
//! recorded host instead. Only [`tune`] changes the host, and writes down before how to undo it.
//!
//! ```
//! let facts = host::inventory(&host::RealSys);
//! assert!(facts.cores.is_some_and(|cores| cores > 0));
//! ```

pub mod clock;
pub mod inventory;
pub mod observe;
pub mod sys;
pub mod tune;

pub use clock::clock_read_cost_ns;
pub use inventory::inventory;
pub use observe::{CpuObserver, Observer, Watch};
pub use sys::{FakeSys, RealSys, Sys};
