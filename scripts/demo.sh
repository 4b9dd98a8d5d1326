#!/usr/bin/env bash
# From a fresh clone to a measurement: sets up what the build needs, builds, and runs `thru demo`.
# Root gets two hosts in network namespaces, everyone else the loopback interface. Arguments go to `thru demo`.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/lib.sh
. scripts/lib.sh

scripts/setup.sh build
find_rust
say "building thru (release)"
cargo build --release --locked -p throughline
exec "${CARGO_TARGET_DIR:-target}/release/thru" demo "$@"
