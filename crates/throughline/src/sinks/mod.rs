//! What a terminal shows of a run while it is measured.

mod live;
mod progress;
mod terminal;

pub use terminal::Terminal;
