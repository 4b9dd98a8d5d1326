# Counts the results that `cargo test -- --show-output` printed. Sourced by scripts/test.sh; scripts/tally-test.sh tests it.
# shellcheck shell=bash

# Removes the output of passing tests.
without_output() {
    awk '/^successes:$/ { hidden = 1 } /^(failures:|test result:)/ { hidden = 0 } !hidden { print; fflush() }'
}

# allowed LINE LIST: whether a line of LIST (`text  # reason`) is part of the skip LINE.
allowed() {
    local line=$1 entry text
    [ -f "$2" ] || return 1
    while IFS= read -r entry; do
        [[ $entry == \#* || -z $entry ]] && continue
        if [[ $entry != *'  # '?* ]]; then
            printf 'FAILED: %s: no reason given for: %s\n' "$2" "$entry" >&2
            continue
        fi
        text=${entry%%  # *}
        [[ -n $text && $line == *"$text"* ]] && return 0
    done <"$2"
    return 1
}

# tally LOG STATUS BROKEN STRICT LIST [RETRIED]: shows the skips, prints the closing line, and fails if anything failed.
# LOG: output of cargo test; STATUS: its exit code; BROKEN: failed checks; STRICT: whether a skip that LIST does not allow is a
# failure; RETRIED: how many of LOG's failed tests, all of them or none, passed on retry.
tally() {
    local log=$1 status=$2 broken=$3 strict=$4 list=$5 retried=${6:-0}
    local passed failed ignored skipped=0 refused=0 line
    read -r passed failed ignored < <(awk '
        /^test result:/ {
            for (i = 2; i < NF; i++) {
                if ($(i + 1) ~ /^passed/) p += $i
                if ($(i + 1) ~ /^failed/) f += $i
                if ($(i + 1) ~ /^ignored/) g += $i
            }
        }
        END { print p + 0, f + 0, g + 0 }' "$log")
    while IFS= read -r line; do
        if [ "$strict" = yes ] && ! allowed "$line" "$list"; then
            printf 'FAILED: skipped although everything can run: %s\n' "$line"
            refused=$((refused + 1))
        else
            printf '%s\n' "$line"
            skipped=$((skipped + 1))
        fi
    done < <(sed -n 's/^.*\(SKIPPED: .*\)$/\1/p' "$log" | sort)
    # cargo counts a test that skipped as passed.
    passed=$((passed - skipped - refused))
    [ "$passed" -ge 0 ] || passed=0
    if [ "$retried" -gt 0 ]; then
        passed=$((passed + retried)) failed=$((failed - retried)) status=0
    fi
    # A test binary that did not build or crashed has no result line.
    [ "$status" = 0 ] || [ "$failed" -gt 0 ] || failed=1
    failed=$((failed + broken + refused))
    skipped=$((skipped + ignored))
    if [ "$skipped" -gt 0 ]; then
        printf '%d passed, %d failed, %d skipped\n' "$passed" "$failed" "$skipped"
    else
        printf '%d passed, %d failed\n' "$passed" "$failed"
    fi
    # A run without any test is a failure.
    [ "$failed" = 0 ] && [ "$passed" -gt 0 ]
}

# worse STATUS STATUS: returns the worse of two exit codes of cargo test: 101 means that tests failed, others that it did not
# finish.
worse() { if [ "$1" = 0 ] || { [ "$1" = 101 ] && [ "$2" != 0 ]; }; then return "$2"; else return "$1"; fi; }
