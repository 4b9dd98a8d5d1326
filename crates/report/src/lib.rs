//! Turns finished [`Run`](model::Run)s into reports, figures and exports. Nothing here opens a file, reads a clock or prints.
//!
//! Every output is an entry of [`FORMATS`]:
//!
//! ```
//! # fn main() -> Result<(), report::ReportError> {
//! # let runs: Vec<model::Run> = Vec::new();
//! let view = report::View::new(&runs);
//! if let Some(format) = report::format("svg").filter(|_| !runs.is_empty()) {
//!     for piece in (format.render)(&view)? {
//!         println!("{}: {} bytes", piece.name, piece.bytes.len());
//!     }
//! }
//! # Ok(())
//! # }
//! ```

mod advice;
mod anatomy;
mod axes;
mod byte_rates;
mod captures;
mod ceiling_cost;
mod comparison;
mod draw;
mod each_direction;
mod error;
mod figures;
mod fleet;
mod fleet_history;
mod formats;
mod grid;
mod host;
mod host_activity;
mod host_facts;
mod lab;
mod labels;
mod limiter;
mod live;
mod one_way;
mod outcome_line;
mod plan;
mod run_list;
mod selftest;
mod settings;
mod sides;
mod spread;
mod view;
mod watch;

#[cfg(test)]
#[path = "../tests/support/sample.rs"]
mod sample;

pub use advice::sysctl_files;
pub use axes::{Axes, AxisRange, LogAxes};
pub use byte_rates::rates_in_bytes;
pub use ceiling_cost::citation;
pub use comparison::comparison;
pub use error::{AxisError, NoForm, ReportError};
pub use figures::{figures, history_figures, host_figures, map_figure, topology};
pub use fleet::fleet_check;
pub use fleet_history::{mesh_alert, mesh_change, mesh_history, mesh_pass, mesh_watch};
pub use formats::{
    FORMATS, Fact, Format, PageLook, command_line, facts_of, format, page_data, page_look, page_shell, picture,
};
pub use host::{host, host_differences};
pub use lab::lab_report;
pub use limiter::why_report;
pub use live::{LiveLines, LivePoint, LivePoints};
pub use outcome_line::outcome_line;
pub use plan::{PlanPreview, plan_preview};
pub use run_list::{ListedRun, headline, listed, run_list};
pub use selftest::{check_line, selftest_summary};
pub use settings::{
    changed_settings, planned_settings, restored_settings, reverted_settings, settings, settings_journal,
};
pub use view::{Piece, View};
pub use watch::{watch_columns, watch_head, watch_lines};
