//! The atomic protocol between two ranks: a one-way link with a ring of [`SLOTS`] entries.
//!
//! ```text
//! sender                                        reader
//! post n: (post n - SLOTS has been taken)
//!   write entry[n % SLOTS]
//!   entry.ready := n ------- release ---------> wait until entry.ready = n   (acquire)
//!                                               read the entry and the sender's outbox, in place
//!   wait until taken ≥ n  <---- release ------- taken := n
//!   (acquire) the entry and the outbox buffer may be overwritten
//! ```
//!
//! Both arrows are [`Flag`]s: a 30-bit counter and two bits in one futex word.
//!
//! ```text
//! [ count : 30 | NUDGE : 1 | SLEEP : 1 ]
//! set n     swap (n, 0, 0); if SLEEP was set, wake
//! nudge     set NUDGE; if SLEEP was set, wake                      "look at the alarms: somebody died, left, rejected"
//! wait      loop: counted far enough? done
//!                 compare-exchange (c, _, _) -> (c, 0, 1)
//!                 look at the alarms
//!                 sleep while the word is (c, 0, 1)
//! ```
//!
//! No wake-up is lost: a change for which the waiter waits is followed by a change of the word. If that comes after
//! the waiter's compare-exchange, the word differs and `sleep` returns at once, or SLEEP was seen and the waiter is woken;
//! if it comes before, the compare-exchange acquires what had been written. A SLEEP bit that stays behind costs one
//! needless wake.
//!
//! Model tests (loom runs this file's code under every interleaving):
//! `RUSTFLAGS="--cfg oflow_loom" cargo test -p oflow-comm --lib --release loom_`

use super::super::transport::{COUNT_MASK, Head, SLOTS};
use super::sync::{Shared, Word, fence, spin_loop};
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

const SLEEP: u32 = 1;
const NUDGE: u32 = 2;

/// A counter that one side sets and the other waits for. Zero is a valid new flag.
#[repr(transparent)]
#[cfg_attr(all(test, oflow_loom), derive(Default))]
pub struct Flag(Word);

/// Options of a wait.
#[derive(Clone, Copy)]
pub struct Patience {
    /// Number of polls before sleeping.
    pub spins: u32,
    /// Time-out of a collective.
    pub timeout: Duration,
}

/// Why a wait has failed.
#[derive(Debug, PartialEq, Eq)]
pub enum Stop<E> {
    /// An alarm that concerns this wait.
    Alarm(E),
    /// The time-out has passed.
    Timeout,
}

impl Flag {
    /// Returns the counter.
    pub fn count(&self) -> u32 {
        self.0.load() >> 2
    }
    /// Sets the counter and wakes the waiter.
    pub fn set(&self, count: u32) {
        if self.0.swap(count << 2) & SLEEP != 0 {
            self.0.wake();
        }
    }
    /// Makes the waiter check the alarms, which the caller has set before.
    pub fn nudge(&self) {
        if self.0.fetch_or(NUDGE) & SLEEP != 0 {
            self.0.wake();
        }
    }
    /// Waits until `done(count)`. Calls `alarm` before each sleep, and `sleeping` before the first.
    pub fn wait<E>(
        &self,
        patience: Patience,
        done: impl Fn(u32) -> bool,
        alarm: impl Fn() -> Option<E>,
        sleeping: impl FnOnce(),
    ) -> Result<(), Stop<E>> {
        for _ in 0..patience.spins {
            let word = self.0.load();
            if done(word >> 2) {
                return Ok(());
            }
            if word & NUDGE != 0 {
                break;
            }
            spin_loop();
        }
        let mut sleeping = Some(sleeping);
        let mut deadline = None;
        loop {
            let word = self.0.load();
            if done(word >> 2) {
                return Ok(());
            }
            let asleep = (word & !NUDGE) | SLEEP;
            if self.0.compare_exchange(word, asleep).is_err() {
                continue;
            }
            if let Some(e) = alarm() {
                // The other side may have done its part and left since the count was looked at.
                return if done(self.count()) { Ok(()) } else { Err(Stop::Alarm(e)) };
            }
            if let Some(tell) = sleeping.take() {
                tell();
            }
            let end = *deadline.get_or_insert_with(|| Instant::now() + patience.timeout);
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() || !self.0.sleep(asleep, left) && Instant::now() >= end {
                return if done(self.count()) { Ok(()) } else { Err(Stop::Timeout) };
            }
        }
    }
}

/// Set of peers that a rank may sleep for: a bit for each. Who leaves or poisons the arena nudges only the links of ranks
/// that have announced it, because the others have no memory yet.
///
/// ```text
/// waiter                                        who leaves
/// bit := 1                                      left := 1
/// fence                                         fence
/// look at `left`; sleep (see Flag)              bit set: nudge
/// ```
///
/// One of the two fences is first, so the waiter sees `left` or its bit is seen. The same holds for all later waits: the bit
/// stays.
#[repr(transparent)]
#[cfg_attr(all(test, oflow_loom), derive(Default))]
pub struct Interest(Word);

impl Interest {
    /// Before the first look at the alarms of a wait that may sleep.
    pub fn announce(&self, bit: usize) {
        self.0.fetch_or(1 << bit);
        fence(Ordering::SeqCst);
    }
    /// After the alarm has been set.
    pub fn announced(&self, bit: usize) -> bool {
        fence(Ordering::SeqCst);
        self.0.load() & 1 << bit != 0
    }
}

/// Bytes that travel in the entry itself.
pub const INLINE: usize = 72;

/// The contents of a post. With a short payload, only the entry moves from one core to the other.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct Letter {
    pub ordinal: u64,
    pub hash: u64,
    pub total: u64,
    pub arrived: u64,
    /// Posts of the reader that the sender has taken by now: saves the reader a look at `taken`.
    pub ack: u32,
    pub len: u32,
    /// Where the bytes are in the outbox buffer, or [`INLINE_AT`].
    pub offset: u32,
    pub slot: u8,
    pub kind: u8,
    pub unused: [u8; 2],
    pub inline: [u8; INLINE],
}

/// The offset of bytes that are in the letter itself.
pub const INLINE_AT: u32 = u32::MAX;

impl Letter {
    pub fn head(&self) -> Head {
        Head { ordinal: self.ordinal, hash: self.hash, kind: self.kind, total: self.total, arrived: self.arrived }
    }
}

/// One entry of the ring, on cache lines of its own.
#[repr(C, align(128))]
#[cfg_attr(all(test, oflow_loom), derive(Default))]
pub struct Entry<L> {
    ready: Flag,
    letter: Shared<L>,
}

/// The reader's side of a link.
#[repr(C, align(128))]
#[cfg_attr(all(test, oflow_loom), derive(Default))]
pub struct Back {
    taken: Flag,
    /// Not 0 if the reader has rejected a post; its status has the name of its call.
    rejected: Word,
}

/// A one-way link between two ranks. All zero is a valid new one.
#[repr(C)]
pub struct Channel<L, const N: usize = SLOTS> {
    entries: [Entry<L>; N],
    back: Back,
}

// SAFETY: one sender and one reader access the cells in the order that the flags enforce (told at the top of this file).
unsafe impl<L: Send, const N: usize> Sync for Channel<L, N> {}

impl<L: Copy, const N: usize> Channel<L, N> {
    fn entry(&self, n: u32) -> &Entry<L> {
        &self.entries[n as usize % N]
    }
    /// Posts number `n` (from 1).
    ///
    /// # Safety
    /// Only the link's sender may call this, with consecutive numbers, and post `n - N` has been taken.
    pub unsafe fn post(&self, n: u32, write: impl FnOnce(*mut L)) {
        let entry = self.entry(n);
        entry.letter.with_mut(write);
        entry.ready.set(n & COUNT_MASK);
    }
    /// The flag that comes to `n` when post `n` is there.
    pub fn ready(&self, n: u32) -> &Flag {
        &self.entry(n).ready
    }
    /// Reads post `n`.
    ///
    /// # Safety
    /// Only the link's reader may call this, after `ready(n)` came to `n` and before it takes `n`; what `read` keeps of the
    /// pointer is valid until then.
    pub unsafe fn read<R>(&self, n: u32, read: impl FnOnce(*const L) -> R) -> R {
        self.entry(n).letter.with(read)
    }
    /// The reader is done with post `n`.
    pub fn take(&self, n: u32) {
        self.back.taken.set(n);
    }
    /// The flag that counts taken posts.
    pub fn taken(&self) -> &Flag {
        &self.back.taken
    }
    /// The reader rejects: the sender shall look.
    pub fn reject(&self) {
        self.back.rejected.swap(1);
        self.back.taken.nudge();
    }
    /// Whether the reader has rejected a post.
    pub fn rejected(&self) -> bool {
        self.back.rejected.load() != 0
    }
    /// Makes the link's reader look at the alarms.
    pub fn nudge_reader(&self) {
        self.entries.iter().for_each(|e| e.ready.nudge());
    }
    /// Makes the link's sender look at the alarms.
    pub fn nudge_sender(&self) {
        self.back.taken.nudge();
    }
}

#[cfg(all(test, not(oflow_loom)))]
mod tests {
    use super::*;

    #[test]
    fn what_was_posted_before_the_sender_left_is_received() {
        // SAFETY: zero is a valid new flag.
        let flag: Flag = unsafe { std::mem::zeroed() };
        let patience = Patience { spins: 0, timeout: Duration::from_secs(60) };
        // The sender posts and leaves between the look at the count and the look at the alarms.
        let left = || {
            flag.set(1);
            Some("the sender has left")
        };
        assert_eq!(flag.wait(patience, |n| n == 1, left, || ()), Ok(()));
        assert_eq!(flag.wait(patience, |n| n == 2, left, || ()), Err(Stop::Alarm("the sender has left")));
    }
}

#[cfg(all(test, oflow_loom))]
mod loom_tests {
    use super::*;
    use crate::transport::reached;
    use loom::sync::Arc;
    use loom::sync::atomic::AtomicU32;
    use loom::thread;

    const PATIENCE: Patience = Patience { spins: 0, timeout: Duration::from_secs(3600) };

    fn wait(flag: &Flag, n: u32) {
        flag.wait(PATIENCE, |c| reached(c, n), || None::<()>, || ()).unwrap();
    }

    /// Every interleaving with at most three preemptions: more take hours and have found nothing else in such protocols.
    fn model(f: impl Fn() + Sync + Send + 'static) {
        let mut builder = loom::model::Builder::new();
        builder.preemption_bound = Some(3);
        builder.check(f);
    }

    #[test]
    fn loom_posts_arrive_in_order_and_entries_are_reused_only_when_read() {
        // A ring of one entry and of two, each used again once.
        ring::<1>();
        ring::<2>();
    }

    fn ring<const N: usize>() {
        model(|| {
            let entries = std::array::from_fn::<_, N, _>(|_| Entry::<u64>::default());
            let link = Arc::new(Channel { entries, back: Back::default() });
            let mine = link.clone();
            let posts = N as u32 + 1;
            let sender = thread::spawn(move || {
                for n in 1..=posts {
                    if n > N as u32 {
                        wait(mine.taken(), n - N as u32);
                    }
                    // SAFETY: the only sender, in order, after the wait for the entry. Loom checks the cell.
                    unsafe { mine.post(n, |l| *l = n as u64 * 10) };
                }
            });
            for n in 1..=posts {
                wait(link.ready(n), n);
                // SAFETY: the only reader, after `ready`.
                assert_eq!(unsafe { link.read(n, |l| *l) }, n as u64 * 10);
                link.take(n);
            }
            sender.join().unwrap();
        });
    }

    #[test]
    fn loom_an_alarm_wakes_a_sleeper_even_next_to_a_post() {
        model(|| {
            let shared = Arc::new((Flag::default(), AtomicU32::new(0)));
            let (a, b) = (shared.clone(), shared.clone());
            let poster = thread::spawn(move || a.0.set(1));
            let alarm = thread::spawn(move || {
                b.1.store(1, Ordering::Release);
                b.0.nudge();
            });
            // Waits for a count that never comes: only the alarm ends it. Loom reports a hang as a deadlock.
            let alarmed = || (shared.1.load(Ordering::Acquire) == 1).then_some(());
            assert_eq!(shared.0.wait(PATIENCE, |c| reached(c, 2), alarmed, || ()), Err(Stop::Alarm(())));
            poster.join().unwrap();
            alarm.join().unwrap();
        });
    }

    #[test]
    fn loom_who_leaves_is_seen_or_nudges() {
        model(|| {
            let shared = Arc::new((Flag::default(), AtomicU32::new(0), Interest::default()));
            let b = shared.clone();
            let leaver = thread::spawn(move || {
                // Relaxed, as weak as it may be: the fences alone order it.
                b.1.store(1, Ordering::Relaxed);
                if b.2.announced(3) {
                    b.0.nudge();
                }
            });
            shared.2.announce(3);
            let left = || (shared.1.load(Ordering::Relaxed) == 1).then_some(());
            assert_eq!(shared.0.wait(PATIENCE, |_| false, left, || ()), Err(Stop::Alarm(())));
            // Once more, without a new announcement.
            assert_eq!(shared.0.wait(PATIENCE, |_| false, left, || ()), Err(Stop::Alarm(())));
            leaver.join().unwrap();
        });
    }

    #[test]
    fn loom_two_alarms_both_count() {
        model(|| {
            let shared = Arc::new((Flag::default(), AtomicU32::new(0)));
            let b = shared.clone();
            let alarm = thread::spawn(move || {
                for _ in 0..2 {
                    b.1.fetch_add(1, Ordering::Release);
                    b.0.nudge();
                }
            });
            let alarmed = || (shared.1.load(Ordering::Acquire) == 2).then_some(());
            assert_eq!(shared.0.wait(PATIENCE, |_| false, alarmed, || ()), Err(Stop::Alarm(())));
            alarm.join().unwrap();
        });
    }
}
