//! What a terminal shows of a run while it is measured.

mod live;
mod progress;
pub mod screen;
mod terminal;

pub use terminal::Terminal;
