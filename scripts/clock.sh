# The machine's own time: what has passed without what a hypervisor gave to others (steal in /proc/stat, the mean over the cores).
# Sourced by scripts/test.sh; scripts/tally-test.sh tests it.
#
# A limit by the clock would end a run of the tests on a machine that was taken away for half of it, where nothing is wrong.
# shellcheck shell=bash

STAT=/proc/stat
# Where there is no limit: somebody is there to press Ctrl-C.
FOREVER=999999999

# Seconds stolen since boot.
stolen() { awk -v hz="$(getconf CLK_TCK)" '/^cpu / { s = $9 } /^cpu[0-9]/ { n++ } END { printf "%d\n", n ? s / hz / n : 0 }' "$STAT"; }

stolen_before=$(stolen)
# Seconds that were spent in waiting for a calm machine.
waited=0

# Seconds of the machine's own since this script began.
own() { echo $((SECONDS - waited - ($(stolen) - stolen_before))); }

# share FROM TO: how much of the time was stolen between two first lines of /proc/stat, in percent.
share() {
    printf '%s\n%s\n' "$1" "$2" | awk '
        NR == 1 { for (i = 2; i <= 9; i++) before += $i; stolen = $9 }
        NR == 2 { for (i = 2; i <= 9; i++) after += $i; taken = $9 - stolen; printf "%d\n", (after > before) ? 100 * taken / (after - before) : 0 }'
}

now() { head -n 1 "$STAT"; }

# All that is waited for a calm machine, seconds: one that stays busy is measured as it is.
PATIENCE=900

# until_calm CLOCK: waits until less than a tenth of three seconds is stolen, or SECONDS is CLOCK, or there is no patience left.
until_calm() {
    local from began=$SECONDS
    while [ "$SECONDS" -lt "$1" ] && [ $((waited + SECONDS - began)) -lt "$PATIENCE" ]; do
        from=$(now)
        sleep 3
        [ "$(share "$from" "$(now)")" -ge 10 ] || break
        sleep 7
    done
    waited=$((waited + SECONDS - began))
}

# within OWN CLOCK COMMAND...: runs it, and ends it with all that it started once own time is OWN or SECONDS is CLOCK; 124 then.
within() {
    local end=$1 clock=$2 child watcher status
    shift 2
    if [ "$end" = "$FOREVER" ]; then
        "$@" # in the terminal's own group of processes, which Ctrl-C reaches
        return
    fi
    timeout --kill-after=10s $((clock > SECONDS ? clock - SECONDS : 1)) "$@" &
    child=$!
    # timeout passes the signal on to the whole group of processes that it leads.
    (
        while sleep 1; do
            [ "$(own)" -lt "$end" ] || kill "$child"
        done
    ) >/dev/null 2>&1 &
    watcher=$!
    wait "$child"
    status=$?
    kill "$watcher" 2>/dev/null
    [ "$status" != 143 ] || status=124
    return "$status"
}
