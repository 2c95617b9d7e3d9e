//! All connections of one rank: posting, waiting, and distinguishing a dead link from a slow peer.

use super::frame::FrameKind;
use super::link::{Connection, End, MEMORY, Offer, Pool, Post};
use super::mesh::MeshOptions;
use super::outage::Outage;
use super::socket;
use super::tally::Tally;
use crate::transport::{Arrived, Head, LONGER_WAITS, RunningCall, diverged, ended};
use crate::zero_copy::{Destination, RawSlice};
use crate::{LinkEnd, now_ns};
use oflow_base::{Error, Result};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec};
use smallvec::SmallVec;
use std::cell::{Cell, RefCell};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

/// How much longer than the control plane a link waits for a silent peer, so that the control plane, which knows causes, reports first.
const AFTER_CONTROL: Duration = Duration::from_secs(1);
/// Interval at which a waiting rank asks the kernel for the state of the link.
const LOOK: Duration = Duration::from_millis(250);
/// Interval at which a waiting rank sends a keep-alive frame.
const BEAT: Duration = Duration::from_secs(1);
/// Duration of a wait after which a warning is logged.
const LONG: Duration = Duration::from_secs(5);
/// How long a rank whose link is lost waits for the control plane to report the cause.
const GRACE: Duration = Duration::from_millis(700);
/// An ending rank waits for the peers' kernels to acknowledge its last posts: up to this time, or the links' `silence` if longer.
const LINGER: Duration = Duration::from_secs(5);

/// How long the peer's kernel may leave data or probes unacknowledged before the link counts as lost.
pub(super) fn silence(outage: Outage) -> Duration {
    outage.patience() + AFTER_CONTROL
}

/// Flag that any thread raises when the job has failed. A raised alarm ends every wait.
pub struct Alarm {
    event: Option<OwnedFd>,
    why: OnceLock<String>,
}

impl Alarm {
    /// Makes an alarm that is not set.
    pub fn new() -> Result<Arc<Alarm>> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let event = rustix::event::eventfd(0, flags).map_err(|e| Error::io("cannot make an event").because(e))?;
        Ok(Arc::new(Alarm { event: Some(event), why: OnceLock::new() }))
    }
    /// Sets the alarm: all waits end with an error that gives the reason. Only the first reason counts.
    pub fn raise(&self, why: impl Into<String>) {
        let _an_earlier_one_counts = self.why.set(why.into());
        if let Some(event) = &self.event {
            // The write fails only when the eventfd's counter is full; then the event is set already.
            let _ = rustix::io::write(event, &1u64.to_ne_bytes());
        }
    }
    /// Returns why the job has failed, or `None`.
    pub fn failure(&self) -> Option<Error> {
        self.why.get().map(|why| Error::peer(format!("the job has failed: {why}")))
    }
    /// Sleeps until the alarm is raised, for at most `limit`.
    pub(super) fn wait(&self, limit: Duration) {
        let mut fds: SmallVec<[PollFd; 1]> = self.event.iter().map(|e| PollFd::new(e, PollFlags::IN)).collect();
        let _ = rustix::event::poll(&mut fds, Some(&timespec(limit)));
    }
    pub(super) fn fd(&self) -> Option<PollFd<'_>> {
        self.event.as_ref().map(|e| PollFd::new(e, PollFlags::IN))
    }
}

pub(super) fn timespec(d: Duration) -> Timespec {
    Timespec { tv_sec: d.as_secs().min(i64::MAX as u64) as i64, tv_nsec: d.subsec_nanos().into() }
}

/// The state of a rank's links, for other threads.
pub struct News {
    gone: Vec<AtomicBool>,
    /// Byte counters, indexed by rank; `None` for ranks of this host, which have no link.
    tallies: Vec<Option<Arc<Tally>>>,
    /// The rank that this rank waits for, plus 1; 0 while it does not wait.
    awaited: AtomicUsize,
}

impl News {
    /// Returns whether reading from a rank has ended: by a goodbye, a closed connection or an error.
    pub fn has_gone(&self, rank: usize) -> bool {
        self.gone.get(rank).is_some_and(|g| g.load(Ordering::Acquire))
    }
    /// Returns the rank that this rank waits for, if it waits.
    pub fn waits_for(&self) -> Option<usize> {
        self.awaited.load(Ordering::Relaxed).checked_sub(1)
    }
    /// Returns the counters of this rank's end of a link.
    pub fn link(&self, rank: usize) -> Option<LinkEnd> {
        self.tallies.get(rank)?.as_ref().map(|t| t.end())
    }
}

/// The connections of a rank to all ranks of other hosts. Used by one thread at a time.
pub struct Connections {
    me: usize,
    /// Links, indexed by rank; `None` for ranks of this host.
    peers: Vec<Option<RefCell<Connection>>>,
    /// The ranks that have a link.
    remote: Vec<usize>,
    /// Name of each rank's host, for messages.
    names: Vec<String>,
    pool: RefCell<Pool>,
    /// Number of posts that the kernel has not taken yet, from each outbox buffer and, at [`MEMORY`], from callers' memory.
    unwritten: [Cell<usize>; MEMORY + 1],
    /// When [`progress`](Self::progress) last counted, in the tallies, the links without input.
    looked: Cell<Instant>,
    alarm: Arc<Alarm>,
    news: Arc<News>,
    spins: u32,
    timeout: Duration,
    silence: Duration,
}

impl Connections {
    pub(super) fn new(
        me: usize,
        peers: Vec<Option<Connection>>,
        names: Vec<String>,
        alarm: Arc<Alarm>,
        options: &MeshOptions,
    ) -> Connections {
        let remote = (0..peers.len()).filter(|r| peers[*r].is_some()).collect();
        let gone = peers.iter().map(|_| AtomicBool::new(false)).collect();
        let tallies = peers.iter().map(|l| l.as_ref().map(|l| l.tally.clone())).collect();
        let news = Arc::new(News { gone, tallies, awaited: AtomicUsize::new(0) });
        let peers = peers.into_iter().map(|l| l.map(RefCell::new)).collect();
        let (pool, unwritten) = Default::default();
        let looked = Cell::new(Instant::now());
        let &MeshOptions { spins, timeout, outage, .. } = options;
        let silence = silence(outage);
        Connections { me, peers, remote, names, pool, unwritten, looked, alarm, news, spins, timeout, silence }
    }

    /// The alarm that ends the waits of these links.
    pub fn alarm(&self) -> &Arc<Alarm> {
        &self.alarm
    }

    /// State of the links for other threads, updated while this rank waits.
    pub fn news(&self) -> &Arc<News> {
        &self.news
    }

    /// Whether there is a link to a rank.
    pub fn reaches(&self, rank: usize) -> bool {
        self.peers.get(rank).is_some_and(Option::is_some)
    }

    fn link(&self, rank: usize) -> Result<std::cell::RefMut<'_, Connection>> {
        match self.peers.get(rank) {
            Some(Some(link)) => Ok(link.borrow_mut()),
            _ => Err(Error::comm(format!("rank {} has no link to rank {rank}", self.me))),
        }
    }

    /// Queues a post of bytes in a caller's memory to a rank, and writes as much of it as the socket takes.
    ///
    /// # Safety
    /// The bytes stay as they are until [`flush`](Self::flush) has succeeded or [`abandon`](Self::abandon) returned.
    pub unsafe fn post_from(&self, call: &RunningCall, to: usize, total: u64, bytes: RawSlice) {
        // SAFETY: this function has the same contract.
        unsafe { self.post(call, to, total, (bytes.as_ptr(), bytes.len()), MEMORY) };
    }

    /// Queues a post of bytes in an outbox buffer to a rank, and writes as much of it as the socket takes.
    ///
    /// # Safety
    /// The bytes stay as they are until [`written`](Self::written) has returned for the buffer.
    pub unsafe fn post(&self, call: &RunningCall, to: usize, total: u64, bytes: (*const u8, usize), slot: usize) {
        let Ok(mut link) = self.link(to) else { return };
        let waiting = link.has_output();
        self.unwritten[slot].set(self.unwritten[slot].get() + 1);
        // SAFETY: this function has the same contract.
        unsafe { link.post(call, total, bytes, slot) };
        // If earlier posts still wait, the socket was full a moment ago.
        if !waiting {
            self.write(&mut link);
        }
    }

    fn write(&self, link: &mut Connection) {
        link.write(|slot| self.unwritten[slot].set(self.unwritten[slot].get() - 1));
    }

    fn read(&self, rank: usize, link: &mut Connection, beyond: bool) {
        link.read(beyond, &mut self.pool.borrow_mut());
        if link.over.is_some() {
            self.news.gone[rank].store(true, Ordering::Release);
        }
    }

    /// Whether posts wait to be written.
    pub fn has_output(&self) -> bool {
        self.unwritten.iter().any(|n| n.get() > 0)
    }

    /// Waits until the kernel has taken all posts from an outbox buffer.
    pub fn written(&self, call: &RunningCall, slot: usize) -> Result<()> {
        while self.unwritten[slot].get() > 0 {
            let late =
                self.remote.iter().copied().find(|r| self.peers[*r].as_ref().is_some_and(|l| l.borrow().has_output()));
            let Some(on) = late else { return Err(Error::comm("the awaited post is in no queue")) };
            self.wait(call, on, "to read", || Ok(self.unwritten[slot].get() == 0 || !self.link(on)?.has_output()))?;
        }
        Ok(())
    }

    /// Waits until the kernel has taken all posts.
    pub fn flush(&self, call: &RunningCall) -> Result<()> {
        (0..=MEMORY).try_for_each(|slot| self.written(call, slot))
    }

    /// Ends a call that has failed: afterwards no link points to its caller's memory or to an outbox. Posts that are not written yet
    /// are copied, so that they still arrive.
    pub fn abandon(&self) {
        for rank in &self.remote {
            if let Ok(mut link) = self.link(*rank) {
                link.keep();
            }
        }
    }

    /// Waits for the next post from a rank.
    pub fn receive(&self, call: &RunningCall, from: usize) -> Result<Arrived> {
        let post = loop {
            let next = self.link(from)?.next();
            match next {
                Some(post) => break post,
                None => self.wait(call, from, "to send", || Ok(self.link(from)?.next().is_some()))?,
            }
        };
        let Post { frame: f, arrived, data, len } = post;
        let head = Head { ordinal: f.ordinal, hash: f.hash, kind: f.collective, total: f.total, arrived };
        Ok(Arrived { head, data, len })
    }

    /// As [`receive`](Self::receive), but without a copy if possible: the post is received into `room` if it belongs to this call and
    /// to a message of `total` bytes, fits, and had not arrived whole before.
    pub fn receive_into(&self, call: &RunningCall, from: usize, total: u64, room: &Destination) -> Result<Arrived> {
        let (ordinal, hash) = (call.tag.ordinal, call.tag.hash);
        let offer = Offer { data: room.data, len: room.len, ordinal, hash, collective: call.kind as u8, total };
        // SAFETY: `room` is writable and only ours while it is borrowed; the post is released or the offer retracted before.
        unsafe { self.link(from)?.offer(offer, &mut self.pool.borrow_mut()) };
        let arrived = self.receive(call, from);
        if arrived.is_err() {
            self.link(from)?.retract(&mut self.pool.borrow_mut());
        }
        arrived
    }

    /// Releases the received post, whose memory the link may then reuse.
    pub fn release(&self, from: usize) {
        if let Ok(mut link) = self.link(from) {
            link.release(&mut self.pool.borrow_mut());
        }
    }

    /// Names the call of the received post.
    pub fn describe(&self, from: usize) -> String {
        self.link(from).map_or_else(|_| "a call".into(), |l| l.describe())
    }

    /// Tells a rank that its post does not belong to this rank's call.
    pub fn reject(&self, call: &RunningCall, from: usize) {
        if let Ok(mut link) = self.link(from) {
            link.tell(FrameKind::Reject, Some(call));
            self.write(&mut link);
        }
    }

    /// Reads and writes every ready link; sleeps for at most `limit` if none is. Returns whether a link was ready or the alarm raised.
    pub fn progress(&self, limit: Duration) -> bool {
        let mut ranks: SmallVec<[usize; 16]> = SmallVec::new();
        let mut ready: SmallVec<[PollFlags; 16]> = SmallVec::new();
        let mut reads: SmallVec<[bool; 16]> = SmallVec::new();
        {
            let links: SmallVec<[_; 16]> =
                self.remote.iter().filter_map(|r| Some((*r, self.peers[*r].as_ref()?.borrow()))).collect();
            let mut fds: SmallVec<[PollFd; 16]> = SmallVec::new();
            for (rank, link) in &links {
                let mut flags = PollFlags::empty();
                flags.set(PollFlags::IN, link.wants_input());
                flags.set(PollFlags::OUT, link.has_output() && link.deaf.is_none());
                if !flags.is_empty() {
                    ranks.push(*rank);
                    reads.push(link.wants_input());
                    fds.push(PollFd::from_borrowed_fd(link.stream.as_fd(), flags));
                }
            }
            fds.extend(self.alarm.fd());
            // After a poll that a signal interrupted, nothing is ready, and links without input are not counted.
            let found = rustix::event::poll(&mut fds, Some(&timespec(limit)));
            let now = Instant::now();
            if found.is_ok() && now - self.looked.get() >= LOOK {
                self.looked.set(now);
                for ((rank, reads), fd) in ranks.iter().zip(&reads).zip(&fds) {
                    if *reads && !fd.revents().intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR) {
                        self.news.tallies[*rank].iter().for_each(|t| t.looked());
                    }
                }
            }
            if found.unwrap_or(0) == 0 {
                return false;
            }
            ready.extend(fds.iter().map(PollFd::revents));
        }
        for (rank, ready) in ranks.into_iter().zip(ready) {
            let Ok(mut link) = self.link(rank) else { continue };
            if ready.contains(PollFlags::OUT) {
                self.write(&mut link);
            }
            if ready.intersects(PollFlags::IN | PollFlags::HUP | PollFlags::ERR) {
                self.read(rank, &mut link, true);
            }
        }
        true
    }

    /// Waits for rank `on` until `done` returns true: first spins on its link, then sleeps and serves all links. `what` says, for messages,
    /// what the rank is to do.
    fn wait(&self, call: &RunningCall, on: usize, what: &str, done: impl Fn() -> Result<bool>) -> Result<()> {
        for _ in 0..self.spins {
            {
                let mut link = self.link(on)?;
                if link.has_output() {
                    self.write(&mut link);
                }
                self.read(on, &mut link, false);
            }
            if done()? {
                return Ok(());
            }
        }
        self.news.awaited.store(on + 1, Ordering::Relaxed);
        let outcome = self.sleep(call, on, what, done);
        self.news.awaited.store(0, Ordering::Relaxed);
        outcome
    }

    fn sleep(&self, call: &RunningCall, on: usize, what: &str, done: impl Fn() -> Result<bool>) -> Result<()> {
        let start = Instant::now();
        let received = self.link(on)?.tally.end().received;
        let (mut beat, mut warned) = (start, false);
        loop {
            self.progress(if self.link(on)?.over.is_some() { Duration::ZERO } else { LOOK });
            if done()? {
                return Ok(());
            }
            let line = || format!("waits for rank {on} {what}, in {call}");
            self.check(call, on, &line)?;
            let now = Instant::now();
            if now - start > self.timeout {
                let (me, seconds) = (self.me, self.timeout.as_secs_f64());
                return Err(Error::comm(format!(
                    "{} is missing: after {seconds} s rank {me} {}",
                    self.name(on),
                    line()
                ))
                .help(LONGER_WAITS));
            }
            if now - beat >= BEAT {
                beat = now;
                let mut link = self.link(on)?;
                if !link.has_output() {
                    link.tell(FrameKind::Alive, None);
                    self.write(&mut link);
                }
            }
            if now - start >= LONG && !warned {
                warned = true;
                let came = self.link(on)?.tally.end().received - received;
                tracing::warn!(
                    "rank {} {}: for {} s now, in which {came} bytes came; {} answers",
                    self.me,
                    line(),
                    LONG.as_secs(),
                    self.name(on)
                );
            }
        }
    }

    /// Returns an error if a wait for rank `on` cannot succeed any more.
    fn check(&self, call: &RunningCall, on: usize, line: &dyn Fn() -> String) -> Result<()> {
        if let Some(theirs) = self.link(on)?.rejected.clone() {
            return Err(diverged((self.me, &call.describe()), (on, &theirs)));
        }
        if let Some(e) = self.alarm.failure() {
            return Err(e);
        }
        let (over, deaf) = {
            let mut link = self.link(on)?;
            if link.over.is_none() {
                self.look(&mut link);
            }
            // Writing has failed, and there is no room to read the peer's last frames, which might say why.
            let stuck = link.over.is_none() && !link.wants_input();
            if let Some(e) = link.deaf.filter(|_| stuck) {
                link.over = Some(End::Failed(e));
            }
            (link.over.clone(), link.deaf)
        };
        let Some(end) = over else { return Ok(()) };
        let (me, name) = (self.me, self.name(on));
        if end == End::Left {
            return Err(ended(on, &format!("rank {me} {}", line())));
        }
        self.alarm.wait(GRACE);
        if let Some(e) = self.alarm.failure() {
            return Err(e);
        }
        let why = match (end, deaf) {
            (End::Garbled(why), _) => why.to_string(),
            (End::Silent, _) => format!("no answer for {:.0} s", self.silence.as_secs_f64()),
            (End::Failed(e), _) | (_, Some(e)) => e.to_string(),
            _ => "closed without a goodbye".to_string(),
        };
        let here = &self.names[me];
        Err(Error::link(format!(
            "the link from rank {me} on {here} to {name} is lost ({why}) while rank {me} {}",
            line()
        ))
        .missing(on)
        .help("that rank's process or host is gone, or the network between the hosts is cut"))
    }

    /// Asks the kernel whether the other end still answers.
    fn look(&self, link: &mut Connection) {
        let Some(h) = socket::health(&link.stream) else { return };
        let now = Instant::now();
        // The kernel of a peer that does not read still answers probes. With nothing left to answer, silence means nothing.
        if !(h.in_flight || h.unsent > 0 && h.probes > 0) {
            link.unanswered = None;
            return;
        }
        let since = link.unanswered.filter(|s| h.last_answer >= now - *s);
        link.unanswered = Some(since.unwrap_or(now));
        if since.is_some_and(|s| now - s >= self.silence) {
            link.over = Some(End::Silent);
        }
    }

    fn name(&self, rank: usize) -> String {
        format!("rank {rank} on {}", self.names[rank])
    }
}

impl Drop for Connections {
    /// Sends a goodbye, and waits until the peers' kernels have acknowledged everything. Input is read meanwhile: closing a socket with
    /// unread input resets the connection and discards its unsent output.
    fn drop(&mut self) {
        let end = now_ns() + LINGER.max(self.silence).as_nanos() as u64;
        for rank in &self.remote {
            let Ok(mut link) = self.link(*rank) else { continue };
            link.tell(FrameKind::Goodbye, None);
            self.write(&mut link);
        }
        let busy = |link: &Connection| {
            link.deaf.is_none()
                && !matches!(link.over, Some(End::Failed(_) | End::Silent | End::Closed))
                && (link.has_output() || socket::unsent(&link.stream) > 0)
        };
        while self.alarm.failure().is_none() && now_ns() < end {
            let waiting = self.remote.iter().any(|r| self.link(*r).is_ok_and(|l| busy(&l)));
            if !waiting {
                break;
            }
            for rank in &self.remote {
                if let Ok(mut link) = self.link(*rank) {
                    link.discard();
                    self.write(&mut link);
                }
            }
            self.alarm.wait(Duration::from_micros(200));
        }
    }
}
