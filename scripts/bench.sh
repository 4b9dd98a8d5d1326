#!/usr/bin/env bash
# Measures thru and other tools and prints a table; the raw numbers go to benches/results. Installs the tools from Debian
# packages if it may, builds the others into target/, and says so; missing tools are left out. Arguments go to the bench: scripts/bench.sh --quick, --work stream, --rounds 9, --json.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/lib.sh
. scripts/lib.sh

target="${CARGO_TARGET_DIR:-target}"
# The version of xfr that the bench supports.
XFR=0.14.0

# Program and Debian package. netperf is in Debian's non-free part and neper is not packaged; both are used if installed.
peers() {
    local -a missing=()
    local pair
    for pair in iperf3:iperf3 NPtcp:netpipe-tcp qperf:qperf sockperf:sockperf nuttcp:nuttcp iperf:iperf taskset:util-linux \
        strip:binutils mpirun.openmpi:openmpi-bin NPopenmpi:netpipe-openmpi pvmd:pvm NPpvm:netpipe-pvm; do
        have "${pair%%:*}" || missing+=("${pair##*:}")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    if ! may_install; then
        warn "the table will lack ${missing[*]}; to install them: $(apt_command "${missing[@]}")"
        return 0
    fi
    say "refreshing the lists of Debian packages"
    as_root apt-get update -q
    # A package that this release lacks costs only its own row.
    apt_install "${missing[@]}" || for pair in "${missing[@]}"; do apt_install "$pair" || warn "package $pair is not available"; done
}

# The bare loops in C.
bare() {
    mkdir -p "$target/peers/bin"
    cc -std=gnu11 -O2 -Wall -Wextra -o "$target/peers/bin/bare" benches/bare/bare.c
}

# Builds xfr from the crate registry, without the features that look for updates or other hosts.
xfr() {
    local version
    version=$("$target/peers/bin/xfr" --version 2> /dev/null | sed 's/^xfr //') || true
    [ "$version" != "$XFR" ] || return 0
    say "building xfr $XFR from the crate registry into $target/peers"
    cargo install xfr --version "$XFR" --locked --no-default-features --root "$target/peers" --target-dir "$target/peers/build" ||
        warn "xfr cannot be built: the table will lack it"
}

# Messages go to standard error, so that --json writes only the document to standard output.
{
    scripts/setup.sh build
    find_rust
    peers
    bare
    xfr
    say "building thru and the bench (release)"
    cargo build --release --locked -p throughline -p throughline-bench
} >&2
bench="$target/release/bench"
PATH="$(cd "$target/peers/bin" && pwd):$PATH"
[ "$(id -u)" = 0 ] || exec "$bench" "$@"

# As root all tools run over the loopback of their own network namespace: there is no other traffic, and all of them use the
# congestion control of the published figures, cubic, or Reno if the kernel refuses that. A default that paces (BBR) would
# halve the loopback rate of every tool.
ns="thru-bench-$$"
ip netns add "$ns"
trap 'ip netns del "$ns"' EXIT
ip -n "$ns" link set lo up
for cc in cubic reno; do
    ip netns exec "$ns" sysctl -qw "net.ipv4.tcp_congestion_control=$cc" 2> /dev/null && break
done
ip netns exec "$ns" "$bench" "$@"
