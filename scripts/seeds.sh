#!/usr/bin/env bash
# Shortened versions of the five published experiments (plans/README.md), each in a lab on this machine, with one report:
# `seeds.sh [FOLDER]`. THRU names the program; without it, it is built.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/lib.sh
. scripts/lib.sh

[ "$(id -u)" = 0 ] || die "labs need root" "run: sudo make seeds"
out=$(realpath -m "${1:-seeds-report}")
if [ -z "${THRU:-}" ]; then
    scripts/setup.sh build
    find_rust
    say "building thru (release)"
    cargo build --release --locked -p throughline
    THRU=${CARGO_TARGET_DIR:-target}/release/thru
fi
mkdir -p "$out"
export THRU_STORE=$out/seeds.db
rm -f "$THRU_STORE"*

runs=()
# seed PLAN [VAR=VALUE...]: runs a plan. Exit code 8 (low trust) is accepted; the report shows it.
seed() {
    local plan=$1 code=0 vars=() started=$SECONDS
    shift
    for var in "$@"; do vars+=(--var "$var"); done
    "$THRU" run "plans/$plan.toml" --lab --quiet --json "$out/$plan.json" "${vars[@]}" || code=$?
    case $code in
    0 | 8) say "$plan: $((SECONDS - started)) s" ;;
    *) die "$plan ended with exit code $code" ;;
    esac
    runs+=("$plan")
}

seed 1998-socket-sizes cell=250ms runs=2 messages=8192,65534,65535,65536,131070,1048576
seed 1998-socket-sizes-time cells=250ms,1500ms runs=3
seed 1998-socket-sizes-modes sizes=1KiB,12800,64KiB,1MiB runs=3
seed 1998-socket-sizes-stalls cell=2s
seed 2002-gigabit windows=16KiB,64KiB,256KiB,1MiB cell=400ms
seed 2002-gigabit-countries cell=2s runs=1 segments=4430 hosts=finland,norway,switzerland
seed 2002-gigabit-day
seed 2003-land-speed cell=6s mtus=9000 queues=10000 windows=auto
seed 2003-land-speed-rapid blocks=60 processes=1,4
seed 2005-gigabit-ethernet to=128KiB perturbation=0 trial=3ms runs=3
seed 2005-gigabit-ethernet-mtu
seed 2012-10gbe cell=250ms runs=2 queues=10000
seed 2012-10gbe-curves to=1MiB perturbation=0 trial=3ms runs=3 queues=10000
seed 2012-10gbe-transfer runs=3
seed 2012-10gbe-switch to=128KiB perturbation=0 trial=3ms runs=3

for form in html md; do "$THRU" report "${runs[@]}" -o "$out/seeds.$form"; done
say "finished in $SECONDS s"
