#!/usr/bin/env bash
# Makes sure that the tools are there. `setup.sh build`: a C compiler and a cargo that is new enough.
# `setup.sh test`: these, and what the tests and checks use. What is there already is used as it is; what is missing is
# named before it is installed. Asks nothing. Needs root or a sudo without a password to install; without either it prints
# the commands and, where the build cannot do without, fails.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/lib.sh
. scripts/lib.sh

# The version that deny.toml was written for.
CARGO_DENY=0.20.2
# The reader of iperf3's JSON that judges ours.
IPERF3_PYTHON=0.1.11
# Its layers of STAMP judge our datagrams.
SCAPY=2.8.0
# The program that runs netperf many times at once, which our server for netperf has to bear.
FLENT=2.3.0

# Brings apt's lists up to date, once.
refresh() {
    [ -z "${refreshed:-}" ] || return 0
    say "refreshing the lists of Debian packages"
    as_root apt-get update -q
    refreshed=yes
}

compiler() {
    if have cc; then return 0; fi
    may_install || die "no C compiler (cc), which the build of SQLite needs" "run: $(apt_command gcc libc6-dev)"
    refresh
    apt_install gcc libc6-dev
}

# What the loader of TCP stacks is built with: the headers of libelf and zlib (crates/stacks).
libraries() {
    local -a missing=()
    local pair
    for pair in libelf.h:libelf-dev zlib.h:zlib1g-dev; do
        echo "#include <${pair%%:*}>" | cc -E -x c - >/dev/null 2>&1 || missing+=("${pair##*:}")
    done
    have pkg-config || missing+=(pkg-config)
    have make || missing+=(make)
    [ ${#missing[@]} -gt 0 ] || return 0
    may_install || die "missing: ${missing[*]}, which the loader of TCP stacks is built with" \
        "run: $(apt_command "${missing[@]}")" "or build without it: cargo build --release -p throughline --no-default-features"
    refresh
    apt_install "${missing[@]}"
}

# Debian 12 keeps a recent Rust in cargo-web, later releases in cargo.
rust_package() {
    local package
    for package in cargo-web cargo; do
        if version_at_least "$(apt_candidate "$package")" "$(wanted_rust)"; then
            printf '%s' "$package"
            return 0
        fi
    done
    return 1
}

rust() {
    find_rust && return 0
    local found package
    found=$(rust_version cargo)
    say "Rust $(wanted_rust) or newer is needed; the cargo found here: ${found:-none}"
    local -a way_out=(
        "either: $(apt_command cargo-web rustc-web ca-certificates)   (Debian 12 with its security updates)"
        "or:     install rustup, then: rustup toolchain install stable"
    )
    may_install || die "Rust cannot be installed from here (no apt, or neither root nor a sudo without password)" "${way_out[@]}"
    refresh
    package=$(rust_package) || die "none of this machine's Debian packages is a Rust $(wanted_rust) or newer" \
        "Debian 12 has one in its security updates: is bookworm-security among the sources of apt?" "${way_out[@]}"
    # The certificates let cargo reach the crate registry; a minimal Debian has none.
    apt_install "$package" "${package/cargo/rustc}" ca-certificates
    hash -r
    find_rust || die "$package was installed, but no cargo of Rust $(wanted_rust) or newer starts" "look at: cargo --version"
}

# Programs that tests measure against or set hosts up with. Tests that lack one say SKIPPED.
programs() {
    local -a missing=()
    local pair
    # pgrep stands for kill, which bash has a command of its own for.
    for pair in iperf3:iperf3 iperf:iperf nuttcp:nuttcp NPtcp:netpipe-tcp gnuplot:gnuplot-nox ip:iproute2 ping:iputils-ping mount:mount \
        pgrep:procps unshare:util-linux tcpdump:tcpdump mpirun.openmpi:openmpi-bin mpirun.mpich:mpich pvmd:pvm \
        clang:clang llvm-strip:llvm; do
        have "${pair%%:*}" || missing+=("${pair##*:}")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    if ! may_install; then
        warn "tests that need ${missing[*]} will be skipped; to install them: $(apt_command "${missing[@]}")"
        return 0
    fi
    refresh
    apt_install "${missing[@]}"
}

checkers() {
    local -a missing=()
    cargo fmt --version >/dev/null 2>&1 || missing+=(rustfmt)
    cargo clippy --version >/dev/null 2>&1 || missing+=(clippy)
    [ ${#missing[@]} -gt 0 ] || return 0
    if have rustup && [ "$(command -v cargo)" != /usr/bin/cargo ]; then
        say "adding rustup components: ${missing[*]}"
        rustup component add "${missing[@]}"
        return 0
    fi
    local -a packages=()
    local web=""
    dpkg -s cargo-web >/dev/null 2>&1 && web=yes
    for tool in "${missing[@]}"; do
        case $tool$web in
            rustfmt) packages+=(rustfmt) ;;
            rustfmtyes) packages+=(rustfmt-web) ;;
            clippy) packages+=(rust-clippy) ;;
            clippyyes) packages+=(rust-web-clippy) ;;
        esac
    done
    may_install || die "missing: ${missing[*]}" "run: $(apt_command "${packages[@]}")"
    refresh
    apt_install "${packages[@]}"
}

deny() {
    # cargo looks for its subcommands in its home too, not only on PATH.
    local found
    found=$( (cargo deny --version 2>/dev/null || true) | awk '{ print $2 }')
    if [ -n "$found" ]; then
        [ "$found" = "$CARGO_DENY" ] || say "using the cargo-deny $found that is here (written for $CARGO_DENY)"
        return 0
    fi
    say "installing cargo-deny $CARGO_DENY from source into ${CARGO_HOME:-$HOME/.cargo} (some minutes, once)"
    cargo install --locked --quiet --version "$CARGO_DENY" cargo-deny
}

# Modules for single tests, kept beside the build so that the machine's Python stays as it is. Without pip these tests say SKIPPED.
judges() {
    judge iperf3 "iperf3==$IPERF3_PYTHON" "our iperf3 JSON"
    judge flent "flent==$FLENT" "our server for netperf"
    judge scapy "scapy==$SCAPY" "our STAMP datagrams"
}

# judge MODULE PACKAGE WHAT-IT-JUDGES
judge() {
    [ ! -d "target/python/$1" ] || return 0
    if ! python3 -m pip --version >/dev/null 2>&1; then
        warn "no python3 with pip: $2 will not judge $3"
        return 0
    fi
    say "installing $2 into target/python"
    python3 -m pip install --quiet --no-deps --disable-pip-version-check --root-user-action ignore --target target/python "$2" ||
        warn "$2 could not be installed: it will not judge $3"
}

case ${1:-} in
    build)
        compiler
        libraries
        rust
        ;;
    test)
        compiler
        libraries
        rust
        programs
        judges
        checkers
        deny
        ;;
    *) die "usage: scripts/setup.sh build|test" ;;
esac
say "using $(cargo --version) at $(command -v cargo)"
