//! The TCP stacks that a session's measurements need. Its helper loads them.

use model::StackRule;

use super::failure::NoStack;
use super::session::Session;
use crate::helper::{Answer, Request};
use protocol::message::Prepare;

/// What a measurement's congestion control needs.
#[derive(Debug, PartialEq)]
enum Needed {
    /// Nothing: the kernel has it under this name.
    Nothing(String),
    /// A stack of this program, which will have this name in the kernel.
    Stack(String),
}

impl Session {
    /// Ensures that the kernel has this end's congestion control, and writes its kernel name into `prepare` for the workers.
    ///
    /// # Errors
    /// The kernel does not have it and does not get it.
    pub(super) async fn provide_stack(&mut self, prepare: &mut Prepare) -> Result<(), NoStack> {
        let allowed = self.shared.options.allow_stacks;
        let Some((stack, rules)) = requested(prepare) else { return Ok(()) };
        let name = match needed(&stack, &rules)? {
            Needed::Nothing(name) => name,
            Needed::Stack(_) if allowed => match self.ask(&Request::Load { stack, rules }).await {
                Answer::Loaded { name } => name,
                Answer::Refused { reason, .. } => return Err(NoStack::Helper(reason)),
                _ => return Err(NoStack::OutOfOrder),
            },
            Needed::Stack(name) => without_loading(&stack, name)?,
        };
        prepare.spec.end_mut(prepare.role).cc = Some(name);
        Ok(())
    }
}

/// This end's congestion control and its rules.
fn requested(prepare: &mut Prepare) -> Option<(String, Vec<StackRule>)> {
    let over_tcp = prepare.spec.is_over_tcp();
    let end = prepare.spec.end_mut(prepare.role);
    end.cc.clone().filter(|_| over_tcp).map(|cc| (cc, end.cc_rules.clone()))
}

fn needed(requested: &str, rules: &[StackRule]) -> Result<Needed, NoStack> {
    match stacks::StackRequest::unless_the_kernel_has_it(requested)? {
        Some(request) => Ok(Needed::Stack(request.with_rules(rules)?.kernel_name())),
        None if rules.is_empty() => Ok(Needed::Nothing(requested.to_owned())),
        None => Err(NoStack::Rules { requested: requested.to_owned() }),
    }
}

/// The name of a stack that the kernel has already, for an agent that loads none.
fn without_loading(requested: &str, name: String) -> Result<String, NoStack> {
    if stacks::available().contains(&name) {
        return Ok(name);
    }
    Err(NoStack::NotAllowed { requested: requested.to_owned() })
}

#[cfg(test)]
mod tests {
    use model::{PathTimes, Pattern, Role, Spec};

    use super::*;

    fn prepare(transport: &str, cc: &str) -> Prepare {
        let mut spec = Spec::new(transport, Pattern::Stream);
        spec.near.cc = Some(cc.into());
        let (legs, rendezvous) = Default::default();
        Prepare {
            trial: 0,
            role: Role::Active,
            spec,
            legs,
            rendezvous,
            reach_token: None,
            keep: None,
            path: PathTimes::default(),
        }
    }

    #[test]
    fn other_congestion_controls_need_no_stack() {
        assert_eq!(requested(&mut prepare("quic", "fast:alpha=3")), None);
        let (cc, rules) = requested(&mut prepare("tcp", "reno")).unwrap();
        assert_eq!(needed(&cc, &rules).unwrap(), Needed::Nothing("reno".into()));
    }

    #[test]
    fn an_agent_without_permission_names_the_remedy() {
        let Ok(Needed::Stack(name)) = needed("fast:alpha=12321", &[]) else { panic!("it is a stack of this program") };
        let refused = without_loading("fast:alpha=12321", name).unwrap_err().to_string();
        assert!(refused.contains("--allow-stacks") && refused.contains("fast:alpha=12321"), "{refused}");
    }
}
