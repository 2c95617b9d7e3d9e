#!/usr/bin/env bash
# Everything that needs a GPU, in one call: correctness against the CPU, then speed beside PyTorch.
#
#   scripts/gpu-check.sh [STAGE...]        stages: ops nccl train sanitize bench gpt; without one, all of them
#   scripts/gpu-check.sh build DIR         builds what the stages run into DIR, for a machine without Rust
#
# Environment:
#   BIN=DIR       executables built before (by `build`); without it they are built here
#   PYTHON=FILE   a Python that has torch with CUDA; without it nothing is compared with PyTorch. CUDA's libraries that
#                 are not elsewhere on the search path are taken from its packages
#   ROUNDS=3      runs of each side, in turn; medians are compared
#   LIMIT=540     seconds that one command may take
#   LOG=FILE      where results of bench and gpt are appended; default docs/performance/cuda.md
#   DEVICE=cpu TINY=1 LOG=/dev/null   tries the script itself on a machine without a GPU
#
# Exit code: 0 if nothing failed and no target was missed (skipped parts are listed), else 1.
set -uo pipefail
# Numbers are written with a point.
export LC_ALL=C

here=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
rounds=${ROUNDS:-3} limit=${LIMIT:-540} device=${DEVICE:-cuda} log=${LOG:-$here/docs/performance/cuda.md}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
summary=() bad=0

say() { printf '\n=== %s\n' "$*"; }
ok() { summary+=("pass     $*"); echo "pass: $*"; }
skip() { summary+=("skipped  $*"); echo "skipped: $*"; }
fail() { summary+=("FAIL     $*"); echo "FAIL: $*"; bad=1; }

# check WHAT COMMAND...: runs it within the limit and notes how it ended.
check() {
    local what=$1 code=0 began=$SECONDS
    shift
    echo "--- $what"
    timeout -k 10 "$limit" "$@" || code=$?
    case $code in
        0) ok "$what ($((SECONDS - began)) s)" ;;
        124 | 137) fail "$what: not done after $limit s" ;;
        *) fail "$what: exit code $code" ;;
    esac
    return $code
}

build() {
    local to=$1 line
    mkdir -p "$to" || return 1
    (cd "$here" && cargo build --release --bins --examples) || return 1
    local out
    out=$(cd "$here" && cargo metadata --no-deps --format-version 1 | sed 's/.*"target_directory":"\([^"]*\)".*/\1/') || return 1
    cp "$out"/release/{oflow,oflaunch} "$out"/release/examples/{train,gpt} "$to" || return 1
    # `Executable cuda/main.rs (target/release/deps/cuda-0123456789abcdef)`
    (cd "$here" && cargo test --release --no-run --test cuda --test cuda_fft --test cuda_linalg --bench cuda_speed 2>&1) | tee "$work/tests" | grep -v Executable
    while read -r line; do
        local file name
        file=$(sed 's/.*(\(.*\)).*/\1/' <<<"$line")
        [[ $file = /* ]] || file=$here/$file
        name=$(basename "$file")
        cp "$file" "$to/${name%-*}" || return 1
    done < <(grep -E 'Executable (cuda/main|tests/cuda_fft|tests/cuda_linalg|benches/cuda_speed).rs' "$work/tests")
    echo "built into $to: $(ls "$to" | tr '\n' ' ')"
}

# needs NAME...: whether these executables are there; says so if not.
needs() {
    local name
    for name in "$@"; do
        [[ -x $BIN/$name ]] || { skip "$stage: $BIN has no '$name'"; return 1; }
    done
}

stage_ops() {
    needs cuda || return
    check "every op, its gradients and signatures on 1, 2 and 4 ranks, waits, training, on the GPU" \
        env OFLOW_TEST_GPU=1 "$BIN/cuda" --test-threads 1 --skip boxing:: --skip failure::
    local name
    for name in cuda_fft cuda_linalg; do
        needs "$name" && check "$name: transforms and decompositions by NVIDIA's libraries" env OFLOW_TEST_GPU=1 "$BIN/$name" --test-threads 1
    done
}

stage_nccl() {
    if needs cuda; then
        check "boxing between GPUs, and between ranks that share one" \
            env OFLOW_TEST_GPU=1 "$BIN/cuda" --test-threads 1 boxing::
    fi
    needs oflaunch train || return
    check "NCCL with one rank" \
        env OFLOW_COMM=nccl "$BIN/oflaunch" -n 1 "$BIN/train" -- --device "$device" --steps 20
}

stage_train() {
    needs train gpt || return
    local program args
    for program in train gpt; do
        args=(--steps 20)
        [[ $program = gpt ]] && args+=(--sample 0)
        [[ $program = gpt && -n ${TINY:-} ]] && args+=(--dim 32 --seq 32 --batch 4)
        check "$program: 20 steps on the CPU" "$BIN/$program" "${args[@]}" >"$work/$program" || continue
        check "$program: 20 steps in f32 on $device agree with the CPU to 1e-4" \
            "$here/scripts/losses.sh" agree "$work/$program" 1e-4 "$BIN/$program" "${args[@]}" --device "$device"
        for low in bf16 f16; do
            check "$program: 20 steps in $low on $device agree with f32 to 3e-2" \
                "$here/scripts/losses.sh" agree "$work/$program" 3e-2 \
                "$BIN/$program" "${args[@]}" --device "$device" --autocast $low
        done
        [[ -x $BIN/oflaunch ]] || { skip "$program on several ranks: $BIN has no 'oflaunch'"; continue; }
        for ranks in 2 4; do
            check "$program: 20 steps on $ranks ranks that share the GPU agree with the CPU to 1e-4" \
                "$here/scripts/losses.sh" agree "$work/$program" 1e-4 \
                env OFLOW_COMM=staged "$BIN/oflaunch" -n $ranks "$BIN/$program" -- "${args[@]}" \
                --device "$device" --parallel 2d
        done
    done
}

stage_sanitize() {
    local tool
    tool=$(command -v compute-sanitizer || ls /usr/local/cuda*/bin/compute-sanitizer 2>/dev/null | head -1)
    [[ -n $tool ]] || { skip "sanitize: compute-sanitizer is not on the PATH and not in /usr/local/cuda"; return; }
    needs cuda || return
    local ops=add,where,sum,softmax,layer_norm,cross_entropy,embedding,matmul,attention,dropout,adamw_step,permute,concat
    check "compute-sanitizer memcheck" env OFLOW_TEST_GPU=1 OFLOW_TEST_OPS=$ops \
        "$tool" --tool memcheck --error-exitcode 9 "$BIN/cuda" --test-threads 1 every_op_gives_the_cpus_result
    check "compute-sanitizer racecheck" env OFLOW_TEST_GPU=1 OFLOW_TEST_OPS=sum,softmax,layer_norm,matmul,attention \
        "$tool" --tool racecheck --error-exitcode 9 "$BIN/cuda" --test-threads 1 every_op_gives_the_cpus_result
}

# What each result must reach: name, of what (copy bandwidth or PyTorch's result), ratio; `most` for an upper bound.
targets() {
    cat <<'TABLE'
copy                       torch 0    least
add                        copy  0.85 least
softmax                    copy  0.85 least
layer_norm                 copy  0.85 least
adamw                      copy  0.85 least
matmul_bf16_8192           torch 0.95 least
attention_forward          torch 0.7  least
attention_backward         torch 0.7  least
attention_causal_forward   torch 0.7  least
attention_causal_backward  torch 0.7  least
host_add_8x8               torch 0    least
tiny_gpt                   torch 2    least
gpt2                       torch 1    least
gpt2_peak                  torch 1    most
TABLE
}

# measure NAMES: both sides in turn, $rounds times; compares the medians.
measure() {
    needs cuda_speed || return
    local names=$1 round options=(--device "$device" --only "$1")
    [[ -n ${TINY:-} ]] && options+=(--tiny)
    : >"$work/ours.$stage" >"$work/torch.$stage"
    for ((round = 1; round <= rounds; round++)); do
        echo "--- $stage, round $round of $rounds: oflow"
        timeout -k 10 "$limit" "$BIN/cuda_speed" "${options[@]}" | tee -a "$work/ours.$stage" ||
            fail "$stage: cuda_speed ended with an error or after $limit s"
        [[ -n ${PYTHON:-} ]] || continue
        echo "--- $stage, round $round of $rounds: PyTorch"
        timeout -k 10 "$limit" "$PYTHON" "$here/scripts/peers/cuda_torch.py" "${options[@]}" | tee -a "$work/torch.$stage" ||
            fail "$stage: cuda_torch.py ended with an error or after $limit s"
    done
    [[ -n ${PYTHON:-} ]] || skip "$stage beside PyTorch: PYTHON names no Python with torch"
    targets | awk -v ours="$work/ours.$stage" -v torch="$work/torch.$stage" '
        function load(file, into, units,    line, f, n) {
            while ((getline line < file) > 0)
                if (split(line, f, " ") >= 3 && f[1] == "RESULT") { n = ++into[f[2], 0]; into[f[2], n] = f[3]; units[f[2]] = f[4] }
        }
        function median(v, name,    n, i, j, t, s) {
            n = v[name, 0]
            for (i = 1; i <= n; i++) s[i] = v[name, i] + 0
            for (i = 2; i <= n; i++) for (j = i; j > 1 && s[j] < s[j - 1]; j--) { t = s[j]; s[j] = s[j - 1]; s[j - 1] = t }
            return n % 2 ? s[(n + 1) / 2] : (s[n / 2] + s[n / 2 + 1]) / 2
        }
        BEGIN { load(ours, a, unit); load(torch, b, unit) }
        a[$1, 0] {
            mine = median(a, $1); other = b[$1, 0] ? median(b, $1) : 0
            base = $2 == "torch" ? other : median(a, "copy")
            # The faster of the two copies is the bandwidth.
            if ($2 == "copy" && b["copy", 0] && median(b, "copy") > base) base = median(b, "copy")
            ratio = base > 0 ? mine / base : 0
            verdict = "no target"
            if ($3 > 0) verdict = base == 0 ? "not compared" : ($4 == "least" ? ratio >= $3 : ratio <= $3) ? "pass" : "MISS"
            want = $3 == 0 ? "-" : ($4 == "least" ? "at least " : "at most ") $3 " of " ($2 == "copy" ? "copy" : "PyTorch")
            printf "| %s | %.4g %s | %s | %s | %s | %s |\n", $1, mine, unit[$1], \
                (other ? sprintf("%.4g", other) : "-"), (base ? sprintf("%.3f", ratio) : "-"), want, verdict
        }' >"$work/table.$stage"
    [[ -s $work/table.$stage ]] || return
    local head='| measured | oflow | PyTorch | ratio | target | |
|---|---|---|---|---|---|'
    echo "$head"
    cat "$work/table.$stage"
    while IFS='|' read -r _ name _ _ ratio want verdict _; do
        case ${verdict// /} in
            pass) ok "$stage:$name ratio$ratio(${want# })" ;;
            MISS) fail "$stage:$name ratio$ratio, target:$want" ;;
        esac
    done <"$work/table.$stage"
    {
        printf '\n### %s: %s\n\n' "$(date -u +%Y-%m-%d)" "$stage"
        printf '%s; oflow %s; %s; medians of %s runs in turn%s.\n\n' "$(card)" "$(version)" "$(peer)" "$rounds" "${TINY:+, tiny sizes}"
        echo "$head"
        cat "$work/table.$stage"
    } >>"$log" || fail "$stage: cannot append to $log"
}

card() {
    [[ $device = cuda ]] || { echo "no GPU (DEVICE=$device)"; return; }
    nvidia-smi --query-gpu=name,driver_version,power.limit --format=csv,noheader 2>/dev/null | head -1 || echo "unknown GPU"
}
version() { git -C "$here" describe --always --dirty 2>/dev/null || echo "of unknown version"; }
peer() {
    [[ -n ${PYTHON:-} ]] || { echo "no PyTorch"; return; }
    "$PYTHON" -c 'import torch; print("PyTorch", torch.__version__)'
}

stage_bench() { measure copy,add,softmax,layer_norm,adamw,matmul,attention,host,tiny; }
stage_gpt() { measure gpt2; }

all=(ops nccl train sanitize bench gpt)
case ${1:-} in
    -h | --help) sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p;}' "${BASH_SOURCE[0]}"; exit 0 ;;
    build)
        [[ -n ${2:-} ]] || { echo "build needs a folder"; exit 2; }
        build "$2"
        exit
        ;;
esac
stages=("${@:-${all[@]}}")
[[ $# -gt 0 ]] || stages=("${all[@]}")
for stage in "${stages[@]}"; do
    [[ " ${all[*]} " = *" $stage "* ]] || { echo "there is no stage '$stage'; stages: ${all[*]}"; exit 2; }
done
if [[ -z ${BIN:-} ]]; then
    command -v cargo >/dev/null || { echo "there is no cargo here: name a folder of executables in BIN (gpu-check.sh build DIR makes one)"; exit 2; }
    BIN=$here/target/gpu-check
    say "build"
    build "$BIN" || { echo "the build failed"; exit 1; }
fi
# Wheels have libnvrtc.so.13 and the like: links of the names that are looked for, and the folders themselves, at the end
# of the search path.
if [[ -n ${PYTHON:-} ]]; then
    mkdir -p "$work/lib"
    path=$work/lib
    packages=$("$PYTHON" -c 'import nvidia; print(list(nvidia.__path__)[0])' 2>/dev/null)
    for name in nvrtc cublasLt nccl cufft cusolver cudnn; do
        [[ -n $packages ]] || break
        file=$(find "$packages" -name "lib$name.so*" | sort | head -1)
        [[ -n $file ]] || continue
        ln -sf "$file" "$work/lib/lib$name.so"
        path=$path:$(dirname "$file")
    done
    export LD_LIBRARY_PATH=${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$path
fi
say "machine"
[[ -x $BIN/oflow ]] && "$BIN/oflow" doctor
if [[ $device = cuda ]] && ! "$BIN/train" --device cuda --steps 1 >/dev/null 2>"$work/why"; then
    cat "$work/why"
    echo "no stage was run: this machine cannot run Device::Cuda"
    exit 1
fi
for stage in "${stages[@]}"; do
    say "$stage"
    "stage_$stage"
done
say "summary"
printf '%s\n' "${summary[@]}"
exit $bad
