//! Why a trial is not made, or ends without a result.

use engine::EngineError;
use stacks::StackError;
use text::{Said, Text};

use super::limits::LimitError;
use super::reach::ReachError;
use super::session_end::HelperLost;
use crate::ControlError;
use crate::connection_end::ConnectionEnd;
use crate::proto::message::{Cause, FromAgent};

/// Why a trial is not made, or ends without a result.
#[derive(Debug, thiserror::Error, Said)]
pub(super) enum TrialFailure {
    /// It exceeds a limit of the agent.
    #[error(transparent)]
    Limit(#[from] LimitError),
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
    /// A worker process reports it, in its words.
    #[error("{}", _0.plain())]
    Reported(Text),
    /// A worker process ended.
    #[error("a worker process ended: {0}; finished trials are kept")]
    WorkerEnded(ConnectionEnd),
    /// The coordinator does not get a message.
    #[error(transparent)]
    Unsent(#[from] ConnectionEnd),
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

impl TrialFailure {
    /// The message about it. `running` is whether the trial had started.
    pub(super) fn message(&self, running: bool) -> FromAgent {
        FromAgent::Failed { reason: self.say(), cause: self.cause(running) }
    }

    fn cause(&self, running: bool) -> Cause {
        match self {
            Self::Limit(_)
            | Self::Reach(ReachError::Rendezvous { .. } | ReachError::ActiveEnd { .. })
            | Self::Stack(NoStack::NotAllowed { .. }) => Cause::Limits,
            Self::Reach(ReachError::NoProof { .. } | ReachError::NoSocket { .. }) => Cause::Unproven,
            Self::Spec(_) | Self::HelperLost(_) | Self::Stack(_) | Self::SetUp(_) => Cause::Setup,
            Self::WorkerEnded(_) => Cause::Trial,
            Self::Reported(_) | Self::Unsent(_) if running => Cause::Trial,
            Self::Reported(_) | Self::Unsent(_) => Cause::Setup,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cause_of_a_workers_failure_is_the_trial_once_it_runs() {
        let failure = TrialFailure::Reported("no route".into());
        let message = |cause| FromAgent::Failed { reason: "no route".into(), cause };
        assert_eq!(failure.message(false), message(Cause::Setup));
        assert_eq!(failure.message(true), message(Cause::Trial));
        assert_eq!(TrialFailure::WorkerEnded(ConnectionEnd::Closed).cause(false), Cause::Trial);
    }
}
