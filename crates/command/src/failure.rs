//! Errors that end a command, with their exit codes (docs/manual/exit-codes.md).

use std::collections::HashSet;
use std::fmt;

use bus::BusError;
use control::ControlError;
use host::tune::TuneFault;
use lab::LabError;
use model::{Answer, Cell, FindingKind, Run, RunKind};
use peers::ProgramError;
use plan::Mistake;
use protocol::coordinator::DialogueError;
use protocol::message::Obstacle;
use text::{OptionsAs, RateUnit, Said, Spelling, Text, say};

use options::OptionError;

/// An error with its exit code.
#[derive(Debug)]
pub struct Failure {
    code: u8,
    text: Text,
    in_plan: bool,
}

/// Measured, but at least one outcome cannot be trusted.
pub const UNTRUSTED: u8 = 8;
/// Wrong usage.
pub const USAGE: u8 = 2;
/// A host was not reached, or has nothing to measure with.
pub const UNREACHED: u8 = 3;
/// A comparison: B is worse than A by more than the tolerance.
pub const WORSE: u8 = 3;
/// A comparison without a clear answer.
pub const CANNOT_TELL: u8 = 4;
/// Lost in mid-test: a host, or a process that measured.
pub const LOST: u8 = 5;
/// The preconditions of a plan did not hold: a cell has no trial, or the run ended.
pub const UNMET: u8 = 9;
/// A watch ended while an alert was raised, or a check found something wrong or not as expected.
pub const ALERT: u8 = 10;
/// Interrupted by the user.
pub const INTERRUPTED: u8 = 130;

/// The exit code of a comparison's answer.
pub fn of_answer(answer: Answer) -> u8 {
    match answer {
        Answer::Better | Answer::NotWorse => 0,
        Answer::Worse => WORSE,
        Answer::CannotTell => CANNOT_TELL,
    }
}

/// The exit code of a run: whether it is whole and can be trusted, and the answer of a comparison.
pub fn of_run(run: &Run) -> u8 {
    let interrupted = run.ending.as_ref().is_some_and(|ending| ending.how == "interrupted");
    // The trials of a search may fail; its report says so.
    let untrusted = run.header.kind != RunKind::Advise && run.outcomes.iter().any(analysis::outcome::is_unusable);
    match () {
        () if interrupted => INTERRUPTED,
        () if has_skipped(run) => {
            let requires = run.header.plan.as_ref().is_some_and(|plan| plan.require.is_some());
            if requires { UNMET } else { LOST }
        }
        () if untrusted => UNTRUSTED,
        () if analysis::checkup::objections(run).next().is_some() => ALERT,
        () => analysis::compare::answer_of(run).map_or(0, of_answer),
    }
}

/// Whether a cell of a plan has no trial: the preconditions did not hold, or its test failed in every round. A note in the findings then
/// names the cell.
fn has_skipped(run: &Run) -> bool {
    let measured = run.outcomes.iter().filter(|outcome| !outcome.trials.is_empty());
    let measured: HashSet<u32> = measured.map(|outcome| outcome.cell).collect();
    let notes = run.findings.iter().filter(|finding| finding.kind == FindingKind::Note);
    let noted: HashSet<u32> = notes.flat_map(|note| note.cells.iter().copied()).collect();
    let skipped = |cell: &Cell| !measured.contains(&cell.id) && noted.contains(&cell.id);
    run.header.plan.is_some() && run.header.cells.iter().any(skipped)
}

impl Failure {
    /// The same failure for a command whose exit codes 3 and 4 are answers. A host that is not reached or refuses has code 1 there,
    /// so that a script does not mistake it for an answer.
    pub fn of_comparison(self) -> Self {
        let code = if matches!(self.code, WORSE | CANNOT_TELL) { 1 } else { self.code };
        Self { code, ..self }
    }

    /// The same failure in other words.
    #[must_use]
    pub fn saying(self, text: Text) -> Self {
        Self { text, ..self }
    }

    fn new(code: u8, text: impl Said) -> Self {
        Self { code, text: text.say(), in_plan: false }
    }

    /// What failed, with the remedy.
    #[must_use]
    pub fn text(&self) -> &Text {
        &self.text
    }

    /// The same on one line, as a user types options: what an error quotes from a far end or from a file could otherwise imitate further
    /// messages of this program.
    #[must_use]
    pub fn shown(&self, rates: RateUnit) -> String {
        let options = if self.in_plan { OptionsAs::Keys } else { OptionsAs::Flags };
        model::plain(&self.text.shown(Spelling { options, rates })).into_owned()
    }

    /// An error in a plan, whose keys are spelled as there.
    pub fn in_plan(text: impl Said) -> Self {
        Self { in_plan: true, ..Self::usage(text) }
    }

    /// Whether it names the keys of a plan, which are no flags.
    #[must_use]
    pub fn is_in_plan(&self) -> bool {
        self.in_plan
    }

    /// Any failure without a code of its own.
    pub fn other(text: impl Said) -> Self {
        Self::new(1, text)
    }

    /// A host is not reached.
    pub fn unreached(text: impl Said) -> Self {
        Self::new(UNREACHED, text)
    }

    /// Wrong usage.
    pub fn usage(text: impl Said) -> Self {
        Self::new(USAGE, text)
    }

    /// Results cannot be stored or written.
    pub fn output(text: impl Said) -> Self {
        Self::new(6, text)
    }

    /// Not possible on this host.
    pub fn host(text: impl Said) -> Self {
        Self::new(7, text)
    }

    /// The process's exit code.
    pub fn code(&self) -> u8 {
        self.code
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&model::plain(&self.text.plain()))
    }
}

impl Said for Failure {
    fn say(&self) -> Text {
        self.text.clone()
    }
}

impl From<ProgramError> for Failure {
    fn from(error: ProgramError) -> Self {
        let code = match &error {
            ProgramError::Unsupported { .. } | ProgramError::File { .. } => 2,
            ProgramError::Resolve { .. } | ProgramError::Unreachable { .. } => UNREACHED,
            ProgramError::Peer { .. } => 4,
            ProgramError::Interrupted => INTERRUPTED,
            ProgramError::Engine(_) => 7,
            _ => 5,
        };
        Self::new(code, error)
    }
}

impl From<DialogueError> for Failure {
    fn from(error: DialogueError) -> Self {
        Self::from(ControlError::from(error))
    }
}

/// The exit code of a dialogue with agents that failed.
fn of_dialogue(error: &DialogueError) -> u8 {
    match error {
        DialogueError::Token { .. } | DialogueError::Refused { .. } | DialogueError::Unproven { .. } => 4,
        DialogueError::Lost { .. } | DialogueError::LostBefore { .. } | DialogueError::Trial { .. } => 5,
        DialogueError::Setup { .. } | DialogueError::Links(_) => 7,
        DialogueError::Unmet { .. } => UNMET,
        DialogueError::Tune { obstacle, .. } => match obstacle {
            Obstacle::Wrong => 2,
            Obstacle::Refused | Obstacle::Busy => 4,
            Obstacle::Host => 7,
        },
        DialogueError::Interrupted => INTERRUPTED,
        DialogueError::Outside(_) => 1,
    }
}

impl From<ControlError> for Failure {
    fn from(error: ControlError) -> Self {
        Self::from(&error)
    }
}

impl From<&ControlError> for Failure {
    fn from(error: &ControlError) -> Self {
        let code = match error {
            ControlError::InvalidHost { .. } | ControlError::NoInterface { .. } => 2,
            ControlError::Bus(error) => match error {
                BusError::Address { .. } | BusError::Credentials { .. } | BusError::Unsupported => 2,
                BusError::Unreachable { .. } | BusError::Failed { .. } | BusError::Absent { .. } => UNREACHED,
                BusError::Taken { .. } => 7,
            },
            ControlError::Resolve { .. }
            | ControlError::Unreachable { .. }
            | ControlError::NoAgent { .. }
            | ControlError::NoGreeting { .. } => UNREACHED,
            ControlError::Version { .. } | ControlError::Key { .. } => 4,
            ControlError::Dialogue(error) => of_dialogue(error),
            ControlError::Program(_) => 5,
            ControlError::Sink(_) => 6,
            ControlError::Engine(engine::EngineError::Unknown { .. } | engine::EngineError::Unsupported { .. }) => 2,
            ControlError::Engine(_) => 7,
            _ => 1,
        };
        Self::new(code, error)
    }
}

impl From<OptionError> for Failure {
    fn from(error: OptionError) -> Self {
        match error.value() {
            Some(_) => Self::usage(say!("`--{}`: {}", error.key(), error.what())),
            None => Self::usage(error.what()),
        }
    }
}

impl From<Mistake> for Failure {
    fn from(mistake: Mistake) -> Self {
        if mistake.is_in_plan() { Self::in_plan(mistake) } else { Self::usage(mistake) }
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
            TuneFault::Wrong => 2,
            TuneFault::Refused | TuneFault::Busy => 4,
            TuneFault::Host => 7,
        };
        Self::new(code, error)
    }
}

/// A document that cannot be written as JSON.
impl From<serde_json::Error> for Failure {
    fn from(error: serde_json::Error) -> Self {
        Self::other(error.to_string())
    }
}

impl From<store::StoreError> for Failure {
    fn from(error: store::StoreError) -> Self {
        Self::output(error)
    }
}

impl From<LabError> for Failure {
    fn from(error: LabError) -> Self {
        match error {
            LabError::Spec { .. } | LabError::NoHost { .. } | LabError::NoLab { .. } | LabError::Exists { .. } => {
                Self::usage(error)
            }
            LabError::LeftBehind { .. } | LabError::Silent { .. } => Self::other(error),
            _ => Self::host(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_is_one_line_whatever_it_quotes() {
        let name = "n1\"}\nthru: all is well\u{2028}\r]";
        let failures = [
            Failure::usage(format!("'{name}' is in it twice")),
            Failure::in_plan(format!("f.toml:1:2: '{name}'")),
            Failure::other(name),
            Failure::from(ControlError::InvalidHost { host: name.into(), what: "no host has such a name" }),
        ];
        for failure in failures {
            let text = failure.to_string();
            assert!(text.contains("thru: all is well") && text == model::plain(&text), "{text:?}");
        }
    }

    #[test]
    fn a_mistake_is_wrong_usage_and_a_plan_keeps_its_keys() {
        let of = |mistake| Failure::from(mistake);
        let (given, written) = (of(Mistake::usage(say!("`--flows`"))), of(Mistake::in_plan(say!("`--flows`"))));
        assert_eq!((given.code(), written.code()), (2, 2));
        assert_eq!([given, written].map(|failure| failure.shown(RateUnit::Bits)), ["--flows", "`flows`"]);
    }
}
