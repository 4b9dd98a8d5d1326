//! Runs on disk: one SQLite file that holds every run with its trials, outcomes and findings.
//!
//! A [`Recorder`] is a [`model::EventSink`]: each event is appended in a transaction of its own the moment it comes, so a
//! measurement that is killed keeps all the trials that had ended. Several processes may record and read at the same time.
//!
//! What is safe when: the file is in write-ahead-log mode. A committed event survives the death of the process at once
//! (`kill -9` included), for the kernel has it. The disk is told to make it durable at the start of a run, at the end of
//! each pass and at the end of the run, so a power cut loses at most the pass that was under way and never damages what
//! was there before. A sync for each trial would cost more than some trials last.
//!
//! ```
//! use model::{Ending, Event, EventSink, Inventory, RunHeader, RunKind, Stopping, Tool};
//! use store::{Store, new_run_id};
//!
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! # let directory = tempfile::tempdir()?;
//! # let path = directory.path().join("runs.sqlite");
//! let store = Store::open(&path)?;
//! let mut recorder = store.recorder()?;
//! recorder.event(&Event::Run(RunHeader {
//!     id: new_run_id(1_795_293_478_000_000_000, 0x4f1a),
//!     name: Some("before".into()),
//!     kind: RunKind::Stream,
//!     command: vec!["thru".into(), "stream".into(), "10.0.0.2".into()],
//!     started_unix_ns: 1_795_293_478_000_000_000,
//!     tool: Tool::default(),
//!     target: Some("10.0.0.2".into()),
//!     stopping: Stopping::default(),
//!     cells: Vec::new(),
//!     near: Inventory::default(),
//!     far: Inventory::default(),
//!     ..RunHeader::default()
//! }))?;
//! recorder.event(&Event::End(Ending { how: "finished".into(), error: None, duration_ns: 1_000, ..Ending::default() }))?;
//!
//! assert_eq!(store.load("before")?.run, store.load("last")?.run);
//! assert_eq!(store.list(10)?[0].id, "20261121-203758-4f1a");
//! # Ok(())
//! # }
//! ```

mod agent_results;
mod default_path;
mod error;
mod id;
mod load;
mod recorder;
mod reference;
mod rows;
mod schema;
mod store;

pub use agent_results::{AgentResults, ResultsError};
pub use error::StoreError;
pub use id::new_run_id;
pub use load::Loaded;
pub use recorder::Recorder;
pub use store::{RunOrder, RunRow, RunSearch, Store};
