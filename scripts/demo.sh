#!/usr/bin/env bash
# From a fresh clone to a measurement: installs what the build needs, builds, and runs `thru demo`.
# As root between two network namespaces, otherwise over loopback. Arguments go to `thru demo`.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/lib.sh
. scripts/lib.sh

scripts/setup.sh build
find_rust
say "building thru (release)"
cargo build --release --locked -p throughline
exec "${CARGO_TARGET_DIR:-target}/release/thru" demo "$@"
