//! The stop rule: when an interval is narrow enough, or the time is up.

use clap::Args;
use model::{Nanos, Ratio, Stopping};
use options::values::{above_zero, whole};

/// The stop rule of a measurement.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = super::PRECISION)]
pub struct Precision {
    /// Stop when the half width of the 95 % confidence interval is at most this percentage of the value.
    #[arg(long, value_name = "PERCENT", default_value = "2%", value_parser = above_zero::<Ratio>)]
    pub target: Ratio,

    /// Time limit for the whole command; --time is the length of one trial [default: 15s for stream and rr, 60s with
    /// --find-no-loss, 14.5s for curve, none for transfer or with --trials].
    #[arg(long, value_name = "TIME", value_parser = above_zero::<Nanos>)]
    pub budget: Option<Nanos>,

    /// Run exactly this many trials (passes of a curve) instead of stopping at --target.
    #[arg(long, value_name = "N", value_parser = whole(1..=u32::MAX))]
    pub trials: Option<u32>,

    /// Seed for all random choices [default: from the clock; recorded in the run].
    #[arg(long, value_name = "N", value_parser = whole(0..=u64::MAX))]
    pub seed: Option<u64>,
}

impl Precision {
    /// The stop rule; `budget` is the default of the subcommand.
    pub fn rule(&self, budget: Option<Nanos>) -> Stopping {
        let mut rule = Stopping {
            target: self.target.0,
            budget_ns: self.budget.or(budget).map(|time| time.0),
            seed: self.seed.unwrap_or_else(command::setup::clock_seed),
            ..Stopping::default()
        };
        if let Some(trials) = self.trials {
            (rule.min_trials, rule.max_trials) = (trials, trials);
            // With a fixed number of trials, only an explicit --budget limits the time.
            rule.budget_ns = self.budget.map(|time| time.0);
        }
        rule
    }
}
