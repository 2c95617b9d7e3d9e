//! Events: a mark in a stream. Each record makes a new mark; who waits, waits for the mark that was last at the call.

use std::ffi::c_uint;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Instant;

use super::codes::*;
use super::*;

/// One record: when the stream came by, if it has.
struct Mark {
    passed: Mutex<Option<Instant>>,
    bell: Condvar,
}

impl Mark {
    fn pass(&self) {
        *lock(&self.passed) = Some(Instant::now());
        self.bell.notify_all();
    }
    fn when(&self) -> Option<Instant> {
        *lock(&self.passed)
    }
    fn wait(&self) {
        let mut passed = lock(&self.passed);
        while passed.is_none() {
            passed = self.bell.wait(passed).unwrap_or_else(PoisonError::into_inner);
        }
    }
}

struct Event {
    gpu: &'static Gpu,
    flags: c_uint,
    last: Mutex<Option<Arc<Mark>>>,
}

const DISABLE_TIMING: c_uint = 2;
static EVENTS: Table<Event> = Table::new();

fn find(handle: usize) -> Outcome<Arc<Event>> {
    EVENTS.get(handle).ok_or(INVALID_HANDLE)
}

/// Events of a GPU whose context ends.
pub fn forget(gpu: &'static Gpu) {
    EVENTS.retain(|event| !std::ptr::eq(event.gpu, gpu));
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuEventCreate(to: *mut usize, flags: c_uint) -> i32 {
    status(current().and_then(|gpu| {
        if flags > 7 {
            return Err(INVALID_VALUE);
        }
        // SAFETY: the caller gives a place for the result.
        unsafe { put(to, EVENTS.insert(Event { gpu, flags, last: Mutex::new(None) })) }
    }))
}

#[unsafe(no_mangle)]
extern "C" fn cuEventDestroy_v2(handle: usize) -> i32 {
    status(current_even_if_failed().and_then(|_| EVENTS.remove(handle).map(|_| ()).ok_or(INVALID_HANDLE)))
}

#[unsafe(no_mangle)]
extern "C" fn cuEventRecord(handle: usize, stream: usize) -> i32 {
    status(current().and_then(|_| {
        let (event, stream) = (find(handle)?, stream::find(stream)?);
        if !std::ptr::eq(event.gpu, stream.gpu) {
            return Err(INVALID_HANDLE);
        }
        // A driver makes the event part of the graph; nobody here asks for that.
        stream.not_captured(STREAM_CAPTURE_UNSUPPORTED)?;
        let mark = Arc::new(Mark { passed: Mutex::new(None), bell: Condvar::new() });
        *lock(&event.last) = Some(mark.clone());
        stream.control(move || mark.pass());
        Ok(())
    }))
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamWaitEvent(stream: usize, handle: usize, _flags: c_uint) -> i32 {
    status(current().and_then(|_| {
        let (stream, event) = (stream::find_any(stream)?, find(handle)?);
        stream.not_captured(STREAM_CAPTURE_ISOLATION)?;
        // A mark that was passed costs nothing; an event without one is no wait.
        if let Some(mark) = lock(&event.last).clone().filter(|mark| mark.when().is_none()) {
            stream.control(move || mark.wait());
        }
        Ok(())
    }))
}

#[unsafe(no_mangle)]
extern "C" fn cuEventQuery(handle: usize) -> i32 {
    status(current().and_then(|_| match &*lock(&find(handle)?.last) {
        Some(mark) if mark.when().is_none() => Err(NOT_READY),
        _ => Ok(()),
    }))
}

#[unsafe(no_mangle)]
extern "C" fn cuEventSynchronize(handle: usize) -> i32 {
    status(current().and_then(|_| {
        let event = find(handle)?;
        let mark = lock(&event.last).clone();
        if let Some(mark) = mark {
            mark.wait();
        }
        event.gpu.healthy()
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuEventElapsedTime_v2(ms: *mut f32, start: usize, end: usize) -> i32 {
    status(current().and_then(|_| {
        let (start, end) = (find(start)?, find(end)?);
        if (start.flags | end.flags) & DISABLE_TIMING != 0 {
            return Err(INVALID_HANDLE);
        }
        let mark = |event: &Event| lock(&event.last).clone().ok_or(INVALID_HANDLE);
        let (start, end) = (mark(&start)?, mark(&end)?);
        let (start, end) = (start.when().ok_or(NOT_READY)?, end.when().ok_or(NOT_READY)?);
        let ms_between = match end.checked_duration_since(start) {
            Some(time) => time.as_secs_f32() * 1e3,
            None => start.duration_since(end).as_secs_f32() * -1e3,
        };
        // SAFETY: the caller gives a place for the result.
        unsafe { put(ms, ms_between) }
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuEventElapsedTime(ms: *mut f32, start: usize, end: usize) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { cuEventElapsedTime_v2(ms, start, end) }
}
