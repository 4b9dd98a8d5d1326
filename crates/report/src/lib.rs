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

mod axes;
mod chosen;
mod error;
mod figures;
mod formats;
mod glyphs;
mod grid;
mod headline;
mod labels;
mod layout;
mod lines;
mod live;
mod screens;
mod sections;
mod tones;
mod view;

#[cfg(test)]
#[path = "../tests/support/sample.rs"]
mod sample;

pub use axes::{Axes, AxisRange, LogAxes};
pub use chosen::{ChosenCells, ChosenCellsError, chosen};
pub use error::{AxisError, NoForm, ReportError};
pub use figures::{figures, history_figures, host_figures, map_figure, topology};
pub use formats::{
    FORMATS, Fact, Format, PageLook, command_line, facts_of, format, page_data, page_look, page_shell, picture,
};
pub use headline::{headline, summary};
pub use layout::Layout;
pub use live::{EstimateSoFar, LiveLines, LivePoint, LivePoints, SoFar};
pub use screens::comparison::comparison;
pub use screens::explained::explained;
pub use screens::fleet::fleet_check;
pub use screens::fleet_history::{mesh_alert, mesh_change, mesh_history, mesh_pass, mesh_watch};
pub use screens::host::{host, host_differences};
pub use screens::lab::lab_report;
pub use screens::plan::{PlanPreview, plan_preview};
pub use screens::run_list::{ListedRun, run_list};
pub use screens::selftest::{check_line, selftest_summary};
pub use screens::settings::{
    changed_settings, planned_settings, restored_settings, reverted_settings, settings, settings_journal,
};
pub use screens::watch::{watch_columns, watch_head, watch_lines};
pub use sections::advice::sysctl_files;
pub use sections::ceiling_cost::citation;
pub use sections::limiter::why_report;
pub use sections::merit::{Distance, DistanceError};
pub use sections::outcome_line::outcome_line;
pub use tones::{Tone, toned};
pub use view::{Piece, View};
