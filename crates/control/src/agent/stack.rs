//! The TCP stacks that a session's measurements need. Its helper loads them.

use model::StackRule;
use stacks::StackError;

use super::session::Session;
use crate::helper::{Answer, Request};
use crate::proto::message::{Cause, Prepare};

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
    /// The cause, and a message for the coordinator.
    pub(super) async fn provide_stack(&mut self, prepare: &mut Prepare) -> Result<(), (Cause, String)> {
        let allowed = self.shared.options.allow_stacks;
        let Some((stack, rules)) = requested(prepare) else { return Ok(()) };
        let name = match needed(&stack, &rules)? {
            Needed::Nothing(name) => name,
            Needed::Stack(_) if allowed => match self.ask(&Request::Load { stack, rules }).await {
                Answer::Loaded { name } => name,
                Answer::Refused { reason, .. } => return Err((Cause::Setup, reason)),
                _ => return Err((Cause::Setup, "the answer of the helper is out of order".into())),
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

fn needed(requested: &str, rules: &[StackRule]) -> Result<Needed, (Cause, String)> {
    let setup = |error: StackError| (Cause::Setup, error.to_string());
    let request = stacks::Request::unless_the_kernel_has_it(requested).map_err(setup)?;
    match request {
        Some(request) => Ok(Needed::Stack(request.with_rules(rules).map_err(setup)?.kernel_name())),
        None if rules.is_empty() => Ok(Needed::Nothing(requested.to_owned())),
        None => Err((
            Cause::Setup,
            format!("{requested} accepts no rules for destinations: use `cc-rules` with `cc bpf_highspeed`"),
        )),
    }
}

/// The name of a stack that the kernel has already, for an agent that loads none.
fn without_loading(requested: &str, name: String) -> Result<String, (Cause, String)> {
    if stacks::available().contains(&name) {
        return Ok(name);
    }
    let reason = format!(
        "this agent loads no TCP stacks: start it with `thru serve --allow-stacks --token-file FILE`, or run `thru stacks load {requested}` on its host"
    );
    Err((Cause::Limits, reason))
}

#[cfg(test)]
mod tests {
    use model::{Pattern, Role, Spec};

    use super::*;
    use crate::proto::message::PathTimes;

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
        assert_eq!(needed(&cc, &rules), Ok(Needed::Nothing("reno".into())));
    }

    #[test]
    fn an_agent_without_permission_names_the_remedy() {
        let Ok(Needed::Stack(name)) = needed("fast:alpha=12321", &[]) else { panic!("it is a stack of this program") };
        let answer = without_loading("fast:alpha=12321", name);
        let Err((Cause::Limits, reason)) = answer else { panic!("{answer:?}") };
        assert!(reason.contains("--allow-stacks") && reason.contains("fast:alpha=12321"), "{reason}");
    }
}
