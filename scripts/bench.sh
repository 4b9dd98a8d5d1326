#!/usr/bin/env bash
# Measures thru and other tools as benches/PROTOCOL.md says and prints a table; the record and the raw documents go to
# benches/results. Installs the tools from Debian packages if it may, builds the others into target/, and says so; missing tools
# are left out. Arguments go to the bench: scripts/bench.sh --plan, --quick, --work stream, --json, table FILE.
# THRU_NETPERF_SOURCE and THRU_IPERF3_SOURCE name a folder or a tar file with the source of netperf, and of an iperf3 with --gsro.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/lib.sh
. scripts/lib.sh

target="${CARGO_TARGET_DIR:-target}"
# The version of xfr that the bench supports.
XFR=0.14.0

# Program and Debian package. neper is not packaged; it is used if it is on PATH.
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

# unpack SOURCE FOLDER: copies a folder, or the one folder in a tar file, to FOLDER.
unpack() {
    rm -rf "$2"
    mkdir -p "$2"
    if [ -d "$1" ]; then cp -r "$1/." "$2"; else tar -xf "$1" -C "$2" --strip-components 1; fi
}

# from_source NAME SOURCE PROGRAM...: builds the programs, which are in src/ then, and installs nothing else. Old C needs -fcommon.
from_source() {
    local name=$1 from=$2 folder="$target/peers/$1"
    shift 2
    say "building $name from its source into $target/peers"
    if unpack "$from" "$folder" && configure_and_make "$folder" >"$target/peers/$name.log" 2>&1; then
        (cd "$folder/src" && cp "$@" ../../bin/)
    else
        warn "$name cannot be built (see $target/peers/$name.log): the table will lack it"
    fi
}

configure_and_make() (
    cd "$1" || return 1
    if [ ! -x configure ]; then
        # A source without it is from version control.
        { have automake || { may_install && apt_install autoconf automake; }; } || return 1
        if [ -x autogen.sh ]; then sh ./autogen.sh; else autoreconf -fi; fi || return 1
    fi
    ./configure --disable-shared CFLAGS='-O2 -fcommon -w' && make -C src
)

# netperf is in Debian's non-free part; apt has its source if its lists include that part. One on PATH is used as it is.
netperf_from_source() {
    if have netperf && have netserver || [ -x "$target/peers/bin/netserver" ]; then return 0; fi
    local from=${THRU_NETPERF_SOURCE:-} folder="$target/peers/download"
    if [ -z "$from" ] && have apt-get; then
        mkdir -p "$folder"
        (cd "$folder" && apt-get source -q --download-only netperf) >/dev/null 2>&1 || true
        from=$(find "$folder" -name 'netperf_*.orig.tar.*' ! -name '*.asc' | head -n 1)
    fi
    if [ -n "$from" ]; then
        from_source netperf "$from" netperf netserver
    else
        warn "the table will lack netperf: neither it nor its source is here (set THRU_NETPERF_SOURCE)"
    fi
}

# An iperf3 with --gsro beside the packaged one, which is older in most distributions.
iperf3_from_source() {
    [ -n "${THRU_IPERF3_SOURCE:-}" ] && [ ! -x "$target/peers/bin/iperf3" ] || return 0
    from_source iperf3 "$THRU_IPERF3_SOURCE" iperf3
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

# A stored run needs no tools.
if [ "${1:-}" = table ]; then
    find_rust
    exec cargo run -q --release --locked -p throughline-bench -- "$@"
fi

# Messages go to standard error, so that --json writes only the document to standard output.
{
    scripts/setup.sh build
    find_rust
    peers
    bare
    netperf_from_source
    iperf3_from_source
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
# getaddrinfo with AI_ADDRCONFIG, which netperf uses, resolves nothing on a host that has loopback addresses only.
ip -n "$ns" addr add 192.0.2.1/32 dev lo
for cc in cubic reno; do
    ip netns exec "$ns" sysctl -qw "net.ipv4.tcp_congestion_control=$cc" 2> /dev/null && break
done
ip netns exec "$ns" "$bench" "$@"
