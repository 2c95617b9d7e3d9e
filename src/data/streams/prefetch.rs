//! A stream whose items are made on a thread.

use super::super::threads::{guarded, spawn};
use super::DataStream;
use crate::error::{Error, Result};
use serde_json::Value;
use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::JoinHandle;

/// An item with the position behind it, or the end.
type Made<T> = (Option<Result<T>>, Value);

/// Stream that [`DataStreamExt::prefetch`](super::DataStreamExt::prefetch) makes. The stream is on the thread while the thread runs, and here otherwise: exactly one of `idle` and
/// `running` has it. A stream that panicked is in neither.
pub struct Prefetch<S: DataStream> {
    ahead: usize,
    idle: Option<S>,
    running: Option<Running<S>>,
    position: Value,
}

struct Running<S: DataStream> {
    made: Receiver<Made<S::Item>>,
    thread: JoinHandle<Option<S>>,
}

impl<S: DataStream + 'static> Prefetch<S>
where
    S::Item: Send,
{
    pub(super) fn new(of: S, ahead: usize) -> Prefetch<S> {
        Prefetch { ahead, position: of.position(), idle: Some(of), running: None }
    }
    /// Moves the stream to a thread of its own.
    fn start(&mut self) -> Result<()> {
        let Some(mut of) = self.idle.take() else { return Ok(()) };
        let (send, made) = sync_channel(self.ahead.min(1 << 16));
        let thread = spawn("oflow-prefetch", move || {
            loop {
                // After a panic the stream may be in no state to be asked again.
                let Ok(next) = guarded(|| (of.next(), of.position())).map_err(|e| {
                    let _ = send.send((Some(Err(e)), Value::Null));
                }) else {
                    return None;
                };
                let end = next.0.is_none();
                if send.send(next).is_err() || end {
                    return Some(of);
                }
            }
        })?;
        self.running = Some(Running { made, thread });
        Ok(())
    }
    /// Takes the stream back from its thread.
    fn stop(&mut self) {
        if let Some(Running { made, thread }) = self.running.take() {
            // A thread that waits for room finds that nobody takes its item.
            drop(made);
            self.idle = thread.join().ok().flatten();
        }
    }
}

impl<S: DataStream> Drop for Prefetch<S> {
    fn drop(&mut self) {
        if let Some(Running { made, thread }) = self.running.take() {
            drop(made);
            let _ = thread.join();
        }
    }
}

impl<S: DataStream + 'static> DataStream for Prefetch<S>
where
    S::Item: Send,
{
    type Item = S::Item;
    fn next(&mut self) -> Option<Result<S::Item>> {
        if let Err(e) = self.start() {
            return Some(Err(e));
        }
        let made = self.running.as_ref()?.made.recv().ok();
        match made {
            Some((Some(item), position)) => {
                // The position of an item that panicked is that before it.
                if !position.is_null() {
                    self.position = position;
                }
                Some(item)
            }
            Some((None, position)) => {
                self.position = position;
                self.stop();
                None
            }
            None => {
                self.stop();
                None
            }
        }
    }
    fn position(&self) -> Value {
        self.position.clone()
    }
    fn seek(&mut self, position: &Value) -> Result<()> {
        self.stop();
        let of = self.idle.as_mut().ok_or_else(|| {
            Error::value("the stream on the thread has panicked and cannot be asked again").help("make it anew")
        })?;
        of.seek(position)?;
        self.position = position.clone();
        Ok(())
    }
}
