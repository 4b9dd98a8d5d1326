//! Why a trial is not set up.

use engine::EngineError;
use stacks::StackError;
use text::{Said, Text};

use super::reach::ReachError;
use crate::ControlError;
use protocol::agent::{HelperLost, NotSetUp};
use protocol::message::Cause;

/// Why a trial is not set up.
#[derive(Debug, thiserror::Error, Said)]
pub(super) enum TrialFailure {
    /// It is impossible.
    #[error(transparent)]
    Spec(#[from] EngineError),
    /// The changes of the host are lost.
    #[error(transparent)]
    HelperLost(#[from] HelperLost),
    /// The agent does not connect to the other end.
    #[error(transparent)]
    Reach(#[from] ReachError),
    /// Its congestion control is not there.
    #[error(transparent)]
    Stack(#[from] NoStack),
    /// The workers cannot be started or prepared.
    #[error(transparent)]
    SetUp(#[from] ControlError),
}

/// Why an end does not get its congestion control.
#[derive(Debug, thiserror::Error, Said)]
pub(super) enum NoStack {
    /// The request is invalid, or the kernel refuses.
    #[error(transparent)]
    Stack(#[from] StackError),
    /// The helper refuses, in its words.
    #[error("{}", _0.plain())]
    Helper(Text),
    /// The helper answers something else.
    #[error("the helper sent an unexpected answer")]
    OutOfOrder,
    /// The kernel's own congestion controls have no rules.
    #[error("{requested} accepts no rules for destinations: use `--cc-rules` with `--cc bpf_highspeed`")]
    Rules { requested: String },
    /// The agent may not load it.
    #[error(
        "this agent loads no TCP stacks: start it with `thru serve --allow-stacks --token-file FILE`, or run \
         `thru stacks load {requested}` on its host"
    )]
    NotAllowed { requested: String },
}

impl From<TrialFailure> for NotSetUp {
    fn from(failure: TrialFailure) -> Self {
        let cause = match failure {
            TrialFailure::Reach(ReachError::Rendezvous { .. } | ReachError::ActiveEnd { .. })
            | TrialFailure::Stack(NoStack::NotAllowed { .. }) => Cause::Limits,
            TrialFailure::Reach(ReachError::NoProof { .. } | ReachError::NoSocket { .. }) => Cause::Unproven,
            TrialFailure::Spec(_) | TrialFailure::HelperLost(_) | TrialFailure::Stack(_) | TrialFailure::SetUp(_) => {
                Cause::Setup
            }
        };
        Self { reason: failure.say(), cause }
    }
}
