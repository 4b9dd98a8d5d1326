//! What is wrong in a text that a user wrote.

use std::fmt;

use engine::EngineError;
use text::{OptionsAs, RateUnit, Said, Spelling, Text};

/// A mistake with its place and the remedy.
#[derive(Debug, Clone)]
pub struct Mistake {
    text: Text,
    in_plan: bool,
}

impl Mistake {
    /// One in what a command was given.
    pub fn usage(text: impl Said) -> Self {
        Self { text: text.say(), in_plan: false }
    }

    /// One in a plan, whose keys are spelled as there.
    pub fn in_plan(text: impl Said) -> Self {
        Self { text: text.say(), in_plan: true }
    }

    /// Whether it names the keys of a plan, which are no flags.
    #[must_use]
    pub fn is_in_plan(&self) -> bool {
        self.in_plan
    }

    /// The text on one line, with options as keys or as flags: what it quotes of a file could otherwise imitate further messages.
    #[must_use]
    pub fn shown(&self, rates: RateUnit) -> String {
        let options = if self.in_plan { OptionsAs::Keys } else { OptionsAs::Flags };
        model::plain(&self.text.shown(Spelling { options, rates })).into_owned()
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&model::plain(&self.text.plain()))
    }
}

impl Said for Mistake {
    fn say(&self) -> Text {
        self.text.clone()
    }
}

/// A transport that this build does not have.
impl From<EngineError> for Mistake {
    fn from(error: EngineError) -> Self {
        Self::usage(error)
    }
}
