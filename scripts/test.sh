#!/usr/bin/env bash
# All checks and all tests, with a closing line `N passed, N failed` (`, N skipped` may follow).
# A check (formatting, lints, dependencies) that fails counts as one failure. A test that cannot run here prints one line
# that starts with `SKIPPED:`; where everything can run (CI=true as root) that is a failure too, save for the lines that
# scripts/allowed-skips.txt lists with a reason.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
# shellcheck source=scripts/lib.sh
. scripts/lib.sh
# shellcheck source=scripts/tally.sh
. scripts/tally.sh
# shellcheck source=scripts/again.sh
. scripts/again.sh

scripts/setup.sh test || exit 1
find_rust || exit 1
PATH="$PATH:${CARGO_HOME:-$HOME/.cargo}/bin"

target=${CARGO_TARGET_DIR:-target}
mkdir -p "$target"
log=$target/test.log
broken=()

step() {
    local name=$1
    shift
    say "$name: $*"
    "$@" || {
        broken+=("$name")
        printf 'FAILED: %s\n' "$name"
    }
}

advisories() {
    if cargo deny fetch db >"$target/advisory-db.log" 2>&1; then
        step "known vulnerabilities" cargo deny check --disable-fetch advisories
    else
        say "known vulnerabilities: NOT CHECKED, the advisory database cannot be fetched from here"
    fi
}

# What the tests of the whole program run: built once, with them.
build() {
    cargo build --workspace --all-targets --locked || return 1
    THRU_BIN=$(realpath "$target/debug/thru")
    export THRU_BIN
}

tests() {
    local -a limit=()
    # Nobody is there to press Ctrl-C, and who waits for all this waits for half an hour: what is known by then must be told.
    [ "${CI:-}" != true ] || limit=(timeout --kill-after=10s $((1730 - SECONDS)))
    say "tests: cargo test --workspace (everything they print goes to $log)"
    "${limit[@]}" cargo test --workspace --locked --no-fail-fast -- --show-output 2>&1 | tee "$log" | without_output
    local status=${PIPESTATUS[0]}
    [ "$status" != 124 ] || printf 'FAILED: the tests were not over in time\n'
    return "$status"
}

step counting scripts/tally-test.sh
step formatting cargo fmt --all --check
step lints cargo clippy --workspace --all-targets --locked --quiet -- -D warnings
# The rest of the program is the same with and without the loader of TCP stacks, and so are the tests.
step "lints without the loader" cargo clippy -p throughline-stacks --lib --locked --quiet -- -D warnings
step dependencies cargo deny --locked check --hide-inclusion-graph bans licenses sources
advisories
step build build
tests
test_status=$?
again=0
# 101: cargo ran them all, and some failed.
if [ "$test_status" = 101 ]; then
    left=600
    [ "${CI:-}" != true ] || left=$((1780 - SECONDS))
    if second_look "$log" "$left"; then again=$(failed_flows "$log" | wc -l); fi
fi

strict=no
[ "${CI:-}" = true ] && [ "$(id -u)" = 0 ] && strict=yes
tally "$log" "$test_status" "${#broken[@]}" "$strict" scripts/allowed-skips.txt "$again"
