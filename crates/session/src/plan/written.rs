//! A cell of a plan before each size of a curve is a cell of its own.

use analysis::plan::PlannedCell;
use model::{Shared, Spec};

/// A cell as it is written, with its spec, or those of all sizes of a curve.
pub(super) struct WrittenCell {
    /// The cell.
    pub(super) planned: PlannedCell,
    /// Its specs, at least one.
    pub(super) specs: Vec<Shared<Spec>>,
}
