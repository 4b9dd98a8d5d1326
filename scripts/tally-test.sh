#!/usr/bin/env bash
# Tests of tally.sh and clock.sh: the counts, what the closing line says of each kind of failure, and the machine's own time.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
# shellcheck source=scripts/tally.sh
. scripts/tally.sh
# shellcheck source=scripts/clock.sh
. scripts/clock.sh

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
wrong=0

# expect NAME LAST_LINE EXIT_CODE -- ARGUMENTS OF tally
expect() {
    local name=$1 line=$2 code=$3 got_line got_code
    shift 4
    got_line=$(tally "$@" 2>&1 | tail -n 1)
    tally "$@" >/dev/null 2>&1
    got_code=$?
    if [ "$got_line" != "$line" ] || [ "$got_code" != "$code" ]; then
        printf '%s: got "%s" and code %s, expected "%s" and code %s\n' "$name" "$got_line" "$got_code" "$line" "$code"
        wrong=1
    fi
}

# same NAME GOT EXPECTED
same() { [ "$2" = "$3" ] || { printf '%s: got "%s", expected "%s"\n' "$1" "$2" "$3" && wrong=1; }; }

good="$dir/good" skips="$dir/skips" bad="$dir/bad" again="$dir/again" documents="$dir/documents" none="$dir/none" list="$dir/list"
cat >"$good" <<'END'
<testsuites name="nextest-run" tests="3" failures="0" errors="0">
    <testsuite name="throughline-model" tests="3" disabled="0" errors="0" failures="0">
        <testcase name="a" classname="throughline-model" time="0.004">
            <system-out>running 1 test
says &lt;failure type=&quot;x&quot;&gt; itself
</system-out>
            <system-err></system-err>
        </testcase>
        <testcase name="b" classname="throughline-model" time="0.004"/>
        <testcase name="c" classname="throughline-model" time="0.004">
        </testcase>
    </testsuite>
</testsuites>
END
cat >"$skips" <<'END'
        <testcase name="a" classname="x" time="0.004">
            <system-out>test a ... SKIPPED: a: no namespaces &amp; no &apos;ip&apos;
</system-out>
        </testcase>
        <testcase name="b" classname="x" time="0.004">
            <system-err>SKIPPED: b: needs root</system-err>
        </testcase>
        <testcase name="c" classname="x" time="0.004">
            <system-err>SKIPPED: b: needs root</system-err>
        </testcase>
        <testcase name="d" classname="x" time="0.004"/>
END
cat >"$bad" <<'END'
        <testcase name="a" classname="x" time="0.004">
            <failure message="thread panicked" type="test failure with exit code 101">thread panicked</failure>
            <rerunFailure timestamp="1" time="0.1" type="test failure with exit code 101">
            </rerunFailure>
        </testcase>
        <testcase name="b" classname="x" time="0.004">
            <failure type="test timeout"/>
        </testcase>
        <testcase name="c" classname="x" time="0.004"/>
END
cat >"$again" <<'END'
        <testcase name="slow::a" classname="x" time="0.004">
            <flakyFailure timestamp="1" time="0.1" type="test failure with exit code 101">
            </flakyFailure>
            <flakyFailure timestamp="1" time="0.1" type="test failure with exit code 101">
            </flakyFailure>
        </testcase>
        <testcase name="b" classname="x" time="0.004"/>
END
cat >"$documents" <<'END'
test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s
END
: >"$none"
printf '# skips\n\nno namespaces  # the kernel of this runner has none\nneeds root\n' >"$list"

expect "all good" "6 passed, 0 failed, 8 skipped" 0 -- "$good" "$documents" 7 0 yes "$list"
expect "nothing skipped" "3 passed, 0 failed" 0 -- "$good" "$none" 0 0 yes "$list"
expect "a check failed" "3 passed, 1 failed" 1 -- "$good" "$none" 0 1 no "$list"
expect "tests failed" "1 passed, 2 failed" 1 -- "$bad" "$none" 0 0 no "$list"
expect "a retry" "2 passed, 0 failed, 1 retried" 0 -- "$again" "$none" 0 0 no "$list"
same "the retried test" "$(tally "$again" "$none" 0 0 no "$list" | head -n 1)" "PASSED ON RETRY: slow::a"
expect "a retry does not fix a failed check" "2 passed, 1 failed, 1 retried" 1 -- "$again" "$none" 0 1 no "$list"
expect "no report" "0 passed, 1 failed" 1 -- "$dir/missing" "$none" 0 1 no "$list"
expect "no test at all" "0 passed, 0 failed" 1 -- "$none" "$none" 0 0 no "$list"
expect "skips are shown, each once" "2 passed, 0 failed, 2 skipped" 0 -- "$skips" "$none" 0 0 no "$list"
same "a skip" "$(tally "$skips" "$none" 0 0 no "$list" | head -n 1)" "SKIPPED: a: no namespaces & no 'ip'"
# "needs root" has no reason in the list, so it is not allowed.
expect "skips must be allowed" "2 passed, 1 failed, 1 skipped" 1 -- "$skips" "$none" 0 0 yes "$list"
expect "no list allows nothing" "2 passed, 2 failed" 1 -- "$skips" "$none" 0 0 yes "$dir/nowhere"

# 100 ticks a second, two cores: 400 ticks were stolen, 2 s of each core.
before="cpu  100 0 100 600 0 0 0 200 0 0" after="cpu  200 0 200 1200 0 0 0 600 0 0"
# From here on no time passes.
unset SECONDS
SECONDS=50
getconf() { echo 100; }
STAT=$dir/stat
printf '%s\ncpu0 1 0\ncpu1 1 0\n' "$before" >"$STAT"
stolen_before=$(stolen)
same "nothing is stolen yet" "$(own)" 50
printf '%s\ncpu0 1 0\ncpu1 1 0\n' "$after" >"$STAT"
same "stolen time is not own time" "$(own)" 48
within 110 110 sh -c 'exit 3'
same "a command's own exit code" $? 3
within 48 110 sleep 60
same "own time is over" $? 124
within 48 110 sh -c 'trap "exit 5" TERM; sleep 60 & wait'
same "own time is over for a command that ends in order" $? 124
within 110 50 sleep 60
same "wall time is over" $? 124
within "$FOREVER" "$FOREVER" sh -c 'exit 4'
same "no limit" $? 4
exit "$wrong"
