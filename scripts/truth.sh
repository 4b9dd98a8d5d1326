#!/usr/bin/env bash
# Checks error rates against the manual: `truth.sh [PART...]`, parts as below, all without one.
#
# comparisons (10 minutes): 2,000 simulated runs of each scenario with the real stop rule, then 100 comparisons of A with A by the
# real program over loopback (as root in its own network namespace). With a tolerance of 0 every difference counts: about 3 of the
# 100 differ by chance, and more than 10 are a failure. THRU_TRUTH_LIVE=20 runs fewer, 400 more.
#
# matrix (root; 5 minutes): 72 paths whose limit is known, and what `thru why` names. THRU_TRUTH_PATHS=420 is as many as in
# docs/manual/why.md (25 minutes), THRU_TRUTH_SEED draws other paths, and with THRU_TRUTH_FOLDER records stay and a stopped run
# continues.
#
# replay (4 minutes): records legs of curves over loopback, with blocking and with spinning waits, and replays a third of them
# through the real schedule: its intervals must cover the medians of the other two thirds in 90 % of the sizes.
#
# curves (4 minutes; NPtcp if it is installed): how far curves of the same path differ, beside their own intervals. It judges nothing.
#
# THRU_BIN names a program to use instead of building one.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/lib.sh
. scripts/lib.sh

parts=("$@")
[ $# -gt 0 ] || parts=(comparisons matrix replay curves)
for part in "${parts[@]}"; do
    case $part in
        comparisons | matrix | replay | curves) ;;
        *) die "no part is called $part" "parts: comparisons matrix replay curves" ;;
    esac
done
wants() { case " ${parts[*]} " in *" $1 "*) ;; *) return 1 ;; esac; }

scripts/setup.sh build
find_rust
say "building (release)"
[ -n "${THRU_BIN:-}" ] || cargo build --release --locked --quiet -p throughline
thru="${THRU_BIN:-${CARGO_TARGET_DIR:-target}/release/thru}"
dir=$(mktemp -d)
ns="" agent="" host="" inside=()
clean() {
    [ -z "$agent" ] || kill "$agent" 2>/dev/null || true
    [ -z "$ns" ] || ip netns del "$ns" 2>/dev/null || true
    rm -rf "$dir"
}
trap clean EXIT

# An agent over loopback, as root in a network namespace of its own: $host, and what runs a command beside it: "${inside[@]}".
agent_over_loopback() {
    [ -z "$agent" ] || return 0
    if [ "$(id -u)" = 0 ] && ip netns add "thru-truth-$$" 2>/dev/null; then
        ns="thru-truth-$$"
        ip -n "$ns" link set lo up
        inside=(ip netns exec "$ns")
    fi
    "${inside[@]}" "$thru" serve --listen 127.0.0.1:0 2>"$dir/agent.log" &
    agent=$!
    for _ in $(seq 100); do
        host=$(sed -n 's/.*listening on \([^ ]*\).*/\1/p' "$dir/agent.log" | head -n 1)
        [ -z "$host" ] || break
        sleep 0.1
    done
    [ -n "$host" ] || die "the agent did not start" "$(cat "$dir/agent.log")"
}

if wants matrix && [ "$(id -u)" != 0 ]; then
    say "SKIPPED: the matrix of thru why: its labs need root"
elif wants matrix; then
    have iperf3 || die "iperf3 is missing: some paths have its traffic beside the measurement" "apt-get install iperf3"
    cargo build --locked --quiet -p throughline-matrix
    say "${THRU_TRUTH_PATHS:-72} paths with a known limit, and what thru why names"
    "${CARGO_TARGET_DIR:-target}/debug/matrix" run "${THRU_TRUTH_FOLDER:-$dir/matrix}" --check --thru "$thru" \
        --seed "${THRU_TRUTH_SEED:-101}" --paths "${THRU_TRUTH_PATHS:-72}"
fi

if wants replay; then
    agent_over_loopback
    mkdir "$dir/legs"
    say "recording legs on this host"
    for waits in "blocking --wait=blocking" "spinning --spin --pin=1,0"; do
        read -r name flags <<<"$waits"
        # shellcheck disable=SC2086 # several flags
        "${inside[@]}" env LEGS="$dir/legs" THRU="$thru" scripts/record-legs.sh "loopback-$name" 250 "$host" $flags
    done
    say "replaying them"
    printf '| recording | passes | sizes | covered | later | ± | ± own |\n'
    THRU_LEGS="$dir/legs" cargo test --release --locked --quiet -p throughline-schedule --test replay -- --nocapture |
        grep '^|'
fi
if wants curves; then
    agent_over_loopback
    mkdir "$dir/curves"
    "${inside[@]}" scripts/curves.sh "$thru" "$host" "$dir/curves"
fi
wants comparisons || exit 0

live=${THRU_TRUTH_LIVE:-100}
cargo test --release --locked --quiet -p throughline-analysis --test all --no-run

# Simulations take two minutes, a comparison two seconds of a quiet machine.
limit=$((200 + 4 * live))
deadline=$((SECONDS + limit))
say "2,000 simulated runs of each scenario"
printf '| scenario | tolerance | B/A | covered | better | worse | rounds |\n'
THRU_TRUTH_RUNS=2000 timeout 300 cargo test --release --locked --quiet -p throughline-analysis --test all paired:: -- \
    --nocapture --test-threads 1 | grep '^\.*|' | sed 's/^\.*//'

say "2,000 simulated searches of thru advise"
printf '| scenario | noise | found | claimed | false | trials |\n'
THRU_TRUTH_RUNS=2000 timeout 300 cargo test --release --locked --quiet -p throughline-analysis --test all advice:: -- \
    --nocapture --test-threads 1 | grep '^\.*|' | sed 's/^\.*//'

say "$live comparisons of A with A over loopback"
agent_over_loopback
different=0 done=0
for seed in $(seq "$live"); do
    [ "$SECONDS" -lt "$deadline" ] || die "$limit s passed after $done comparisons: use a quieter machine"
    code=0
    "${inside[@]}" timeout 60 "$thru" ab --a "--time 40ms" --b "--time 40ms" --tolerance 0% --pairs 12 --gap 1ms \
        --seed "$seed" --no-store --json "$dir/ab.json" --quiet "$host" || code=$?
    case $code in 0 | 3 | 4) ;; *) die "thru ab ended with code $code" ;; esac
    if grep -Eq '"answer": ?"(better|worse)"' "$dir/ab.json"; then different=$((different + 1)); fi
    done=$((done + 1))
done
say "A called different from A: $different of $done (more than 10 % is a failure)"
[ $((different * 10)) -le "$done" ]
