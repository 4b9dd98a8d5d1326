# The machine's own time: elapsed time less the time that the hypervisor gave to other guests (steal in /proc/stat, mean over cores).
# Sourced by scripts/test.sh; scripts/tally-test.sh tests it.
#
# A limit in wall time would end a correct test run on a machine that was descheduled for half of it.
# shellcheck shell=bash

STAT=/proc/stat
# No limit, for interactive runs.
FOREVER=999999999

# Seconds stolen since boot.
stolen() { awk -v hz="$(getconf CLK_TCK)" '/^cpu / { s = $9 } /^cpu[0-9]/ { n++ } END { printf "%d\n", n ? s / hz / n : 0 }' "$STAT"; }

stolen_before=$(stolen)
# Seconds spent waiting for a quiet machine.
waited=0

# Seconds of own time since this script began.
own() { echo $((SECONDS - waited - ($(stolen) - stolen_before))); }

# share FROM TO: stolen time between two first lines of /proc/stat, in percent.
share() {
    printf '%s\n%s\n' "$1" "$2" | awk '
        NR == 1 { for (i = 2; i <= 9; i++) before += $i; stolen = $9 }
        NR == 2 { for (i = 2; i <= 9; i++) after += $i; taken = $9 - stolen; printf "%d\n", (after > before) ? 100 * taken / (after - before) : 0 }'
}

now() { head -n 1 "$STAT"; }

# Longest total wait for a quiet machine, seconds. After it the tests run on a busy machine.
LONGEST_WAIT=900

# until_quiet CLOCK: waits until less than 10 % of three seconds are stolen, SECONDS is CLOCK, or the longest wait is reached.
until_quiet() {
    local from began=$SECONDS
    while [ "$SECONDS" -lt "$1" ] && [ $((waited + SECONDS - began)) -lt "$LONGEST_WAIT" ]; do
        from=$(now)
        sleep 3
        [ "$(share "$from" "$(now)")" -ge 10 ] || break
        sleep 7
    done
    waited=$((waited + SECONDS - began))
}

# within OWN CLOCK COMMAND...: runs the command and ends it with all its children once own time is OWN or SECONDS is CLOCK; then 124.
within() {
    local end=$1 clock=$2 child watcher status
    shift 2
    if [ "$end" = "$FOREVER" ]; then
        "$@" # in the terminal's process group, so that Ctrl-C reaches it
        return
    fi
    timeout --kill-after=10s $((clock > SECONDS ? clock - SECONDS : 1)) "$@" &
    child=$!
    # timeout passes the signal on to its whole process group.
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
