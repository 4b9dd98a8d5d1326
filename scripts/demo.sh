#!/usr/bin/env bash
# From a fresh clone to a measurement: installs what the build needs, builds, and runs `thru demo`.
# As root between two network namespaces, otherwise over loopback. Arguments go to `thru demo`.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/lib.sh
. scripts/lib.sh

# took PHASE: notes how long the phase lasted that ends now.
began=$SECONDS
times=
took() {
    times+="${times:+, }$1 $((SECONDS - began)) s"
    began=$SECONDS
}

scripts/setup.sh demo
find_rust
took "set-up"
cargo fetch --locked
took "downloads"
# What a demo does not show would be a third of the build.
say "building thru without workbooks, Parquet, YAML, metrics, the bus and TCP stacks; make install has them all"
cargo build --profile demo --locked -p throughline --no-default-features
took "build"
code=0
"${CARGO_TARGET_DIR:-target}/demo/thru" demo "$@" || code=$?
took "demo"
say "$times"
exit "$code"
