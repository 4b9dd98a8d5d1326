# A second look at flows that failed. Sourced by scripts/test.sh; scripts/tally-test.sh tests it.
#
# A whole flow (a test file of its own, tests/*.rs) is measured on the machine that the tests run on, and a virtual machine may be
# taken away from it for a moment. A flow that failed runs once more, alone, and both looks are told: a moment passes, a defect does
# not. Unit tests measure nothing; they have no second look.
# shellcheck shell=bash

# failed_flows LOG: each failed test of a test file as `TARGET TEST`. Fails if there is none, or if anything else failed or crashed.
failed_flows() {
    awk '
        / Running / { target = ""; if (/ tests\//) { target = $NF; sub(/.*\//, "", target); sub(/-[0-9a-f]+\)$/, "", target) } }
        /^test .* \.\.\. FAILED$/ { if (target == "") other = 1; else { print target, $2; flows++ } }
        /^test result: FAILED/ { results++; for (i = 2; i < NF; i++) if ($(i + 1) ~ /^failed/) failed += $i }
        /^error: test failed/ { targets++ }
        END { exit other || flows == 0 || failed != flows || targets != results }' "$1"
}

# second_look LOG SECONDS: runs them again, within SECONDS in all, and says how they ended; their output goes to LOG.again.
# Succeeds if all of them passed.
second_look() {
    local log=$1 end=$((SECONDS + $2)) target test broken=0 flows
    flows=$(failed_flows "$log") || return 1
    : >"$log.again"
    while read -r target test; do
        if [ "$end" -le "$SECONDS" ]; then
            printf 'NO TIME FOR A SECOND LOOK: %s of %s\n' "$test" "$target"
            broken=1
        elif timeout --kill-after=10s $((end - SECONDS)) cargo test --workspace --locked \
            --test "$target" -- --exact "$test" --show-output </dev/null >>"$log.again" 2>&1 &&
            grep -qxF "test $test ... ok" "$log.again"; then
            printf 'PASSED AT THE SECOND LOOK: %s of %s\n' "$test" "$target"
        else
            printf 'FAILED AGAIN: %s of %s\n' "$test" "$target"
            sed -n "/^---- $test stdout/,/^failures:/p" "$log.again"
            broken=1
        fi
    done <<<"$flows"
    return "$broken"
}
