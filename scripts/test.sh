#!/usr/bin/env bash
# All checks and all tests, with a closing line `N passed, N failed` (`, N skipped` may follow).
# A failed check (formatting, lints, dependencies) counts as one failure. A test that cannot run here prints one line
# that starts with `SKIPPED:`. Where everything can run (CI=true as root) a skip is a failure too, unless
# scripts/allowed-skips.txt lists it with a reason.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
# shellcheck source=scripts/lib.sh
. scripts/lib.sh
# shellcheck source=scripts/tally.sh
. scripts/tally.sh
# shellcheck source=scripts/clock.sh
. scripts/clock.sh
# shellcheck source=scripts/retry.sh
. scripts/retry.sh

# CI stops after half an hour of the machine's own time and must print its results by then. The limit in wall time ends runs on a machine
# that is mostly descheduled.
tests_end=$FOREVER retries_end=$FOREVER clock_end=$FOREVER
[ "${CI:-}" != true ] || tests_end=1730 retries_end=1780 clock_end=4500

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
    "$@" && return
    broken+=("$name")
    printf 'FAILED: %s\n' "$name"
    return 1
}

advisories() {
    if cargo deny fetch db >"$target/advisory-db.log" 2>&1; then
        step "known vulnerabilities" cargo deny check --disable-fetch advisories
    else
        say "known vulnerabilities: NOT CHECKED, the advisory database cannot be fetched from here"
    fi
}

# Lints and all that the tests run, in one build.
build() { cargo build --workspace --all-targets --locked; }

# Always the whole workspace: for a part of it, cargo would rebuild much with other features.
run_tests() {
    within "$tests_end" "$clock_end" cargo test --workspace --locked --no-fail-fast "$@" -- --show-output 2>&1
}

# The rest of the program and the tests are the same with and without the loader of TCP stacks. It has its own target folder, so that it
# does not block other cargo commands.
lint_without_loader() {
    say "lints without the loader: cargo build -p throughline-stacks"
    cargo build -p throughline-stacks --lib --locked --target-dir "$target/without-loader" 2>&1 && return
    printf 'FAILED: lints without the loader\n'
    return 1 # not 101, which means failed tests
}

# Test files that measure nothing. They run with the unit tests at low priority beside the others.
non_measuring=(advice bootstrap coverage paired fuzz)

# The names of all other test files.
flows() {
    cargo test --workspace --locked --test '*' --no-run 2>&1 | sed -n 's|^ *Executable tests.*/\(.*\)-[0-9a-f]*)$|\1|p' |
        grep -vxF "$(printf '%s\n' "${non_measuring[@]}")" | sort -u
}

tests() {
    local flows beside status beside_status
    THRU_BIN=$(realpath "$target/debug/thru") || return 1
    export THRU_BIN
    mapfile -t flows < <(flows)
    say "tests: cargo test --workspace (all output goes to $log)"
    set -m # its own process group, so that Ctrl-C ends all of it
    {
        renice -n 19 "$BASHPID" >/dev/null
        lint_without_loader
        status=$?
        run_tests --lib --bins "${non_measuring[@]/#/--test=}"
        worse "$status" $?
        status=$?
        run_tests --doc
        worse "$status" $?
    } >"$log.non-measuring" &
    beside=$!
    set +m
    trap 'kill -- "-$beside" 2>/dev/null' EXIT
    run_tests "${flows[@]/#/--test=}" | tee "$log" | without_output
    status=${PIPESTATUS[0]}
    wait "$beside"
    beside_status=$?
    trap - EXIT
    without_output <"$log.non-measuring"
    cat "$log.non-measuring" >>"$log"
    worse "$status" "$beside_status"
    status=$?
    [ "$status" != 124 ] || printf 'FAILED: the tests did not finish in time\n'
    return "$status"
}

step counting scripts/tally-test.sh
step formatting cargo fmt --all --check
step dependencies cargo deny --locked check --hide-inclusion-graph bans licenses sources
advisories
export RUSTC_WORKSPACE_WRAPPER=$PWD/scripts/linted.sh
if ! step "build and lints" build; then
    # Test what builds.
    unset RUSTC_WORKSPACE_WRAPPER
    step build build
fi
tests
test_status=$?
retried=0
# 101: cargo ran all tests, and some failed.
if [ "$test_status" = 101 ]; then
    if retry "$log" "$retries_end" "$clock_end"; then retried=$(failed_flows "$log" | wc -l); fi
fi

strict=no
[ "${CI:-}" = true ] && [ "$(id -u)" = 0 ] && strict=yes
tally "$log" "$test_status" "${#broken[@]}" "$strict" scripts/allowed-skips.txt "$retried"
