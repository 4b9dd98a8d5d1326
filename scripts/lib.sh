# Common functions of the scripts: messages, versions, finding cargo, installing packages. Sourced by bash; sets only functions,
# PATH, HOME and RUSTUP_TOOLCHAIN.
# shellcheck shell=bash

# ip and tc are in sbin, which is not in a user's PATH on Debian.
PATH="$PATH:/usr/local/sbin:/usr/sbin:/sbin"
export PATH
# A bare service environment has no HOME.
: "${HOME:=$(getent passwd "$(id -u)" | cut -d: -f6)}"
export HOME

say() { printf '==> %s\n' "$*"; }
warn() { printf 'WARNING: %s\n' "$*" >&2; }
die() {
    printf 'ERROR: %s\n' "$1" >&2
    shift
    [ $# -eq 0 ] || printf '       %s\n' "$@" >&2
    exit 1
}
have() { command -v "$1" >/dev/null 2>&1; }

# version_at_least 1.96.0 1.89
version_at_least() { [ "$(printf '%s\n%s\n' "$1" "$2" | sort -V | head -n 1)" = "$2" ]; }

# The minimum Rust version, from Cargo.toml.
wanted_rust() { sed -n 's/^rust-version = "\([0-9.]*\)".*/\1/p' Cargo.toml | head -n 1; }

# The version of `cargo` or `rustc`; empty if it is missing or does not start.
rust_version() { { "$1" --version 2>/dev/null || true; } | sed -n 's/^[a-z]* \([0-9]*\.[0-9]*\.[0-9]*\).*/\1/p'; }

good_rust() {
    local tool version
    for tool in cargo rustc; do
        version=$(rust_version "$tool")
        [ -n "$version" ] && version_at_least "$version" "$(wanted_rust)" || return 1
    done
}

# Puts a sufficiently new cargo first on PATH; fails if there is none.
find_rust() {
    local before=$PATH directory toolchain
    good_rust && return 0
    for directory in "${CARGO_HOME:-$HOME/.cargo}/bin" /usr/bin; do
        PATH="$directory:$before"
        good_rust && return 0
        # rustup may lack the toolchain of rust-toolchain.toml but have another one that is new enough.
        have rustup || continue
        for toolchain in $(rustup toolchain list 2>/dev/null | awk '/^[0-9s]/ { print $1 }' | sort -rV); do
            export RUSTUP_TOOLCHAIN=$toolchain
            good_rust && return 0
            unset RUSTUP_TOOLCHAIN
        done
    done
    PATH=$before
    return 1
}

# Puts the tools that setup.sh installs last on PATH.
find_tools() { PATH="$PATH:$PWD/target/tools/bin:${CARGO_HOME:-$HOME/.cargo}/bin"; }

# Whether packages can be installed without a prompt.
may_install() { have apt-get && { [ "$(id -u)" = 0 ] || { have sudo && sudo -n true 2>/dev/null; }; }; }

as_root() {
    if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n -- "$@"; fi
}

# apt_install PACKAGE...: prints what it installs and removes, then does it.
apt_install() {
    local removed
    removed=$( (apt-get -s install --no-install-recommends "$@" 2>/dev/null || true) | awk '/^Remv/ { print $2 }' | xargs)
    say "installing Debian packages: $*${removed:+ (apt removes for them: $removed)}"
    as_root env DEBIAN_FRONTEND=noninteractive apt-get install -y -q --no-install-recommends "$@"
}

# The command for a user without root rights.
apt_command() { printf 'sudo apt-get update && sudo apt-get install --no-install-recommends %s' "$*"; }

# The version of PACKAGE that apt would install, without epoch and Debian revision.
apt_candidate() { apt-cache policy "$1" 2>/dev/null | sed -n 's/^ *Candidate: \([0-9]*:\)\{0,1\}\([0-9.]*\).*/\2/p'; }

# Cargo's target for programs of this machine without shared libraries.
static_target() { printf '%s-unknown-linux-musl' "$(rustc -vV | sed -n 's/^host: \([^-]*\)-.*/\1/p')"; }
