#!/bin/sh
# As RUSTC_WORKSPACE_WRAPPER: building our crates also lints them. A separate `cargo clippy` would check all crates a second time.
exec clippy-driver "$@" -D warnings
