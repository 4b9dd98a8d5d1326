//! All tests of the whole program in one binary, so that they are linked once. Each file beside this one is a module.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

mod advise;
mod anatomy;
mod attacks;
mod bad_paths;
mod check;
mod claims;
mod compare;
mod compare_cells;
mod contract;
mod crowd;
mod data_addresses;
mod errors;
mod figures;
mod fleet;
mod fleet_bus;
mod fleet_launch;
mod fleet_watch;
mod flow;
mod foreign;
mod greeting;
mod groups;
mod honest;
mod import;
mod inventory;
mod killed;
mod kills;
mod ktls;
mod lab;
mod lake;
mod leftovers;
mod limits;
mod manual;
mod matrix;
mod metrics;
mod mpi;
mod namespaces;
mod observe;
mod other_tools;
mod outputs;
mod paced;
mod plan_fields;
mod plan_links;
mod plan_peers;
mod plans;
mod printed;
mod pvm;
mod refusals;
mod reset;
mod screens;
mod seeds;
mod selftest;
mod sharing;
mod speak;
mod speak_iperf3;
mod speak_netperf;
mod speak_plain;
mod speak_stamp;
mod stacks;
mod stacks_path;
mod stdout;
mod traffic;
mod tune;
mod tuning_rights;
mod user_file;
mod web;
mod why;
mod workbook;

#[test]
fn each_file_in_this_folder_is_a_module_of_this_binary() {
    let folder = program::binary::workspace().join("tests/program/tests");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let missing: Vec<String> = files
        .filter(|file| file != "main.rs")
        .map(|file| file.trim_end_matches(".rs").to_owned())
        .filter(|module| !include_str!("main.rs").lines().any(|line| line == format!("mod {module};")))
        .collect();
    assert!(missing.is_empty(), "without a line `mod NAME;` in main.rs: {missing:?}");
}
