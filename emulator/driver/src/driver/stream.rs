//! Streams: a thread with a queue each. Work is numbered; a wait is for a stream to have done all up to a number.
//!
//! Two kinds of entries: *work* touches memory and is left out once the context has failed; *control* (waits, records,
//! frees) is always carried out, so that nobody waits for ever.
//!
//! The default stream (handle 0) waits for all other blocking streams of its context, and they for it.

use std::collections::VecDeque;
use std::ffi::{c_int, c_uint, c_void};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::Duration;

use super::codes::*;
use super::gate::AtWork;
use super::*;

/// Failure while a stream worked: a CUresult and a text.
pub struct Failure(pub i32, pub String);

/// Work of a stream, which a graph does many times.
pub type Work = Box<dyn FnMut(&mut Worker) -> Result<(), Failure> + Send>;
enum Entry {
    Work(Work),
    Control(Box<dyn FnOnce() + Send>),
}

struct Queue {
    entries: VecDeque<Entry>,
    issued: u64,
    done: u64,
    closed: bool,
}

pub struct Stream {
    pub gpu: &'static Gpu,
    flags: c_uint,
    queue: Mutex<Queue>,
    /// Work that the stream captures in place of doing it.
    capture: Mutex<Option<Capture>>,
    /// Rung when there is work, and when some is done.
    bell: Condvar,
}

/// Work that is captured in place of being done.
pub struct Capture {
    pub work: Vec<Work>,
    /// A call has made the capture invalid.
    pub broken: bool,
    /// The thread that captures may not wait for the device meanwhile.
    pub strict: bool,
}

/// State of the thread of a stream.
pub struct Worker {
    /// Where kernels' fibers live; mapped on first use.
    pub arena: usize,
    random: u64,
    delay_us: u64,
}

impl Worker {
    fn delay(&mut self) {
        if self.delay_us > 0 {
            self.random ^= self.random << 13;
            self.random ^= self.random >> 7;
            self.random ^= self.random << 17;
            std::thread::sleep(Duration::from_micros(self.random % (self.delay_us + 1)));
        }
    }
}

static STREAMS: Table<Stream> = Table::new();
const NON_BLOCKING: c_uint = 1;

impl Stream {
    /// Starts the thread; the stream lives until `close` and the last entry.
    pub fn start(gpu: &'static Gpu, handle: usize, flags: c_uint) -> Arc<Stream> {
        let queue = Queue { entries: VecDeque::new(), issued: 0, done: 0, closed: false };
        let stream =
            Arc::new(Stream { gpu, flags, queue: Mutex::new(queue), capture: Mutex::new(None), bell: Condvar::new() });
        let mine = stream.clone();
        let seed = 0x9e37_79b9_7f4a_7c15 ^ (handle as u64) << 20 ^ gpu.ordinal as u64;
        let delay_us = setting("OFLOW_EMULATOR_DELAY_US", 0) as u64;
        let worker = Worker { arena: 0, random: seed | 1, delay_us };
        let started = std::thread::Builder::new().name("emulated-stream".into()).spawn(move || mine.serve(worker));
        assert!(started.is_ok(), "no thread for an emulated stream");
        stream
    }

    fn serve(&self, mut worker: Worker) {
        // Kept over entries that follow each other: without protection keys opening and closing device memory costs more than a small
        // kernel.
        let mut at_work: Option<AtWork> = None;
        loop {
            let entry = {
                let mut queue = lock(&self.queue);
                loop {
                    if let Some(entry) = queue.entries.pop_front() {
                        break entry;
                    }
                    if queue.closed {
                        launch::unmap_arena(worker.arena);
                        return;
                    }
                    queue = self.bell.wait(queue).unwrap_or_else(PoisonError::into_inner);
                }
            };
            worker.delay();
            match entry {
                Entry::Control(control) => {
                    at_work = None;
                    control();
                }
                Entry::Work(mut work) if self.gpu.healthy().is_ok() => {
                    at_work.get_or_insert_with(AtWork::begin);
                    let failed = work(&mut worker).err();
                    if let Some(Failure(code, text)) = failed {
                        self.gpu.fail(code, &text);
                    }
                }
                Entry::Work(_) => {}
            }
            let mut queue = lock(&self.queue);
            if queue.entries.is_empty() {
                // Before anybody may think that the stream is idle.
                at_work = None;
            }
            queue.done += 1;
            drop(queue);
            self.bell.notify_all();
        }
    }

    fn push(&self, entry: Entry) -> u64 {
        let mut queue = lock(&self.queue);
        queue.entries.push_back(entry);
        queue.issued += 1;
        self.bell.notify_all();
        queue.issued
    }

    fn is_null(&self) -> bool {
        self.gpu.null_stream_if_any().is_some_and(|null| std::ptr::eq(&*null, self))
    }

    /// Before an entry: the waits that the default stream's rules ask for.
    fn order_with_default(&self) {
        if self.flags & NON_BLOCKING != 0 {
            return;
        }
        let others: Vec<Arc<Stream>> = if self.is_null() {
            let blocking = |s: &Arc<Stream>| std::ptr::eq(s.gpu, self.gpu) && s.flags & NON_BLOCKING == 0;
            STREAMS.all().into_iter().filter(blocking).collect()
        } else {
            self.gpu.null_stream_if_any().into_iter().collect()
        };
        for other in others {
            let (issued, done) = {
                let queue = lock(&other.queue);
                (queue.issued, queue.done)
            };
            if done < issued {
                self.push(Entry::Control(Box::new(move || other.wait(issued))));
            }
        }
    }

    /// Appends work, or captures it; the number to wait for, which is 0 for captured work.
    pub fn work(&self, work: impl FnMut(&mut Worker) -> Result<(), Failure> + Send + 'static) -> u64 {
        if let Some(capture) = &mut *lock(&self.capture) {
            capture.work.push(Box::new(work));
            return 0;
        }
        self.order_with_default();
        self.push(Entry::Work(Box::new(work)))
    }

    /// Begins to capture.
    pub fn begin_capture(&self, strict: bool) -> Outcome {
        let mut capture = lock(&self.capture);
        if capture.is_some() {
            return Err(STREAM_CAPTURE_UNSUPPORTED);
        }
        *capture = Some(Capture { work: vec![], broken: false, strict });
        Ok(())
    }

    /// Ends a capture.
    pub fn end_capture(&self) -> Outcome<Capture> {
        lock(&self.capture).take().ok_or(STREAM_CAPTURE_UNMATCHED)
    }

    /// A call that a stream which captures does not take: it makes the capture invalid, and fails with `code`.
    pub fn not_captured(&self, code: i32) -> Outcome {
        match &mut *lock(&self.capture) {
            None => Ok(()),
            Some(capture) => {
                capture.broken = true;
                Err(code)
            }
        }
    }

    /// Appends what is done even after a failure.
    pub fn control(&self, control: impl FnOnce() + Send + 'static) -> u64 {
        self.order_with_default();
        self.push(Entry::Control(Box::new(control)))
    }

    /// Blocks until the stream has done all up to `ticket`.
    pub fn wait(&self, ticket: u64) {
        let mut queue = lock(&self.queue);
        while queue.done < ticket {
            queue = self.bell.wait(queue).unwrap_or_else(PoisonError::into_inner);
        }
    }

    fn issued(&self) -> u64 {
        lock(&self.queue).issued
    }

    /// Everything issued has been done.
    fn idle(&self) -> bool {
        let queue = lock(&self.queue);
        queue.done == queue.issued
    }

    fn close(&self) {
        lock(&self.queue).closed = true;
        self.bell.notify_all();
    }
}

/// The stream of a handle, which must belong to the current context. 0 and 1 are the default stream, 2 counts as it too.
pub fn find(handle: usize) -> Outcome<Arc<Stream>> {
    let gpu = current_even_if_failed()?;
    if handle <= 2 {
        return Ok(gpu.null_stream());
    }
    let stream = STREAMS.get(handle).ok_or(INVALID_HANDLE)?;
    if std::ptr::eq(stream.gpu, gpu) { Ok(stream) } else { Err(INVALID_HANDLE) }
}

/// The stream of a handle, of whatever context: to wait for a stream one need not be in its context.
pub fn find_any(handle: usize) -> Outcome<Arc<Stream>> {
    let gpu = current_even_if_failed()?;
    if handle <= 2 { Ok(gpu.null_stream()) } else { STREAMS.get(handle).ok_or(INVALID_HANDLE) }
}

fn of(gpu: &'static Gpu) -> Vec<Arc<Stream>> {
    let mut all = STREAMS.all();
    all.retain(|stream| std::ptr::eq(stream.gpu, gpu));
    all.extend(gpu.null_stream_if_any());
    all
}

/// Waits until all that was issued to the GPU's streams has been done.
pub fn drain(gpu: &'static Gpu) {
    for stream in of(gpu) {
        stream.wait(stream.issued());
    }
}

/// Ends all streams of a GPU.
pub fn forget(gpu: &'static Gpu) {
    of(gpu).iter().for_each(|stream| stream.close());
    STREAMS.retain(|stream| !std::ptr::eq(stream.gpu, gpu));
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamCreate(to: *mut usize, flags: c_uint) -> i32 {
    // SAFETY: the caller's promise.
    unsafe { cuStreamCreateWithPriority(to, flags, 0) }
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamCreateWithPriority(to: *mut usize, flags: c_uint, _priority: c_int) -> i32 {
    status(current().and_then(|gpu| {
        if flags > 1 || to.is_null() {
            return Err(INVALID_VALUE);
        }
        let handle = new_handle();
        STREAMS.insert_arc(handle, Stream::start(gpu, handle, flags));
        // SAFETY: the caller gives a place for the result.
        unsafe { put(to, handle) }
    }))
}

/// The stream is gone at once for the caller; what it was given is still done.
#[unsafe(no_mangle)]
extern "C" fn cuStreamDestroy_v2(handle: usize) -> i32 {
    status(current_even_if_failed().and_then(|_| {
        let stream = STREAMS.remove(handle).ok_or(INVALID_HANDLE)?;
        stream.close();
        Ok(())
    }))
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamSynchronize(handle: usize) -> i32 {
    status(current().and_then(|_| {
        let stream = find_any(handle)?;
        stream.not_captured(STREAM_CAPTURE_UNSUPPORTED)?;
        stream.order_with_default();
        stream.wait(stream.issued());
        stream.gpu.healthy()
    }))
}

#[unsafe(no_mangle)]
extern "C" fn cuStreamQuery(handle: usize) -> i32 {
    status(current().and_then(|_| {
        let stream = find_any(handle)?;
        stream.not_captured(STREAM_CAPTURE_UNSUPPORTED)?;
        if stream.idle() { stream.gpu.healthy() } else { Err(NOT_READY) }
    }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamGetCtx(handle: usize, context: *mut usize) -> i32 {
    // SAFETY: the caller gives a place for the result.
    status(find(handle).and_then(|stream| unsafe { put(context, stream.gpu.context()) }))
}

#[unsafe(no_mangle)]
unsafe extern "C" fn cuStreamIsCapturing(handle: usize, capturing: *mut c_int) -> i32 {
    // SAFETY: the caller gives a place for the result.
    status(find(handle).and_then(|stream| unsafe { put(capturing, c_int::from(lock(&stream.capture).is_some())) }))
}

/// Host code in the order of the stream.
#[unsafe(no_mangle)]
unsafe extern "C" fn cuLaunchHostFunc(
    handle: usize,
    function: Option<unsafe extern "C" fn(*mut c_void)>,
    data: usize,
) -> i32 {
    status(current().and_then(|_| {
        let function = function.ok_or(INVALID_VALUE)?;
        let stream = find(handle)?;
        // A driver captures it; nobody here asks for that.
        stream.not_captured(STREAM_CAPTURE_UNSUPPORTED)?;
        stream.control(move || {
            // SAFETY: the caller promised that the function may be called with this.
            unsafe { function(data as *mut c_void) }
        });
        Ok(())
    }))
}

/// The stream of a handle on a GPU that need not be current.
pub fn find_on(gpu: &'static Gpu, handle: usize) -> Outcome<Arc<Stream>> {
    if handle <= 2 {
        return Ok(gpu.null_stream());
    }
    STREAMS.get(handle).filter(|stream| std::ptr::eq(stream.gpu, gpu)).ok_or(INVALID_HANDLE)
}
