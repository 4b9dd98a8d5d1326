//! Attacks on agents and clients. Each one plays against the real program and fails. Those of single parts are in the tests of these:
//! unauthenticated connections in `greeting`, text that would act on a terminal in `stdout`.

mod data_connections;
mod files_of_others;
mod hostile_agent;
mod hostile_client;
mod invitation;
mod kept_results;
mod local_user;
mod on_path;
mod other_programs;
mod privileges;
mod unauthenticated;
mod units;
