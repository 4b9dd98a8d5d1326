//! Who is killed, and what must then go back by itself.

use program::agent::{children_called, descendants, helpers};
use program::process::{Signal, reaches};
use program::{Agent, Running};

use super::bed::{Bed, End};
use super::moments::Moments;

/// A process of a plan; or two of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Victim {
    Coordinator,
    Agent,
    /// Of either end.
    Worker,
    Helper,
    /// The coordinator and its agent.
    Both,
}

/// What was seen just before a kill.
pub(crate) struct Struck {
    /// Processes that must end.
    pub(crate) below: Vec<u32>,
    /// Settings were changed.
    pub(crate) changed: bool,
    pub(crate) events: String,
}

impl Victim {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Coordinator => "coordinator",
            Self::Agent => "agent",
            Self::Worker => "worker",
            Self::Helper => "helper",
            Self::Both => "coordinator and agent",
        }
    }

    /// Whether its agent is of no use afterwards.
    pub(crate) fn lives_with_the_agent(self) -> bool {
        matches!(self, Self::Agent | Self::Helper | Self::Both)
    }

    pub(crate) fn ends_the_coordinator(self) -> bool {
        matches!(self, Self::Coordinator | Self::Both)
    }

    /// The ends whose settings need no further command.
    pub(crate) fn restored_at_once(self) -> &'static [End] {
        match self {
            // The near end's are the coordinator's own.
            Self::Coordinator | Self::Both => &[End::Far],
            Self::Agent | Self::Worker => &End::BOTH,
            Self::Helper => &[End::Near],
        }
    }

    /// Kills it; `None` if it is not there any more. A worker that is not there yet is awaited.
    pub(crate) fn strike(
        self,
        bed: &Bed,
        agent: &Agent,
        client: &mut Running,
        moments: &mut Moments,
    ) -> Option<Struck> {
        let victims = self.processes(agent, client, moments)?;
        let helper = if self.lives_with_the_agent() { Vec::new() } else { helpers(agent.pid()) };
        let mut below: Vec<u32> = descendants(client.pid()).into_iter().chain(descendants(agent.pid())).collect();
        below.retain(|pid| !helper.contains(pid));
        let struck = Struck { below, changed: bed.records() > 0, events: client.stdout() };
        if !client.runs() {
            return None;
        }
        let mut pids = victims.into_iter();
        let first = pids.next()?;
        if self.may_be_asked() && moments.asks_first() {
            let _ = reaches(first, Signal::TERM);
            std::thread::sleep(moments.restoration());
            let _ = reaches(first, Signal::KILL);
        } else if !reaches(first, Signal::KILL) {
            return None;
        }
        for pid in pids {
            if self == Self::Helper {
                std::thread::sleep(moments.restoration());
            }
            // The helper of a killed agent may have done its work.
            let _ = reaches(pid, Signal::KILL);
        }
        Some(struck)
    }

    /// Whether it restores settings when it is asked to end.
    fn may_be_asked(self) -> bool {
        matches!(self, Self::Coordinator | Self::Agent)
    }

    fn processes(self, agent: &Agent, client: &mut Running, moments: &mut Moments) -> Option<Vec<u32>> {
        match self {
            Self::Coordinator => Some(vec![client.pid()]),
            Self::Agent => Some(vec![agent.pid()]),
            Self::Helper => {
                // By itself, or while it restores what its killed agent changed.
                let agent_first = moments.random.below(2) == 0;
                let agents = agent_first.then_some(agent.pid());
                Some(agents.into_iter().chain(helpers(agent.pid())).collect())
            }
            Self::Both if moments.random.below(2) == 0 => Some(vec![client.pid(), agent.pid()]),
            Self::Both => Some(vec![agent.pid(), client.pid()]),
            Self::Worker => {
                let end = if moments.random.below(2) == 0 { agent.pid() } else { client.pid() };
                while client.runs() {
                    if let Some(worker) = children_called(end, "worker").first() {
                        return Some(vec![*worker]);
                    }
                }
                None
            }
        }
    }
}
