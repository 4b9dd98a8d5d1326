//! Some hundred thousand changed sessions; `make fuzz` takes ten million.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test stops at the first surprise")]

#[allow(dead_code, reason = "recordings are told for other tests as well")]
mod common;
mod fuzz;

#[test]
fn no_bytes_make_a_machine_panic_or_hide_its_step() {
    fuzz::run(150_000);
}
