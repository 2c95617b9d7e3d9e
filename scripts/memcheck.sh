#!/usr/bin/env bash
# Runs tests of the unsafe parts under valgrind's memcheck: storages and their allocator, windows and views, the kernels'
# strided ways, and random calls. Invalid reads and writes, and decisions on bytes that nobody wrote, are errors.
# Miri and the sanitizers need a nightly compiler, which this project does not use.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

if ! command -v valgrind >/dev/null && command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
    { apt-get update -qq && apt-get install -y -qq valgrind; } >/dev/null 2>&1 || true
fi
if ! command -v valgrind >/dev/null; then
    echo "skipped: valgrind is not installed, and could not be"
    exit 0
fi
valgrind --version

# Cargo starts the test binaries through the checker. One thread a test: valgrind runs one at a time anyway.
host="$(rustc -vV | sed -n 's/^host: //p' | tr 'a-z-' 'A-Z_')"
export "CARGO_TARGET_${host}_RUNNER=valgrind --quiet --error-exitcode=99 --leak-check=no --num-callers=25"
export OFLOW_CALLS_HERE="${OFLOW_CALLS_HERE:-600}"

# Without --package, which would choose other features and compile the library once more.
cargo test --test kernels --test oflow_kernels --test oflow -- --test-threads=1 view:: cpu::copy:: cpu::strided:: cpu::rows:: cpu::index:: cpu::embedding:: cpu::past_cache:: cpu::reduce:: memory:: tensor::local::
cargo test --test calls -- --test-threads=1 random_calls_in_one_process
