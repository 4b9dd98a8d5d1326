//! Statistics for measurements with few repetitions, a stop rule and possibly correlated values.

pub mod batch;
pub mod changepoint;
mod drift;
mod interim;
pub mod interval;
pub mod median;
pub mod order;
pub mod paired;
pub mod passes;
pub mod planning;
pub mod randomisation;
pub mod sequential;
pub mod summary;
pub mod trend;
pub mod two_sample;
pub mod two_way;
pub mod variance;

pub use batch::{SeriesEstimate, batch_means, lag1, samples_interval, series_interval};
pub use drift::is_drifting;
pub use interval::{ConfidenceInterval, bootstrap_interval, t_interval, t_quantile};
pub use median::{MedianEstimate, median_estimate, median_with};
pub use order::{order_interval, values_needed};
pub use paired::{Paired, PairedDecision};
pub use passes::{LegValue, SizeParts, level_spread, separate, spread};
pub use planning::passes_needed;
pub use randomisation::SubsetMeans;
pub use sequential::{Decision, Sequential};
pub use summary::{mean, quantile, sample_sd};
pub use trend::{Trend, median_deviation, median_slope, trend};
pub use two_sample::{MeanDifference, holm, holm_errors};
pub use variance::{VarianceSplit, variance_split};
