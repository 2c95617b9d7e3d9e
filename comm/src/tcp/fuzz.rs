//! For `cargo xtask fuzz`: everything in this room that reads what others wrote, each as one call over some bytes.
//!
//! The first byte of an input says how the rest arrives (in which pieces), and whether checksums are made right first: a
//! decoder behind a checksum is reached by few damaged inputs otherwise.

use super::dial::Dial;
use super::door::Door;
use super::frame::{Frame, HEADER};
use super::handshake::{CHALLENGE, Exchange, Hello, PROOF, WELCOME};
use super::link::{Connection, End, Offer};
use super::{Alarm, Connections, MeshOptions};
use crate::hosts::{HostsComm, HostsTransport};
use crate::shm::ShmOptions;
use crate::transport::RunningCall;
use crate::{Collective, CollectiveCall, Collectives, Communicator, DType, Group, ReduceOp, Tag};
use oflow_base::Error;
use std::cell::Cell;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Whether some bytes were taken for something or refused; or what is wrong with what was made of them.
pub type Taken = Result<bool, String>;

/// Longest payload of a post in these calls.
pub const MOST: usize = 16 << 10;
const TOKEN: &[u8] = b"a token of the job";
const SESSION: u64 = 7;
/// Of the recorded posts, which have the ordinals 0, 1, 2 …
const HASH: u64 = 5;
const TOTAL: u64 = 3;
const UNTOUCHED: u8 = 0xa5;
/// An input with this bit in its first byte gets right checksums of headers.
const REPAIR_HEADERS: u8 = 0x80;
/// And with this one of payloads.
const REPAIR_PAYLOADS: u8 = 0x40;

fn io(e: std::io::Error) -> String {
    format!("the test itself has failed: {e}")
}

fn of(e: Error) -> String {
    format!("the test itself has failed: {e}")
}

/// A connection: the far end, which blocks, and this rank's.
fn pair() -> Result<(UnixStream, TcpStream), String> {
    let (far, near) = UnixStream::pair().map_err(io)?;
    near.set_nonblocking(true).map_err(io)?;
    // What is asked of it here works on any stream.
    Ok((far, TcpStream::from(OwnedFd::from(near))))
}

fn nowhere() -> SocketAddr {
    SocketAddr::from((Ipv4Addr::LOCALHOST, 9))
}

/// Makes checksums right, as far as frames can be told.
fn repair(how: u8, stream: &mut [u8]) {
    if how & REPAIR_HEADERS == 0 {
        return;
    }
    let mut at = 0;
    while let Some((head, rest)) = stream[at..].split_first_chunk_mut::<HEADER>() {
        head[..4].copy_from_slice(b"oflw");
        let word = |b: &[u8; HEADER], at: usize| u32::from_le_bytes([b[at], b[at + 1], b[at + 2], b[at + 3]]);
        let names = usize::from(head[7]) + usize::from(head[8]);
        let len = word(head, 48) as usize;
        if how & REPAIR_PAYLOADS != 0
            && let Some(payload) = rest.get(names..names.saturating_add(len))
        {
            let sum = crc32fast::hash(payload);
            head[52..56].copy_from_slice(&sum.to_le_bytes());
        }
        let sum = crc32fast::hash(&head[..60]);
        head[60..].copy_from_slice(&sum.to_le_bytes());
        at = at.saturating_add(HEADER + names).saturating_add(len).min(stream.len());
    }
}

/// A header: what is read says the same when it is written.
pub fn frame(input: &[u8]) -> Taken {
    let Some((&how, bytes)) = input.split_first() else { return Ok(false) };
    let Some((head, _)) = bytes.split_first_chunk::<HEADER>() else { return Ok(false) };
    let mut head = *head;
    repair(how, &mut head);
    let Ok(frame) = Frame::decode(&head, MOST) else { return Ok(false) };
    let again = Frame::decode(&frame.encode(), MOST);
    if again != Ok(frame) { Err(format!("{frame:?} is written and read as {again:?}")) } else { Ok(true) }
}

/// A stream of frames into one link, in pieces of any size; the rank takes its time with the posts.
pub fn link(input: &[u8]) -> Taken {
    let Some((&how, bytes)) = input.split_first() else { return Ok(false) };
    let mut stream = bytes.to_vec();
    repair(how, &mut stream);
    let (mut far, near) = pair()?;
    let (mut link, mut pool) = (Connection::new(near, MOST), Vec::new());
    let (mut at, mut posts, mut state) = (0, 0, u32::from(how) + 1);
    // The caller's memory, offered to the posts, with what must stay as it is on both sides.
    let mut memory = vec![UNTOUCHED; 64 + MOST + 64];
    while link.over.is_none() {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let longest = if how & 1 == 0 { 40 } else { 5000 };
        let n = (1 + (state >> 8) as usize % longest).min(stream.len() - at);
        // It may have seen enough.
        if far.write_all(&stream[at..at + n]).is_err() {
            break;
        }
        at += n;
        if at == stream.len() {
            let _may_be_closed = far.shutdown(Shutdown::Write);
        }
        let room = [MOST, 50, 0, 5000][(state >> 4) as usize % 4];
        if how & 4 != 0 {
            memory.fill(UNTOUCHED);
            let offer = Offer {
                data: memory[64..].as_mut_ptr(),
                len: room,
                ordinal: posts,
                hash: HASH,
                collective: Collective::Exchange as u8,
                total: TOTAL,
            };
            // SAFETY: the memory is longer than that, and not looked at before the offer has been taken back.
            unsafe { link.offer(offer, &mut pool) };
        }
        link.read(how & 8 == 0, &mut pool);
        let slow = how & 2 != 0 && !state.is_multiple_of(5) && at < stream.len();
        while !slow && let Some(post) = link.next() {
            if post.len > MOST {
                return Err(format!("a post of {} bytes", post.len));
            }
            let _text = link.describe();
            posts += 1;
            link.release(&mut pool);
        }
        link.retract(&mut pool);
        if memory[..64].iter().chain(&memory[64 + room..]).any(|b| *b != UNTOUCHED) && how & 4 != 0 {
            return Err("bytes beside the offered memory have changed".into());
        }
    }
    Ok(posts > 0 && matches!(link.over, Some(End::Closed | End::Left)))
}

/// Messages of a stranger at a rank's door. Nobody may get in: what was recorded was said to another challenge.
pub fn door(input: &[u8]) -> Taken {
    let (mut far, near) = pair()?;
    // A rank that listens for one lower rank of another host.
    let mut door = Door::new(1, &[0, 1], TOKEN, SESSION);
    door.add(near, nowhere());
    let cut = input.first().map_or(0, |b| usize::from(*b)).min(input.len());
    let (mut proven, mut said) = (false, Vec::new());
    far.set_nonblocking(true).map_err(io)?;
    for part in [&input[..cut], &input[cut..]] {
        // It may have been refused in the middle.
        let _refused = far.write_all(part);
        door.attend(|_, _| proven = true);
        let mut answer = [0; 256];
        while let Ok(n @ 1..) = far.read(&mut answer) {
            said.extend_from_slice(&answer[..n]);
        }
    }
    let _may_be_closed = far.shutdown(Shutdown::Write);
    while door.sockets().next().is_some() {
        door.attend(|_, _| proven = true);
    }
    if proven || said.len() > CHALLENGE {
        return Err("somebody without the token was let in".into());
    }
    Ok(said.len() == CHALLENGE)
}

/// Messages of somebody who listens where a rank connects. The rank must not take that for the one that it looks for.
pub fn dial(input: &[u8]) -> Taken {
    let (mut far, near) = pair()?;
    let mut dial = Dial::over(near, Hello { session: SESSION, from: 0, to: 1, nonce: [0; 16] });
    let cut = input.first().map_or(0, |b| usize::from(*b)).min(input.len());
    for part in [&input[..cut], &input[cut..]] {
        let _refused = far.write_all(part);
        if dial.follow(TOKEN).is_some() {
            return Err("somebody without the token was taken for a rank".into());
        }
    }
    let _may_be_closed = far.shutdown(Shutdown::Write);
    while dial.socket().is_some() {
        if dial.follow(TOKEN).is_some() {
            return Err("somebody without the token was taken for a rank".into());
        }
    }
    Ok(false)
}

/// Messages of a peer while this rank is in collectives with it. They end, well or with an error.
pub fn collectives(input: &[u8]) -> Taken {
    let Some((&how, bytes)) = input.split_first() else { return Ok(false) };
    let mut stream = bytes.to_vec();
    repair(how, &mut stream);
    let (mut far, near) = pair()?;
    let (comm, alarm) = comm_of(0, near)?;
    far.set_write_timeout(Some(Duration::from_secs(1))).map_err(io)?;
    far.write_all(&stream).map_err(io)?;
    far.shutdown(Shutdown::Write).map_err(io)?;
    // A rank waits a moment for the control plane to say why a link is lost: here mostly it knows.
    let waits = how & 0x3f == 0x3f;
    if !waits {
        alarm.raise("the fuzzer says so");
    }
    let done = talk(&comm);
    // Nobody reads the goodbye.
    alarm.raise("done");
    Ok(done.is_ok())
}

/// One of two ranks on two hosts, over a connection.
fn comm_of(rank: usize, stream: TcpStream) -> Result<(HostsComm, std::sync::Arc<Alarm>), String> {
    let alarm = Alarm::new().map_err(of)?;
    let mut links = [None, None];
    links[1 - rank] = Some(Connection::new(stream, MOST));
    let names = vec!["host0".to_string(), "host1".to_string()];
    let options = MeshOptions { timeout: Duration::from_secs(20), ..MeshOptions::new(MOST, false) };
    let links = Connections::new(rank, links.into(), names, alarm.clone(), &options);
    let shm = ShmOptions::default();
    let transport = HostsTransport::new(rank, vec![0, 1], None, shm, links, MOST).map_err(of)?;
    Ok((Collectives::new(transport), alarm))
}

/// Collectives of two ranks, short and long.
fn talk(comm: &HostsComm) -> Result<(), Error> {
    let group = Group { ranks: vec![0, 1], me: comm.rank() };
    let tag = |n: u64, op: &'static str| Tag {
        ordinal: n,
        hash: n * 31,
        op,
        file: "fuzz.rs",
        line: n as u32,
        scope: Default::default(),
    };
    comm.barrier(&group, &tag(1, "start"))?;
    let mut bytes = vec![comm.rank() as u8; 20_000];
    comm.broadcast(&group, &tag(2, "weights"), 1, &mut bytes[..300])?;
    let mut both = vec![0; 6000];
    comm.all_reduce(&group, &tag(3, "sum"), &bytes[..4000], &mut both[..4000], DType::F32, ReduceOp::Sum)?;
    comm.all_gather(&group, &tag(4, "sum"), &bytes[..3000], &mut both, &[3000, 3000])?;
    comm.broadcast(&group, &tag(5, "data"), 1, &mut bytes)?;
    let (counts, receive) = (&[100, 100], &mut both[..200]);
    let swap = CollectiveCall::AllToAll { send: &bytes[..200], send_counts: counts, receive, receive_counts: counts };
    comm.run(&group, &tag(6, "swap"), swap)?;
    comm.barrier(&group, &tag(7, "end"))
}

/// Messages of rank 1 in these collectives: one input each way of arriving.
///
/// # Errors
/// When the two ranks cannot talk.
pub fn recorded_collectives() -> Result<Vec<Vec<u8>>, String> {
    let ((far0, near0), (far1, near1)) = (pair()?, pair()?);
    let pass = |mut from: UnixStream, mut to: UnixStream| {
        move || {
            let (mut all, mut part) = (Vec::new(), [0; 4096]);
            while let Ok(n @ 1..) = from.read(&mut part) {
                all.extend_from_slice(&part[..n]);
                if to.write_all(&part[..n]).is_err() {
                    break;
                }
            }
            let _may_be_closed = to.shutdown(Shutdown::Write);
            all
        }
    };
    let said = std::thread::scope(|s| {
        let forth = pass(far0.try_clone().map_err(io)?, far1.try_clone().map_err(io)?);
        let (forth, back) = (s.spawn(forth), s.spawn(pass(far1, far0)));
        let ranks = [(0, near0), (1, near1)]
            .map(|(rank, near)| s.spawn(move || comm_of(rank, near).and_then(|(comm, _)| talk(&comm).map_err(of))));
        for rank in ranks {
            rank.join().map_err(|_| "a rank has panicked")??;
        }
        forth.join().map_err(|_| "a thread has panicked")?;
        back.join().map_err(|_| "a thread has panicked".to_string())
    })?;
    Ok([0, REPAIR_HEADERS, REPAIR_HEADERS | REPAIR_PAYLOADS].map(|how| [&[how][..], &said].concat()).to_vec())
}

/// Frames of every kind and length as a rank sends them.
///
/// # Errors
/// When there is no connection.
pub fn recorded_frames() -> Result<Vec<Vec<u8>>, String> {
    let (mut far, near) = pair()?;
    let mut sender = Connection::new(near, MOST);
    let arrived = Cell::new(0);
    let bytes: Vec<u8> = (0..MOST).map(|i| i as u8).collect();
    for (n, len) in [0, 1, 50, 5000, MOST, 7].into_iter().enumerate() {
        let tag = Tag {
            ordinal: n as u64,
            hash: HASH,
            op: ["add", "matmul"][n / 4],
            file: "fuzz.rs",
            line: 3,
            scope: Default::default(),
        };
        let call = RunningCall { tag: &tag, kind: Collective::Exchange, arrived: &arrived };
        // SAFETY: the bytes live until the link is dropped.
        unsafe { sender.post(&call, TOTAL, (bytes.as_ptr(), len), 0) };
        sender.tell(super::frame::FrameKind::Alive, None);
        sender.write(|_| ());
    }
    let tag = Tag { ordinal: 9, hash: 5, op: "other", file: "fuzz.rs", line: 4, scope: Default::default() };
    sender.tell(
        super::frame::FrameKind::Reject,
        Some(&RunningCall { tag: &tag, kind: Collective::Barrier, arrived: &arrived }),
    );
    sender.tell(super::frame::FrameKind::Goodbye, None);
    sender.write(|_| ());
    drop(sender);
    let mut said = Vec::new();
    far.read_to_end(&mut said).map_err(io)?;
    Ok([0, 3, 4, 5, 8, 12, 15, REPAIR_HEADERS | 4, REPAIR_HEADERS | 3, REPAIR_HEADERS | REPAIR_PAYLOADS | 13]
        .map(|how| [&[how][..], &said].concat())
        .to_vec())
}

/// Messages of the two sides of a handshake, to other nonces.
pub fn recorded_handshakes() -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let hello = Hello { session: SESSION, from: 0, to: 1, nonce: [3; 16] };
    let exchange = Exchange { token: TOKEN, hello, challenge: [4; 16] };
    let caller = [&hello.encode()[..], &exchange.proof()].concat();
    let listener = [&exchange.challenge()[..], &WELCOME].concat();
    debug_assert_eq!(caller.len(), super::handshake::HELLO + PROOF);
    let foreign = Hello { session: 8, ..hello }.encode().to_vec();
    (vec![caller, hello.encode().to_vec(), foreign], vec![listener])
}
