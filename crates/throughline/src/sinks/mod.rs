//! The receivers of a run's events: the terminal, the live stream and the document.

mod collect;
mod live;
mod progress;

pub use collect::Collect;
pub use live::Live;
pub use progress::Progress;
