//! People watch a job while it runs: on a page (`oflaunch --watch`), or in the terminal (`oflaunch --top`).
//!
//! One [`State`] serves both. It is filled from the control plane of node 0, which has the last glimpse of each rank of all hosts, and from the
//! output of the ranks of this host. Ranks are asked for glimpses only while a page is open or the terminal is drawn; otherwise nothing is sent
//! that is not sent anyway. Start at `state.rs`; `serve.rs` has the page's server, which trusts nobody, and `top.rs` the terminal.
//!
//! Nothing here may hold up the job: the page has a thread of its own, locks are held while a text is made and not longer, and what the terminal
//! cannot take is dropped.

mod lines;
mod picture;
mod rank;
mod series;
mod serve;
mod shared;
mod state;
mod top;

use std::io::IsTerminal;
use std::sync::Arc;
use std::time::{Duration, Instant};

use oflow::control::service::Watcher;
use tokio::task::JoinHandle;
use tokio::time::{MissedTickBehavior, interval};

use crate::Failed;
use crate::output::{Tap, WeakOutput};
use shared::Shared;
pub use state::State;

/// How often the state is brought up to date, and the terminal drawn.
const EVERY: Duration = Duration::from_millis(500);

/// Page and terminal, as the command line asks for them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// Port of the page, 0 for a free one.
    pub page: Option<u16>,
    /// Whether the terminal is drawn.
    pub top: bool,
}

impl Wanted {
    /// Checks that it can be shown here.
    ///
    /// # Errors
    /// If standard error is no terminal and is to be drawn on.
    pub fn check(self) -> Result<(), Failed> {
        match self.top && !std::io::stderr().is_terminal() {
            true => Err(Failed::with_code(
                2,
                "--top draws on a terminal, and standard error is none\n  help: `--watch` serves a page, and --log-dir keeps logs and events",
            )),
            false => Ok(()),
        }
    }
}

/// A job that is watched.
pub struct Watch {
    shared: Arc<Shared>,
    wanted: Wanted,
}

impl Watch {
    /// Begins to collect what is shown of a job; `None` if nothing is to be shown.
    pub fn of(wanted: Wanted, program: String) -> Option<Watch> {
        let shown = wanted.page.is_some() || wanted.top;
        shown.then(|| Watch { shared: Arc::new(Shared::new(State::new(program))), wanted })
    }

    /// Returns a function that the output of the ranks is given to.
    pub fn tap(&self) -> Tap {
        let shared = self.shared.clone();
        Box::new(move |rank, stream, bytes| shared.lines().push(rank, stream, bytes))
    }

    /// Serves the page, if one is wanted. Returns a line with its address.
    ///
    /// # Errors
    /// If it cannot listen at the port.
    pub fn serve(&self) -> Result<Option<String>, Failed> {
        let Some(port) = self.wanted.page else { return Ok(None) };
        let address = serve::start(port, self.shared.clone())
            .map_err(|e| Failed::new(format!("the page of --watch cannot be served on port {port}: {e}")))?;
        Ok(Some(format!("watch: {address}")))
    }

    /// Keeps the state up to date, and draws the terminal, until the task is aborted.
    pub fn follow(&self, watcher: Watcher, output: WeakOutput) -> JoinHandle<()> {
        let (shared, wanted) = (self.shared.clone(), self.wanted);
        tokio::spawn(async move {
            let mut ticks = interval(EVERY);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
            loop {
                ticks.tick().await;
                watcher.watch(wanted.top || shared.page_is_open());
                let (sight, failure) = (watcher.sight(), watcher.failure().map(|f| f.message));
                let now = Instant::now();
                let mut state = shared.state();
                state.update(sight, failure, now);
                if wanted.top {
                    let frame = top::frame(&state, now, top::size());
                    drop(state);
                    output.draw_if_room(frame);
                }
            }
        })
    }

    /// The job has ended with this code.
    pub fn end(&self, code: u8) {
        self.shared.state().end(code);
    }
}

#[cfg(test)]
mod tests;
