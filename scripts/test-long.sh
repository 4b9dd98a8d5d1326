#!/usr/bin/env bash
# Everything that takes too long for `make test`, one part after the other, with a closing line for each:
# `test-long.sh [PART...]`, parts as below. The parts' output goes to target/long/.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
# shellcheck source=scripts/lib.sh
. scripts/lib.sh

# run_part PART
run_part() {
    case $1 in
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
        # Two agents under a thousand clients, garbage and kills: an hour of it is `make soak`.
        soak) scripts/soak.sh 600 ;;
    esac
}

parts=("$@")
[ $# -gt 0 ] || parts=(fuzz codecs truth seeds kills soak)
scripts/setup.sh test || exit 1
find_rust || exit 1
find_tools
mkdir -p target/long
failed=0
for part in "${parts[@]}"; do
    case $part in
        fuzz | codecs | truth | seeds | kills | soak) ;;
        *) die "no part is called $part" "parts: fuzz codecs truth seeds kills soak" ;;
    esac
done
closing=()
for part in "${parts[@]}"; do
    say "$part (output goes to target/long/$part.log)"
    started=$SECONDS result=passed
    if [ "$(id -u)" != 0 ] && [[ $part == seeds || $part == kills || $part == soak ]]; then
        result="SKIPPED: it needs root"
    elif ! run_part "$part" >"target/long/$part.log" 2>&1; then
        result=FAILED failed=1
        tail -n 20 "target/long/$part.log"
    fi
    closing+=("$part: $result, $((SECONDS - started)) s")
done
printf '%s\n' "${closing[@]}"
exit "$failed"
