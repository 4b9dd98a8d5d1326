#!/usr/bin/env bash
# Builds the page of reports from web/ and tests it: types, the same bytes as in web/dist, units, decoding, and in Chromium reports of
# real runs. `web.sh build` only builds it into web/dist. Needs node and npm; without them, or where the packages cannot be fetched,
# it prints a line that starts with `SKIPPED:` (in CI a failure). WEB_THRU is the program that measures, otherwise target/debug/thru.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/lib.sh
. scripts/lib.sh

skip() {
    printf 'SKIPPED: the page: %s\n' "$1"
    # CI has all that it needs.
    [ "${CI:-}" != true ] || exit 1
    exit 0
}

WEB_THRU=$(realpath -m "${WEB_THRU:-${CARGO_TARGET_DIR:-target}/debug/thru}")
export WEB_THRU
{ have node && have npm; } || skip "no node and npm (Debian: $(apt_command nodejs npm))"
cd web
# The packages are those of the list, to the byte; their own scripts do not run.
if ! cmp -s package-lock.json node_modules/.installed; then
    npm ci --ignore-scripts --no-audit --no-fund >/dev/null || skip "npm ci failed: its packages cannot be fetched from here"
    cp package-lock.json node_modules/.installed
fi
if [ "${1:-}" = build ]; then
    node build.mjs
    exit
fi
npx tsc --noEmit
built=$(mktemp -d)
trap 'rm -rf "$built"' EXIT
node build.mjs "$built"
for file in page.js page.css; do
    cmp "$built/$file" "dist/$file" || die "web/dist/$file is not what web/src makes" "run: scripts/web.sh build"
done
node --test --test-reporter=spec test/*.test.mjs
