//! What is wrong with the cells of a plan, apart from its place.

use engine::EngineError;
use model::{Nanos, Program, TransportName};
use options::{OptionError, ValueError, unknown};
use peers::ProgramError;
use text::Said;
use thiserror::Error;

/// A mistake in a group, a factor or a cell, with the remedy.
#[derive(Debug, Error, Said)]
pub(super) enum PlanError {
    #[error("{key}: {error}")]
    Value { key: String, error: ValueError },
    #[error(transparent)]
    Kind(#[from] ValueError),
    #[error(transparent)]
    Option(#[from] OptionError),
    #[error(transparent)]
    Engine(#[from] EngineError),
    #[error(transparent)]
    Program(#[from] ProgramError),
    #[error("`{key}` is given twice")]
    Twice { key: String },
    #[error("`{key}` is not a key of a group: {remedy}")]
    NotOfGroup { key: String, remedy: &'static str },
    #[error("{}", unknown(key, known, "a group"))]
    UnknownKey { key: String, known: Vec<&'static str> },
    #[error("name: '{text}' is not a name of 1 to {most} characters")]
    GroupName { text: String, most: usize },
    #[error("direction: '{text}' is not one of send, reverse, both")]
    Direction { text: String },
    #[error("two groups have the name '{name}': change the `name` of one")]
    SameName { name: String },
    #[error("`stop` and an amount (`--bytes` or `--count`) cannot be used together: omit one of them")]
    StopAndAmount,
    #[error("`stop` ({stop}) is not after `start` ({start})")]
    StopBeforeStart { stop: Nanos, start: Nanos },
    #[error("`start` ({start}) is not before the end of the trial ({end}): add `stop`, or raise `--time`")]
    StartAfterEnd { start: Nanos, end: Nanos },
    #[error("it lasts {length}, which is not longer than its `--warmup` ({warmup})")]
    OnlyWarmup { length: Nanos, warmup: Nanos },
    #[error("{transport} needs a far host: run thru serve on HOST, and name it")]
    NoHost { transport: TransportName },
    #[error("{transport} cannot have groups: its launcher starts both ends")]
    Launched { transport: TransportName },
    #[error("{transport} cannot have groups: it has one end only")]
    OneEnd { transport: TransportName },
    #[error("`--engine auto` cannot be used with groups: choose one send method")]
    EngineOfGroup,
    #[error("a curve is several measurements, but a group is one")]
    CurveInGroup,
    #[error("a curve, `--speak` and `--find-no-loss` cannot have groups")]
    AloneOnly,
    #[error(
        "the sizes of a curve are already the factor 'block': write them in [base], as block = \"1KiB,64KiB\", or as \
         `--first` and `--to`"
    )]
    SizesTwice,
    #[error("{}; or sysctl.NAME", unknown(key, names, "the inventory"))]
    Observed { key: String, names: Vec<String> },
    #[error("`from` with `--speak {program}`: thru connects to {program} from this host; omit `from`")]
    FromWithProgram { program: Program },
    #[error("`--speak {program}` needs a far host: add to = [\"HOST\"] at the top, or name a host in the cell")]
    NoFarHost { program: Program },
    #[error(
        "{key} at the far end with `--speak {program}`: no agent there can change it; use end = \"near\", and set it there \
         yourself"
    )]
    FarSetting { key: String, program: Program },
}
