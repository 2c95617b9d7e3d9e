//! Finds connections between hosts that deliver no bytes although both kernels answer, and slow ones. Pure: takes heartbeats and
//! the time, returns questions, warnings and failures.
//!
//! Both ends count bytes. Suppose X has given n bytes to its kernel, at least [`SETTLED`] ago, and Y has read fewer. Y's count
//! may be outdated, or Y may not have polled. So Y is asked after X's count is known; its later counts are then newer than X's,
//! whatever the clocks and delays. If Y has polled [`LOOKS`] times since then, a quarter of a second apart, and received nothing,
//! the bytes have been in transit for more than three seconds although Y's socket had room for them. That is told, and after the
//! longest outage that the job survives the link is lost. A rank that is starved or stopped does not poll, so its link never counts
//! as lost.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use oflow_proto::control as pb;

use super::stall::Finding;
use crate::{Failure, FailureKind};
use oflow_comm::tcp::Outage;
use oflow_comm::transport::place_of;

/// Bytes that have been on the way for less are not asked for.
const SETTLED: Duration = Duration::from_millis(1500);
/// Time between two looks at least.
const LOOK_EVERY: Duration = Duration::from_millis(250);
/// Looks in vain, after the question, that make a link silent.
const LOOKS: u64 = 6;
/// Looks in vain of a rank that waits, after which the other end is asked for its counts. A wait that lasts is asked about too.
const ASK_AFTER: u64 = 2;
const ASK_AFTER_MS: u64 = 1500;
/// How old the other end's counts may be, where bytes are on the way, and where none were.
const NEWS: Duration = Duration::from_millis(200);
const NEWS_EVEN: Duration = Duration::from_secs(1);
/// Time after which an unanswered question is repeated.
const AGAIN: Duration = Duration::from_millis(400);
/// Time within which a rank's message must have come, where the link is well.
const LATE: Duration = Duration::from_millis(400);
/// A link is called slow when bytes were late half of that time, in whatever collectives, and fewer came than this in a second.
const SLOW_FOR: Duration = Duration::from_secs(4);
/// A longer pause between two looks begins anew.
const PAUSE: Duration = Duration::from_secs(1);
const SLOW_RATE: f64 = 1024.0 * 1024.0;

/// The last report of one end of a connection.
#[derive(Clone, Copy)]
struct End {
    sent: u64,
    quiet: Duration,
    received: u64,
    looks: u64,
    /// The last question that it had read then.
    asked: u64,
    at: Instant,
}

/// Bytes that should be there.
struct Suspect {
    /// The number of the question; 0: it is too early for one.
    asked: u64,
    put: Instant,
    /// By when they had been sent. What is sent after them, as signs of life, does not count.
    since: Instant,
    sent: u64,
    received: u64,
    /// Count of the first answer.
    looks: Option<u64>,
    /// Whether the silence has been told.
    reported: bool,
}

/// How fast bytes come for which a rank waits.
#[derive(Default)]
struct Pace {
    /// Bytes sent, and the time of the report.
    sent: Option<(u64, Instant)>,
    window: Option<WaitPeriod>,
}

/// A time in which a rank has waited for bytes again and again.
struct WaitPeriod {
    since: Instant,
    /// At its beginning: bytes received, and how long the rank had queued for a processor.
    received: u64,
    queued_ms: u64,
    /// The last look, and how long bytes were late up to then.
    looked: Instant,
    late: Duration,
}

/// All connections that ranks have reported. A pair is (from, to).
pub struct Transit {
    outage: Outage,
    ends: BTreeMap<(usize, usize), End>,
    calls: BTreeMap<usize, String>,
    suspects: BTreeMap<(usize, usize), Suspect>,
    paces: BTreeMap<(usize, usize), Pace>,
    slow: BTreeSet<(usize, usize)>,
    questions: u64,
    asks: Vec<pb::Ask>,
    found: Vec<LinkEvent>,
}

enum LinkEvent {
    Silent { from: usize, to: usize, bytes: u64, time: Duration },
    Lost { from: usize, to: usize, bytes: u64, time: Duration },
    Slow { from: usize, to: usize, rate: f64 },
}

impl Transit {
    /// Makes the state of a job that survives such outages.
    pub fn new(outage: Outage) -> Transit {
        Transit {
            outage,
            ends: BTreeMap::new(),
            calls: BTreeMap::new(),
            suspects: BTreeMap::new(),
            paces: BTreeMap::new(),
            slow: BTreeSet::new(),
            questions: 0,
            asks: Vec::new(),
            found: Vec::new(),
        }
    }

    /// Takes a heartbeat.
    pub fn beat(&mut self, beat: &pb::HeartbeatRequest, now: Instant) {
        let rank = beat.rank as usize;
        let wait = beat.wait.as_ref();
        match wait {
            Some(wait) => self.calls.insert(rank, wait.call.clone()),
            None => self.calls.remove(&rank),
        };
        for link in &beat.links {
            let (peer, quiet) = (link.peer as usize, Duration::from_millis(link.sent_ms));
            let &pb::LinkEnd { sent, received, looks, .. } = link;
            self.ends.insert((rank, peer), End { sent, quiet, received, looks, asked: beat.asked, at: now });
            self.judge(rank, peer, now);
            self.judge(peer, rank, now);
            let Some(wait) = wait.filter(|w| w.ranks == [link.peer]) else { continue };
            if (looks >= ASK_AFTER || wait.since_ms >= ASK_AFTER_MS) && self.wants_news(peer, rank, now) {
                self.ask(peer, rank, 0);
            }
            self.pace(peer, rank, beat.queued_ms, now);
        }
    }

    /// A rank has left the job.
    pub fn left(&mut self, rank: usize) {
        self.calls.remove(&rank);
        self.ends.retain(|(a, b), _| *a != rank && *b != rank);
        self.suspects.retain(|(a, b), _| *a != rank && *b != rank);
        self.paces.retain(|(a, b), _| *a != rank && *b != rank);
    }

    /// Takes the questions to ranks, in order.
    pub fn take_asks(&mut self) -> Vec<pb::Ask> {
        std::mem::take(&mut self.asks)
    }

    /// Returns the warnings and failures at this time. `name` returns a rank and its host as text.
    pub fn look(&mut self, now: Instant, name: impl Fn(usize) -> String) -> Vec<Finding> {
        let mut again = Vec::new();
        for ((from, to), suspect) in self.suspects.iter_mut().filter(|(_, s)| s.asked != 0) {
            let heard = self.ends.get(&(*to, *from)).map_or(suspect.put, |e| e.at);
            if now.saturating_duration_since(heard.max(suspect.put)) >= AGAIN {
                suspect.put = now;
                again.push((*to, *from, suspect.asked));
            }
        }
        again.into_iter().for_each(|(rank, peer, asked)| self.ask(rank, peer, asked));
        std::mem::take(&mut self.found).into_iter().map(|found| self.tell(found, &name)).collect()
    }

    fn tell(&self, found: LinkEvent, name: impl Fn(usize) -> String) -> Finding {
        let call = |rank: usize| self.calls.get(&rank).map_or(String::new(), |call| format!(", in {call}"));
        match found {
            LinkEvent::Silent { from, to, bytes, time } => Finding::Warning(format!(
                "the link from {} to {} has been silent for {:.1} s: {bytes} bytes sent by rank {from} have not arrived, and rank \
                 {to} waits for them{}; the job waits up to {:.0} s (--outage-limit)",
                name(from),
                name(to),
                time.as_secs_f64(),
                call(to),
                self.outage.limit().as_secs_f64()
            )),
            LinkEvent::Lost { from, to, bytes, time } => {
                let text = format!(
                    "the link from {} to {} is lost: {bytes} bytes sent by rank {from} have not arrived after \
                     {:.1} s, although rank {to} waits for them{}",
                    name(from),
                    name(to),
                    time.as_secs_f64(),
                    call(to)
                );
                let places = [to, from].into_iter().filter_map(|r| place_of(r, self.calls.get(&r)?));
                Finding::Failure(Failure::of_job(FailureKind::LinkLost, text).in_places(places))
            }
            LinkEvent::Slow { from, to, rate } => Finding::Warning(format!(
                "the link from {} to {} is slow: {:.1} KiB/s in {:.0} s in which rank {to} has waited for more{}",
                name(from),
                name(to),
                rate / 1024.0,
                SLOW_FOR.as_secs_f64(),
                call(to)
            )),
        }
    }

    fn ask(&mut self, rank: usize, peer: usize, asked: u64) {
        self.asks.push(pb::Ask { rank: rank as u32, interval: None, links: vec![peer as u32], asked });
    }

    /// Whether the report of the other end is too old. A rank that waits reports by itself.
    fn wants_news(&self, peer: usize, rank: usize, now: Instant) -> bool {
        let (Some(there), Some(here)) = (self.ends.get(&(peer, rank)), self.ends.get(&(rank, peer))) else {
            return true;
        };
        let even = there.sent == here.received && here.sent == there.received;
        now.saturating_duration_since(there.at) >= if even { NEWS_EVEN } else { NEWS }
    }

    fn judge(&mut self, from: usize, to: usize, now: Instant) {
        let (Some(here), Some(there)) = (self.ends.get(&(from, to)), self.ends.get(&(to, from)).copied()) else {
            return;
        };
        let Some(suspect) = self.suspects.get_mut(&(from, to)) else {
            if here.sent > there.received {
                // As far as both ends know: bytes that were sent long ago may have moved a moment ago.
                let still = here.quiet.min(LOOK_EVERY * there.looks.min(1 << 16) as u32);
                let since = now.checked_sub(still).unwrap_or(now);
                let (sent, received) = (here.sent, there.received);
                self.suspects.insert(
                    (from, to),
                    Suspect { asked: 0, put: now, since, sent, received, looks: None, reported: false },
                );
            }
            return;
        };
        if there.received != suspect.received {
            // It moves, if slowly: what is missing still is late from now on.
            let (sent, received) = (here.sent, there.received);
            if sent > received {
                *suspect = Suspect { asked: 0, put: now, since: now, sent, received, looks: None, reported: false };
            } else {
                self.suspects.remove(&(from, to));
            }
        } else if suspect.asked == 0 {
            if now.saturating_duration_since(suspect.since) >= SETTLED {
                self.questions += 1;
                let asked = self.questions;
                (suspect.asked, suspect.put) = (asked, now);
                self.ask(to, from, asked);
            }
        } else if there.asked >= suspect.asked {
            match suspect.looks {
                Some(first) if there.looks >= first.saturating_add(LOOKS) => {
                    let time = now.saturating_duration_since(suspect.since);
                    let bytes = suspect.sent - suspect.received;
                    if time >= self.outage.patience() {
                        self.suspects.remove(&(from, to));
                        self.found.push(LinkEvent::Lost { from, to, bytes, time });
                    } else if !std::mem::replace(&mut suspect.reported, true) {
                        self.found.push(LinkEvent::Silent { from, to, bytes, time });
                    }
                }
                Some(first) if there.looks >= first => {}
                // The first answer; or something came and was counted late.
                _ => suspect.looks = Some(there.looks),
            }
        }
    }

    /// Whether bytes from a rank come slowly to one that waits for them now.
    fn pace(&mut self, from: usize, to: usize, queued_ms: u64, now: Instant) {
        let (Some(here), Some(there)) = (self.ends.get(&(from, to)), self.ends.get(&(to, from))) else { return };
        let pace = self.paces.entry((from, to)).or_default();
        let reported = pace.sent.get_or_insert((here.sent, now));
        let since_sent = now.saturating_duration_since(reported.1);
        if since_sent < LATE {
            return;
        }
        let late = there.received < reported.0;
        *reported = (here.sent, now);
        let fresh = WaitPeriod { since: now, received: there.received, queued_ms, looked: now, late: Duration::ZERO };
        if since_sent > PAUSE {
            pace.window = Some(fresh);
            return;
        }
        let window = pace.window.get_or_insert(fresh);
        if late {
            window.late += now.saturating_duration_since(window.looked);
        }
        window.looked = now;
        let time = now.saturating_duration_since(window.since);
        if time < SLOW_FOR {
            return;
        }
        let starved = Duration::from_millis(queued_ms.saturating_sub(window.queued_ms)) > time / 2;
        let bytes = there.received.saturating_sub(window.received);
        let slow = window.late * 2 > time && !starved;
        pace.window = None;
        let rate = bytes as f64 / time.as_secs_f64();
        if slow && bytes > 0 && rate < SLOW_RATE && self.slow.insert((from, to)) {
            self.found.push(LinkEvent::Slow { from, to, rate });
        }
    }
}

#[cfg(test)]
#[path = "transit_tests.rs"]
mod tests;
