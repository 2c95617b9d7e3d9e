//! Kernels: compiled, launched, right; and what goes wrong in them is said.

mod common;
use common::*;
use cudarc::driver::sys;
use cudarc::driver::sys::CUresult;

const ADD: &str = r#"
extern "C" __global__ void add(float* out, const float* x, const float* y, long long n) {
    long long i = blockIdx.x * (long long)blockDim.x + threadIdx.x;
    if (i < n) out[i] = x[i] + y[i];
}"#;

#[test]
fn vectors_are_added() {
    if !emulated() {
        return;
    }
    enter(0);
    let n = 100_003usize;
    let x: Vec<f32> = (0..n).map(|i| i as f32).collect();
    let (mut dx, mut dy, mut out) = (upload(&x), upload(&x), alloc(n * 4));
    let mut count = n as i64;
    let function = kernel(ADD, "add");
    let mut params = [arg(&mut out), arg(&mut dx), arg(&mut dy), arg(&mut count)];
    assert_eq!(launch(function, n.div_ceil(256) as u32, 256, 0, stream(), &mut params), OK);
    assert!(download::<f32>(out, n).iter().enumerate().all(|(i, &y)| y == 2.0 * i as f32));
}

#[test]
fn blocks_reduce_through_shared_memory_and_shuffles() {
    if !emulated() {
        return;
    }
    enter(0);
    let function = kernel(
        r#"
        extern "C" __global__ void __launch_bounds__(1024) sum(float* out, const float* x, int n) {
            __shared__ float room[32];
            float v = 0;
            for (int i = threadIdx.x; i < n; i += blockDim.x) v += x[i];
            for (int step = 16; step > 0; step >>= 1) v += __shfl_xor_sync(0xffffffffu, v, step);
            if ((threadIdx.x & 31) == 0) room[threadIdx.x >> 5] = v;
            __syncthreads();
            if (threadIdx.x < 32) {
                v = threadIdx.x < blockDim.x / 32 ? room[threadIdx.x] : 0;
                for (int step = 16; step > 0; step >>= 1) v += __shfl_down_sync(0xffffffffu, v, step);
                if (threadIdx.x == 0) atomicAdd(out, v);
            }
        }"#,
        "sum",
    );
    let x: Vec<f32> = (0..5000).map(|i| (i % 13) as f32).collect();
    for threads in [32, 64, 256, 1024] {
        let (mut out, mut dx, mut n) = (upload(&[0f32]), upload(&x), x.len() as i32);
        let mut params = [arg(&mut out), arg(&mut dx), arg(&mut n)];
        assert_eq!(launch(function, 3, threads, 0, stream(), &mut params), OK);
        assert_eq!(download::<f32>(out, 1), [3.0 * x.iter().sum::<f32>()]);
    }
}

#[test]
fn dynamic_shared_memory_needs_permission_beyond_48_kib_and_threads_keep_their_bounds() {
    if !emulated() {
        return;
    }
    enter(0);
    let function = kernel(
        r#"extern "C" __global__ __launch_bounds__(128) void turn(int* out, int n) {
            int* room = (int*)of_emu_dynamic_shared();
            for (int i = threadIdx.x; i < n; i += blockDim.x) room[i] = i;
            __syncthreads();
            for (int i = threadIdx.x; i < n; i += blockDim.x) out[i] = room[n - 1 - i];
        }"#,
        "turn",
    );
    let mut n = 20_000i32;
    let mut out = alloc(n as usize * 4);
    let mut params = [arg(&mut out), arg(&mut n)];
    let null = std::ptr::null_mut();
    assert_eq!(launch(function, 1, 128, 80_000, null, &mut params), CUresult::CUDA_ERROR_INVALID_VALUE);
    let most = sys::CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
    unsafe {
        assert_eq!(sys::cuFuncSetAttribute(function, most, 300_000), CUresult::CUDA_ERROR_INVALID_VALUE);
        assert_eq!(sys::cuFuncSetAttribute(function, most, 80_000), OK);
    }
    assert_eq!(launch(function, 1, 256, 80_000, null, &mut params), CUresult::CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
    assert_eq!(launch(function, 1, 2048, 80_000, null, &mut params), CUresult::CUDA_ERROR_INVALID_VALUE);
    assert_eq!(launch(function, 0, 128, 80_000, null, &mut params), CUresult::CUDA_ERROR_INVALID_VALUE);
    assert_eq!(launch(function, 1, 128, 80_000, null, &mut params), OK);
    assert!(download::<i32>(out, n as usize).iter().enumerate().all(|(i, &x)| x == n - 1 - i as i32));
}

#[test]
fn headers_macros_and_errors_of_the_compiler() {
    if !emulated() {
        return;
    }
    enter(0);
    let source = "#include \"parts/scale.cuh\"\n#ifdef NEVER\nextern \"C\" __global__ void gone(unknown x) {}\n#endif\n\
                  #define KERNEL(name) extern \"C\" __global__ void name\n\
                  KERNEL(scale)(double* x) { x[threadIdx.x] *= SCALE; }\n";
    let header = ("parts/scale.cuh", "#pragma once\n#define SCALE FACTOR\n");
    let image = compile(source, &[header], &["-DFACTOR=2.5", "--use_fast_math"]).unwrap();
    let mut x = upload(&[1.0f64, 2.0]);
    assert_eq!(launch(function(&image, "scale"), 1, 2, 0, std::ptr::null_mut(), &mut [arg(&mut x)]), OK);
    assert_eq!(download::<f64>(x, 2), [2.5, 5.0]);
    let log = compile("\n\nextern \"C\" __global__ void f(int* x) { *x = nonsense; }", &[], &[]).unwrap_err();
    assert!(log.contains("test.cu(3): error:") && log.contains("nonsense"), "{log}");
}

/// The text of the sticky error that a kernel ends with; the GPU is well again afterwards.
fn failure(source: &str, threads: u32, code: CUresult) -> String {
    let function = kernel(source, "f");
    let mut x = alloc(4096);
    let stream = stream();
    assert_eq!(launch(function, 1, threads, 0, stream, &mut [arg(&mut x)]), OK);
    unsafe {
        assert_eq!(sys::cuStreamSynchronize(stream), code);
        // It sticks.
        let mut at = 0;
        assert_eq!(sys::cuMemAlloc_v2(&mut at, 16), code);
        let mut text = std::ptr::null();
        assert_eq!(sys::cuGetErrorString(code, &mut text), OK);
        let text = std::ffi::CStr::from_ptr(text).to_str().unwrap().to_owned();
        assert_eq!(sys::cuDevicePrimaryCtxReset_v2(3), OK);
        text
    }
}

#[test]
fn kernels_that_hang_or_trap_or_stray_are_told() {
    if !emulated() {
        return;
    }
    enter(3);
    let failed = CUresult::CUDA_ERROR_LAUNCH_FAILED;
    let split = r#"extern "C" __global__ void f(int* x) {
        if (threadIdx.x != 32) __syncthreads(); else x[0] = __shfl_sync(0xffffffffu, 1, 0);
    }"#;
    assert!(failure(split, 64, failed).contains("the block is stuck"));
    let text = failure("extern \"C\" __global__ void f(int* x) { if (threadIdx.x == 3) __trap(); }", 32, failed);
    assert!(text.contains("trap (block 0,0,0 thread 3,0,0)"), "{text}");
    let outside = "extern \"C\" __global__ void f(int* x) { x[threadIdx.x] = __shfl_sync(0xffu, 1, 9); }";
    assert!(failure(outside, 8, failed).contains("not in its mask"));
    let gone = r#"extern "C" __global__ void f(int* x) {
        if (threadIdx.x == 0) return;
        x[threadIdx.x] = __shfl_sync(0xffffffffu, 1, 3);
    }"#;
    assert!(failure(gone, 32, failed).contains("lanes 00000001 of the warp have ended"));
    let wild = CUresult::CUDA_ERROR_ILLEGAL_ADDRESS;
    let null = "extern \"C\" __global__ void f(int* x) { if (threadIdx.x == 1) *(volatile int*)16 = 1; }";
    assert!(failure(null, 32, wild).contains("not mapped"));
    // Threads that have ended count as arrived: this is allowed.
    let early = r#"extern "C" __global__ void f(int* x) {
        if (threadIdx.x >= 40) return;
        __syncthreads();
        x[threadIdx.x] = __syncthreads_count(threadIdx.x % 2);
    }"#;
    enter(0);
    let mut x = alloc(4096);
    assert_eq!(launch(kernel(early, "f"), 1, 64, 0, std::ptr::null_mut(), &mut [arg(&mut x)]), OK);
    assert_eq!(download::<i32>(x, 40), [20; 40]);
}

#[test]
fn what_is_read_before_it_is_written_or_waited_for_is_not_a_number() {
    if !emulated() {
        return;
    }
    enter(0);
    // Shared memory does not keep what the block before wrote.
    let stale = r#"extern "C" __global__ void f(float* x) {
        __shared__ float room[32];
        float before = room[threadIdx.x];
        room[threadIdx.x] = 1.0f;
        __syncthreads();
        x[blockIdx.x * 32 + threadIdx.x] = before + room[31 - threadIdx.x];
    }"#;
    let mut x = alloc(4096);
    assert_eq!(launch(kernel(stale, "f"), 2, 32, 0, std::ptr::null_mut(), &mut [arg(&mut x)]), OK);
    assert!(download::<f32>(x, 64)[32..].iter().all(|x| x.is_nan()));
    // A barrier is missing: the first threads read what the others have not yet written.
    let racing = r#"extern "C" __global__ void f(float* x) {
        __shared__ float room[64];
        room[threadIdx.x] = 1.0f;
        x[threadIdx.x] = room[63 - threadIdx.x];
    }"#;
    assert_eq!(launch(kernel(racing, "f"), 1, 64, 0, std::ptr::null_mut(), &mut [arg(&mut x)]), OK);
    assert!(download::<f32>(x, 64)[..32].iter().all(|x| x.is_nan()));
    // A copy lands when its group is waited for, and not before.
    let copies = r#"extern "C" __global__ void f(float* out, const float* x) {
        __shared__ __align__(16) float room[2][4];
        of_emu_copy_async(room[0], x, 16, true);
        of_emu_copy_commit();
        of_emu_copy_async(room[1], x + 4, 16, true);
        of_emu_copy_async(&room[1][3], x, 4, false);
        of_emu_copy_commit();
        out[0] = room[0][0];
        of_emu_copy_wait(1);
        out[1] = room[0][0], out[2] = room[1][0];
        of_emu_copy_wait(0);
        out[3] = room[1][0], out[4] = room[1][3];
    }"#;
    let (mut out, mut x) = (alloc(64), upload(&[1f32, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]));
    assert_eq!(launch(kernel(copies, "f"), 1, 1, 0, std::ptr::null_mut(), &mut [arg(&mut out), arg(&mut x)]), OK);
    let got = download::<f32>(out, 5);
    assert!(got[0].is_nan() && got[2].is_nan() && [got[1], got[3], got[4]] == [1.0, 5.0, 0.0], "{got:?}");
}
