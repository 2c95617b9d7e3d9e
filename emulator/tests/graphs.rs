//! Graphs: what a stream captures is not done then, and is done by each launch; calls that a capture does not take make it invalid.

mod common;
use common::*;
use cudarc::driver::sys;
use cudarc::driver::sys::CUresult;
use cudarc::driver::sys::CUresult::*;

const STEP: &str = r#"
extern "C" __global__ void step(int* to, const int* from, int n, int add) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) to[i] = from[n - 1 - i] + add;
}"#;

const STRICT: sys::CUstreamCaptureMode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;

/// Begins a capture, issues, ends it.
fn captured(stream: sys::CUstream, issue: impl FnOnce()) -> (CUresult, sys::CUgraph) {
    let mut graph = std::ptr::null_mut();
    unsafe {
        assert_eq!(sys::cuStreamBeginCapture_v2(stream, STRICT), OK);
        issue();
        (sys::cuStreamEndCapture(stream, &mut graph), graph)
    }
}

#[test]
fn a_graph_does_at_each_launch_what_was_captured() {
    if !emulated() {
        return;
    }
    enter(0);
    let (step, stream, n) = (kernel(STEP, "step"), stream(), 1000usize);
    let (mut a, mut b) = (upload(&vec![7i32; n]), alloc(n * 4));
    let (mut count, mut add) = (n as i32, 3i32);
    let (ended, graph) = captured(stream, || unsafe {
        assert_eq!(
            launch(step, 4, 256, 0, stream, &mut [arg(&mut b), arg(&mut a), arg(&mut count), arg(&mut add)]),
            OK
        );
        // The parameters are those of the launch, whatever becomes of them.
        add = 100;
        assert_eq!(sys::cuMemcpyDtoDAsync_v2(a, b, n * 4, stream), OK);
        assert_eq!(sys::cuMemsetD32Async(b, 1, n, stream), OK);
    });
    assert_eq!(ended, OK);
    assert_eq!(download::<i32>(a, n), vec![7; n], "nothing has been done");
    let (mut nodes, mut exec) = (0, std::ptr::null_mut());
    unsafe {
        assert_eq!(sys::cuGraphGetNodes(graph, std::ptr::null_mut(), &mut nodes), OK);
        assert_eq!(sys::cuGraphInstantiateWithFlags(&mut exec, graph, 0), OK);
        assert_eq!(sys::cuGraphDestroy(graph), OK);
        (0..5).for_each(|_| assert_eq!(sys::cuGraphLaunch(exec, stream), OK));
        // Launches that have been issued are done.
        assert_eq!(sys::cuGraphExecDestroy(exec), OK);
        assert_eq!(sys::cuGraphLaunch(exec, stream), CUDA_ERROR_INVALID_HANDLE);
    }
    assert_eq!(nodes, 3);
    assert_eq!((download::<i32>(a, n), download::<i32>(b, n)), (vec![7 + 5 * 3; n], vec![1; n]));
}

#[test]
fn calls_that_wait_or_need_work_outside_make_a_capture_invalid() {
    if !emulated() {
        return;
    }
    enter(0);
    let (one, other, at) = (stream(), stream(), alloc(64));
    let outside = event();
    unsafe { assert_eq!(sys::cuEventRecord(outside, other), OK) };
    let refused: [(&dyn Fn() -> CUresult, CUresult); 5] = [
        (&|| unsafe { sys::cuStreamSynchronize(one) }, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED),
        (&|| unsafe { sys::cuStreamQuery(one) }, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED),
        (&|| unsafe { sys::cuStreamWaitEvent(one, outside, 0) }, CUDA_ERROR_STREAM_CAPTURE_ISOLATION),
        (
            &|| unsafe { sys::cuMemcpyDtoHAsync_v2(vec![0u8; 64].as_mut_ptr().cast(), at, 64, one) },
            CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED,
        ),
        (&|| unsafe { sys::cuEventRecord(event(), one) }, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED),
    ];
    for (call, code) in refused {
        let (ended, _) = captured(one, || assert_eq!(call(), code));
        assert_eq!(ended, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED);
    }
    let (mut block, mut is_capturing) = (0, sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_NONE);
    let (ended, graph) = captured(one, || unsafe {
        assert_eq!(sys::cuStreamIsCapturing(one, &mut is_capturing), OK);
        assert_eq!(sys::cuStreamBeginCapture_v2(one, STRICT), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        assert_eq!(sys::cuMemAlloc_v2(&mut block, 64), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
        // Another stream works as ever.
        assert_eq!(sys::cuMemsetD8Async(at, 5, 64, other), OK);
        assert_eq!(sys::cuStreamSynchronize(other), OK);
    });
    assert_eq!((ended, is_capturing), (OK, sys::CUstreamCaptureStatus::CU_STREAM_CAPTURE_STATUS_ACTIVE));
    let mut none = std::ptr::null_mut();
    unsafe {
        assert_eq!(sys::cuGraphDestroy(graph), OK);
        assert_eq!(sys::cuMemAlloc_v2(&mut block, 64), OK);
        assert_eq!(sys::cuStreamEndCapture(one, &mut none), CUDA_ERROR_STREAM_CAPTURE_UNMATCHED);
        assert_eq!(sys::cuStreamBeginCapture_v2(std::ptr::null_mut(), STRICT), CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED);
    }
    assert_eq!(download::<u8>(at, 64), vec![5; 64]);
}
