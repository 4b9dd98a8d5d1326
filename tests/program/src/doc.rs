//! The JSON document of a run.

use model::{Outcome, Run, Summary, Trial, Verdict};
use serde_json::Value;

/// A document, as it was written and as the types of this version read it.
#[derive(Debug, Clone)]
pub struct Doc {
    /// As written.
    pub json: Value,
    /// As read.
    pub run: Run,
}

impl Doc {
    /// Reads a document.
    ///
    /// # Errors
    /// The text is not a run document.
    pub fn try_parse(text: &str) -> Result<Self, String> {
        let json: Value = serde_json::from_str(text).map_err(|error| format!("not one JSON document: {error}"))?;
        let run = serde_json::from_value(json.clone()).map_err(|error| format!("not a run: {error}"))?;
        Ok(Self { json, run })
    }

    /// The first outcome.
    ///
    /// # Panics
    /// Where there is none.
    #[must_use]
    pub fn outcome(&self) -> &Outcome {
        self.run.outcomes.first().expect("an outcome")
    }

    /// The first outcome's flat figures.
    #[must_use]
    pub fn summary(&self) -> &Summary {
        &self.outcome().summary
    }

    /// The first outcome's trials.
    #[must_use]
    pub fn trials(&self) -> &[Trial] {
        &self.outcome().trials
    }

    /// Goodput of the first outcome in bit/s.
    ///
    /// # Panics
    /// Where it has none.
    #[must_use]
    pub fn goodput(&self) -> f64 {
        self.summary().goodput_bps.expect("a goodput")
    }

    /// Whether the first outcome has a verdict.
    #[must_use]
    pub fn has(&self, verdict: Verdict) -> bool {
        self.summary().verdicts.contains(&verdict)
    }

    /// Trust, verdicts and unbalanced ledgers of the outcomes, for messages.
    #[must_use]
    pub fn remarks(&self) -> String {
        let remarks = self.run.outcomes.iter().map(|outcome| {
            let ledgers: Vec<_> = outcome.trials.iter().filter(|trial| !trial.ledger.balanced).collect();
            let open = ledgers.first().map(|trial| format!(" {:?}", trial.ledger)).unwrap_or_default();
            format!("{} B: {:?} {:?}{open}", outcome.spec.block, outcome.summary.trust, outcome.summary.verdicts)
        });
        remarks.collect::<Vec<_>>().join("\n")
    }
}
