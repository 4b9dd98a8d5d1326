#!/usr/bin/env bash
# A soak of two agents in a lab of their own: `soak.sh [SECONDS [SEED]]`, an hour by default (root). What it does and checks is in
# tests/program/examples/soak/. Ctrl-C ends it with its figures so far.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
# shellcheck source=scripts/lib.sh
. scripts/lib.sh

[ "$(id -u)" = 0 ] || die "a soak needs root, for its network namespaces"
scripts/setup.sh build || exit 1
find_rust || exit 1
cargo build --quiet --locked -p throughline-program-tests --example soak || exit 1
program="${CARGO_TARGET_DIR:-target}/debug/examples/soak"

# All of its files are in here, so that nothing is left of a soak that was killed.
folder=$(mktemp -d) || exit 1
chmod 1777 "$folder"
trap 'rm -rf -- "$folder"' EXIT
# The soak ends in order; this shell waits for it.
trap : INT TERM HUP
TMPDIR="$folder" "$program" "$@" &
soak=$!
trap 'kill -TERM "$soak" 2>/dev/null' TERM HUP
trap 'kill -INT "$soak" 2>/dev/null' INT
while :; do
    wait "$soak"
    code=$?
    kill -0 "$soak" 2>/dev/null || break
done
exit "$code"
