#!/usr/bin/env bash
# How far curves of the same path differ: `curves.sh THRU HOST FOLDER [ROUNDS]`. In each round NPtcp, `thru curve` with blocking waits
# and `thru curve --spin` take one curve each, one after the other, pinned to the same two cores. Prints a line for each: the time of a
# curve; how far two curves differ at a size, relative to their mean (median and 90th percentile over sizes and pairs of curves); the
# share of those pairs that agree within their intervals, combined as a root of squares; how many sizes of a curve are within 2 % by
# their own part; half widths by that part and in all (medians). Documents stay in FOLDER.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/lib.sh
. scripts/lib.sh

[ $# -ge 3 ] || die "usage: scripts/curves.sh THRU HOST FOLDER [ROUNDS]"
thru=$1 host=$2 dir=$3 rounds=${4:-3}
have jq || die "jq is missing" "run: $(apt_command jq)"
[ "$(nproc)" -ge 2 ] || die "two cores are needed"
server=""
trap '[ -z "$server" ] || kill "$server" 2>/dev/null || true' EXIT

# timed NAME ROUND COMMAND...: its wall time in seconds goes to NAME.ROUND.time.
timed() {
    local begun
    begun=$(date +%s.%N)
    "${@:3}"
    awk "BEGIN { print $(date +%s.%N) - $begun }" >"$dir/$1.$2.time"
}

# NPtcp's curve: bytes, Mbit/s, seconds of half a round trip. It gives no interval.
netpipe() {
    taskset -c 0 NPtcp >/dev/null 2>&1 &
    server=$!
    sleep 0.5 # for its listener; it says nothing when it is ready
    timed netpipe "$1" taskset -c 1 NPtcp -h 127.0.0.1 -o "$dir/np.out" >/dev/null 2>&1
    wait "$server" 2>/dev/null || true
    server=""
    awk '{ printf "%d %.9g - - -\n", $1, $3 * 2e9 }' "$dir/np.out" >"$dir/netpipe.$1"
}

# curve NAME ROUND FLAG...: bytes, ns of a round trip, half widths in all and own, as shares.
curve() {
    timed "$1" "$2" "$thru" curve "$host" --no-path --no-ceiling --no-store --pin 1,0 --quiet --json "$dir/$1.$2.json" "${@:3}"
    jq -r '.outcomes[]
        | [.spec.block, .estimate.value,
           (if .estimate.low == null then "-" else (.estimate.high - .estimate.low) / 2 / .estimate.value end),
           (.summary.within_pass | if . == null or .low == null then "-" else (.high - .low) / 2 / .value end)]
        | map(tostring) | join(" ")' "$dir/$1.$2.json" >"$dir/$1.$2"
}

# quantile SHARE: of the numbers on standard input, one a line.
quantile() { sort -g | awk -v share="$1" '{ v[NR] = $1 } END { if (NR) print v[int(1 + share * (NR - 1) + 0.5)] }'; }

# report NAME TITLE
report() {
    local name=$1 a b
    : >"$dir/$name.pairs"
    for ((a = 1; a < rounds; a++)); do
        for ((b = a + 1; b <= rounds; b++)); do
            awk 'NR == FNR { value[$1] = $2; half[$1] = $3; next }
                $1 in value {
                    apart = $2 - value[$1]; if (apart < 0) apart = -apart
                    within = "-"
                    if ($3 != "-" && half[$1] != "-")
                        within = apart <= sqrt(($3 * $2) ^ 2 + (half[$1] * value[$1]) ^ 2)
                    print 2 * apart / ($2 + value[$1]), within
                }' "$dir/$name.$a" "$dir/$name.$b" >>"$dir/$name.pairs"
        done
    done
    {
        cat "$dir/$name".[0-9]*.time | quantile 0.5
        cut -d ' ' -f 1 "$dir/$name.pairs" | quantile 0.5
        cut -d ' ' -f 1 "$dir/$name.pairs" | quantile 0.9
        awk '$2 != "-" { n++; sum += $2 } END { print n ? sum / n : "-" }' "$dir/$name.pairs"
        for ((a = 1; a <= rounds; a++)); do
            awk '$4 != "-" && $4 <= 0.02 { n++ } END { print n + 0 }' "$dir/$name.$a"
        done | quantile 0.5
        for column in 4 3; do
            for ((a = 1; a <= rounds; a++)); do
                awk -v column=$column '$column != "-" { print $column }' "$dir/$name.$a"
            done | quantile 0.5 | grep . || echo -
        done
    } | paste -sd ' ' | awk -v title="$2" '
        function percent(share) { return share == "-" ? "-" : sprintf("%.2f %%", 100 * share) }
        { printf "| %s | %.1f s | %s (%s) | %s | %d | %s | %s |\n",
            title, $1, percent($2), percent($3), percent($4), $5, percent($6), percent($7) }'
}

for ((round = 1; round <= rounds; round++)); do
    say "round $round of $rounds"
    ! have NPtcp || netpipe "$round"
    curve blocking "$round" --wait blocking
    curve spinning "$round" --spin
done
printf '| curve | time | two curves differ (p90) | pairs within intervals | sizes within 2 %% | own ± | all ± |\n'
printf '| --- | --- | --- | --- | --- | --- | --- |\n'
! have NPtcp || report netpipe "NPtcp, blocking"
report blocking "thru, blocking"
report spinning "thru, spinning"
