//! Sources of a session's inputs. Each makes its tensors on a thread of its own, ahead of the runs.

use super::GraphOutput;
use crate::context::{RankCtx, current};
use crate::data::{Loader, Stream};
use crate::error::{CallSite, Error, Result, panic_text};
use crate::interpreter::source_thread;
use crate::state::{LoadState, SaveState, Stateful};
use crate::tensor::Tensor;
use serde_json::Value;
use std::any::Any;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::JoinHandle;

/// A source of tensors for inputs of a [`Session`](super::Session): any iterator of results that hold tensors (one, a tuple, a vector), or a
/// [`Stream`] of a loader, whose position a checkpoint saves.
///
/// The session takes from it on a thread of its own, which has entered the rank's context. There a source makes local tensors, or the global
/// batches of a [`Loader`]. Calls on global tensors are errors there, and so are draws from the rank's generators: their order is that of the
/// rank's own thread.
pub trait Feed: Send + 'static {
    /// Returns the tensors of the next run, one for each input that is fed; `None` at the end.
    fn next_inputs(&mut self) -> Option<Result<Vec<Tensor>>>;
    /// Returns the position as state that a checkpoint saves; `None` if the source has none.
    fn position(&mut self) -> Option<&mut dyn Stateful> {
        None
    }
}

impl<B: GraphOutput, I: Iterator<Item = Result<B>> + Send + 'static> Feed for I {
    fn next_inputs(&mut self) -> Option<Result<Vec<Tensor>>> {
        self.next().map(|made| {
            made.map(|made| {
                let mut tensors = vec![];
                made.take(&mut tensors);
                tensors
            })
        })
    }
}

impl Feed for Stream<Arc<Loader>> {
    fn next_inputs(&mut self) -> Option<Result<Vec<Tensor>>> {
        Some(self.next())
    }
    fn position(&mut self) -> Option<&mut dyn Stateful> {
        Some(self)
    }
}

/// Values of a position, by name.
type Values = BTreeMap<String, Value>;

fn noted(feed: &mut dyn Feed) -> Result<Option<Values>> {
    let Some(position) = feed.position() else { return Ok(None) };
    let mut to = SaveState::new();
    position.save_state(&mut to)?;
    Ok(Some(to.into_parts().1))
}

/// Tensors that a source gives to a run, and the position after them.
type Given = (Vec<Tensor>, Option<Values>);

/// A source whose thread runs.
struct Running {
    given: Option<Receiver<Result<Given>>>,
    thread: Option<JoinHandle<Box<dyn Feed>>>,
}

impl Running {
    fn start(mut feed: Box<dyn Feed>, names: &str, ahead: usize) -> Result<Running> {
        let (send, given) = sync_channel(ahead);
        let (ctx, of) = (current(), names.to_string());
        let thread = std::thread::Builder::new().name(format!("feed {names}"));
        let run = move || {
            let site = CallSite::here();
            give(&mut *feed, &ctx, (&of, site), &send);
            feed
        };
        let failed = |e| Error::io(format!("the thread that feeds {names} cannot start")).because(e);
        Ok(Running { given: Some(given), thread: Some(thread.spawn(run).map_err(failed)?) })
    }
    /// Stops the thread after the tensors that it makes now, and returns the source.
    fn stop(&mut self) -> Option<Box<dyn Feed>> {
        self.given = None;
        // A panic of the source was caught on its thread.
        self.thread.take().and_then(|t| t.join().ok())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop();
    }
}

/// The thread of a source: gives tensors until the end, an error, or until nobody takes them.
fn give(feed: &mut dyn Feed, ctx: &Arc<RankCtx>, (names, site): (&str, CallSite), to: &SyncSender<Result<Given>>) {
    let (_entered, _refused) = (ctx.enter_at(site), source_thread());
    let mut next = || -> Result<Option<Given>> {
        match feed.next_inputs().transpose()? {
            Some(tensors) => Ok(Some((tensors, noted(feed)?))),
            None => Ok(None),
        }
    };
    loop {
        let made = catch_unwind(AssertUnwindSafe(&mut next)).unwrap_or_else(|panic| Err(panicked(&*panic, names)));
        let Some(made) = made.transpose() else { return };
        let failed = made.is_err();
        if to.send(made).is_err() || failed {
            return;
        }
    }
}

fn panicked(panic: &(dyn Any + Send), names: &str) -> Error {
    let text = panic_text(panic);
    Error::io(format!("the source of {names} panicked: {}", text.unwrap_or("without a text")))
}

enum State {
    /// Not begun.
    Waiting(Box<dyn Feed>),
    Running(Running),
    Ended,
    Failed,
}

/// A source of a session.
pub(super) struct Feeding {
    pub(super) names: Vec<Arc<str>>,
    state: State,
    /// Position after what runs have taken; of a source that has not begun it is its own.
    taken: Option<Values>,
}

impl Feeding {
    pub(super) fn new(names: &[&str], feed: Box<dyn Feed>) -> Feeding {
        Feeding { names: names.iter().map(|n| Arc::from(*n)).collect(), state: State::Waiting(feed), taken: None }
    }

    fn told(&self) -> String {
        self.names.iter().map(|n| format!("{n:?}")).collect::<Vec<_>>().join(", ")
    }

    /// The tensors of the next run; `None` at the end.
    ///
    /// # Errors
    /// Those of the source, also a panic, and another number of tensors than of names.
    pub(super) fn take(&mut self, ahead: usize) -> Result<Option<Vec<Tensor>>> {
        let told = self.told();
        if let State::Waiting(feed) = &mut self.state {
            self.taken = noted(&mut **feed)?;
            let State::Waiting(feed) = std::mem::replace(&mut self.state, State::Failed) else { return Ok(None) };
            self.state = State::Running(Running::start(feed, &told, ahead)?);
        }
        let given = match &self.state {
            State::Running(running) => running.given.as_ref().and_then(|given| given.recv().ok()),
            State::Failed => {
                return Err(Error::argument(format!("the source of {told} has failed before"))
                    .help("a session ends with the first error of a source: make a new one"));
            }
            _ => None,
        };
        match given {
            Some(Ok((tensors, position))) if tensors.len() == self.names.len() => {
                self.taken = position;
                Ok(Some(tensors))
            }
            Some(Ok((tensors, _))) => {
                self.state = State::Failed;
                let n = tensors.len();
                Err(Error::argument(format!("the source of {told} gave {n} tensors for {} inputs", self.names.len())))
            }
            Some(Err(e)) => {
                self.state = State::Failed;
                Err(e.within(|| format!("the source of {told}")))
            }
            None => {
                self.state = State::Ended;
                Ok(None)
            }
        }
    }

    /// Stops the thread. There are no further tensors.
    pub(super) fn end(&mut self) {
        self.state = State::Ended;
    }

    /// Whether the source has a position; it may have begun.
    pub(super) fn has_position(&mut self) -> bool {
        match &mut self.state {
            State::Waiting(feed) => feed.position().is_some(),
            _ => self.taken.is_some(),
        }
    }
}

/// The position of a source: which batch the next run takes, whatever has been made ahead. A checkpoint saves it, under the names that the
/// source itself has, so it can be loaded into the source without a session, and the other way round.
pub struct FeedPosition<'a>(pub(super) &'a RefCell<Feeding>);

impl Stateful for FeedPosition<'_> {
    fn save_state(&self, to: &mut SaveState) -> Result<()> {
        let feeding = &mut *self.0.borrow_mut();
        let values = match &mut feeding.state {
            State::Waiting(feed) => noted(&mut **feed)?,
            _ => feeding.taken.clone(),
        };
        values.into_iter().flatten().try_for_each(|(name, value)| to.notation(&name, value))
    }
    /// Tensors that were made ahead are dropped.
    fn load_state(&mut self, from: &mut LoadState<'_>) -> Result<()> {
        let feeding = &mut *self.0.borrow_mut();
        if let State::Running(running) = &mut feeding.state
            && let Some(feed) = running.stop()
        {
            feeding.state = State::Waiting(feed);
        }
        match &mut feeding.state {
            State::Waiting(feed) => feed.position().map_or(Ok(()), |position| position.load_state(from)),
            _ => Err(Error::argument(format!("the source of {} has ended", feeding.told()))
                .help("load the checkpoint before the session has ended, or give the session the source anew")),
        }
    }
}
