#!/bin/sh
# As RUSTC_WORKSPACE_WRAPPER: a build of our own crates is their lints too. With `cargo clippy` beside the build, all of ours and the
# facts of all others would be worked out twice.
exec clippy-driver "$@" -D warnings
