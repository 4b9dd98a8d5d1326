#!/usr/bin/env bash
# Tests of tally.sh, retry.sh and clock.sh: the counts, the exit code of each kind of failure, which tests are retried, the worse of two
# exit codes, and the machine's own time.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
# shellcheck source=scripts/tally.sh
. scripts/tally.sh
# shellcheck source=scripts/clock.sh
. scripts/clock.sh
# shellcheck source=scripts/retry.sh
. scripts/retry.sh

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

good="$dir/good" skips="$dir/skips" bad="$dir/bad" empty="$dir/empty" list="$dir/list"
cat >"$good" <<'END'
running 3 tests
test a ... ok
test result: ok. 3 passed; 0 failed; 1 ignored; 0 measured; 0 filtered out; finished in 0.00s
test result: ok. 40 passed; 0 failed; 0 ignored; 0 measured; 2 filtered out; finished in 1.00s
END
cat >"$skips" <<'END'
test a ... SKIPPED: a: no namespaces
SKIPPED: b: needs root
test result: ok. 5 passed; 0 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
END
cat >"$bad" <<'END'
test result: FAILED. 5 passed; 2 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
END
: >"$empty"
printf '# skips\n\nno namespaces  # the kernel of this runner has none\nneeds root\n' >"$list"

expect "all good" "43 passed, 0 failed, 1 skipped" 0 -- "$good" 0 0 yes "$list"
expect "a check failed" "43 passed, 1 failed, 1 skipped" 1 -- "$good" 0 1 no "$list"
expect "tests failed" "5 passed, 2 failed" 1 -- "$bad" 101 0 no "$list"
expect "a retry" "7 passed, 0 failed" 0 -- "$bad" 101 0 no "$list" 2
expect "a retry does not fix a failed check" "7 passed, 1 failed" 1 -- "$bad" 101 1 no "$list" 2
expect "a binary crashed" "43 passed, 1 failed, 1 skipped" 1 -- "$good" 101 0 no "$list"
expect "nothing was built" "0 passed, 1 failed" 1 -- "$empty" 101 0 no "$list"
expect "no test at all" "0 passed, 0 failed" 1 -- "$empty" 0 0 no "$list"
expect "skips are shown" "3 passed, 0 failed, 2 skipped" 0 -- "$skips" 0 0 no "$list"
# "needs root" has no reason in the list, so it is not allowed.
expect "skips must be allowed" "3 passed, 1 failed, 1 skipped" 1 -- "$skips" 0 0 yes "$list"
expect "no list allows nothing" "3 passed, 2 failed" 1 -- "$skips" 0 0 yes "$dir/none"

shown=$(printf 'successes:\n\n---- a stdout ----\nnoise\n\nsuccesses:\n    a\n\ntest result: ok.\nmore\n' | without_output)
if [ "$shown" != $'test result: ok.\nmore' ]; then
    printf 'without_output: got "%s"\n' "$shown"
    wrong=1
fi

# flows NAME EXPECTED CODE: which tests of the log on standard input are retried.
flows() {
    local got code
    cat >"$dir/flows"
    got=$(failed_flows "$dir/flows")
    code=$?
    if [ "$got" != "$2" ] || [ "$code" != "$3" ]; then
        printf '%s: got "%s" and code %s, expected "%s" and code %s\n' "$1" "$got" "$code" "$2" "$3"
        wrong=1
    fi
}

flows "flows of two files" $'pairs slow::test\nadvise other' 0 <<'END'
     Running tests/pairs/main.rs (target/debug/deps/pairs-fc64d816b57594b2)
test good ... ok
test slow::test ... FAILED
test result: FAILED. 1 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
error: test failed, to rerun pass `-p throughline-engine --test pairs`
     Running tests/advise.rs (target/debug/deps/advise-828657b65a6394fc)
test other ... FAILED
test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
error: test failed, to rerun pass `-p throughline-program-tests --test advise`
END
flows "a unit test among them" "advise other" 1 <<'END'
     Running unittests src/lib.rs (target/debug/deps/analysis-14be3bea4e5f4414)
test pure ... FAILED
test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
error: test failed, to rerun pass `-p throughline-analysis --lib`
     Running tests/advise.rs (target/debug/deps/advise-828657b65a6394fc)
test other ... FAILED
test result: FAILED. 0 passed; 1 failed; 0 ignored; 0 measured; 0 filtered out; finished in 0.00s
error: test failed, to rerun pass `-p throughline-program-tests --test advise`
END
flows "a crash after a failure" "advise other" 1 <<'END'
     Running tests/advise.rs (target/debug/deps/advise-828657b65a6394fc)
test other ... FAILED
error: test failed, to rerun pass `-p throughline-program-tests --test advise`
END
flows "nothing failed" "" 1 <"$good"

for case in "0 0 0" "0 101 101" "101 0 101" "101 101 101" "101 1 1" "1 101 1" "0 124 124" "124 0 124"; do
    read -r one other expected <<<"$case"
    worse "$one" "$other"
    got=$?
    [ "$got" = "$expected" ] || { printf 'the worse of %s and %s: got %s, expected %s\n' "$one" "$other" "$got" "$expected" && wrong=1; }
done
# same NAME GOT EXPECTED
same() { [ "$2" = "$3" ] || { printf '%s: got "%s", expected "%s"\n' "$1" "$2" "$3" && wrong=1; }; }

# 100 ticks a second, two cores: 400 ticks were stolen, 2 s of each core.
before="cpu  100 0 100 600 0 0 0 200 0 0" after="cpu  200 0 200 1200 0 0 0 600 0 0"
same "a third is stolen" "$(share "$before" "$after")" 33
same "nothing has passed" "$(share "$before" "$before")" 0
# From here on only `sleep` advances the time.
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
within 110 50 sleep 60
same "wall time is over" $? 124
within "$FOREVER" "$FOREVER" sh -c 'exit 4'
same "no limit" $? 4

sleep() { SECONDS=$((SECONDS + $1)); }
until_quiet 110
same "a machine without steal is quiet at once, and the wait is not own time" "$SECONDS $waited $(own)" "53 3 48"
share() { echo 50; }
until_quiet 63
same "the clock ends the wait for a busy machine" "$SECONDS $waited" "63 13"
LONGEST_WAIT=33
until_quiet 200
same "so does the longest wait" "$SECONDS $waited" "83 33"
until_quiet 200
same "which is a total" "$SECONDS $waited" "83 33"

# The result of a test that passes on retry number NEEDED, on a machine of whose time STOLEN percent are stolen.
log=$dir/failed
printf '     Running tests/x.rs (target/debug/deps/x-fc64d816b57594b2)\ntest slow ... FAILED\ntest result: FAILED. 0 passed; 1 failed;\nerror: test failed\n' >"$log"
until_quiet() { :; }
share() { echo "$stolen_share"; }
run_alone() {
    attempts=$((attempts + 1))
    : >"$5.last"
    [ "$attempts" -ge "$needed" ]
}
for case in "1 0 0 1" "2 0 1 1" "2 4 1 1" "3 50 0 3" "4 50 1 3"; do
    read -r needed stolen_share code expected <<<"$case"
    attempts=0
    retry "$log" "$FOREVER" "$FOREVER" >"$dir/said"
    same "retry $needed at $stolen_share % steal" "$? $attempts" "$code $expected"
done
retry "$log" "$FOREVER" 0 >"$dir/said"
same "no time for a retry" "$? $(cat "$dir/said")" "1 NO TIME FOR A RETRY: slow of x"
exit "$wrong"
