#!/usr/bin/env bash
# Fetches NVRTC, NVIDIA's run-time compiler, from PyPI into a folder of caches, without installing anything, and prints the
# folder with the library: enough to compile every kernel on a machine without CUDA.
#   LD_LIBRARY_PATH="$(scripts/install-nvrtc.sh)" cargo xtask cuda-kernels
# The folder: the first argument, or oflow/nvrtc in the user's caches. The version: OFLOW_NVRTC_VERSION.
set -euo pipefail

version="${OFLOW_NVRTC_VERSION:-13.0.88}"
folder="${1:-${XDG_CACHE_HOME:-${HOME:?}/.cache}/oflow/nvrtc}/$version"
say() { echo "install-nvrtc: $*" >&2; }

if [ ! -e "$folder/libnvrtc.so" ]; then
    command -v python3 >/dev/null || { say "python3 is not installed"; exit 1; }
    python3 -m pip --version >/dev/null 2>&1 || { say "python3 has no pip"; exit 1; }
    work="$(mktemp -d)"
    trap 'rm -rf "$work"' EXIT
    python3 -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all: \
        --dest "$work" "nvidia-cuda-nvrtc==$version" >&2 || { say "cannot fetch nvidia-cuda-nvrtc $version from PyPI"; exit 1; }
    python3 -m zipfile -e "$work"/*.whl "$work/wheel"
    library="$(find "$work/wheel" -name 'libnvrtc.so.*' -not -name '*.alt.*' | head -n 1)"
    [ -n "$library" ] || { say "the wheel has no libnvrtc.so"; exit 1; }
    mkdir -p "$folder"
    # The .alt files are another build of the same for old drivers.
    find "$(dirname "$library")" -name 'libnvrtc*' -not -name '*.alt.*' -exec cp {} "$folder/" \;
    # Last, because it stands for the whole: the name that is looked for.
    ln -sf "$(basename "$library")" "$folder/libnvrtc.so"
fi
echo "$folder"
