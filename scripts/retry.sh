# Retries of failed flow tests. Sourced by scripts/test.sh; scripts/tally-test.sh tests it.
#
# A flow test (an integration test file, tests/*.rs) measures on the machine that runs the tests, and a virtual machine may be
# descheduled for a moment. A failed flow test runs once more, alone, and both results are printed: a busy moment passes, a defect
# fails again. Unit tests measure nothing and are not retried.
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

# run_alone TARGET TEST OWN CLOCK LOG: runs one test alone and appends its output to LOG.
run_alone() {
    within "$3" "$4" cargo test --workspace --locked --test "$1" -- --exact "$2" --show-output </dev/null >"$5.last" 2>&1
    local status=$?
    cat "$5.last" >>"$5"
    [ "$status" = 0 ] && grep -qxF "test $2 ... ok" "$5.last"
}

# retry LOG OWN CLOCK: runs the failed flow tests again, each once the machine is quiet, until own time is OWN or SECONDS is CLOCK
# (clock.sh), and prints the results; the output goes to LOG.retry. If at least 5 % of a retry's time was stolen, its failure
# does not show a defect, and up to two more retries follow. Succeeds if all of them passed.
retry() {
    local log=$1 end=$2 clock=$3 target test broken=0 flows attempt from taken
    flows=$(failed_flows "$log") || return 1
    : >"$log.retry"
    while read -r target test; do
        for attempt in 1 2 3; do
            until_quiet "$clock"
            if [ "$clock" -le "$SECONDS" ] || [ "$end" -le "$(own)" ]; then
                printf 'NO TIME FOR A RETRY: %s of %s\n' "$test" "$target"
                broken=1
                break
            fi
            from=$(now)
            if run_alone "$target" "$test" "$end" "$clock" "$log.retry"; then
                printf 'PASSED ON RETRY: %s of %s\n' "$test" "$target"
                break
            fi
            taken=$(share "$from" "$(now)")
            printf 'FAILED ON RETRY: %s of %s (%d %% of the time was stolen)\n' "$test" "$target" "$taken"
            if [ "$attempt" = 3 ] || [ "$taken" -lt 5 ]; then
                sed -n "/^---- $test stdout/,/^failures:/p" "$log.retry.last"
                broken=1
                break
            fi
        done
    done <<<"$flows"
    return "$broken"
}
