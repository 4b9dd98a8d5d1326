# Counts the results in nextest's JUnit report and in the output of the documents' tests. Sourced by scripts/test.sh;
# scripts/tally-test.sh tests it.
# shellcheck shell=bash

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

# results REPORT: passed, failed, and passed on a retry. The report escapes the tests' output, so that `<` begins its own tags only.
results() {
    awk '
        /<testcase / { cases++; bad = again = 0 }
        /<(failure|error)[ >\/]/ { if (!bad) failed++; bad = 1 }
        /<flaky(Failure|Error)[ >\/]/ { if (!again) retried++; again = 1 }
        END { print cases - failed, failed + 0, retried + 0 }' "$1"
}

# retries REPORT: one line for each test that failed and passed later.
retries() {
    awk '
        /<testcase / { name = $0; sub(/.*<testcase name="/, "", name); sub(/".*/, "", name); said = 0 }
        /<flaky(Failure|Error)[ >\/]/ { if (!said) print "PASSED ON RETRY: " name; said = 1 }' "$1"
}

# skips REPORT: each line of the tests' output that says what cannot run here, once.
skips() {
    sed -n 's/^.*\(SKIPPED: .*\)$/\1/p' "$1" |
        sed 's/<\/system-[a-z]*>.*//; s/&lt;/</g; s/&gt;/>/g; s/&quot;/"/g; s/&apos;/'\''/g; s/&amp;/\&/g' | sort -u
}

# tally REPORT DOCUMENTS IGNORED BROKEN STRICT LIST: shows retries and skips, prints the closing line, fails if anything failed.
# REPORT: JUnit, or no file; DOCUMENTS: output of `cargo test --doc`; IGNORED: tests that are not run; BROKEN: failed checks; STRICT:
# whether a skip that LIST does not allow is a failure.
tally() {
    local report=$1 documents=$2 ignored=$3 broken=$4 strict=$5 list=$6
    local passed=0 failed=0 retried=0 skipped=0 refused=0 line of_documents
    if [ -f "$report" ]; then
        read -r passed failed retried < <(results "$report")
        retries "$report"
        while IFS= read -r line; do
            if [ "$strict" = yes ] && ! allowed "$line" "$list"; then
                printf 'FAILED: skipped although everything can run: %s\n' "$line"
                refused=$((refused + 1))
            else
                printf '%s\n' "$line"
                skipped=$((skipped + 1))
            fi
        done < <(skips "$report")
    fi
    # A test that skipped is in the report as passed.
    passed=$((passed - skipped - refused))
    [ "$passed" -ge 0 ] || passed=0
    read -r -a of_documents < <(awk '
        /^test result:/ {
            for (i = 2; i < NF; i++) {
                if ($(i + 1) ~ /^passed/) p += $i
                if ($(i + 1) ~ /^failed/) f += $i
                if ($(i + 1) ~ /^ignored/) g += $i
            }
        }
        END { print p + 0, f + 0, g + 0 }' "$documents")
    passed=$((passed + of_documents[0]))
    failed=$((failed + of_documents[1] + broken + refused))
    skipped=$((skipped + of_documents[2] + ignored))
    printf '%d passed, %d failed' "$passed" "$failed"
    [ "$skipped" = 0 ] || printf ', %d skipped' "$skipped"
    [ "$retried" = 0 ] || printf ', %d retried' "$retried"
    printf '\n'
    # A run without any test is a failure.
    [ "$failed" = 0 ] && [ "$passed" -gt 0 ]
}
