#!/usr/bin/env bash
# Everything that takes too long for `make test`, one part after the other, with a closing line for each:
# `test-long.sh [PART...]`, parts as below. The parts' output goes to target/long/.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
# shellcheck source=scripts/lib.sh
. scripts/lib.sh

loom() {
    # Flags for all crates: a folder of its own. Nothing here measures, so that linking may be quick.
    CARGO_TARGET_DIR=target/loom RUSTFLAGS="--cfg loom" \
        cargo test --locked --quiet -p throughline-engine --release --lib ring::models
}

# Only this part needs it.
have_valgrind() {
    have valgrind && return 0
    may_install || return 1
    as_root apt-get update -q && apt_install valgrind libc6-dbg
    have valgrind
} >>"target/long/valgrind.log" 2>&1

# What is left out: the operations of uring, whose memory the kernel writes without a call that valgrind knows; the races of
# watchers, streams and a hostile peer, whose threads spin, while valgrind runs one at a time; guarded and ethtool, which
# have the kernel write beyond their memory on purpose, and ask rustix for the size of a page, which reads the vDSO that
# valgrind hides (SIGSEGV).
memcheck() {
    local -a crates=(engine host lab perf peers) left_out=(
        uring::tests::operations_complete a_watcher_never_reaches streams_cross a_peer_that_writes_anything guarded:: ethtool::
    )
    cargo test --locked --quiet "${crates[@]/#/-pthroughline-}" --lib \
        --config "target.'cfg(unix)'.runner = ['valgrind', '--quiet', '--error-exitcode=99', '--leak-check=no', '--fair-sched=yes']" \
        sys:: -- "${left_out[@]/#/--skip=}"
}

# simulate SECONDS: seeds of the protocol's simulations, a batch after the other; one that fails prints its trace.
simulate() {
    local -i batch=20000 first end=$((SECONDS + $1))
    first=$(($(date +%s) * batch))
    while [ "$SECONDS" -lt "$end" ]; do
        THRU_SEEDS=$first..$((first + batch)) \
            cargo test --locked --quiet -p throughline-protocol --test all -- --nocapture every_run || return 1
        first+=batch
    done
}

# run_part PART
run_part() {
    case $1 in
        # An hour of simulated runs that nobody has seen: each second of the clock has seeds of its own.
        simulation) simulate 3600 ;;
        # Coverage-guided inputs for all that reads bytes from elsewhere.
        fuzz) scripts/fuzz.sh 30 ;;
        # Ten million mutated sessions through each codec of other programs.
        codecs) cargo bench --quiet -p throughline-peer-wire --bench fuzz ;;
        # The error rates of comparisons, of `thru advise` and of `thru why`.
        truth) scripts/truth.sh ;;
        # Shortened versions of the published experiments, in labs.
        seeds) scripts/seeds.sh target/long/seeds-report ;;
        # A hundred kills of each process of a tuning plan lose no trial and leave no setting changed; their rows as one table.
        kills)
            THRU_KILLS=100 cargo nextest run --workspace --locked --show-progress none --success-output final \
                -E 'test(/^kills::/)' </dev/null 2>&1 |
                awk '{ print } /^ *\|/ { sub(/^ */, ""); if (!seen[$0]++) rows = rows $0 "\n" } END { printf "%s", rows }'
            ;;
        # 9.6 kbit/s, and a loss of 35 % in each direction.
        paths)
            THRU_BAD_PATHS=1 cargo nextest run --workspace --locked --show-progress none -E 'test(/^bad_paths::/)' </dev/null
            ;;
        # What `make test` takes a part of: every pattern over every transport with many flows and both IP versions, ten thousand flows,
        # both MPIs, the second reader of workbooks and Parquet files, and more places where recorded outputs are broken.
        whole)
            THRU_LONG=1 cargo nextest run --workspace --locked --show-progress none --success-output final --run-ignored all \
                -E 'package(throughline-program-tests) & test(/^(advise|crowd|fleet|foreign|lake|matrix|mpi|pvm|selftest|sharing|speak_netperf|stacks_path|tune|workbook)::/) + test(/^variants::/)' </dev/null
            ;;
        # Every command that the manual and the help texts print.
        manual)
            cargo nextest run --workspace --locked --show-progress none --success-output final --run-ignored all \
                -E 'test(/^manual::/)' </dev/null
            ;;
        # Thirty-two hosts in namespaces: a slow host, a slow link and an asymmetric pair among 992 pairs.
        mesh)
            THRU_MESH_HOSTS=32 THRU_TRAFFIC_HOSTS=16 cargo nextest run --workspace --locked --show-progress none \
                --success-output final -E 'test(/^fleet::a_slow_host/) + test(/^traffic::a_port/)' </dev/null
            ;;
        # Two thousand simulated hosts on a bus; a hundred kills of agents, bus and coordinator lose no result.
        scale)
            cargo run --quiet --release --locked -p throughline-analysis --example pair_schedule &&
                cargo run --quiet --release --locked -p throughline-report --example matrix_of_hosts &&
                cargo run --quiet --locked -p throughline-scale-tests -- run --hosts 2000 --share 0.0025 --kills 100 \
                    --time-ms 200 --at-once 100
            ;;
        # Agents by srun in a job of a real Slurm of one node.
        slurm) scripts/slurm.sh ;;
        # Two agents under a thousand clients, garbage and kills: an hour of it is `make soak`.
        soak) scripts/soak.sh 600 ;;
        # Every order in which the two ends of a ring in shared memory sleep and wake each other, within loom's limits.
        loom) loom ;;
        # The unit tests of unsafe code, each access to memory checked.
        valgrind) memcheck ;;
        # The program without its optional parts, and the stacks without their loader, with the same lints.
        features)
            RUSTC_WORKSPACE_WRAPPER=$PWD/scripts/linted.sh \
                cargo check -p throughline -p throughline-stacks --no-default-features --locked --target-dir target/long/features
            ;;
        # The files of a release, built twice in different folders.
        release) scripts/release.sh --twice target/long/release ;;
    esac
}

all=(simulation fuzz codecs truth seeds kills paths whole manual mesh scale slurm soak loom valgrind features release)
parts=("$@")
[ $# -gt 0 ] || parts=("${all[@]}")
scripts/setup.sh long || exit 1
find_rust || exit 1
find_tools
mkdir -p target/long
failed=0
for part in "${parts[@]}"; do
    [[ " ${all[*]} " == *" $part "* ]] || die "no part is called $part" "parts: ${all[*]}"
done
closing=()
for part in "${parts[@]}"; do
    say "$part (output goes to target/long/$part.log)"
    started=$SECONDS result=passed
    if [ "$(id -u)" != 0 ] && [[ $part == seeds || $part == kills || $part == paths || $part == whole || $part == manual || $part == mesh || $part == slurm || $part == soak ]]; then
        result="SKIPPED: it needs root"
    elif [ "$part" = valgrind ] && ! have_valgrind; then
        result="SKIPPED: valgrind cannot be installed"
    elif ! run_part "$part" >"target/long/$part.log" 2>&1; then
        result=FAILED failed=1
        tail -n 20 "target/long/$part.log"
    fi
    closing+=("$part: $result, $((SECONDS - started)) s")
done
printf '%s\n' "${closing[@]}"
exit "$failed"
