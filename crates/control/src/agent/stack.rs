//! The TCP stacks that a session's measurements need.

use stacks::{HeldRegistrations, Request, StackError};

use crate::proto::message::{Cause, Prepare};

/// The stacks that a session has loaded; dropping it unloads them.
#[derive(Debug, Default)]
pub(super) struct Stacks(HeldRegistrations);

impl Stacks {
    /// Ensures that the kernel has this end's congestion control, and writes its kernel name into `prepare` for the workers.
    ///
    /// # Errors
    /// The cause, and a message for the coordinator.
    pub(super) fn provide(&mut self, prepare: &mut Prepare, allowed: bool) -> Result<(), (Cause, String)> {
        if !prepare.spec.is_over_tcp() {
            return Ok(());
        }
        let end = prepare.spec.end_mut(prepare.role);
        let Some(requested) = &end.cc else { return Ok(()) };
        let name = self.load(requested, &end.cc_rules, allowed)?;
        end.cc = Some(name);
        Ok(())
    }

    fn load(&mut self, requested: &str, rules: &[model::StackRule], allowed: bool) -> Result<String, (Cause, String)> {
        let setup = |error: StackError| (Cause::Setup, error.to_string());
        let request = Request::unless_the_kernel_has_it(requested).map_err(setup)?;
        let Some(request) = request else {
            return if rules.is_empty() {
                Ok(requested.to_owned())
            } else {
                Err((
                    Cause::Setup,
                    format!("{requested} accepts no rules for destinations: use `cc-rules` with `cc bpf_highspeed`"),
                ))
            };
        };
        let request = request.with_rules(rules).map_err(setup)?;
        let name = request.kernel_name();
        if allowed {
            return self.0.ensure(&request).map_err(setup);
        }
        if stacks::available().contains(&name) {
            return Ok(name);
        }
        let reason = format!(
            "this agent loads no TCP stacks: start it with `thru serve --allow-stacks --token-file FILE`, or run `thru stacks load {requested}` on its host"
        );
        Err((Cause::Limits, reason))
    }
}

#[cfg(test)]
mod tests {
    use model::{Role, Spec};

    use super::*;

    fn prepare(transport: &str, cc: &str) -> Prepare {
        let mut spec = Spec::new(transport, "stream");
        spec.near.cc = Some(cc.into());
        Prepare { trial: 0, role: Role::Active, spec, legs: Vec::new(), rendezvous: Vec::new(), reach_token: None }
    }

    #[test]
    fn other_congestion_controls_are_left_unchanged() {
        for (transport, cc) in [("tcp", "reno"), ("quic", "fast:alpha=3")] {
            let mut requested = prepare(transport, cc);
            Stacks::default().provide(&mut requested, false).unwrap_or_else(|error| panic!("{error:?}"));
            assert_eq!(requested, prepare(transport, cc));
        }
    }

    #[test]
    fn an_agent_without_permission_names_the_remedy() {
        let answer = Stacks::default().provide(&mut prepare("tcp", "fast:alpha=12321"), false);
        let Err((Cause::Limits, reason)) = answer else { panic!("{answer:?}") };
        assert!(reason.contains("--allow-stacks") && reason.contains("fast:alpha=12321"), "{reason}");
    }
}
