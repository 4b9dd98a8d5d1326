#!/usr/bin/env bash
# Coverage-guided tests (fuzz/): `fuzz.sh [SECONDS [TARGET...]]`, 60 s for each of all targets by default. As many run at once as there are
# cores. A target begins with the inputs in fuzz/corpus and with those that earlier runs kept in target/fuzz/corpus, which reach something
# new. Prints for each target how many inputs ran, how many edges of our crates (scripts/instrumented.sh) all of them reach, and how many of
# these this run found. Fails on an input that a target does not survive, with its file and the command that runs it again.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/lib.sh
. scripts/lib.sh

# Longest input, bytes; most time for one, s; most memory, MB.
LONGEST=4096 SLOWEST=10 MEMORY=2048

# The source that knows the words of the target $1, for formats of text.
sources() {
    case $1 in
        fleet) echo crates/fleet/src/sources crates/plan/src/fleet ;;
        frames | limits) echo crates/protocol/src crates/model/src crates/options/src ;;
        import) echo crates/import/src/formats ;;
        inventory) echo crates/host/src/inventory ;;
        plan | spec) echo crates/options/src crates/plan/src/plans ;;
        rules) echo crates/stacks/src/rules.rs crates/options/src/stack_rule.rs ;;
        texts) echo crates/options/src/units.rs crates/options/src/values.rs ;;
        topology) echo crates/plan/src/topology crates/lab/src/topology ;;
        peer_*) echo "crates/peer-wire/src/${1#peer_}"* ;;
    esac
}

# A dictionary of libFuzzer for the target $1: short literals and names of fields.
dictionary() {
    local -a files
    # An empty file is refused.
    echo "# short literals and names of fields of $1"
    read -ra files < <(sources "$1") || return 0
    grep -rhoE '"[][A-Za-z0-9_.,:()/%= -]{2,32}"|^ *(pub )?[a-z_0-9]+:' "${files[@]}" | sed -E 's/^ *(pub )?([a-z_0-9]+):$/"\2"/' | sort -u
}

# The value of a statistic that libFuzzer prints at the end of the log $1.
statistic() { sed -n "s/^stat::$2: *//p" "$1" | tail -n 1; }

# The edges in the last line of the log $1 that matches $2.
edges() { grep -E "$2" "$1" | sed -n 's/.* cov: \([0-9]*\).*/\1/p' | tail -n 1; }

# run_target TARGET SECONDS: one target, with one line of result.
run_target() {
    local target=$1 log=target/fuzz/$1.log artifacts=target/fuzz/artifacts/$1 known reached
    mkdir -p "target/fuzz/corpus/$target" target/fuzz/seeds "$artifacts"
    tar -xzf "fuzz/corpus/$target.tar.gz" -C target/fuzz/seeds
    dictionary "$target" >"target/fuzz/$target.dict"
    # libFuzzer's own output says more than is read here.
    if ! THRU_FUZZ_WORDS=target/fuzz/$target.dict "$programs/$target" -max_total_time="$2" -max_len=$LONGEST -timeout=$SLOWEST \
        -rss_limit_mb=$MEMORY -print_final_stats=1 -dict="target/fuzz/$target.dict" -artifact_prefix="$artifacts/" \
        "target/fuzz/corpus/$target" "target/fuzz/seeds/$target" >"$log" 2>&1; then
        printf '%-14s FAILED\n' "$target"
        grep -m 1 -A 1 'panicked at' "$log" || tail -n 3 "$log"
        sed -n 's/.*Test unit written to /input: /p' "$log"
        sed -n "s/.*Test unit written to \(.*\)/again: cargo fuzz run --release --sanitizer none $target \1/p" "$log"
        return 1
    fi
    known=$(edges "$log" 'INITED')
    reached=$(edges "$log" ' cov: ')
    printf '%-14s %11s inputs, %6s edges, %5s new\n' "$target" "$(statistic "$log" number_of_executed_units)" "${reached:-0}" \
        "$((${reached:-0} - ${known:-0}))"
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
export CARGO_TARGET_DIR=$PWD/target/fuzz/build RUSTC_WRAPPER=$PWD/scripts/instrumented.sh
programs=$CARGO_TARGET_DIR/$host/release
# Without a sanitizer it works with every toolchain. Safe Rust needs none; overflows are checked (fuzz/Cargo.toml).
say "building the targets with instrumentation (the first time takes minutes)"
# Each program is linked with the whole of our code, so only those that run are built.
if [ ${#targets[@]} -eq ${#all[@]} ]; then
    cargo fuzz build --release --sanitizer none --target "$host"
else
    for target in "${targets[@]}"; do cargo fuzz build --release --sanitizer none --target "$host" "$target"; done
fi

say "$seconds s for each of ${#targets[@]} targets, $(nproc) at once"
export -f run_target sources dictionary statistic edges
export programs LONGEST SLOWEST MEMORY
# shellcheck disable=SC2016 # the inner shell expands its arguments
printf '%s\n' "${targets[@]}" | xargs -P "$(nproc)" -I '{}' bash -c 'run_target "$1" "$2"' run_target '{}' "$seconds" ||
    die "a target did not survive an input"
