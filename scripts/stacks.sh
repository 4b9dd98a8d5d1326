#!/usr/bin/env bash
# Builds the BPF objects of the congestion controls (crates/stacks/objects) from their sources. `stacks.sh OUT` writes them to
# another folder. The file COMPILER records the compiler's version, because versions generate different instructions.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=scripts/lib.sh
. scripts/lib.sh

out=$(realpath -m "${1:-crates/stacks/objects}")
for tool in clang llvm-strip; do
    have "$tool" || die "$tool is missing; it compiles for BPF" "run: $(apt_command clang llvm)"
done
mkdir -p "$out"
cd crates/stacks/bpf
for source in *.bpf.c; do
    object=$out/${source%.c}.o
    # Version 3 of the instruction set (Linux 5.1) has 32-bit jumps. The object must not contain the folder's name.
    clang -g -O2 -Wall -Werror -target bpf -mcpu=v3 -fdebug-compilation-dir=. -c "$source" -o "$object"
    llvm-strip -g "$object" # removes DWARF, keeps BTF
done
clang --version | head -n 1 >"$out/COMPILER"
