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

# look TARGET TEST OWN CLOCK LOG: runs it alone, its output to the end of LOG.
look() {
    within "$3" "$4" cargo test --workspace --locked --test "$1" -- --exact "$2" --show-output </dev/null >"$5.look" 2>&1
    local status=$?
    cat "$5.look" >>"$5"
    [ "$status" = 0 ] && grep -qxF "test $2 ... ok" "$5.look"
}

# second_look LOG OWN CLOCK: runs them again, each once the machine is calm, until own time is OWN or SECONDS is CLOCK (clock.sh), and says
# how they ended; their output goes to LOG.again. A look of whose time a twentieth was stolen shows no defect: up to two more follow.
# Succeeds if all of them passed.
second_look() {
    local log=$1 end=$2 clock=$3 target test broken=0 flows looks from taken
    flows=$(failed_flows "$log") || return 1
    : >"$log.again"
    while read -r target test; do
        for looks in 1 2 3; do
            until_calm "$clock"
            if [ "$clock" -le "$SECONDS" ] || [ "$end" -le "$(own)" ]; then
                printf 'NO TIME FOR A SECOND LOOK: %s of %s\n' "$test" "$target"
                broken=1
                break
            fi
            from=$(now)
            if look "$target" "$test" "$end" "$clock" "$log.again"; then
                printf 'PASSED AT THE SECOND LOOK: %s of %s\n' "$test" "$target"
                break
            fi
            taken=$(share "$from" "$(now)")
            printf 'FAILED AGAIN: %s of %s (%d %% of the time was stolen)\n' "$test" "$target" "$taken"
            if [ "$looks" = 3 ] || [ "$taken" -lt 5 ]; then
                sed -n "/^---- $test stdout/,/^failures:/p" "$log.again.look"
                broken=1
                break
            fi
        done
    done <<<"$flows"
    return "$broken"
}
