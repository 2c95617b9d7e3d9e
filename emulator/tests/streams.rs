//! Streams and events order work, and nothing else does; handles, pointers and contexts are checked.

mod common;
use common::*;
use cudarc::driver::sys;
use cudarc::driver::sys::CUresult;

const CHAIN: &str = r#"
extern "C" __global__ void fill(int* x, int n, int value) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = value;
}
extern "C" __global__ void step(int* to, const int* from, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) to[i] = from[n - 1 - i] + 1;
}"#;

/// Two streams hand a buffer to and fro; how many of the values are right at the end.
fn relay(waits: bool) -> usize {
    let n = 4096usize;
    let image = compile(CHAIN, &[], &[]).unwrap();
    let (fill, step) = (function(&image, "fill"), function(&image, "step"));
    let (mut a, mut b, mut count) = (alloc(n * 4), alloc(n * 4), n as i32);
    let streams = [stream(), stream()];
    let mut last = event();
    let mut zero = 0i32;
    launch(fill, 16, 256, 0, streams[0], &mut [arg(&mut a), arg(&mut count), arg(&mut zero)]);
    unsafe { assert_eq!(sys::cuEventRecord(last, streams[0]), OK) };
    let rounds = 20;
    for round in 0..rounds {
        let stream = streams[(round + 1) % 2];
        if waits {
            unsafe { assert_eq!(sys::cuStreamWaitEvent(stream, last, 0), OK) };
        }
        assert_eq!(launch(step, 16, 256, 0, stream, &mut [arg(&mut b), arg(&mut a), arg(&mut count)]), OK);
        std::mem::swap(&mut a, &mut b);
        last = event();
        unsafe { assert_eq!(sys::cuEventRecord(last, stream), OK) };
    }
    download::<i32>(a, n).iter().filter(|&&x| x == rounds as i32).count()
}

#[test]
fn events_order_streams_and_without_them_delays_show() {
    // SAFETY: before the emulator is used; the other tests do not mind delays.
    unsafe { std::env::set_var("OFLOW_EMULATOR_DELAY_US", "300") };
    if !emulated() {
        return;
    }
    enter(0);
    assert_eq!(relay(true), 4096);
    assert!((0..5).any(|_| relay(false) != 4096), "streams that nothing orders kept the order five times");
}

#[test]
fn events_know_when() {
    if !emulated() {
        return;
    }
    enter(0);
    unsafe {
        let (start, end, never) = (event(), event(), event());
        let stream = stream();
        assert_eq!(sys::cuEventQuery(never), OK);
        assert_eq!(sys::cuStreamWaitEvent(stream, never, 0), OK);
        assert_eq!(sys::cuEventRecord(start, stream), OK);
        unsafe extern "C" fn nap(_: *mut std::ffi::c_void) {
            std::thread::sleep(std::time::Duration::from_millis(30));
        }
        assert_eq!(sys::cuLaunchHostFunc(stream, Some(nap), std::ptr::null_mut()), OK);
        assert_eq!(sys::cuEventRecord(end, stream), OK);
        assert_eq!(sys::cuEventQuery(end), CUresult::CUDA_ERROR_NOT_READY);
        assert_eq!(sys::cuStreamQuery(stream), CUresult::CUDA_ERROR_NOT_READY);
        let mut ms = 0.0;
        assert_eq!(sys::cuEventElapsedTime_v2(&mut ms, start, never), CUresult::CUDA_ERROR_INVALID_HANDLE);
        assert_eq!(sys::cuEventSynchronize(end), OK);
        assert_eq!(sys::cuEventElapsedTime_v2(&mut ms, start, end), OK);
        assert!((29.0..1000.0).contains(&ms), "{ms}");
        assert_eq!(sys::cuStreamDestroy_v2(stream), OK);
        assert_eq!(sys::cuStreamDestroy_v2(stream), CUresult::CUDA_ERROR_INVALID_HANDLE);
        assert_eq!(sys::cuStreamSynchronize(stream), CUresult::CUDA_ERROR_INVALID_HANDLE);
        assert_eq!(sys::cuEventDestroy_v2(end), OK);
        assert_eq!(sys::cuEventRecord(end, std::ptr::null_mut()), CUresult::CUDA_ERROR_INVALID_HANDLE);
    }
}

#[test]
fn a_thread_needs_a_context_and_pointers_must_be_live() {
    if !emulated() {
        return;
    }
    let context = enter(0);
    let at = upload(&[1u8; 100]);
    std::thread::spawn(move || unsafe {
        let mut other = 0;
        assert_eq!(sys::cuMemAlloc_v2(&mut other, 4), CUresult::CUDA_ERROR_INVALID_CONTEXT);
        assert_eq!(sys::cuMemFree_v2(at), CUresult::CUDA_ERROR_INVALID_CONTEXT);
    })
    .join()
    .unwrap();
    unsafe {
        let wrong = CUresult::CUDA_ERROR_INVALID_VALUE;
        let mut host = [0u8; 200];
        let to = host.as_mut_ptr().cast();
        assert_eq!(sys::cuMemcpyDtoH_v2(to, at + 50, 50), OK);
        assert_eq!(sys::cuMemcpyDtoH_v2(to, at + 50, 51), wrong);
        assert_eq!(sys::cuMemcpyHtoD_v2(host.as_ptr() as u64, to, 8), wrong);
        assert_eq!(sys::cuMemcpyDtoH_v2(at as *mut _, at, 8), wrong);
        assert_eq!(sys::cuMemsetD32Async(at + 1, 0, 1, std::ptr::null_mut()), wrong);
        assert_eq!(sys::cuMemsetD8Async(at, 7, 101, std::ptr::null_mut()), wrong);
        assert_eq!(sys::cuMemFree_v2(at + 4), wrong);
        let stream = stream();
        assert_eq!(sys::cuMemFreeAsync(at, stream), wrong, "not allocated in the order of a stream");
        assert_eq!(sys::cuMemFree_v2(at), OK);
        let mut at = 0;
        assert_eq!(sys::cuMemAllocAsync(&mut at, 100, stream), OK);
        assert_eq!(sys::cuMemFreeAsync(at, stream), OK);
        // From the call on, not from when the stream comes to it.
        assert_eq!(sys::cuMemcpyDtoH_v2(to, at, 1), wrong);
        assert_eq!(sys::cuMemFreeAsync(at, stream), wrong);
        assert_eq!(sys::cuMemFree_v2(at), wrong);
        let mut pinned = std::ptr::null_mut();
        assert_eq!(sys::cuMemHostAlloc(&mut pinned, 64, 0), OK);
        let device = upload(&[9u8; 64]);
        assert_eq!(sys::cuMemcpyDtoHAsync_v2(pinned, device, 64, stream), OK);
        assert_eq!(sys::cuMemcpyDtoHAsync_v2(pinned.byte_add(1), device, 64, stream), wrong);
        assert_eq!(sys::cuStreamSynchronize(stream), OK);
        assert_eq!(std::slice::from_raw_parts(pinned as *const u8, 64), [9; 64]);
        assert_eq!(sys::cuMemFreeHost(pinned), OK);
        assert_eq!(sys::cuMemFreeHost(pinned), wrong);
        let mut huge = 0;
        assert_eq!(sys::cuMemAlloc_v2(&mut huge, 1 << 40), CUresult::CUDA_ERROR_OUT_OF_MEMORY);
        let mut current = std::ptr::null_mut();
        assert_eq!(sys::cuCtxPushCurrent_v2(context), OK);
        assert_eq!(sys::cuCtxPopCurrent_v2(&mut current), OK);
        assert_eq!(current, context);
        assert_eq!(
            sys::cuModuleLoadData(&mut std::ptr::null_mut(), c"not an image".as_ptr().cast()),
            CUresult::CUDA_ERROR_INVALID_IMAGE
        );
    }
}

#[test]
fn new_memory_is_garbage_and_a_write_behind_a_block_is_told_when_it_is_freed() {
    if !emulated() {
        return;
    }
    enter(2);
    assert_eq!(download::<u8>(alloc(33), 33), [0xCB; 33]);
    let behind = kernel("extern \"C\" __global__ void f(char* x) { x[33] = 1; }", "f");
    let mut at = alloc(33);
    unsafe {
        assert_eq!(launch(behind, 1, 1, 0, std::ptr::null_mut(), &mut [arg(&mut at)]), OK);
        assert_eq!(sys::cuCtxSynchronize(), OK);
        assert_eq!(sys::cuMemFree_v2(at), CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
        assert_eq!(sys::cuDevicePrimaryCtxReset_v2(2), OK);
    }
    // A pointer to what is freed, as an argument.
    let mut at = alloc(33);
    let behind = kernel("extern \"C\" __global__ void f(char* x) { x[33] = 1; }", "f");
    unsafe {
        assert_eq!(sys::cuMemFree_v2(at), OK);
        assert_eq!(launch(behind, 1, 1, 0, std::ptr::null_mut(), &mut [arg(&mut at)]), OK);
        assert_eq!(sys::cuCtxSynchronize(), CUresult::CUDA_ERROR_ILLEGAL_ADDRESS);
        assert_eq!(sys::cuDevicePrimaryCtxReset_v2(2), OK);
    }
}

#[test]
fn small_blocks_may_lie_in_the_middle_of_what_was_a_large_one() {
    if !emulated() {
        return;
    }
    enter(1);
    let large = alloc(64 << 20);
    unsafe { assert_eq!(sys::cuMemFree_v2(large), OK) };
    // As many as reach past the ends that were made garbage, whichever test has memory before them.
    let blocks: Vec<_> = (0..40 << 10).map(|_| alloc(8)).collect();
    for at in blocks {
        unsafe { assert_eq!(sys::cuMemFree_v2(at), OK) };
    }
}

/// Host code that takes a device pointer for its own: what the child of the next test does.
#[test]
#[ignore = "crashes; run by the next test as a child"]
fn touches_device_memory() {
    enter_emulated_and_touch();
}

fn enter_emulated_and_touch() {
    assert!(emulated());
    enter(0);
    let at = upload(&[1u32; 64]);
    unsafe { assert_eq!(sys::cuCtxSynchronize(), OK) };
    // SAFETY: none, which is the point.
    println!("read {}", unsafe { std::ptr::read_volatile(at as *const u32) });
}

#[test]
fn device_memory_is_not_the_hosts() {
    if !emulated() {
        return;
    }
    let child = |strict: &str| {
        std::process::Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "touches_device_memory", "--ignored", "--nocapture"])
            .env("OFLOW_EMULATOR_STRICT", strict)
            .output()
            .unwrap()
    };
    use std::os::unix::process::ExitStatusExt;
    // With protection keys where the CPU has them, and with the rights of pages.
    for strict in ["1", "2"] {
        assert_eq!(child(strict).status.signal(), Some(11), "a host's read of device memory must crash");
    }
    assert!(child("0").status.success());
}
