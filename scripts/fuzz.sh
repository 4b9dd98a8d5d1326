#!/usr/bin/env bash
# Coverage-guided tests (fuzz/): `fuzz.sh [SECONDS [TARGET...]]`, 60 s for each of all targets by default. As many run at once as there are
# cores. Inputs that reach something new are kept in target/fuzz/corpus/ for the next run; those in fuzz/corpus/ are where it begins.
# Prints for each target how many inputs ran, how many edges of the code all of them reach, and how many of these this run found. Fails on
# an input that a target does not survive, with its file and the command that runs it again.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/lib.sh
. scripts/lib.sh

# Longest input, bytes; most time for one, s; most memory, MB.
LONGEST=4096 SLOWEST=10 MEMORY=2048

# The value of a statistic that libFuzzer prints at the end of the log $1.
statistic() { sed -n "s/^stat::$2: *//p" "$1" | tail -n 1; }

# The edges in the last line of the log $1 that matches $2.
edges() { grep -E "$2" "$1" | sed -n 's/.* cov: \([0-9]*\).*/\1/p' | tail -n 1; }

# run_target TARGET SECONDS: one target, with one line of result.
run_target() {
    local target=$1 seconds=$2 log=target/fuzz/$1.log artifacts=target/fuzz/artifacts/$1
    local known reached
    mkdir -p "target/fuzz/corpus/$target" "$artifacts"
    # libFuzzer's own output says more than is read here.
    if ! "$programs/$target" -max_total_time="$seconds" -max_len=$LONGEST -timeout=$SLOWEST -rss_limit_mb=$MEMORY \
        -print_final_stats=1 -artifact_prefix="$artifacts/" "target/fuzz/corpus/$target" "fuzz/corpus/$target" >"$log" 2>&1; then
        printf '%-14s FAILED\n' "$target"
        grep -m 1 -A 1 'panicked at' "$log" || tail -n 3 "$log"
        sed -n 's/.*Test unit written to /input: /p' "$log"
        sed -n "s/.*Test unit written to \(.*\)/again: cargo fuzz run --release --sanitizer none $target \1/p" "$log"
        return 1
    fi
    known=$(edges "$log" 'INITED')
    reached=$(edges "$log" ' cov: ')
    printf '%-14s %11s inputs, %6s edges, %5s new\n' "$target" "$(statistic "$log" number_of_executed_units)" \
        "${reached:-0}" "$((${reached:-0} - ${known:-0}))"
}

seconds=${1:-60}
[[ $seconds =~ ^[0-9]+$ ]] || die "usage: scripts/fuzz.sh [SECONDS [TARGET...]]"
[ $# -eq 0 ] || shift
mapfile -t all < <(cd fuzz/fuzz_targets && printf '%s\n' *.rs | sed 's/\.rs$//')
targets=("$@")
[ $# -gt 0 ] || targets=("${all[@]}")
for target in "${targets[@]}"; do
    [ -f "fuzz/fuzz_targets/$target.rs" ] || die "no target is called $target" "targets: ${all[*]}"
done

scripts/setup.sh fuzz
find_rust || exit 1
find_tools
host=$(rustc -vV | sed -n 's/^host: //p')
export CARGO_TARGET_DIR=$PWD/target/fuzzing
programs=$CARGO_TARGET_DIR/$host/release
# Without a sanitizer it works with every toolchain. Safe Rust needs none; overflows are checked (fuzz/Cargo.toml).
say "building the targets with instrumentation (the first time takes minutes)"
cargo fuzz build --release --sanitizer none --target "$host"

mkdir -p target/fuzz
say "$seconds s for each of ${#targets[@]} targets, $(nproc) at once"
export -f run_target statistic edges
export programs LONGEST SLOWEST MEMORY
# shellcheck disable=SC2016 # the inner shell expands its arguments
printf '%s\n' "${targets[@]}" | xargs -P "$(nproc)" -I '{}' bash -c 'run_target "$1" "$2"' run_target '{}' "$seconds" ||
    die "a target did not survive an input"
