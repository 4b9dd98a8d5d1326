#!/usr/bin/env bash
# Builds the files of a release from the current commit, in OUT (default: target/release-files): `thru` and `thru-static`, with the lists
# of their dependencies inside (cargo auditable; `cargo audit bin thru` reads it), the bill of materials of thru (CycloneDX), and their
# checksums. thru-static needs no library, for hosts to which `thru fleet up` copies it, and lacks what needs one: MPI, PVM, TCP stacks.
# Paths of this machine are replaced, so that a build in another folder gives the same bytes. `release.sh --twice` builds two times,
# in two folders, and compares.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/lib.sh
. scripts/lib.sh

twice=no
if [ "${1:-}" = --twice ]; then
    twice=yes
    shift
fi
[ $# -le 1 ] || die "usage: scripts/release.sh [--twice] [OUT]"
out=$(realpath -m "${1:-target/release-files}")

scripts/setup.sh release
find_rust
find_tools
[ -z "$(git status --porcelain)" ] || warn "changes that are not committed are not in the release"
commit=$(git rev-parse HEAD)
# What a tool takes for the current time.
SOURCE_DATE_EPOCH=$(git log -1 --format=%ct "$commit")
export SOURCE_DATE_EPOCH

musl=$(static_target)
# The features of thru-static.
static_features=xlsx,parquet,metrics,fleet,yaml

# build FOLDER: both programs and the bill of materials from a clone of the commit in FOLDER/source.
build() {
    local source=$1/source built=$1/target cargo=${CARGO_HOME:-$HOME/.cargo} sysroot
    git clone -q --no-checkout . "$source"
    git -C "$source" checkout -q "$commit"
    sysroot=$(rustc --print sysroot)
    (
        cd "$source"
        export CARGO_TARGET_DIR=$built
        export RUSTFLAGS="--remap-path-prefix=$source=/throughline --remap-path-prefix=$built=/target --remap-path-prefix=$cargo=/cargo --remap-path-prefix=$sysroot=/rust"
        export CFLAGS="-ffile-prefix-map=$source=/throughline -ffile-prefix-map=$built=/target -ffile-prefix-map=$cargo=/cargo"
        # The crate of libbpf does not look for the static libraries of libelf and zlib itself.
        LIBBPF_SYS_LIBRARY_PATH=$(pkg-config --variable=libdir libelf)
        export LIBBPF_SYS_LIBRARY_PATH
        cargo auditable build --profile dist --locked -p throughline --features static
        cargo auditable build --profile dist --locked -p throughline --target "$musl" \
            --no-default-features --features "$static_features"
        cp "$built/$musl/dist/thru" "$built/dist/thru-static"
        cargo cyclonedx -q --manifest-path crates/throughline/Cargo.toml --format json --spec-version 1.5 --describe binaries
        # Its references are paths, and its number is random.
        sed -i -e "s|$source|/throughline|g" -e '/"serialNumber"/d' crates/throughline/thru_bin.cdx.json
    )
    for file in "$built/dist/thru" "$built/dist/thru-static" "$source/crates/throughline/thru_bin.cdx.json"; do
        if grep -qaF -e "$source" -e "$built" -e "$HOME/" "$file"; then
            grep -aoE "($source|$built|$HOME)/[[:graph:]]{0,60}" "$file" | sort -u | head -n 5 >&2
            die "${file##*/} contains paths of this machine"
        fi
    done
}

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
build "$work/first"
mkdir -p "$out"
cp "$work/first/target/dist/thru" "$work/first/target/dist/thru-static" "$out/"
cp "$work/first/source/crates/throughline/thru_bin.cdx.json" "$out/thru.cdx.json"
for program in thru thru-static; do
    readelf -S "$out/$program" | grep -qF .dep-v0 || die "$program has no list of its dependencies"
done
# Hosts may have no other library than that of C.
needed=$(readelf -d "$out/thru" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' | grep -vE '^(libc|libm|libgcc_s|ld-linux.*)\.so' || true)
[ -z "$needed" ] || die "thru needs libraries that hosts may lack: $needed"
! readelf -l "$out/thru-static" | grep -qF INTERP || die "thru-static is not static"
"$out/thru-static" --version >/dev/null || die "thru-static does not run"
(cd "$out" && sha256sum thru thru-static thru.cdx.json >SHA256SUMS)
if [ "$twice" = yes ]; then
    rm -rf "$work/first"
    build "$work/the-second"
    for program in thru thru-static; do
        cmp "$out/$program" "$work/the-second/target/dist/$program" || die "two builds of $program differ"
    done
    cmp "$out/thru.cdx.json" "$work/the-second/source/crates/throughline/thru_bin.cdx.json" ||
        die "two bills of materials differ"
    say "both builds have the same bytes"
fi
say "the release of $commit is in $out"
cat "$out/SHA256SUMS"
