//! What ends a command without a result, and the exit code that says so (docs/manual/exit-codes.md).

use std::fmt;

use control::ControlError;
use control::proto::message::Obstacle;
use host::tune::Fault;
use interop::InteropError;
use model::Answer;

/// A failure with its exit code.
#[derive(Debug)]
pub struct Failure {
    code: u8,
    text: String,
}

/// Measured, but at least one outcome is not to be trusted.
pub const UNTRUSTED: u8 = 8;
/// A comparison: B is worse than A by more than the tolerance.
pub const WORSE: u8 = 3;
/// A comparison that cannot tell.
pub const CANNOT_TELL: u8 = 4;
/// What a plan requires did not hold: a cell has no trial, or the run ended.
pub const UNMET: u8 = 9;
/// Ended by the user.
pub const INTERRUPTED: u8 = 130;

/// The exit code that says what a comparison says.
pub fn of_answer(answer: Answer) -> u8 {
    match answer {
        Answer::Better | Answer::NotWorse => 0,
        Answer::Worse => WORSE,
        Answer::CannotTell => CANNOT_TELL,
    }
}

impl Failure {
    /// The same failure of a command whose codes 3 and 4 are answers: a host that was not reached or refused has code 1 there,
    /// so that no script takes it for an answer.
    pub fn of_comparison(self) -> Self {
        let code = if matches!(self.code, WORSE | CANNOT_TELL) { 1 } else { self.code };
        Self { code, ..self }
    }

    /// Anything that has no code of its own.
    pub fn other(text: impl fmt::Display) -> Self {
        Self { code: 1, text: text.to_string() }
    }

    /// The flags make no sense together.
    pub fn usage(text: impl fmt::Display) -> Self {
        Self { code: 2, text: text.to_string() }
    }

    /// Results cannot be kept or written.
    pub fn output(text: impl fmt::Display) -> Self {
        Self { code: 6, text: text.to_string() }
    }

    /// This host cannot do it.
    pub fn host(text: impl fmt::Display) -> Self {
        Self { code: 7, text: text.to_string() }
    }

    /// Prints it.
    pub fn say(&self) {
        err!("thru: {self}\n");
    }

    /// The process's exit code.
    pub fn code(&self) -> u8 {
        self.code
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// What a far end has told stands on one line, so that it cannot speak for this program on the next.
fn one_line(error: &impl fmt::Display) -> String {
    model::plain(&error.to_string()).into_owned()
}

impl From<InteropError> for Failure {
    fn from(error: InteropError) -> Self {
        let code = match &error {
            InteropError::Unknown { .. } | InteropError::Unsupported { .. } | InteropError::File { .. } => 2,
            InteropError::Resolve { .. } | InteropError::Unreachable { .. } => 3,
            InteropError::Peer { .. } => 4,
            InteropError::Interrupted => INTERRUPTED,
            InteropError::Engine(_) => 7,
            _ => 5,
        };
        Self { code, text: one_line(&error) }
    }
}

impl From<ControlError> for Failure {
    fn from(error: ControlError) -> Self {
        let code = match &error {
            ControlError::InvalidHost { .. } => 2,
            ControlError::Resolve { .. } | ControlError::Unreachable { .. } | ControlError::NoAgent { .. } => 3,
            ControlError::Version { .. } | ControlError::Token { .. } | ControlError::Refused { .. } => 4,
            ControlError::Lost { .. } | ControlError::Trial { .. } | ControlError::Foreign(_) => 5,
            ControlError::Setup { .. } => 7,
            ControlError::Unmet { .. } => UNMET,
            ControlError::Tune { obstacle, .. } => match obstacle {
                Obstacle::Wrong => 2,
                Obstacle::Refused | Obstacle::Busy => 4,
                Obstacle::Host => 7,
            },
            ControlError::Sink(_) => 6,
            ControlError::Engine(engine::EngineError::Unknown { .. } | engine::EngineError::Unsupported { .. }) => 2,
            ControlError::Engine(_) => 7,
            ControlError::Interrupted => INTERRUPTED,
            _ => 1,
        };
        Self { code, text: one_line(&error) }
    }
}

impl From<stacks::StackError> for Failure {
    fn from(error: stacks::StackError) -> Self {
        if error.is_usage() { Self::usage(error) } else { Self::host(error) }
    }
}

impl From<engine::EngineError> for Failure {
    fn from(error: engine::EngineError) -> Self {
        ControlError::from(error).into()
    }
}

impl From<host::tune::TuneError> for Failure {
    fn from(error: host::tune::TuneError) -> Self {
        let code = match error.fault() {
            Fault::Wrong => 2,
            Fault::Refused | Fault::Busy => 4,
            Fault::Host => 7,
        };
        Self { code, text: error.to_string() }
    }
}

impl From<store::StoreError> for Failure {
    fn from(error: store::StoreError) -> Self {
        Self::output(error)
    }
}

impl From<report::ReportError> for Failure {
    fn from(error: report::ReportError) -> Self {
        Self::other(error)
    }
}
