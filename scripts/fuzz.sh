#!/usr/bin/env bash
# Coverage-guided tests (fuzz/): `fuzz.sh [--until-quiet] [SECONDS [TARGET...]]`, 60 s for each of all targets by default. As many run at
# once as there are cores. With --until-quiet a target runs until SECONDS of its processor time bring no new edge in a line of ours.
# Inputs that reach something new are kept in target/fuzz/corpus/ for the next run; those in fuzz/corpus/ are where it begins, and those
# that scripts/fuzz_seeds makes of tests, the manual, sources and the schemas.
# Prints for each target how many inputs ran, how many edges of our crates (scripts/instrumented.sh) all of them reach, how many of these
# this run found, how many of those are in lines of ours, its processor time, and when in it the last of these was new. The others are in
# generic code of libraries and in code of derive macros, which is compiled for each of our types: a fault in JSON, at each field of each
# message. Fails on an input that a target does not survive, with its file and the command that runs it again.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/lib.sh
. scripts/lib.sh

# Longest input, bytes; most time for one, s; most memory, MB.
LONGEST=4096 SLOWEST=10 MEMORY=2048

# The source that knows the words of the target $1, for formats of text.
sources() {
    case $1 in
        fleet) echo crates/session/src/fleet ;;
        frames | limits) echo crates/control/src/proto crates/model/src ;;
        import) echo crates/import/src/formats ;;
        inventory) echo crates/host/src/inventory ;;
        plan | spec) echo crates/session/src/draft crates/session/src/plan ;;
        rules) echo crates/stacks/src/rules.rs crates/model/src/stack_rule.rs ;;
        texts) echo crates/model/src/units.rs crates/session/src/values.rs ;;
        topology) echo crates/session/src/topology crates/lab/src/topology ;;
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

# own_edges PID PROGRAM: how many of the new edges in a log on standard input are in lines that somebody wrote in this repository: not in
# code of a library that was inlined there, in what a derive macro made, which has the line of the macro or one of the declaration, or in
# code without a line, which is the compiler's.
own_edges() {
    local base
    base=$(sed -n "s|^\([0-9a-f]*\)-.* 00000000 .*$2\$|\1|p" "/proc/$1/maps" 2>/dev/null | head -n 1)
    # Not yet started, or over.
    [ -n "$base" ] || { echo 0 && return; }
    sed -n 's/.*NEW_PC: 0x\([0-9a-f]*\).*/\1/p' | while read -r at; do printf '%x\n' $((16#$at - 16#$base)); done |
        addr2line -a -i -e "$2" |
        awk -v root="$PWD/" '
            function written(file, line, text, at, declared) {
                if (!(file in known)) for (at = 1; (getline text < file) > 0; at++) {
                    if (text ~ /^ *(pub(\([a-z]+\))? )?(struct|enum) [^;]*\{$/) declared = 1
                    if (declared || text ~ /derive\(/) derived[file, at] = 1
                    if (text ~ /^ *\}$/) declared = 0
                }
                known[file]
                return line > 0 && !((file, line) in derived)
            }
            /^0x/ { first = 1; next }
            first { if (index($0, root) == 1) { split($0, place, /[: ]/); own += written(place[1], place[2] + 0) }; first = 0 }
            END { print own + 0 }'
}

# watch_target PID LOG SECONDS PROGRAM: ends the process when so much processor time brought no new edge in a line of ours; without SECONDS
# it only watches. Keeps in LOG.times the time, s, at which the last of them was new, the time until now, and their number.
watch_target() {
    local now last=0 own=0 read=0 all new
    while now=$(ps -o cputimes= -p "$1"); do
        all=$(wc -l <"$2")
        new=$(sed -n "$((read + 1)),${all}p" "$2" | own_edges "$1" "$4")
        read=$all
        [ "$new" -eq 0 ] || own=$((own + new)) last=$now
        printf '%d %d %d\n' "$last" "$now" "$own" >"$2.times"
        # It prints its figures and ends with code 0.
        [ -z "$3" ] || [ $((now - last)) -lt "$3" ] || kill -USR1 "$1"
        sleep 1
    done
}

# run_target TARGET SECONDS [until-quiet]: one target, with one line of result.
run_target() {
    local target=$1 seconds=$2 log=target/fuzz/$1.log artifacts=target/fuzz/artifacts/$1
    local fuzzer watcher known reached last total own limit=$2 quiet=''
    [ -z "${3:-}" ] || limit=0 quiet=$seconds
    mkdir -p "target/fuzz/corpus/$target" "$artifacts"
    dictionary "$target" >"target/fuzz/$target.dict"
    # libFuzzer's own output says more than is read here.
    THRU_FUZZ_WORDS=target/fuzz/$target.dict "$programs/$target" -max_total_time="$limit" -max_len=$LONGEST -timeout=$SLOWEST \
        -rss_limit_mb=$MEMORY -print_final_stats=1 -print_pcs=1 -dict="target/fuzz/$target.dict" -artifact_prefix="$artifacts/" \
        "target/fuzz/corpus/$target" "fuzz/corpus/$target" "target/fuzz/seeds/$target" >"$log" 2>&1 &
    fuzzer=$!
    watch_target "$fuzzer" "$log" "$quiet" "$programs/$target" &
    watcher=$!
    if ! wait "$fuzzer"; then
        printf '%-14s FAILED\n' "$target"
        grep -m 1 -A 1 'panicked at' "$log" || tail -n 3 "$log"
        sed -n 's/.*Test unit written to /input: /p' "$log"
        sed -n "s/.*Test unit written to \(.*\)/again: cargo fuzz run --release --sanitizer none $target \1/p" "$log"
        return 1
    fi
    wait "$watcher"
    known=$(edges "$log" 'INITED')
    reached=$(edges "$log" ' cov: ')
    read -r last total own <"$log.times"
    printf '%-14s %11s inputs, %6s edges, %5s new; %s of them in our lines, the last after %s of %s s\n' "$target" \
        "$(statistic "$log" number_of_executed_units)" "${reached:-0}" "$((${reached:-0} - ${known:-0}))" "$own" "$last" "$total"
}

quiet=''
[ "${1:-}" != --until-quiet ] || { quiet=until-quiet && shift; }
seconds=${1:-60}
[[ $seconds =~ ^[0-9]+$ ]] || die "usage: scripts/fuzz.sh [--until-quiet] [SECONDS [TARGET...]]"
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
# Without it no edge would be in a line of ours, and every target quiet.
have addr2line || die "missing: addr2line" "run: $(apt_command binutils)"
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

for target in "${targets[@]}"; do
    rm -rf "target/fuzz/seeds/$target"
    mkdir -p "target/fuzz/seeds/$target"
    if python3 -c 'import tomllib' 2>/dev/null; then
        python3 scripts/fuzz_seeds "$target" "target/fuzz/seeds/$target"
    else
        warn "no Python 3.11 or newer: $target begins without the inputs of scripts/fuzz_seeds"
    fi
done
say "$seconds s ${quiet:+without a new edge }for each of ${#targets[@]} targets, $(nproc) at once"
export -f run_target watch_target own_edges sources dictionary statistic edges
export programs LONGEST SLOWEST MEMORY quiet
# shellcheck disable=SC2016 # the inner shell expands its arguments
printf '%s\n' "${targets[@]}" | xargs -P "$(nproc)" -I '{}' bash -c 'run_target "$1" "$2" "$quiet"' run_target '{}' "$seconds" ||
    die "a target did not survive an input"
