#!/usr/bin/env bash
# The published experiments (plans/README.md) and the small plans, each in a lab on this machine:
# `seeds.sh [--whole] [--only PLAN]... [FOLDER]`. Without --whole the plans are shortened and one report has all of them, in about
# four minutes. With --whole they run as they are shipped, about five hours, of which 2003-land-speed takes 3.5. Each has its printed
# answer in FOLDER/PLAN.txt and its figures in FOLDER/PLAN-*.png. --only runs these plans. THRU names the program; without it, it is
# built.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/lib.sh
. scripts/lib.sh

[ "$(id -u)" = 0 ] || die "labs need root" "run: sudo make seeds"
whole=false only=() out=seeds-report
while [ $# -gt 0 ]; do
    case $1 in
    --whole) whole=true ;;
    --only) only+=("$2") && shift ;;
    *) out=$1 ;;
    esac
    shift
done
out=$(realpath -m "$out")
if [ -z "${THRU:-}" ]; then
    scripts/setup.sh build
    find_rust
    say "building thru (release)"
    cargo build --release --locked -p throughline
    THRU=${CARGO_TARGET_DIR:-target}/release/thru
fi
mkdir -p "$out"
export THRU_STORE=$out/seeds.db
# Plans that are added to a folder keep those of before.
if [ ${#only[@]} = 0 ]; then rm -f "$THRU_STORE"*; fi

wanted() { [ ${#only[@]} = 0 ] || [[ " ${only[*]} " == *" $1 "* ]]; }

runs=()
# measured NAME COMMAND...: a run of that name. Exit code 8 (low trust) is accepted: the report shows it.
measured() {
    local name=$1 code=0 started=$SECONDS
    shift
    "$THRU" "$@" --quiet --name "$name" --json "$out/$name.json" || code=$?
    case $code in
    0 | 8) say "$name: $((SECONDS - started)) s" ;;
    *) die "$name ended with exit code $code" ;;
    esac
    runs+=("$name")
    COLUMNS=100 "$THRU" show "$name" >"$out/$name.txt"
}

# pictures NAME FIGURE...: figures of a run.
pictures() {
    local name=$1 figure
    shift
    for figure in "$@"; do "$THRU" report "$name" -o "$out/$name-$figure.png" --figure "$figure" --width 1200; done
}

# seed PLAN [--figures FIGURE,...] [VAR=VALUE...]: runs a plan, as it is shipped if all are whole, otherwise with these variables.
seed() {
    local plan=$1 vars=() figures=()
    shift
    wanted "$plan" || return 0
    if [ "${1:-}" = --figures ]; then IFS=, read -ra figures <<<"$2" && shift 2; fi
    if ! $whole; then for var in "$@"; do vars+=(--var "$var"); done; fi
    measured "$plan" run "plans/$plan.toml" --lab "${vars[@]}"
    if $whole; then pictures "$plan" "${figures[@]}"; fi
}

seed 1998-socket-sizes --figures plan-goodput cell=250ms runs=2 messages=8192,65534,65535,65536,131070,1048576
seed 1998-socket-sizes-time cells=250ms,1500ms runs=3
seed 1998-socket-sizes-modes sizes=1KiB,12800,64KiB,1MiB runs=3
seed 1998-socket-sizes-stalls cell=2s
seed 2002-gigabit --figures plan-goodput,plan-interrupts-window windows=16KiB,64KiB,256KiB,1MiB cell=400ms
seed 2002-gigabit-countries --figures plan-goodput-hosts cell=2s runs=1 segments=4430 hosts=finland,norway,switzerland
seed 2002-gigabit-day --figures plan-day-bit-per-s
seed 2003-land-speed cell=6s mtus=9000 queues=10000 windows=auto
seed 2003-land-speed-rapid blocks=60 processes=1,4
seed 2005-gigabit-ethernet --figures throughput,signature to=128KiB perturbation=0 trial=3ms runs=3
seed 2005-gigabit-ethernet-mtu
seed 2012-10gbe cell=250ms runs=2 queues=10000
seed 2012-10gbe-curves --figures throughput,saturation,signature to=1MiB perturbation=0 trial=3ms runs=3 queues=10000
seed 2012-10gbe-transfer runs=3
seed 2012-10gbe-switch to=128KiB perturbation=0 trial=3ms runs=3

if $whole; then
    # Before and after, as plans/2012-10gbe-curves.toml prints it.
    if wanted 2012-10gbe-curves; then
        measured before run plans/2012-10gbe-curves.toml --lab --var mtus=1500 --var queues=1000
        measured after run plans/2012-10gbe-curves.toml --lab --var mtus=9000 --var queues=10000
        # 3: worse in some cells; 4: cannot tell.
        code=0
        COLUMNS=100 "$THRU" compare before after >"$out/before-after.txt" || code=$?
        case $code in 0 | 3 | 4) ;; *) die "compare before after ended with exit code $code" ;; esac
    fi
    # The plans for hosts of the user, between those of a lab. Rings need a NIC.
    small() {
        wanted "$1" || return 0
        measured "$1" lab run crossover --var mtu=9000 -- "$THRU" run "plans/$1.toml" --var host=b "${@:2}"
    }
    small socket-sizes
    small buffer-curves
    small mtu --var device=eth0
    if wanted 1998-socket-sizes-rings; then
        "$THRU" run plans/1998-socket-sizes-rings.toml --var server=HOST --dry-run >"$out/1998-socket-sizes-rings.txt"
    fi
fi

for form in html md; do "$THRU" report "${runs[@]}" -o "$out/seeds.$form"; done
say "finished in $SECONDS s"
