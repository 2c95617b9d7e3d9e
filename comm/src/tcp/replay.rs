//! What was recorded between two ranks, played again while the same job still opens its links: to the rank that listens, and to
//! one that connects. Both refuse it, say so, and go on.

use super::handshake::{CHALLENGE, HELLO, PROOF, WELCOME};
use super::tests::{TOKEN, all, names, options};
use super::{Alarm, Listener};
use crate::hosts::{HostsComm, HostsTransport};
use crate::oracle::tag;
use crate::shm::ShmOptions;
use crate::{Collectives, Communicator, DType, Group, ReduceOp, run_team};
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread::JoinHandle;
use std::time::Duration;

const LONG: Duration = Duration::from_secs(30);

/// A growing buffer of bytes, for which a thread can wait.
#[derive(Clone, Default)]
struct ByteLog(Arc<(Mutex<Vec<u8>>, Condvar)>);

impl ByteLog {
    fn add(&self, bytes: &[u8]) {
        self.0.0.lock().unwrap().extend_from_slice(bytes);
        self.0.1.notify_all();
    }
    /// Waits until there are `len` bytes and returns all.
    fn once(&self, len: usize) -> Vec<u8> {
        let bytes = self.0.0.lock().unwrap();
        let (bytes, late) = self.0.1.wait_timeout_while(bytes, LONG, |b| b.len() < len).unwrap();
        assert!(!late.timed_out(), "{} of {len} bytes", bytes.len());
        bytes.clone()
    }
    fn text(&self) -> String {
        String::from_utf8(self.0.0.lock().unwrap().clone()).unwrap()
    }
}

/// Passes bytes on to the end, and keeps them.
fn pass(mut from: TcpStream, mut to: TcpStream, tape: ByteLog) -> JoinHandle<()> {
    std::thread::spawn(move || {
        let mut part = [0; 4096];
        while let Ok(n @ 1..) = from.read(&mut part) {
            tape.add(&part[..n]);
            if to.write_all(&part[..n]).is_err() {
                break;
            }
        }
        let _may_be_closed = to.shutdown(Shutdown::Write);
    })
}

/// Passes a connection on in both directions.
fn join(near: TcpStream, to: SocketAddr, said: ByteLog, heard: ByteLog) -> [JoinHandle<()>; 2] {
    let far = TcpStream::connect(to).unwrap();
    far.set_nodelay(true).unwrap();
    near.set_nodelay(true).unwrap();
    let (back_from, back_to) = (far.try_clone().unwrap(), near.try_clone().unwrap());
    [pass(near, far, said), pass(back_from, back_to, heard)]
}

#[test]
fn a_recorded_handshake_opens_no_link() {
    let hosts = [0, 1, 2];
    let listeners: Vec<_> =
        (0..3).map(|_| Mutex::new(Some(Listener::bind(Ipv4Addr::LOCALHOST.into()).unwrap()))).collect();
    let addresses: Vec<SocketAddr> = listeners.iter().map(|l| l.lock().unwrap().as_ref().unwrap().address()).collect();
    // Rank 0 comes to rank 2 over one that records; rank 1 over one that lets nobody through before the test says so.
    let bind = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let (tap, gate) = (bind(), bind());
    let ways = [(0, tap.local_addr().unwrap()), (1, gate.local_addr().unwrap())];
    let (said, heard, log) = (ByteLog::default(), ByteLog::default(), ByteLog::default());
    let ranks = |rank: usize| {
        let listener = listeners[rank].lock().unwrap().take().unwrap();
        let mut way = addresses.clone();
        if let Some((_, over)) = ways.iter().find(|(r, _)| *r == rank) {
            way[2] = *over;
        }
        let o = options(4096, None);
        let alarm = Alarm::new().unwrap();
        let links = listener.connect_by(rank, &hosts, &names(&hosts), &addresses, &way, TOKEN, alarm, &o).unwrap();
        let shm = ShmOptions::default();
        let comm: HostsComm =
            Collectives::new(HostsTransport::new(rank, hosts.to_vec(), None, shm, links, 4096).unwrap());
        let mut weights = [rank as u8; 100];
        if rank != 1 {
            // Rank 0's first post is on its way before rank 2 has all its links.
            let pair = Group { ranks: vec![0, 2], me: rank / 2 };
            comm.broadcast(&pair, &tag(1, "weights"), 0, &mut weights).unwrap();
        }
        let mut sum = vec![rank as u8 + 1; 9000];
        comm.all_reduce(&all(&comm), &tag(2, "sum"), &sum.clone(), &mut sum, DType::U8, ReduceOp::Sum).unwrap();
        (weights, sum)
    };
    let told = log.clone();
    let ends = std::thread::scope(|s| {
        let team = s.spawn(|| {
            run_team(3, |rank| {
                let writer = {
                    let told = told.clone();
                    move || Pen(told.clone())
                };
                let log = tracing_subscriber::fmt().with_writer(writer).with_ansi(false).finish();
                tracing::subscriber::with_default(log, || ranks(rank))
            })
        });
        let recorded = join(tap.accept().unwrap().0, addresses[2], said.clone(), heard.clone());
        // The handshake, and a post with its names.
        let conversation = said.once(HELLO + PROOF + 64 + 100);
        let answers = heard.once(CHALLENGE + WELCOME.len());
        assert_eq!(answers[CHALLENGE..], WELCOME);
        let mut challenges = vec![answers[..CHALLENGE].to_vec()];
        for way in [&[conversation.len()][..], &[HELLO], &[HELLO, HELLO + PROOF], &[HELLO + PROOF], &[1, HELLO + 1]] {
            let mut stream = TcpStream::connect(addresses[2]).unwrap();
            stream.set_read_timeout(Some(LONG)).unwrap();
            let mut challenge = vec![0; CHALLENGE];
            for (i, to) in way.iter().chain([&conversation.len()]).enumerate() {
                let from = if i == 0 { 0 } else { way[i - 1] };
                // It may have been refused by now.
                let _refused = stream.write_all(&conversation[from..*to]);
                if from < HELLO && HELLO <= *to {
                    stream.read_exact(&mut challenge).unwrap();
                }
            }
            // Nothing follows but the end: what was unread makes it a reset.
            assert!(matches!(stream.read(&mut [0; 100]), Ok(0) | Err(_)));
            challenges.push(challenge);
        }
        challenges.sort();
        challenges.dedup();
        assert_eq!(challenges.len(), 6, "each challenge is new");
        // Rank 1 meets one who says what rank 2 has said to rank 0.
        let mut deceived = gate.accept().unwrap().0;
        let mut hello = [0; HELLO];
        deceived.read_exact(&mut hello).unwrap();
        deceived.write_all(&answers).unwrap();
        assert!(matches!(deceived.read(&mut [0; 100]), Ok(0) | Err(_)), "it gets no proof of rank 1");
        // Then it finds the way.
        let passed = join(gate.accept().unwrap().0, addresses[2], ByteLog::default(), ByteLog::default());
        let ends = team.join().unwrap();
        recorded.into_iter().chain(passed).for_each(|t| t.join().unwrap());
        ends
    });
    for (rank, (weights, sum)) in ends.iter().enumerate() {
        assert_eq!(weights[0], if rank == 2 { 0 } else { rank as u8 });
        assert!(sum.iter().all(|b| *b == 6));
    }
    let log = log.text();
    let refusals = log.lines().filter(|l| {
        l.contains("rank 2 refused a connection from 127.0.0.1:") && l.ends_with(": it does not know the job's token")
    });
    assert_eq!(refusals.count(), 5, "{log}");
    assert!(!log.contains(std::str::from_utf8(TOKEN).unwrap()), "{log}");
}

/// Writes log lines to a tape.
struct Pen(ByteLog);

impl Write for Pen {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.add(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
