#!/usr/bin/env bash
# All checks and all tests, with a closing line `N passed, N failed` (`, N skipped` and `, N retried` may follow).
# A failed check (formatting, spelling, lints, dependencies) counts as one failure. A test that cannot run here prints one line
# that starts with `SKIPPED:`. Where everything can run (CI=true as root) a skip is a failure too, unless
# scripts/allowed-skips.txt lists it with a reason. How tests share the machine is in .config/nextest.toml.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
# shellcheck source=scripts/lib.sh
. scripts/lib.sh
# shellcheck source=scripts/tally.sh
. scripts/tally.sh
# shellcheck source=scripts/clock.sh
. scripts/clock.sh

# CI stops after half an hour of the machine's own time and must print its results by then. The limit in wall time ends runs on a machine
# that is mostly descheduled.
tests_end=$FOREVER clock_end=$FOREVER
[ "${CI:-}" != true ] || tests_end=1730 clock_end=4500

# What the build needs. The rest is installed while it runs.
scripts/setup.sh check || exit 1
find_rust || exit 1
find_tools

target=${CARGO_TARGET_DIR:-target}
mkdir -p "$target"
say "installing what the tests use, beside the build (output at its end)"
set -m # its own process group, so that Ctrl-C ends all of it
scripts/setup.sh test >"$target/setup.log" 2>&1 &
setup=$!
set +m
trap 'kill -- "-$setup" 2>/dev/null' EXIT
# The tests leave no key and no run in the user's home.
XDG_DATA_HOME=$(cd "$target" && pwd)/data
export XDG_DATA_HOME
log=$target/test.log
# nextest keeps its reports here, whatever the target folder is.
report=target/nextest/all/junit.xml
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

# Lints and all that the tests run.
build() { cargo build --workspace --all-targets --locked; }

# The programs, of the same build: cargo gives them the features that they have there because a test is among the targets.
build_programs() { cargo build --workspace --bins --test workspace --locked; }

# What cargo does beside nextest, at the lowest priority: the examples in the documents of the sources.
beside() {
    renice -n 19 "$BASHPID" >/dev/null
    # By their names: with `--doc` cargo ignores that a crate has none, and parses it.
    cargo test --workspace --locked --no-fail-fast -- '.rs - ' 2>&1 &&
        cargo test --locked --quiet -p throughline-model --features schema --lib schema 2>&1 # only this build makes the JSON Schemas
}

# tests: all tests, with four more at once than there are cores. Always the whole workspace: for a part of it, cargo would rebuild much
# with other features.
tests() {
    local beside status beside_status
    THRU_BIN=$(realpath "$target/debug/thru") || return 1
    export THRU_BIN
    say "tests: cargo nextest run --workspace (all output goes to $report)"
    rm -f "$report"
    set -m # its own process group, so that Ctrl-C ends all of it
    beside >"$log.beside" &
    beside=$!
    set +m
    trap 'kill -- "-$beside" 2>/dev/null' EXIT
    within "$tests_end" "$clock_end" cargo nextest run --workspace --locked --profile all \
        --test-threads $(($(nproc) + 4)) --show-progress none </dev/null 2>&1 | tee "$log"
    status=${PIPESTATUS[0]}
    [ "$status" != 124 ] || kill -- "-$beside" 2>/dev/null
    wait "$beside"
    beside_status=$?
    trap - EXIT
    cat "$log.beside"
    [ "$status" != 124 ] || printf 'FAILED: the tests did not finish in time\n'
    if grep -qE 'tests? (was|were) not run' "$log"; then
        broken+=("tests that were not run")
        printf 'FAILED: some tests were not run\n'
    fi
    # The report names the tests that failed. What ended otherwise, or without a report, is one more failure.
    case $status in
        0 | 100) [ -f "$report" ] || broken+=(report) ;;
        *) broken+=(tests) ;;
    esac
    [ "$beside_status" = 0 ] || grep -q '^test result: FAILED' "$log.beside" || broken+=(documents)
}

step counting scripts/tally-test.sh
step formatting cargo fmt --all --check
step spelling typos
export RUSTC_WORKSPACE_WRAPPER=$PWD/scripts/linted.sh
if ! step "build and lints of the programs" build_programs; then
    # Test what builds.
    unset RUSTC_WORKSPACE_WRAPPER
    build_programs
fi
wait "$setup"
status=$?
trap - EXIT
cat "$target/setup.log"
[ "$status" = 0 ] || exit 1
# The page's tests need the programs only and mostly wait, so they run beside the build of the tests.
say "page: scripts/web.sh, beside the build of the tests"
set -m # its own process group, so that Ctrl-C ends all of it
scripts/web.sh >"$target/web.log" 2>&1 &
page=$!
set +m
trap 'kill -- "-$page" 2>/dev/null' EXIT
if ! step "build and lints" build; then
    unset RUSTC_WORKSPACE_WRAPPER
    step build build
fi
step dependencies cargo deny --locked check --hide-inclusion-graph bans licenses sources
advisories
# Not beside the tests, because it measures too.
wait "$page"
status=$?
trap - EXIT
cat "$target/web.log"
if [ "$status" != 0 ]; then
    broken+=(page)
    printf 'FAILED: page\n'
fi
built=$SECONDS
tests
say "checks and build: $built s, tests: $((SECONDS - built)) s"

strict=no
[ "${CI:-}" = true ] && [ "$(id -u)" = 0 ] && strict=yes
ignored=$(sed -n 's/^ *Summary .* \([0-9]*\) skipped.*/\1/p' "$log" | tail -n 1)
tally "$report" "$log.beside" "${ignored:-0}" "${#broken[@]}" "$strict" scripts/allowed-skips.txt
