//! What all floors above share: the plan of a trial, its clock, flags, counters and buffers. It knows no transport, no
//! pattern and no thread.

mod buffer;
mod clock;
mod counters;
mod error;
mod leg_header;
mod payload;
mod plan;
mod random;
mod recorder;
mod signals;
mod sys;
mod turn;

pub(crate) use buffer::PageBuffer;
pub(crate) use clock::{WallOffset, clock_cost_ns};
pub use clock::{now_ns, unix_ns};
pub(crate) use counters::{Counters, Snapshot, add};
pub use error::EngineError;
pub(crate) use leg_header::LegHeader;
pub(crate) use payload::{Payload, may_be_compressed};
pub use plan::{LegStop, LinkPlan, TrialPlan};
pub(crate) use plan::{initiates, opening};
pub use random::random;
pub(crate) use recorder::RttRecorder;
pub use signals::Signals;
pub(crate) use sys::voluntary_switches;
pub use sys::{WallError, wall_error};
pub(crate) use turn::{Interest, Turn, not_now};
