//! The flags of figures' axes.

use clap::Args;
use report::{Axes, AxisRange, LogAxes};

/// Heading of the flags.
const AXES: &str = "Axes of figures";

/// Ranges and scales of the axes. Without them, they follow from the values.
#[derive(Debug, Clone, Args)]
pub struct AxisFlags {
    /// Range of the horizontal axis; either end may be left out. Values have units of the axis, such as 64KiB, 10Gbit or 5ms; a bare
    /// number is in B, bit/s or ns.
    #[arg(long, value_name = "A:B", help_heading = AXES, allow_hyphen_values = true)]
    x_range: Option<AxisRange>,

    /// Range of the vertical axis.
    #[arg(long, value_name = "A:B", help_heading = AXES, allow_hyphen_values = true)]
    y_range: Option<AxisRange>,

    /// Axes to make logarithmic: x, y, xy or none. Axes of categories or dates are not affected.
    #[arg(long, value_name = "AXES", help_heading = AXES)]
    log: Option<LogAxes>,
}

impl AxisFlags {
    /// What they request.
    pub fn axes(&self) -> Axes {
        Axes { x: self.x_range.clone(), y: self.y_range.clone(), log: self.log }
    }
}
