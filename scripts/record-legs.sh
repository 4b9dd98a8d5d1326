#!/usr/bin/env bash
# Records the legs of a curve for crates/schedule/tests/replay.rs: record-legs.sh NAME PASSES [ARGUMENT...]
# Arguments go to `thru curve`, such as `127.0.0.1 --spin --pin 1,0`; THRU names the program (a release build),
# LEGS the folder, STATE what the first line says of the host, such as "a build runs". With MINUTES, a few more passes
# follow each minute for so long.
# Every second size is kept. The file has the sizes, then a line for each pass with INDEX:NANOSECONDS of each leg in
# the order in which they were measured.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/lib.sh
. scripts/lib.sh

[ $# -ge 3 ] || die "usage: scripts/record-legs.sh NAME PASSES ARGUMENT..." "such as: loopback-spinning 250 127.0.0.1 --spin"
have jq || die "jq is missing" "run: $(apt_command jq)"
name=$1 passes=$2
shift 2
thru=${THRU:-${CARGO_TARGET_DIR:-target}/release/thru}
legs=${LEGS:-crates/schedule/testdata/legs}
minutes=${MINUTES:-0}
# Passes of each later minute.
later=8
document=$(mktemp)
trap 'rm -f "$document"' EXIT

# Measures $1 passes and prints the sizes, then a line for each pass. With a target that no size reaches, all sizes take
# part in all passes. Exit code 8, low trust, is expected of a disturbed host.
record() {
    "$thru" curve "${@:2}" --target 0.01% --trials "$1" --time 500us --no-ceiling --no-store --quiet --json "$document" ||
        [ $? = 8 ] || exit 1
    jq -r '
        [.outcomes[] | {block: .spec.block, trials}] | sort_by(.block)
        | [to_entries[] | select(.key % 2 == 0) | .value] as $kept
        | ([$kept[].block | tostring] | join(" ")),
          ([$kept | to_entries[] | .key as $index | .value.trials[] | select(.value)
            | {pass, position, leg: "\($index):\(.value | round)"}]
           | group_by(.pass)[] | sort_by(.position) | map(.leg) | join(" "))' "$document"
}

{
    echo "# thru curve $*; $(uname -sr), $(nproc) cores, $(date -u +%F); legs of 0.5 ms${STATE:+; $STATE}"
    [ "$minutes" = 0 ] || echo "# $passes passes, then $later a minute for $minutes minutes"
    record "$passes" "$@"
    begun=$SECONDS
    for ((minute = 1; minute <= minutes; minute++)); do
        wait=$((begun + 60 * minute - SECONDS))
        [ "$wait" -le 0 ] || sleep "$wait"
        record "$later" "$@" | tail -n +2
    done
} | gzip -9n >"$legs/$name.txt.gz"
say "$legs/$name.txt.gz: $passes passes$([ "$minutes" = 0 ] || echo ", then $later a minute for $minutes minutes")"
