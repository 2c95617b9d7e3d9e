//! CUDA graphs: work of one stream that is captured in place of being done, and is launched as one piece of work, again and again.
//!
//! The driver's rules for captures are kept where code can break them: a synchronisation, a wait for work outside, and memory that is allocated or
//! freed by the thread that captures make the capture invalid. Of what a driver captures, events, host functions and NCCL are refused.

use std::cell::Cell;
use std::ffi::{c_int, c_ulonglong, c_void};
use std::sync::{Arc, Mutex};

use super::codes::*;
use super::stream::Work;
use super::*;

/// A captured graph; none once it has been made executable: its work has one owner.
struct Graph(Mutex<Option<Vec<Work>>>);

/// An executable graph. Launches of it follow each other.
struct Exec {
    gpu: &'static Gpu,
    work: Arc<Mutex<Vec<Work>>>,
}

static GRAPHS: Table<Graph> = Table::new();
static EXECS: Table<Exec> = Table::new();

thread_local! {
    /// Streams that this thread captures, but for those whose mode allows everything.
    static CAPTURES: Cell<usize> = const { Cell::new(0) };
}

const RELAXED: c_int = 2;

/// An error where the thread captures: for calls that wait for the device.
pub fn safe_in_captures() -> Outcome {
    if CAPTURES.get() == 0 { Ok(()) } else { Err(STREAM_CAPTURE_UNSUPPORTED) }
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamBeginCapture_v2(handle: usize, mode: c_int) -> i32 {
    status(current().and_then(|_| {
        if !(0..=RELAXED).contains(&mode) {
            return Err(INVALID_VALUE);
        }
        if handle <= 2 {
            return Err(STREAM_CAPTURE_UNSUPPORTED);
        }
        let strict = mode != RELAXED;
        stream::find(handle)?.begin_capture(strict)?;
        if strict {
            CAPTURES.set(CAPTURES.get() + 1);
        }
        Ok(())
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamEndCapture(handle: usize, graph: *mut usize) -> i32 {
    status(current_even_if_failed().and_then(|_| {
        let capture = stream::find(handle)?.end_capture()?;
        if capture.strict {
            CAPTURES.set(CAPTURES.get().saturating_sub(1));
        }
        if capture.broken {
            return Err(STREAM_CAPTURE_INVALIDATED);
        }
        let made = GRAPHS.insert(Graph(Mutex::new(Some(capture.work))));
        // SAFETY: the caller gives a place for the result.
        unsafe { put(graph, made) }
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuGraphInstantiateWithFlags(exec: *mut usize, graph: usize, _flags: c_ulonglong) -> i32 {
    status(current().and_then(|gpu| {
        let graph = GRAPHS.get(graph).ok_or(INVALID_HANDLE)?;
        let work = lock(&graph.0).take().ok_or(NOT_SUPPORTED)?;
        let made = EXECS.insert(Exec { gpu, work: Arc::new(Mutex::new(work)) });
        // SAFETY: the caller gives a place for the result.
        unsafe { put(exec, made) }
    }))
}

#[unsafe(no_mangle)]
extern "C" fn cuGraphLaunch(exec: usize, handle: usize) -> i32 {
    status(current().and_then(|gpu| {
        let (exec, stream) = (EXECS.get(exec).ok_or(INVALID_HANDLE)?, stream::find(handle)?);
        if !std::ptr::eq(exec.gpu, gpu) {
            return Err(INVALID_HANDLE);
        }
        stream.not_captured(STREAM_CAPTURE_UNSUPPORTED)?;
        let work = exec.work.clone();
        stream.work(move |worker| lock(&work).iter_mut().try_for_each(|work| work(worker)));
        Ok(())
    }))
}

/// The number of nodes; the nodes themselves have no handles here.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuGraphGetNodes(graph: usize, nodes: *mut c_void, count: *mut usize) -> i32 {
    status(current().and_then(|_| {
        let graph = GRAPHS.get(graph).ok_or(INVALID_HANDLE)?;
        if !nodes.is_null() {
            return Err(NOT_SUPPORTED);
        }
        let there = lock(&graph.0).as_ref().map_or(0, Vec::len);
        // SAFETY: the caller gives a place for the result.
        unsafe { put(count, there) }
    }))
}

#[unsafe(no_mangle)]
extern "C" fn cuGraphDestroy(graph: usize) -> i32 {
    status(GRAPHS.remove(graph).map(drop).ok_or(INVALID_HANDLE))
}

/// Launches that have been issued are still done.
#[unsafe(no_mangle)]
extern "C" fn cuGraphExecDestroy(exec: usize) -> i32 {
    status(EXECS.remove(exec).map(drop).ok_or(INVALID_HANDLE))
}
