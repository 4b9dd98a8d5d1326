//! The socket and thread options of both ends.

use std::net::SocketAddr;

use engine::transport::{Transport, scope_of};
use model::{EndOptions, Spec};
use options::values::Address;
use options::{OptionError, TestOptions};

use text::{Text, say};

use crate::resolver::Resolver;

/// Refuses options without effect on a transport.
pub(super) fn check(options: &TestOptions, transport: &dyn Transport) -> Result<(), OptionError> {
    let mut rows = options::rows_of(options.test);
    let without_effect = rows.find(|row| !row.needs.are_met(transport.facts()) && row.is_given(options));
    let Some(row) = without_effect else { return Ok(()) };
    let able = engine::transport::names(|other| row.needs.are_met(other.facts()));
    let what = say!("`--{}` has no effect on {}: omit it, or use {able}", row.key, transport.name());
    Err(OptionError::of_key(row.key, what))
}

/// Refuses a forwarded port for data where they go to another port of the far end that the kernel chooses.
pub(crate) fn check_forwarded(spec: &Spec, transport: &dyn Transport) -> Result<(), OptionError> {
    let Some(at) = spec.far.data_at.filter(|at| at.port() > 0 && spec.far.port.is_none()) else { return Ok(()) };
    let far = &spec.far;
    let option = options::end_rows().find(|row| row.own_listener && row.is_set(far));
    let why = match option {
        _ if transport.facts().ip.is_some() && transport.capabilities().shared_port.is_none() => {
            say!("{} uses", transport.name())
        }
        _ if spec.responsiveness => say!("`--responsiveness` uses"),
        _ if spec.renews_connections() => say!("`--connect` uses"),
        Some(row) => say!("`--{}` at the far end needs", row.key),
        None => return Ok(()),
    };
    let what = say!(
        "`--data {at}` leads to the agent's port, but {why} another one: choose it with `--data-port ,PORT`, and forward {} to it",
        at.port()
    );
    Err(OptionError::of_key("data", what))
}

/// Sets the options of both ends.
///
/// # Errors
/// A stack that does not take its parameters, a file of rules that cannot be read, or an interface that this host does not have.
pub(super) fn apply(
    options: &TestOptions,
    near: &mut EndOptions,
    far: &mut EndOptions,
    resolver: &dyn Resolver,
) -> Result<(), OptionError> {
    (*near, *far) = (options.near.clone(), options.far.clone());
    for name in [&near.cc, &far.cc].into_iter().flatten() {
        stacks::StackRequest::parse(name).map_err(|error| OptionError::of_value("cc", name, error))?;
    }
    if let Some(path) = &options.cc_rules {
        let wrong = |error: Text| OptionError::of_value("cc-rules", &path.display().to_string(), error);
        let rules = resolver.stack_rules(path).map_err(wrong)?;
        let takes = |end: &EndOptions| end.cc.as_deref().is_some_and(stacks::takes_rules);
        // If neither does, both get the rules and their agents report the error.
        let neither = !takes(near) && !takes(far);
        for end in [&mut *near, &mut *far].into_iter().filter(|end| end.cc.is_some() && (neither || takes(end))) {
            end.cc_rules.clone_from(&rules);
        }
    }
    if let Some(from) = &options.data_from {
        near.data_addr = Some(on_interface("data-from", from, resolver)?.ip());
    }
    if let Some(data) = &options.data {
        let data = on_interface("data", data, resolver)?;
        // A port is forwarded, and the address before it is not one of the far end's.
        far.data_addr = (data.port() == 0).then_some(data.ip());
        far.data_at = Some(data).filter(|data| data.port() > 0 || scope_of(data) > 0);
    }
    Ok(())
}

fn on_interface(key: &str, address: &Address, resolver: &dyn Resolver) -> Result<SocketAddr, OptionError> {
    resolver.on_interface(address).map_err(|error| OptionError::of_key(key, say!("`--{key}`: {error}")))
}
