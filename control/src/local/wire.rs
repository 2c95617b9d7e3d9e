//! The messages between the first rank of a host and each other rank, over a Unix socket: a hello to the first rank and its answer. A
//! message is its length in bytes (u32, little-endian) and JSON.

use std::io::{self, ErrorKind, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd, RawFd};
use std::os::unix::net::UnixStream;

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage, SendFlags,
    recvmsg, sendmsg,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::{LaunchEnv, StartedRank};
use oflow_base::Result;
use oflow_comm::tcp::local_address;

/// Longest body of a message in bytes.
const MOST_BYTES: usize = 64 << 10;

/// The hello of a rank to the first rank of its host.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Hello {
    pub(super) version: String,
    pub(super) rank: usize,
    pub(super) world: usize,
    pub(super) local_rank: usize,
    pub(super) local_world: usize,
    /// Numbers of the cores that the rank may run on.
    pub(super) cores: Vec<usize>,
}

/// The first rank's answer to a [`Hello`].
#[derive(Clone, Serialize, Deserialize)]
pub(super) enum Welcome {
    /// The rank takes part.
    Surroundings(Surroundings),
    /// The rank cannot take part, for the reason given.
    Refused(String),
}

/// Facts that `oflaunch` would have put into the environment, as the first rank knows them: token, address and port of the control service,
/// and compute threads for the rank.
#[derive(Clone, Serialize, Deserialize)]
pub(super) struct Surroundings {
    pub(super) token: String,
    pub(super) address: String,
    pub(super) port: u16,
    pub(super) threads: usize,
}

impl Hello {
    pub(super) fn of(found: &StartedRank) -> Hello {
        Hello {
            version: env!("CARGO_PKG_VERSION").to_string(),
            rank: found.rank,
            world: found.world,
            local_rank: found.local_rank,
            local_world: found.local_world,
            cores: usable_cores(),
        }
    }

    /// Compares this rank with `host`, the first rank of its host. Returns why it cannot be a rank of the same job, or `None` if it can.
    pub(super) fn misfit(&self, host: &Hello) -> Option<String> {
        let Hello { version, rank, world, local_rank, local_world, .. } = self;
        let first = host.rank;
        if *version != host.version {
            return Some(format!("rank {rank} runs oflow {version}, but rank {first} runs {}", host.version));
        }
        if (*world, *local_world) != (host.world, host.local_world) {
            return Some(format!(
                "rank {rank} is one of {world} with {local_world} on its host, but rank {first} of the same host is one of {} with {}",
                host.world, host.local_world
            ));
        }
        if *local_rank == 0 || local_rank >= local_world || *rank != first + local_rank {
            return Some(format!(
                "rank {rank} says that it is number {local_rank} on its host, where rank {first} is the first of {local_world}: the ranks of a host must be consecutive"
            ));
        }
        None
    }
}

impl Surroundings {
    /// Makes the launch environment that the rank would read under `oflaunch`.
    pub(super) fn env(&self, found: &StartedRank, shm_fd: Option<RawFd>) -> Result<LaunchEnv> {
        Ok(LaunchEnv {
            rank: found.rank,
            local_rank: found.local_rank,
            world: found.world,
            local_world: found.local_world,
            node: found.node,
            nodes: found.nodes,
            master_addr: self.address.clone(),
            master_port: self.port,
            token: self.token.parse()?,
            shm_fd,
            address: match (found.address, found.root_host.as_deref()) {
                (None, Some(host)) if found.nodes > 1 => Some(local_address((host, found.root_port))?),
                (address, _) => address,
            },
            report: false,
            stall: None,
            outage: found.outage,
            threads: Some(found.threads.unwrap_or(self.threads)),
        })
    }
}

/// The cores this process may run on.
fn usable_cores() -> Vec<usize> {
    use rustix::thread::{CpuSet, sched_getaffinity};
    sched_getaffinity(None).map_or(Vec::new(), |set| (0..CpuSet::MAX_CPU).filter(|c| set.is_set(*c)).collect())
}

/// Compute threads for each of the ranks of a host: its share of the cores that it may run on, at least one. Launchers
/// bind each rank to cores of its own, or all of them to the same.
pub(super) fn share_threads(cores: &[Vec<usize>], quota: usize) -> Vec<usize> {
    let users = |core: &usize| cores.iter().filter(|c| c.contains(core)).count().max(1);
    let most = (quota / cores.len().max(1)).max(1);
    let share = |own: &Vec<usize>| own.iter().map(|core| 1.0 / users(core) as f64).sum::<f64>();
    // A little is added so that rounding errors do not cost a core: three thirds must be one.
    cores.iter().map(|own| ((share(own) + 1e-6) as usize).clamp(1, most)).collect()
}

/// Sends a message, with a file descriptor if one is given.
pub(super) fn send<T: Serialize>(to: &UnixStream, message: &T, fd: Option<BorrowedFd>) -> io::Result<()> {
    let body = serde_json::to_vec(message)?;
    let length = u32::try_from(body.len()).ok().filter(|n| *n as usize <= MOST_BYTES);
    let length = length.ok_or_else(|| io::Error::new(ErrorKind::InvalidInput, "the message is too long"))?;
    let head = length.to_le_bytes();
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    let fds: Vec<BorrowedFd> = fd.into_iter().collect();
    if !fds.is_empty() && !control.push(SendAncillaryMessage::ScmRights(&fds)) {
        return Err(io::Error::other("no room for a descriptor"));
    }
    // The socket's buffer is empty, so four bytes are never split.
    let sent = sendmsg(to, &[IoSlice::new(&head)], &mut control, SendFlags::NOSIGNAL)?;
    if sent != head.len() {
        return Err(ErrorKind::WriteZero.into());
    }
    (&mut &*to).write_all(&body)
}

/// Receives a message, and the file descriptor that was sent with it, if any.
pub(super) fn receive<T: DeserializeOwned>(from: &UnixStream) -> io::Result<(T, Option<OwnedFd>)> {
    let mut head = [0; 4];
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(1))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let received = loop {
        match recvmsg(from.as_fd(), &mut [IoSliceMut::new(&mut head)], &mut control, RecvFlags::CMSG_CLOEXEC) {
            Err(rustix::io::Errno::INTR) => {}
            other => break other?.bytes,
        }
    };
    let mut fd = None;
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(fds) = message {
            fd = fds.last().or(fd);
        }
    }
    (&mut &*from).read_exact(&mut head[received..])?;
    let length = u32::from_le_bytes(head) as usize;
    if received == 0 {
        return Err(ErrorKind::UnexpectedEof.into());
    }
    if length > MOST_BYTES {
        return Err(io::Error::new(ErrorKind::InvalidData, format!("a message of {length} bytes")));
    }
    let mut body = vec![0; length];
    (&mut &*from).read_exact(&mut body)?;
    Ok((serde_json::from_slice(&body)?, fd))
}

/// The byte that a rank sends to the first rank when its program calls `exit()`. After the hello and its answer nothing else is sent.
pub(super) const EXIT: u8 = b'E';

/// Sends [`EXIT`].
pub(super) fn say_exit(mut stream: &UnixStream) {
    // If the first rank has ended, the byte is not needed.
    let _gone = stream.write_all(&[EXIT]);
}

/// Waits until the other end closes; what it sends meanwhile is read and dropped.
pub(super) fn wait_for_end(stream: &UnixStream) -> io::Result<u64> {
    io::copy(&mut &*stream, &mut io::sink())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hello(rank: usize, local_rank: usize) -> Hello {
        Hello { version: "1".into(), rank, world: 8, local_rank, local_world: 4, cores: vec![0] }
    }

    #[test]
    fn a_message_brings_its_descriptor() {
        let (a, b) = UnixStream::pair().unwrap();
        let file = std::fs::File::open("/proc/self/stat").unwrap();
        send(&a, &hello(5, 1), Some(file.as_fd())).unwrap();
        send(&a, &hello(6, 2), None).unwrap();
        let (first, fd): (Hello, _) = receive(&b).unwrap();
        assert_eq!(first, hello(5, 1));
        let mut text = String::new();
        std::fs::File::from(fd.unwrap()).read_to_string(&mut text).unwrap();
        assert!(!text.is_empty());
        let (second, fd): (Hello, _) = receive(&b).unwrap();
        assert_eq!(second, hello(6, 2));
        assert!(fd.is_none());
    }

    #[test]
    fn bad_messages_are_errors() {
        for bytes in [&[][..], &[1, 0], &[255, 255, 255, 255], &[2, 0, 0, 0, b'{'], &[2, 0, 0, 0, b'{', b'}']] {
            let (mut a, b) = UnixStream::pair().unwrap();
            a.write_all(bytes).unwrap();
            drop(a);
            assert!(receive::<Hello>(&b).is_err(), "{bytes:?}");
        }
        let (a, _b) = UnixStream::pair().unwrap();
        assert!(send(&a, &"x".repeat(MOST_BYTES), None).is_err());
    }

    #[test]
    fn who_does_not_fit_is_told_why() {
        let host = hello(4, 0);
        assert_eq!(hello(5, 1).misfit(&host), None);
        assert_eq!(hello(7, 3).misfit(&host), None);
        for (rank, local) in [(4, 0), (6, 1), (8, 4), (5, 2)] {
            let text = hello(rank, local).misfit(&host).unwrap();
            assert!(text.contains("must be consecutive"), "{text}");
        }
        let text = Hello { version: "2".into(), ..hello(5, 1) }.misfit(&host).unwrap();
        assert_eq!(text, "rank 5 runs oflow 2, but rank 4 runs 1");
        let text = Hello { world: 9, ..hello(5, 1) }.misfit(&host).unwrap();
        assert!(text.contains("one of 9 with 4 on its host, but rank 4 of the same host is one of 8 with 4"), "{text}");
    }

    #[test]
    fn threads_are_shared_fairly() {
        let check = |cores: &[&[usize]], quota: usize, expected: &[usize]| {
            let cores: Vec<Vec<usize>> = cores.iter().map(|c| c.to_vec()).collect();
            assert_eq!(share_threads(&cores, quota), expected);
        };
        check(&[&[0, 1, 2, 3], &[0, 1, 2, 3]], 4, &[2, 2]);
        check(&[&[0, 1], &[2, 3]], 4, &[2, 2]);
        check(&[&[0, 1, 2], &[0, 1, 2], &[0, 1, 2]], 3, &[1, 1, 1]);
        check(&[&[0], &[0]], 1, &[1, 1]);
        check(&[&[0, 1, 2, 3], &[3]], 4, &[2, 1]);
        check(&[&[0, 1, 2, 3], &[4, 5, 6, 7]], 4, &[2, 2]);
        check(&[&[], &[]], 4, &[1, 1]);
    }
}
