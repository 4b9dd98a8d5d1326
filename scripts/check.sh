#!/usr/bin/env bash
# The quick check while working: formatting, spelling, lints of everything, and the tests of the crates that neither read files nor use the
# network. Its last lines are the count of the tests and the time.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/lib.sh
. scripts/lib.sh

# The simulations that take long are test files of their own, and run in `make test` only.
PURE='package(/^throughline-(text|say|options|model|drawing|protocol|analysis|schedule|plan|peer-wire|import|report|architecture-tests)$/) - (kind(test) & test(/^(advice|bootstrap|coverage|paired|fuzz)::/))'

scripts/setup.sh check
find_rust
find_tools
cargo fmt --all --check
typos
export RUSTC_WORKSPACE_WRAPPER=$PWD/scripts/linted.sh
cargo check --workspace --all-targets --locked
cargo nextest run --locked --show-progress none -E "$PURE" \
    -p throughline-text -p throughline-say -p throughline-options -p throughline-model -p throughline-drawing -p throughline-protocol -p throughline-analysis -p throughline-schedule -p throughline-plan -p throughline-peer-wire -p throughline-import \
    -p throughline-report -p throughline-architecture-tests </dev/null
say "make check: $SECONDS s"
