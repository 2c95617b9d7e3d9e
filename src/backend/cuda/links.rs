//! The ways between the GPUs of ranks: NCCL where every rank of a group has a GPU of its own, host memory elsewhere.

use crate::boxing::BoxingPlan;
use crate::comm::nccl::{self, Guard, NcclComm, NcclId};
use crate::comm::{Communicator, Group, Tag};
use crate::control::COMM_VARIABLE;
use crate::error::{Error, Result};
use crate::intern::FixedHasher;
use oflow_kernels::cuda::{Gpu, PinnedMemory, Stream};
use std::collections::BTreeMap;
use std::hash::Hasher;
use std::sync::Arc;

/// How the GPUs of a group exchange bytes.
#[derive(Clone)]
pub(super) enum Route {
    /// The group is this rank: nothing is exchanged.
    Alone,
    /// From GPU to GPU.
    Nccl(Arc<NcclComm>),
    /// Through pinned memory and the communicator of the host.
    Staged,
}

/// Transport that the user asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Wish {
    Any,
    Nccl,
    Staged,
}

/// Checks what the environment asks for.
///
/// # Errors
/// If there is no such way.
pub(crate) fn check_wish() -> Result<()> {
    wish().map(drop)
}

fn wish() -> Result<Wish> {
    match std::env::var(COMM_VARIABLE).as_deref() {
        Err(_) | Ok("") => Ok(Wish::Any),
        Ok("nccl") => Ok(Wish::Nccl),
        Ok("staged") => Ok(Wish::Staged),
        Ok(other) => Err(Error::argument(format!("environment variable {COMM_VARIABLE} is {other:?}"))
            .help("set it to nccl or staged, or unset it")),
    }
}

/// Identity of a member's GPU, exchanged to choose NCCL or staging.
struct Card {
    /// The GPU and its host.
    gpu: [u8; 24],
    takes: u8,
}

const CARD: usize = 25;

impl Card {
    fn bytes(&self) -> [u8; CARD] {
        std::array::from_fn(|i| if i < 24 { self.gpu[i] } else { self.takes })
    }
}

const NO_NCCL: u8 = 0;
const CAN_NCCL: u8 = 1;
const WANTS_STAGED: u8 = 2;
const WANTS_NCCL: u8 = 3;

/// Pairs of placements whose set of ranks is remembered.
const MOST_UNIONS: usize = 4096;

/// The links of one rank's GPU, made at the first use of a group, at the same place of the rank's order of collectives on
/// all its members.
pub(super) struct Routes {
    gpu: Arc<Gpu>,
    /// By the members' world ranks, in order.
    known: BTreeMap<Vec<usize>, Route>,
    /// The ranks of two placements together, sorted.
    sets: Vec<Vec<usize>>,
    /// Set of ranks for each pair of placements, by the placements' numbers. A placement that is made again has another
    /// number, so the table is emptied when it is full.
    unions: BTreeMap<(u64, u64), usize>,
    pub(super) staging: Staging,
}

impl Routes {
    pub(super) fn new(gpu: &Arc<Gpu>) -> Routes {
        Routes {
            gpu: gpu.clone(),
            known: BTreeMap::new(),
            sets: Vec::new(),
            unions: BTreeMap::new(),
            staging: Staging::default(),
        }
    }

    /// The number of the set of a plan's ranks.
    pub(super) fn union(&mut self, plan: &BoxingPlan) -> usize {
        let (src, dst) = (&plan.src.placement, &plan.dst.placement);
        if let Some(n) = self.unions.get(&(src.id(), dst.id())) {
            return *n;
        }
        let mut ranks: Vec<usize> = src.ranks().iter().chain(dst.ranks()).copied().collect();
        ranks.sort_unstable();
        ranks.dedup();
        let n = self.sets.iter().position(|s| *s == ranks).unwrap_or_else(|| {
            self.sets.push(ranks);
            self.sets.len() - 1
        });
        if self.unions.len() >= MOST_UNIONS {
            self.unions.clear();
        }
        self.unions.insert((src.id(), dst.id()), n);
        n
    }

    /// The world ranks of a set.
    pub(super) fn set(&self, n: usize) -> &[usize] {
        &self.sets[n]
    }

    /// The link of a group that has one.
    pub(super) fn known(&self, ranks: &[usize]) -> Option<&Route> {
        if ranks.len() == 1 { Some(&Route::Alone) } else { self.known.get(ranks) }
    }

    /// The link of a group; all members come here for it at its first use.
    pub(super) fn link(&mut self, ranks: &[usize], comm: &dyn Communicator, tag: &Tag, guard: &Guard) -> Result<Route> {
        if let Some(link) = self.known(ranks) {
            return Ok(link.clone());
        }
        let me = ranks.iter().position(|r| *r == comm.rank());
        let me = me.ok_or_else(|| Error::comm(format!("rank {} is not a member of {ranks:?}", comm.rank())))?;
        let group = Group { ranks: ranks.to_vec(), me };
        let link = match self.agree(&group, comm, tag)? {
            false => Route::Staged,
            true => {
                // An id that member 0 cannot make comes as zeros, so that nobody waits for it.
                let mut id: NcclId = [0; 128];
                let made = if me == 0 { nccl::new_id().map(|new| id = new) } else { Ok(()) };
                comm.broadcast(&group, tag, 0, &mut id)?;
                made?;
                if id == [0; 128] {
                    return Err(Error::comm(format!("rank {} could not start NCCL", ranks[0])));
                }
                let joined = NcclComm::join(&self.gpu, &id, ranks, me, (comm, tag))?;
                guard.watch(&joined)?;
                Route::Nccl(joined)
            }
        };
        let way = if matches!(link, Route::Nccl(_)) { "NCCL" } else { "host memory" };
        tracing::debug!("GPUs of ranks {ranks:?} exchange through {way}");
        self.known.insert(group.ranks, link.clone());
        Ok(link)
    }

    /// Whether a group takes NCCL: every member tells its GPU and what it can, and all decide alike.
    fn agree(&self, group: &Group, comm: &dyn Communicator, tag: &Tag) -> Result<bool> {
        let takes = match (nccl::unusable(), wish()?) {
            (_, Wish::Staged) => WANTS_STAGED,
            (Some(why), Wish::Nccl) => {
                return Err(Error::comm(format!("{COMM_VARIABLE}=nccl, but NCCL cannot be used: {why}"))
                    .help("`oflow doctor` says where it was looked for"));
            }
            (Some(_), Wish::Any) => NO_NCCL,
            (None, Wish::Any) => CAN_NCCL,
            (None, Wish::Nccl) => WANTS_NCCL,
        };
        let mine = Card { gpu: self.identity()?, takes };
        let mut all = vec![0u8; CARD * group.ranks.len()];
        comm.all_gather(group, tag, &mine.bytes(), &mut all, &vec![CARD; group.ranks.len()])?;
        let cards: Vec<&[u8]> = all.chunks_exact(CARD).collect();
        let any = |what: u8| cards.iter().any(|c| c[24] == what);
        let shared = |i: &usize| cards[..*i].iter().any(|c| c[..24] == cards[*i][..24]);
        let twice = (0..cards.len()).find(shared);
        if any(WANTS_NCCL)
            && let Some(i) = twice
        {
            return Err(Error::comm(format!(
                "{COMM_VARIABLE}=nccl, but ranks of {:?} share a GPU (rank {} is not the first on its)",
                group.ranks, group.ranks[i]
            ))
            .help("NCCL needs a GPU for each rank: start fewer ranks, or leave the variable unset"));
        }
        Ok(twice.is_none() && !any(NO_NCCL) && !any(WANTS_STAGED))
    }

    /// The GPU's own id and its host's: visible numbers differ from process to process.
    fn identity(&self) -> Result<[u8; 24]> {
        let mut host = FixedHasher::default();
        host.write(&std::fs::read("/proc/sys/kernel/random/boot_id").unwrap_or_default());
        let (gpu, host) = (self.gpu.uuid()?, host.finish().to_le_bytes());
        Ok(std::array::from_fn(|i| if i < 16 { gpu[i] } else { host[i - 16] }))
    }
}

/// Pinned memory that boxings pass through. Grows, never shrinks.
#[derive(Default)]
pub(super) struct Staging {
    send: Option<PinnedMemory>,
    receive: Option<PinnedMemory>,
    /// Copies from `receive` may still be under way on the stream.
    pub(super) pending: bool,
}

impl Staging {
    /// Memory for that many bytes to come from a GPU and to go to it, which no copy uses any more.
    pub(super) fn pinned_buffers(
        &mut self,
        stream: &Stream,
        send: usize,
        receive: usize,
    ) -> Result<(*mut u8, *mut u8)> {
        if self.pending {
            stream.synchronize()?;
            self.pending = false;
        }
        let room = |memory: &mut Option<PinnedMemory>, bytes: usize| -> Result<*mut u8> {
            if let Some(m) = memory.as_ref().filter(|m| m.size() >= bytes) {
                return Ok(m.data());
            }
            *memory = None;
            Ok(memory.insert(PinnedMemory::new(stream.gpu(), bytes.next_power_of_two().max(64 << 10))?).data())
        };
        Ok((room(&mut self.send, send)?, room(&mut self.receive, receive)?))
    }
}
