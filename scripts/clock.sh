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

# Seconds of own time since this script began.
own() { echo $((SECONDS - ($(stolen) - stolen_before))); }

# within OWN CLOCK COMMAND...: runs the command, which ends its children on SIGTERM, and ends it once own time is OWN or SECONDS is
# CLOCK; then 124.
within() {
    local end=$1 clock=$2 child watcher status
    shift 2
    if [ "$end" = "$FOREVER" ]; then
        "$@" # in the terminal's process group, so that Ctrl-C reaches it
        return
    fi
    # In the foreground only the command gets the signal, and once: a second one would keep nextest from writing its report.
    timeout --foreground --kill-after=30s $((clock > SECONDS ? clock - SECONDS : 1)) "$@" &
    child=$!
    (
        while sleep 1; do
            [ "$(own)" -lt "$end" ] && continue
            trap '' TERM # from here on it says itself why the command ended
            kill "$child" && exit 124
        done
    ) >/dev/null 2>&1 &
    watcher=$!
    wait "$child"
    status=$?
    kill "$watcher" 2>/dev/null
    wait "$watcher"
    [ $? != 124 ] || status=124
    return "$status"
}
