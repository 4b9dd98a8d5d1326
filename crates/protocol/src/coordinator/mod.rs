//! A coordinator: the dialogues with the agents of a run, and the run itself.
//!
//! A [`Fleet`] has the agents. What it says to them is written as code that reads from top to bottom, and a [`Dialogue`] makes a state
//! machine of it: it reads no clock and does no I/O, takes each [`Event`] with its time, and returns the [`Action`]s that follow. All that
//! the code knows of the world is [`Outside`].

pub mod bounds;
mod choose;
mod common_start;
mod conduct;
mod dialogue;
mod end;
mod error;
mod event;
mod fetch;
mod fleet;
mod fleet_results;
mod metrics;
mod outside;
mod pair;
mod path_probe;
mod results;
mod settings;
mod tests_of_step;
mod work;

pub use conduct::{Conducted, RunOrder};
pub use dialogue::Dialogue;
pub use end::End;
pub use error::{DialogueError, Fault, LineEnd};
pub use event::{Action, Answer, Connected, Event, LineId, Seen, WorkId};
pub use fleet::{Fleet, Member};
pub use outside::Outside;
pub use path_probe::BothPaths;
pub use work::{Disk, Work};
