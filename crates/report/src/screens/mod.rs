//! What commands print besides the reports of runs.

pub(crate) mod comparison;
pub(crate) mod explained;
pub(crate) mod fleet;
pub(crate) mod fleet_history;
pub(crate) mod host;
pub(crate) mod lab;
pub(crate) mod plan;
pub(crate) mod run_list;
pub(crate) mod selftest;
pub(crate) mod settings;
pub(crate) mod watch;
