#!/usr/bin/env bash
# Tests of tally.sh: what it counts, and that each kind of failure shows in its exit code.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 1
# shellcheck source=scripts/tally.sh
. scripts/tally.sh

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
expect "a binary crashed" "43 passed, 1 failed, 1 skipped" 1 -- "$good" 101 0 no "$list"
expect "nothing was built" "0 passed, 1 failed" 1 -- "$empty" 101 0 no "$list"
expect "no test at all" "0 passed, 0 failed" 1 -- "$empty" 0 0 no "$list"
expect "skips are shown" "3 passed, 0 failed, 2 skipped" 0 -- "$skips" 0 0 no "$list"
# "needs root" stands in the list without a reason, so it is not allowed.
expect "skips must be allowed" "3 passed, 1 failed, 1 skipped" 1 -- "$skips" 0 0 yes "$list"
expect "no list allows nothing" "3 passed, 2 failed" 1 -- "$skips" 0 0 yes "$dir/none"

shown=$(printf 'successes:\n\n---- a stdout ----\nnoise\n\nsuccesses:\n    a\n\ntest result: ok.\nmore\n' | without_output)
if [ "$shown" != $'test result: ok.\nmore' ]; then
    printf 'without_output: got "%s"\n' "$shown"
    wrong=1
fi
exit "$wrong"
