#!/bin/sh
# Formats all Rust files, or with --check says which are not formatted. `cargo fmt` alone does not see a module that a macro declares
# (`families!`, `kernels!`).
set -eu
cd "$(dirname "$0")/.."
cargo fmt --all -- "$@"
git ls-files --cached --others --exclude-standard 'kernels/src/cuda/*.rs' 'src/ops/families/*.rs' 'src/backend/op_kernels/*.rs' |
    xargs rustfmt --edition 2024 "$@"
