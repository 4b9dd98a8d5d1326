//! A cell of a plan before each size of a curve is a cell of its own.

use analysis::plan::PlannedCell;
use model::{Shared, Spec};
use vec1::Vec1;

/// A cell as it is written, with its spec, or those of all sizes of a curve.
pub(super) struct WrittenCell {
    /// The cell.
    pub(super) planned: PlannedCell,
    /// Its specs.
    pub(super) specs: Vec1<Shared<Spec>>,
}
