#!/usr/bin/env bash
# Builds the page of reports from web/ and crates/page-drawing and tests it: types, the same bytes as in web/dist, units, decoding, and in
# Chromium reports of real runs. `web.sh build` only builds it into web/dist. Needs node and npm; without them, or where the packages
# cannot be fetched, it prints a line that starts with `SKIPPED:` (in CI a failure). The drawing needs the target
# wasm32-unknown-unknown; its bytes are compared where the compiler is the one that web/dist/rustc names. WEB_THRU is the program that
# measures, otherwise target/debug/thru.
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
folder=$(realpath -m "${CARGO_TARGET_DIR:-target}/wasm")
{ have node && have npm; } || skip "no node and npm (Debian: $(apt_command nodejs npm))"
cd web
# The packages are those of the list, to the byte; their own scripts do not run.
if ! cmp -s package-lock.json node_modules/.installed; then
    npm ci --ignore-scripts --no-audit --no-fund >/dev/null || skip "npm ci failed: its packages cannot be fetched from here"
    cp package-lock.json node_modules/.installed
fi
# The drawing of figures as WebAssembly, without the paths of this machine; into a file.
compiler=$(rustc --version)
drawing() {
    local flags="--remap-path-prefix=${CARGO_HOME:-$HOME/.cargo}=/cargo --remap-path-prefix=$(realpath ..)=/throughline"
    # In a folder of its own: other builds would wait for this one. A wrapper that lints has no place here.
    env -u RUSTC_WORKSPACE_WRAPPER RUSTFLAGS="$flags" cargo build --quiet --package throughline-page-drawing \
        --profile page --target wasm32-unknown-unknown --target-dir "$folder"
    cp "$folder/wasm32-unknown-unknown/page/page_drawing.wasm" "$1"
}
has_target() { [ -d "$(rustc --print sysroot)/lib/rustlib/wasm32-unknown-unknown" ]; }

if [ "${1:-}" = build ]; then
    node build.mjs
    has_target || die "the target wasm32-unknown-unknown is missing" "run: rustup target add wasm32-unknown-unknown"
    drawing dist/drawing.wasm
    echo "$compiler" >dist/rustc
    exit
fi
npx tsc --noEmit
built=$(mktemp -d)
trap 'rm -rf "$built"' EXIT
node build.mjs "$built"
for file in page.js page.css; do
    cmp "$built/$file" "dist/$file" || die "web/dist/$file is not what web/src makes" "run: scripts/web.sh build"
done
if [ "$(cat dist/rustc)" != "$compiler" ]; then
    echo "SKIPPED: the bytes of web/dist/drawing.wasm: it was built with $(cat dist/rustc), this is $compiler"
elif ! has_target; then
    echo "SKIPPED: the bytes of web/dist/drawing.wasm: no target wasm32-unknown-unknown (rustup target add wasm32-unknown-unknown)"
else
    drawing "$built/drawing.wasm"
    cmp "$built/drawing.wasm" dist/drawing.wasm || die "web/dist/drawing.wasm is not what crates/page-drawing makes" "run: scripts/web.sh build"
fi
node --test --test-reporter=spec test/*.test.mjs
