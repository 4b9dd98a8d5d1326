//! The congestion control in the manual.
#![allow(clippy::expect_used, reason = "a test stops at the first surprise")]

use std::path::Path;

/// Its source.
pub(crate) fn example() -> String {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/manual/stacks.md");
    let page = std::fs::read_to_string(page).expect("the manual");
    let (_, rest) = page.split_once("```c\n").expect("a source in the manual");
    rest.split_once("```").expect("its end").0.to_owned()
}
