//! The receivers of a run's events: the terminal, the live stream and the document.

mod all;
mod collect;
mod live;
mod progress;

pub use all::Sinks;
pub use collect::Collect;
pub use live::Live;
pub use progress::Progress;
