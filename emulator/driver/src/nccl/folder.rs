//! Ranks in several processes: a folder for each communicator, in memory where the system has such a place. What a rank
//! brings to collective `n` is the file `c<n>-<rank>`, which appears whole, by rename; each rank reads all of them and works
//! the result out for itself, in the same order and so with the same bits. Who has read them adds a byte to `d<n>`, and who
//! adds the last removes them. A message is the file `p<from>-<to>-<turn>`; that it is gone tells the sender that it has
//! been taken.

use std::io::Write;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
use std::time::{Duration, Instant, SystemTime};

use super::comm::{Comm, patience};
use super::meeting::{Part, Peer, agree, bytes, write};
use super::{INVALID_USAGE, Outcome, SYSTEM_ERROR, refuse};
use crate::driver::stream::Failure;

const PREFIX: &str = "emulated-nccl-";

pub struct Folder {
    path: PathBuf,
    ranks: usize,
    left: AtomicBool,
}

fn place() -> PathBuf {
    let memory = PathBuf::from("/dev/shm");
    if memory.is_dir() { memory } else { std::env::temp_dir() }
}

/// Folders whose processes have all ended go; without a name of any, after an hour.
fn sweep() {
    let Ok(entries) = std::fs::read_dir(place()) else { return };
    let old = SystemTime::now() - Duration::from_secs(3600);
    for entry in entries.flatten().filter(|e| e.file_name().to_string_lossy().starts_with(PREFIX)) {
        let ranks: Vec<i32> = std::fs::read_dir(entry.path())
            .into_iter()
            .flatten()
            .flatten()
            .filter(|e| e.file_name().to_string_lossy().starts_with("rank-"))
            .filter_map(|e| std::fs::read_to_string(e.path()).ok()?.split_once(' ')?.0.parse().ok())
            .collect();
        let idle = entry.metadata().and_then(|m| m.modified()).is_ok_and(|time| time < old);
        if idle || (!ranks.is_empty() && ranks.iter().all(|process| !alive(*process))) {
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}

fn alive(process: i32) -> bool {
    // SAFETY: signal 0 only asks.
    unsafe { libc::kill(process, 0) == 0 || *libc::__errno_location() != libc::ESRCH }
}

impl Folder {
    /// Says that a rank has come.
    pub fn enter(id: &[u8; 128], ranks: usize, rank: usize, gpu: usize) -> Outcome<Folder> {
        let name: String = id[..16].iter().map(|byte| format!("{byte:02x}")).collect();
        let folder = Folder { path: place().join(format!("{PREFIX}{name}")), ranks, left: AtomicBool::new(false) };
        if !folder.path.exists() {
            sweep();
        }
        let card = folder.path.join(format!("rank-{rank}"));
        if card.exists() {
            return refuse(INVALID_USAGE, "two members of a communicator have the same rank");
        }
        let made = std::fs::create_dir_all(&folder.path);
        let text = format!("{} {gpu}", std::process::id());
        if made.is_err() || folder.publish(&format!("rank-{rank}"), &[text.as_bytes()]).is_err() {
            return refuse(SYSTEM_ERROR, "the emulator cannot write the folder in which ranks meet");
        }
        Ok(folder)
    }

    /// Process and GPU of each rank that has come.
    fn cards(&self) -> Vec<Option<(i32, usize)>> {
        let card = |rank| {
            let text = std::fs::read_to_string(self.path.join(format!("rank-{rank}"))).ok()?;
            let (process, gpu) = text.split_once(' ')?;
            Some((process.parse().ok()?, gpu.parse().ok()?))
        };
        (0..self.ranks).map(card).collect()
    }

    /// The GPUs of all ranks, when all have come.
    pub fn members(&self) -> Option<Vec<usize>> {
        self.cards().into_iter().map(|card| card.map(|(_, gpu)| gpu)).collect()
    }

    /// This rank needs the folder no more; the last takes it away.
    pub fn leave(&self) {
        if !self.left.swap(true, SeqCst) && self.count("left") >= self.ranks as u64 {
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }

    /// The rank comes no more, before all were there; the folder goes if it is empty.
    pub fn give_up(&self, rank: usize) {
        let _ = std::fs::remove_file(self.path.join(format!("rank-{rank}")));
        let _ = std::fs::remove_dir(&self.path);
    }

    /// Adds a byte to a file; how many there are then.
    fn count(&self, name: &str) -> u64 {
        let add = || {
            let mut file = std::fs::File::options().create(true).append(true).open(self.path.join(name))?;
            file.write_all(b".")?;
            file.metadata()
        };
        add().map_or(0, |data| data.len())
    }

    /// A file that appears whole.
    fn publish(&self, name: &str, parts: &[&[u8]]) -> std::io::Result<()> {
        let unfinished = self.path.join(format!(".{name}"));
        let mut file = std::fs::File::create(&unfinished)?;
        parts.iter().try_for_each(|part| file.write_all(part))?;
        std::fs::rename(unfinished, self.path.join(name))
    }

    /// Asks until there is an answer; none if the rank gave up.
    fn await_answer<T>(&self, comm: &Comm, what: &str, ask: impl Fn() -> Option<T>) -> Result<Option<T>, Failure> {
        let deadline = Instant::now() + patience();
        let (mut nap, mut look) = (Duration::from_micros(20), Instant::now() + Duration::from_millis(200));
        loop {
            if let Some(answer) = ask() {
                return Ok(Some(answer));
            }
            let now = Instant::now();
            if comm.aborted.load(SeqCst) {
                return Ok(None);
            }
            if now > look {
                look = now + Duration::from_millis(200);
                let dead = |card: &Option<(i32, usize)>| card.is_some_and(|(process, _)| !alive(process));
                if let Some(rank) = self.cards().iter().position(dead) {
                    return Err(comm.failure(&format!("the process of rank {rank} has ended, and {what} waits for it")));
                }
            }
            if now > deadline {
                return Err(comm.failure(&format!("rank {} waited in vain for the others in {what}", comm.rank)));
            }
            std::thread::sleep(nap);
            nap = (nap * 2).min(Duration::from_millis(1));
        }
    }

    fn collective(&self, comm: &Comm, number: u64, part: &Part) -> Result<(), Failure> {
        let broken = |e: std::io::Error| comm.failure(&format!("the folder in which ranks meet: {e}"));
        let name = |rank: usize| format!("c{number}-{rank}");
        // SAFETY: checked when the rank called; its stream is here until the end.
        let mine = unsafe { bytes(part.send, part.brings(comm.rank, self.ranks)) };
        self.publish(&name(comm.rank), &[part.meaning().as_bytes(), b"\n", &mine]).map_err(broken)?;
        let (mut meanings, mut brought) = (Vec::new(), Vec::new());
        for rank in 0..self.ranks {
            let file = self.path.join(name(rank));
            let Some(all) = self.await_answer(comm, &part.meaning(), || std::fs::read(&file).ok())? else {
                return Ok(());
            };
            let end = all.iter().position(|&byte| byte == b'\n').unwrap_or(all.len());
            meanings.push(String::from_utf8_lossy(&all[..end]).into_owned());
            brought.push(all[(end + 1).min(all.len())..].to_vec());
        }
        let done = format!("d{number}");
        if self.count(&done) >= self.ranks as u64 {
            (0..self.ranks).map(name).chain([done]).for_each(|file| drop(std::fs::remove_file(self.path.join(file))));
        }
        agree(&meanings).map_err(|text| comm.failure(&text))?;
        // SAFETY: as above.
        unsafe { write(part.recv, part.share(comm.rank, &part.combine(&brought))) };
        Ok(())
    }

    fn message(&self, comm: &Comm, peer: &Peer) -> PathBuf {
        let (from, to) = if peer.sends { (comm.rank, peer.peer) } else { (peer.peer, comm.rank) };
        self.path.join(format!("p{from}-{to}-{}", peer.turn))
    }

    fn receive(&self, comm: &Comm, peer: &Peer) -> Result<(), Failure> {
        let (file, what) = (self.message(comm, peer), format!("{peer:?}"));
        let Some(all) = self.await_answer(comm, &what, || std::fs::read(&file).ok())? else { return Ok(()) };
        let _ = std::fs::remove_file(&file);
        let len = peer.count * peer.dtype.size();
        if all.len() != len {
            let text = format!("rank {} sends {} bytes, rank {} receives {len}", peer.peer, all.len(), comm.rank);
            return Err(comm.failure(&text));
        }
        // SAFETY: checked when the rank called; its stream is here until the end.
        unsafe { write(peer.at, &all) };
        Ok(())
    }

    /// On the stream's thread: one group of calls. All is sent before anything is waited for.
    pub fn carry_out(&self, comm: &Comm, collectives: Vec<(u64, Part)>, peers: Vec<Peer>) -> Result<(), Failure> {
        for peer in peers.iter().filter(|peer| peer.sends) {
            // SAFETY: as in `receive`.
            let data = unsafe { bytes(peer.at, peer.count * peer.dtype.size()) };
            let name = self.message(comm, peer);
            let name = name.file_name().unwrap_or_default().to_string_lossy();
            self.publish(&name, &[&data]).map_err(|e| comm.failure(&format!("cannot send: {e}")))?;
        }
        for (number, part) in &collectives {
            self.collective(comm, *number, part)?;
        }
        peers.iter().filter(|peer| !peer.sends).try_for_each(|peer| self.receive(comm, peer))?;
        for peer in peers.iter().filter(|peer| peer.sends) {
            let (file, what) = (self.message(comm, peer), format!("{peer:?}"));
            self.await_answer(comm, &what, || (!file.exists()).then_some(()))?;
        }
        Ok(())
    }
}
