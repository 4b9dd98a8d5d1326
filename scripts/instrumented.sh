#!/bin/sh
# As RUSTC_WRAPPER of `cargo fuzz build`: only crates of this repository report the edges that an input reaches. Those of serde_json or
# toml are not ours to test. What our crates make of their generic code (a reader of JSON for our types) still counts.
root=$(CDPATH='' cd -- "$(dirname -- "$0")/.." && pwd -P)
case ${CARGO_MANIFEST_DIR:-}/ in
    "$root"/*) ;;
    *)
        for argument; do
            shift
            case $argument in
                -Cpasses=sancov-module | -Cllvm-args=-sanitizer-coverage-*) ;;
                *) set -- "$@" "$argument" ;;
            esac
        done
        ;;
esac
exec "$@"
