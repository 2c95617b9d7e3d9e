//! Posts that leave from, and arrive in, the memory of a call.

use super::link::{Connection, MEMORY, Offer, Pool};
use super::links::timespec;
use crate::oracle::tag;
use crate::transport::RunningCall;
use crate::{Collective, Tag};
use oflow_base::Random;
use rustix::event::{PollFd, PollFlags, poll};
use std::cell::Cell;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::Duration;

const MOST: usize = 100_000;

/// Both ends of a connection whose kernel keeps little.
fn pair() -> (Connection, Connection) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let out = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let into = listener.accept().unwrap().0;
    for s in [&out, &into] {
        super::socket::prepare(s, Duration::from_secs(4), Some(8 << 10)).unwrap();
    }
    (Connection::new(out, MOST), Connection::new(into, MOST))
}

/// Waits until the sender's socket takes more or the receiver's has more. With so small buffers the kernel takes tens of milliseconds to
/// acknowledge what was read.
fn wait(sender: &Connection, link: &Connection) {
    let mut fds = vec![PollFd::new(&link.stream, PollFlags::IN)];
    if sender.has_output() {
        fds.push(PollFd::new(&sender.stream, PollFlags::OUT));
    }
    assert_ne!(poll(&mut fds, Some(&timespec(Duration::from_secs(20)))).unwrap(), 0, "nothing comes");
}

fn payload(seed: usize, len: usize) -> Vec<u8> {
    (0..len).map(|i| (i * 7 + seed * 13) as u8).collect()
}

fn offer(room: &mut [u8], t: &Tag, total: u64) -> Offer {
    let (data, len) = (room.as_mut_ptr(), room.len());
    Offer { data, len, ordinal: t.ordinal, hash: t.hash, collective: Collective::Exchange as u8, total }
}

#[test]
fn what_is_offered_is_used_for_the_right_post_only() {
    let mut rng = Random::new(5);
    let (mut direct, mut taken_back) = (0, 0);
    for _ in 0..80 {
        let (mut sender, mut link) = pair();
        let (t, arrived) = (tag(3, "op"), Cell::new(0));
        let call = RunningCall { tag: &t, kind: Collective::Exchange, arrived: &arrived };
        let sent: Vec<Vec<u8>> = (0..5).map(|i| payload(i, rng.below([60, 5_000, MOST][i % 3]))).collect();
        for bytes in &sent {
            // SAFETY: the payload outlives the sender's queue.
            unsafe { sender.post(&call, 5, (bytes.as_ptr(), bytes.len()), MEMORY) };
        }
        let mut pool = Pool::new();
        for bytes in &sent {
            // The post may have begun before somebody asks for it.
            for _ in 0..rng.below(3) {
                sender.write(|_| ());
                link.read(rng.below(2) > 0, &mut pool);
            }
            let mut room = vec![0xAA; bytes.len() + rng.below(100)];
            let other = tag(4, "op");
            let (fits, right) = (rng.below(4) > 0, rng.below(4) > 0);
            let end = if fits { room.len() } else { bytes.len().saturating_sub(1) };
            let of = if right { &t } else { &other };
            // SAFETY: the room outlives the release, or the offer is taken back.
            unsafe { link.offer(offer(&mut room[..end], of, 5), &mut pool) };
            if rng.below(4) == 0 {
                // The call fails while the post is coming in.
                for _ in 0..rng.below(4) {
                    sender.write(|_| ());
                    link.read(false, &mut pool);
                }
                link.retract(&mut pool);
                room.fill(0xEE);
                taken_back += 1;
            }
            let post = loop {
                sender.write(|_| ());
                link.read(rng.below(2) > 0, &mut pool);
                assert_eq!(link.over, None);
                if let Some(post) = link.next() {
                    break post;
                }
                wait(&sender, &link);
            };
            let here = std::ptr::eq(post.data, room.as_ptr());
            direct += usize::from(here);
            assert!(!here || right && (fits || bytes.is_empty()));
            // SAFETY: the post is there until its release.
            let got = unsafe { std::slice::from_raw_parts(post.data, post.len) };
            assert!(got == bytes);
            link.release(&mut pool);
            assert!(here || room.iter().all(|b| *b == 0xAA || *b == 0xEE) || right);
        }
        assert!(link.next().is_none() && !sender.has_output());
    }
    assert!(direct > 16 && taken_back > 40, "{direct} {taken_back}");
}

#[test]
fn what_a_failed_call_was_sending_arrives_all_the_same() {
    let (mut sender, mut link) = pair();
    let (t, arrived) = (tag(3, "op"), Cell::new(0));
    let call = RunningCall { tag: &t, kind: Collective::Exchange, arrived: &arrived };
    let mut memory = payload(1, MOST);
    for part in memory.chunks(MOST / 2) {
        // SAFETY: kept before the memory changes.
        unsafe { sender.post(&call, MOST as u64, (part.as_ptr(), part.len()), MEMORY) };
    }
    // The kernel takes some of it.
    sender.write(|_| ());
    assert!(sender.has_output());
    sender.keep();
    memory.fill(0);
    drop(memory);
    let (mut pool, mut got) = (Pool::new(), Vec::new());
    while got.len() < MOST {
        sender.write(|slot| assert_eq!(slot, MEMORY));
        link.read(true, &mut pool);
        assert_eq!(link.over, None);
        if let Some(post) = link.next() {
            // SAFETY: the post is there until its release.
            got.extend_from_slice(unsafe { std::slice::from_raw_parts(post.data, post.len) });
            link.release(&mut pool);
        } else {
            wait(&sender, &link);
        }
    }
    assert!(got == payload(1, MOST));
}
