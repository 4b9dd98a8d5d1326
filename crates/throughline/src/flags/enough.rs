//! When a measurement is sure enough, or has taken long enough.

use clap::Args;
use model::{Nanos, Ratio, Spec, Stopping};

use crate::values::{above_zero, at_least, whole};

/// When it is enough.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "How sure, how long")]
pub struct Enough {
    /// Stop when the interval's half width is this part of the value.
    #[arg(long, value_name = "PERCENT", default_value = "2%", value_parser = above_zero::<Ratio>)]
    pub target: Ratio,

    /// Time for the whole command; --time is one trial.
    #[arg(long, value_name = "TIME", value_parser = above_zero::<Nanos>)]
    pub budget: Option<Nanos>,

    /// Exactly this many trials (a curve: passes).
    #[arg(long, value_name = "N", value_parser = whole(1..=u32::MAX))]
    pub trials: Option<u32>,

    /// Seed of everything that is drawn at random [default: from the clock, recorded].
    #[arg(long, value_name = "N", value_parser = whole(0..=u64::MAX))]
    pub seed: Option<u64>,

    /// End a trial in which nothing has moved for this long, and mark it stalled.
    #[arg(long, value_name = "TIME", default_value = "3s", value_parser = at_least(Nanos(Spec::MIN_STALL_NS)))]
    pub stall: Nanos,
}

/// A seed for those who name none.
pub fn clock_seed() -> u64 {
    let clock = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
    u64::from(clock.subsec_nanos())
}

impl Enough {
    /// The stop rule; `budget` is the subcommand's default.
    pub fn rule(&self, budget: Option<Nanos>) -> Stopping {
        let mut rule = Stopping {
            target: self.target.0,
            budget_ns: self.budget.or(budget).map(|time| time.0),
            seed: self.seed.unwrap_or_else(clock_seed),
            ..Stopping::default()
        };
        if let Some(trials) = self.trials {
            (rule.min_trials, rule.max_trials) = (trials, trials);
            // A fixed number is what was asked for: the clock only cuts it where a budget was asked for too.
            rule.budget_ns = self.budget.map(|time| time.0);
        }
        rule
    }
}
