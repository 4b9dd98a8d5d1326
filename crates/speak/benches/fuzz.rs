//! Ten million changed sessions against every machine, or as many as FUZZ_INPUTS says.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::print_stdout, reason = "it stops at the first surprise")]

#[allow(dead_code, reason = "recordings are told for tests as well")]
#[path = "../tests/common/mod.rs"]
mod common;
#[path = "../tests/fuzz/mod.rs"]
mod fuzz;

fn main() {
    let asked = std::env::var("FUZZ_INPUTS").ok().and_then(|text| text.parse().ok());
    let inputs = asked.unwrap_or(10_000_000);
    fuzz::run(inputs);
    println!("{inputs} inputs: no machine panicked, and every error names its peer and step");
}
