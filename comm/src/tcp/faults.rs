//! What goes wrong between hosts: links that are cut, half-closed, slow or spoil bytes, and strangers at the door.

use super::frame::{Frame, FrameKind, HEADER};
use super::handshake::{Exchange, HELLO, Hello, WELCOME};
use super::link::{Connection, End};
use super::tests::{TOKEN, TestHosts, all, names, options, run, world_with};
use super::{Alarm, Listener};
use crate::hosts::HostsComm;
use crate::oracle::tag;
use crate::transport::RunningCall;
use crate::{Collective, Communicator, DType, LinkEnd, ReduceOp, run_team};
use oflow_base::Random;
use oflow_base::{Error, ErrorKind};
use std::cell::Cell;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Passes one connection on, until told otherwise.
struct Proxy {
    address: SocketAddr,
    fault: Arc<AtomicU8>,
    threads: Vec<JoinHandle<()>>,
}

const WELL: u8 = 0;
const CUT: u8 = 1;
const HALF: u8 = 2;
const SPOIL: u8 = 3;
const SLOW: u8 = 4;
const HOLD: u8 = 5;
const END: u8 = 9;

impl Proxy {
    fn new(to: SocketAddr) -> Proxy {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let (address, fault) = (listener.local_addr().unwrap(), Arc::new(AtomicU8::new(WELL)));
        let told = fault.clone();
        let main = std::thread::spawn(move || {
            let (near, _) = listener.accept().unwrap();
            let far = TcpStream::connect(to).unwrap();
            let back = (far.try_clone().unwrap(), near.try_clone().unwrap(), told.clone());
            let other = std::thread::spawn(move || pump(back.0, back.1, &back.2, false));
            pump(near, far, &told, true);
            other.join().unwrap();
        });
        Proxy { address, fault, threads: vec![main] }
    }
    fn set(&self, fault: u8) {
        self.fault.store(fault, Ordering::Release);
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.set(END);
        self.threads.drain(..).for_each(|t| t.join().unwrap());
    }
}

fn pump(mut from: TcpStream, mut to: TcpStream, fault: &AtomicU8, forth: bool) {
    from.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
    to.set_nodelay(true).unwrap();
    let (mut bytes, mut spoiled) = (vec![0; 64 << 10], false);
    loop {
        let fault = fault.load(Ordering::Acquire);
        match fault {
            CUT | END => {
                let _ = (from.shutdown(Shutdown::Both), to.shutdown(Shutdown::Both));
                return;
            }
            // What comes the one way is no longer passed on, and the end of it is.
            HALF if forth => {
                let _ = to.shutdown(Shutdown::Write);
                return;
            }
            _ => {}
        }
        let most = if fault == SLOW { 2048 } else { bytes.len() };
        let n = match from.read(&mut bytes[..most]) {
            Ok(0) => {
                let _ = to.shutdown(Shutdown::Write);
                return;
            }
            Ok(n) => n,
            Err(e) if e.kind() == std::io::ErrorKind::WouldBlock => continue,
            Err(_) => return,
        };
        if fault == HOLD {
            // Taken, so that the sender's kernel has its answer, and never passed on.
            continue;
        }
        if fault == SPOIL && forth && !spoiled && n > 200 {
            bytes[n - 1] ^= 4;
            spoiled = true;
        }
        if fault == SLOW {
            // The bandwidth of the link, not a wait for anything.
            std::thread::sleep(Duration::from_millis(2));
        }
        if to.write_all(&bytes[..n]).is_err() {
            return;
        }
    }
}

/// Runs two ranks over a proxy: a barrier on a well link, then `fault`, then `f`.
fn with_fault<R: Send>(fault: u8, f: impl Fn(usize, HostsComm, &Alarm) -> R + Sync) -> Vec<R> {
    let proxy = std::sync::OnceLock::new();
    let (comms, alarms) = world_with(&TestHosts { hosts: &[1, 1], capacity: 64 << 10, buffer: None }, |me, to, a| {
        if (me, to) == (0, 1) { proxy.get_or_init(|| Proxy::new(a)).address } else { a }
    });
    let both = std::sync::Barrier::new(2);
    run(comms, |rank, comm| {
        comm.barrier(&all(&comm), &tag(1, "well")).unwrap();
        both.wait();
        proxy.get().unwrap().set(fault);
        both.wait();
        f(rank, comm, &alarms[rank])
    })
}

fn fails(fault: u8) -> Vec<Error> {
    let start = Instant::now();
    let errors = with_fault(fault, |_, comm, _| {
        let mut buf = vec![1; 300_000];
        (0..100)
            .find_map(|_| {
                comm.all_reduce(&all(&comm), &tag(2, "sum"), &buf.clone(), &mut buf, DType::U8, ReduceOp::Max).err()
            })
            .unwrap()
    });
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    errors
}

#[test]
fn a_cut_link_is_told_with_both_ranks_and_hosts() {
    for (rank, e) in fails(CUT).into_iter().enumerate() {
        assert_eq!(e.kind(), ErrorKind::Link, "{e}");
        let start = format!("the link from rank {rank} on host{rank} to rank {0} on host{0} is lost (", 1 - rank);
        let end = ", in all_reduce of 'sum' #2 (oracle.rs:3)";
        assert!(e.message().starts_with(&start) && e.message().ends_with(end), "{e}");
        assert!(e.message().contains(&format!("while rank {rank} waits for rank {} to ", 1 - rank)), "{e}");
    }
}

#[test]
fn a_half_closed_link_is_told() {
    let errors = fails(HALF);
    assert!(errors.iter().all(|e| e.kind() == ErrorKind::Link || e.kind() == ErrorKind::Peer), "{errors:?}");
    assert!(errors[1].message().contains("(closed without a goodbye)"), "{errors:?}");
    assert!(errors[1].missing_rank().is_some(), "{errors:?}");
}

#[test]
#[cfg(debug_assertions)]
fn a_spoilt_byte_is_told() {
    let errors = fails(SPOIL);
    assert_eq!(errors[1].kind(), ErrorKind::Link);
    assert!(errors[1].message().contains("checksum"), "{errors:?}");
}

#[test]
fn a_slow_link_is_no_error() {
    let sums = with_fault(SLOW, |rank, comm, _| {
        let mut buf = vec![rank as u8 + 1; 200_000];
        comm.all_reduce(&all(&comm), &tag(2, "sum"), &buf.clone(), &mut buf, DType::U8, ReduceOp::Sum).unwrap();
        buf.iter().all(|b| *b == 3)
    });
    assert_eq!(sums, [true, true]);
}

#[test]
fn both_ends_of_a_link_that_holds_bytes_back_can_tell() {
    let seen = Mutex::new([LinkEnd::default(); 2]);
    let errors = with_fault(HOLD, |rank, comm, alarm| {
        let pulse = comm.pulse();
        std::thread::scope(|s| {
            // As the heartbeats: on another thread, until each end has looked in vain for what the other has sent.
            s.spawn(|| {
                let deadline = Instant::now() + Duration::from_secs(20);
                loop {
                    let ends = {
                        let mut ends = seen.lock().unwrap();
                        ends[rank] = pulse.link(1 - rank).unwrap();
                        *ends
                    };
                    let stuck = |from: usize, to: usize| ends[from].sent > ends[to].received && ends[to].looks >= 4;
                    if stuck(0, 1) && stuck(1, 0) || Instant::now() > deadline {
                        return alarm.raise(format!("{}", stuck(0, 1) && stuck(1, 0)));
                    }
                    std::thread::park_timeout(Duration::from_millis(20));
                }
            });
            let mut buf = vec![1; 300_000];
            comm.all_reduce(&all(&comm), &tag(2, "sum"), &buf.clone(), &mut buf, DType::U8, ReduceOp::Max).unwrap_err()
        })
    });
    // To the transport all is well: only both ends together show it.
    assert!(errors.iter().all(|e| e.message() == "the job has failed: true"), "{errors:?}");
}

/// Connects two ranks while `strangers` are at rank 1's door before rank 0; they are given its address.
fn beside(strangers: impl FnOnce(SocketAddr) -> Vec<TcpStream>, token: [&[u8]; 2]) -> Vec<Result<(), Error>> {
    let listeners: Vec<_> = (0..2).map(|_| Listener::bind(Ipv4Addr::LOCALHOST.into()).unwrap()).collect();
    let addresses: Vec<_> = listeners.iter().map(Listener::address).collect();
    let _held = strangers(addresses[1]);
    let listeners: Vec<_> = listeners.into_iter().map(|l| std::sync::Mutex::new(Some(l))).collect();
    run_team(2, |rank| {
        let listener = listeners[rank].lock().unwrap().take().unwrap();
        let mut o = options(4096, None);
        o.start = if token[0] == token[1] { o.start } else { Duration::from_millis(600) };
        let alarm = Alarm::new().unwrap();
        listener.connect(rank, &[0, 1], &names(&[0, 1]), &addresses, token[rank], alarm, &o).map(drop)
    })
}

#[test]
fn strangers_do_no_harm() {
    let garbage = |to: SocketAddr| {
        let mut rng = Random::new(5);
        let knock = |bytes: Vec<u8>| {
            let mut s = TcpStream::connect(to).unwrap();
            // It may have been refused in the middle.
            let _ = s.write_all(&bytes);
            s
        };
        let mut held: Vec<TcpStream> = (0..40).map(|n| knock((0..n * 7).map(|_| rng.draw() as u8).collect())).collect();
        held.push(knock(b"GET / HTTP/1.1\r\nHost: oflow\r\n\r\n".to_vec()));
        held.push(knock(vec![b'o'; 1 << 20]));
        // A hello that is right but for the session, and one with a proof that is made up.
        let hello = Hello { session: 1, from: 0, to: 1, nonce: [3; 16] };
        held.push(knock(hello.encode().to_vec()));
        held.push(knock([&hello.encode()[..], &[7; 32]].concat()));
        held
    };
    assert!(beside(garbage, [TOKEN, TOKEN]).iter().all(Result::is_ok));
}

#[test]
fn hundreds_of_idle_connections_do_no_harm() {
    // More than may wait at a time; as many as fit the system's queue before anybody is at the door, the others as it opens.
    let (mut waiting, mut start) = (None, Instant::now());
    let idle = |to: SocketAddr| {
        let held = (0..100).map(|_| TcpStream::connect(to).unwrap()).collect();
        let more = std::thread::spawn(move || (0..400).map_while(|_| TcpStream::connect(to).ok()).collect::<Vec<_>>());
        (waiting, start) = (Some(more), Instant::now());
        held
    };
    assert!(beside(idle, [TOKEN, TOKEN]).iter().all(Result::is_ok));
    assert!(start.elapsed() < Duration::from_secs(5), "{:?}", start.elapsed());
    drop(waiting.unwrap().join().unwrap());
}

#[test]
fn another_token_is_refused_on_both_sides() {
    let errors: Vec<Error> = beside(|_| vec![], [TOKEN, b"another"]).into_iter().map(Result::unwrap_err).collect();
    assert!(errors.iter().all(|e| e.kind() == ErrorKind::Link), "{errors:?}");
    assert!(
        errors[0].message().starts_with("after 0.6 s rank 0 on host0 has no link to\n  rank 1 on host1 (127."),
        "{}",
        errors[0]
    );
    assert!(
        errors[0].message().ends_with("the process that listens there does not know the job's token"),
        "{}",
        errors[0]
    );
    assert!(errors[1].message().ends_with("it has not connected"), "{}", errors[1]);
    assert!(!errors.iter().any(|e| e.to_string().contains("another")), "the token is not told");
}

#[test]
fn proofs_hold_for_what_they_were_made_for_only() {
    let hello = Hello { session: 7, from: 0, to: 1, nonce: [1; 16] };
    let right = || Exchange { token: TOKEN, hello, challenge: [2; 16] };
    let proof = right().proof();
    assert!(right().proof_holds(&proof) && right().challenge_holds(&right().challenge()[16..]));
    // A replay meets another nonce; a MAC that is sent back was made for the other role; ranks and session count.
    assert!(!Exchange { challenge: [3; 16], ..right() }.proof_holds(&proof));
    assert!(!right().proof_holds(&right().challenge()[16..]) && !right().challenge_holds(&proof));
    for other in [Hello { session: 8, ..hello }, Hello { from: 2, ..hello }, Hello { to: 3, ..hello }] {
        assert!(!Exchange { hello: other, ..right() }.proof_holds(&proof));
    }
    assert!(!Exchange { token: b"b", ..right() }.proof_holds(&proof));
    assert_eq!(Hello::decode(&hello.encode()), Ok(hello));
    assert_ne!(&proof[..4], WELCOME);
    let mut bytes = hello.encode();
    bytes[8] = 9;
    assert_eq!(Hello::decode(&bytes).unwrap_err(), "it speaks version 9 of the protocol, this rank 1");
}

#[test]
fn decoders_take_any_bytes() {
    let mut rng = Random::new(11);
    for _ in 0..100_000 {
        let random: [u8; HEADER] = std::array::from_fn(|_| rng.draw() as u8);
        assert!(Frame::decode(&random, 1 << 20).is_err());
        let mut hello = [0; HELLO];
        hello.iter_mut().for_each(|b| *b = rng.draw() as u8);
        assert!(Hello::decode(&hello).is_err());
        // A header with one bit changed does not pass; one made with any numbers is read back or refused.
        let mut frame = Frame::bare(FrameKind::Post);
        (frame.ordinal, frame.hash, frame.total) = (rng.draw(), rng.draw(), rng.draw());
        (frame.len, frame.op_len, frame.line) = (rng.draw() as u32, rng.draw() as u8, rng.draw() as u32);
        let mut bytes = frame.encode();
        match Frame::decode(&bytes, 1 << 20) {
            Ok(back) => assert_eq!(back, frame),
            Err(_) => assert!(frame.len > 1 << 20),
        }
        bytes[rng.below(HEADER)] ^= 1 << rng.below(8);
        assert!(Frame::decode(&bytes, 1 << 20).is_err());
    }
}

#[test]
fn a_link_takes_any_stream_of_bytes() {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let pair = || {
        let out = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        let into = listener.accept().unwrap().0;
        into.set_nonblocking(true).unwrap();
        (out, Connection::new(into, 10_000))
    };
    let mut rng = Random::new(23);
    let mut ends = [0; 3];
    for _ in 0..300 {
        // What a sender writes for some posts, as bytes.
        let (near, mut sender) = pair();
        let (t, arrived) = (tag(3, "op"), Cell::new(0));
        let call = RunningCall { tag: &t, kind: Collective::Exchange, arrived: &arrived };
        let payload: Vec<u8> = (0..10_000).map(|i| i as u8).collect();
        let posts = 1 + rng.below(6);
        let lens: Vec<usize> = (0..posts).map(|i| rng.below([50, 10_000][i % 2])).collect();
        for len in &lens {
            // SAFETY: the payload outlives the sender's queue.
            unsafe { sender.post(&call, 5, (payload.as_ptr(), *len), 0) };
        }
        sender.write(|_| ());
        assert!(!sender.has_output());
        drop(sender);
        let mut stream = Vec::new();
        (&near).read_to_end(&mut stream).unwrap();
        // One byte of it changes, mostly; and it comes in pieces of any size.
        let spoilt = rng.below(4) > 0;
        if spoilt {
            let at = rng.below(stream.len());
            stream[at] ^= 1 << rng.below(8);
        }
        let (mut out, mut link) = pair();
        let (mut pool, mut got, mut at) = (Vec::new(), 0, 0);
        loop {
            let n = (1 + rng.below(5000)).min(stream.len() - at);
            out.write_all(&stream[at..at + n]).unwrap();
            at += n;
            if at == stream.len() {
                out.shutdown(Shutdown::Write).unwrap();
            }
            link.read(true, &mut pool);
            while let Some(post) = link.next() {
                assert_eq!(post.len, lens[got]);
                // SAFETY: the post is there until its release.
                let bytes = unsafe { std::slice::from_raw_parts(post.data, post.len) };
                assert!(bytes == &payload[..post.len]);
                got += 1;
                link.release(&mut pool);
            }
            if link.over.is_some() {
                break;
            }
        }
        match link.over {
            Some(End::Closed) => ends[0] += 1,
            Some(End::Garbled(_)) => ends[1] += 1,
            _ => ends[2] += 1,
        }
        assert!(spoilt || got == lens.len());
    }
    assert!(ends[0] > 30 && ends[1] > 30, "{ends:?}");
}
