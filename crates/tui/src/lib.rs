//! Full-screen views in a terminal: a measurement while it runs, and the counters of a host.
//!
//! A view is a [`TerminalView`]: it takes what happens and draws itself on a frame, without a clock or a terminal of its own. [`TerminalScreen`] has
//! both: its thread draws ten times a second at most, reads keys, and puts the terminal back however the process ends.

mod host;
mod parts;
mod run;
mod screen;

pub use host::HostView;
pub use parts::ViewLook;
pub use run::{RunNews, RunView};
pub use screen::{Closed, DrawMoment, TerminalScreen, TerminalView, Wish, restore};
