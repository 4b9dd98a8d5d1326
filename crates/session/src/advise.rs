//! What `thru advise` searches over: its spec, the host settings that it may change, and when it ends.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use analysis::advice::CLASSES;
use command::Failure;
use command::setup::clock_seed;
use engine::transport::Transport;
use model::{Goal, Nanos, Spec, Stopping};
use text::say;
use thiserror::Error;

use crate::this_host::ThisHost;
use options::TestOptions;
use plan::specs;

/// Host settings that no class has.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("unknown host settings '{name}': use {} or all", CLASSES.join(", "))]
pub struct UnknownClass {
    /// The name that was given.
    pub name: String,
}

/// The name of a class of host settings, or `all`.
///
/// # Errors
/// There is no such class; the message lists them.
pub fn class(name: &str) -> Result<String, UnknownClass> {
    if name == "all" || CLASSES.contains(&name) {
        return Ok(name.to_owned());
    }
    Err(UnknownClass { name: name.to_owned() })
}

/// The classes of a list, each by its own name.
#[must_use]
pub fn classes(list: &[String]) -> BTreeSet<String> {
    if list.iter().any(|class| class == "all") {
        return CLASSES.iter().map(|class| (*class).to_owned()).collect();
    }
    list.iter().cloned().collect()
}

/// The spec that a search begins with.
///
/// # Errors
/// A search does not take it.
pub fn spec(options: &TestOptions, goal: Goal) -> Result<Spec, Failure> {
    let transport = options.transport();
    if !is_searched(engine::transport::transport(transport)?) {
        let searched = engine::transport::names(is_searched);
        return Err(Failure::usage(format!("advise does not support {transport}: use {searched}")));
    }
    if goal == Goal::Latency && options.both {
        return Err(Failure::usage(say!("`--goal latency` does not support `--both`: omit it")));
    }
    Ok(specs::one(options, &ThisHost)?)
}

/// Whether a search over a transport is possible: agents at both ends, which a launcher does not start.
fn is_searched(transport: &dyn Transport) -> bool {
    transport.launcher().is_none() && !transport.capabilities().single_ended
}

/// The stop rule: the smallest gain that counts, as a part of the value, and the time of the whole search.
///
/// # Errors
/// The gain is not below 100 %.
pub fn rule(least: f64, budget: Nanos, seed: Option<u64>) -> Result<Stopping, Failure> {
    if !(0.0..1.0).contains(&least) {
        return Err(Failure::usage(say!("`--least` is a percentage of the value: use 0% to 99%")));
    }
    Ok(Stopping {
        target: least,
        budget_ns: Some(budget.0),
        seed: seed.unwrap_or_else(clock_seed),
        ..Stopping::default()
    })
}

/// The files for the near and the far host's sysctls.
#[must_use]
pub fn sysctl_files(near: &Path) -> [PathBuf; 2] {
    let mut far = near.to_owned().into_os_string();
    far.push(".far");
    [near.to_owned(), far.into()]
}
