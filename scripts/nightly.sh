#!/usr/bin/env bash
# What `.ci/run` has no time for: every enumerated case instead of a part of them, and every CUDA kernel for every architecture. Takes hours on 2
# cores. Run it from anywhere: `scripts/nightly.sh`.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# All meshes and layouts for all samples of all ops (`builtin_ops`, `declarations`, `meta`), all pairs of layouts (`boxing`), all samples on the emulated GPU (`cuda`).
export OFLOW_CASES=all
export CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=none

cargo test --test builtin_ops --test declarations --test meta --test boxing --test cuda
# Random programs, trainings in parts and every example as graphs.
cargo test --test tensors --test training --test launcher -- graph
# Twenty thousand random calls under valgrind, and a million without.
OFLOW_CALLS_HERE=20000 scripts/memcheck.sh
OFLOW_CALLS=1000000 cargo test --test calls random

# Parquet files. The feature changes those of crates that the library uses too, so it is compiled once more.
cargo test -p oflow-readers --features parquet
cargo clippy -p oflow-readers --features parquet --all-targets -- -D warnings

# What README's first command compiles, in packages and lines.
cargo xtask budget

if nvrtc="$(scripts/install-nvrtc.sh)"; then
    LD_LIBRARY_PATH="$nvrtc${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}" cargo xtask cuda-kernels --all
else
    echo "skipped: no NVRTC (the reason stands above)"
fi
