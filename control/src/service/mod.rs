//! The control service of one job: an [`Agent`] on each host serves the ranks there and stands in contact with the root, which
//! the agent of node 0 hosts.
//!
//! What is known and decided is pure: `node.rs` of the ranks of one host, `root.rs` of the hosts of the job, `board.rs` of keys
//! and meetings, `transit.rs` of bytes on their way between hosts. They take calls and messages, and collect answers and messages until these are taken; time comes in as an
//! argument. The rest carries: `serve.rs` between a host's ranks and its node, `link.rs` and `host.rs` between nodes and root,
//! `agent.rs` brings it together; `guard.rs` keeps strangers out. A rank's call goes up through its node and the answer comes
//! down, on node 0 within the call; arrivals at a meeting of all ranks leave a host together, so the root's work grows with
//! hosts.

mod agent;
mod board;
mod digest;
mod divergence;
#[doc(hidden)]
pub mod fuzz;
mod guard;
mod host;
mod limits;
mod link;
mod node;
mod root;
mod serve;
mod stall;
mod tls;
mod transit;

use std::hash::Hasher;
use std::io::Read;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::Token;
use oflow_base::intern::FixedHasher;
use oflow_base::{Error, Result};
use oflow_proto::control as pb;

pub use agent::Agent;
pub use node::Silence;
pub use oflow_proto::control::NodeEvent;
pub use serve::Verdict;

/// Where an agent says what is worth a line.
pub type Log = Arc<dyn Fn(&str) + Send + Sync>;

/// Where the hosts of a job meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rendezvous {
    /// One host: nothing listens but the loopback interface.
    Alone,
    /// This agent is node 0 and hosts the root at this address (`host:port`).
    Host(String),
    /// The root is at this address; it need not be there yet.
    Join(String),
    /// The first agent that can listen at this address is node 0, the others join it.
    Either(String),
}

/// What an agent is started with.
#[derive(Clone)]
pub struct AgentOptions {
    /// Secret of the job.
    pub token: Token,
    /// Number of ranks on this host.
    pub nproc: usize,
    /// Where the hosts meet.
    pub rendezvous: Rendezvous,
    /// How many hosts the job may have. It starts with the most if they come in time.
    pub nodes: RangeInclusive<usize>,
    /// This host's number; without one they are numbered as they come.
    pub node_rank: Option<usize>,
    /// How often all ranks are started again after a failure. Node 0's counts.
    pub max_restarts: u32,
    /// JSON that each rank is given when it joins, or nothing for the default constants. Node 0's counts.
    pub cost_model: Vec<u8>,
    /// Hash of the contents of the program, to refuse hosts with another build; 0: not known.
    pub program: u64,
    /// This host's name, for messages.
    pub host: String,
    /// How long hosts wait for each other: for node 0 to be there, and node 0 for as many as the job needs. Of the latter
    /// node 0's counts, at every start.
    pub join_limit: Duration,
    /// How long node 0 waits for more hosts once there are enough.
    pub settle: Duration,
    /// How long ranks may wait for one that lives but does not move, before the job is ended. Node 0's counts.
    pub stall: Duration,
    /// Folder with `ca.pem`, `cert.pem` and `key.pem` for mutual TLS between hosts.
    pub tls: Option<PathBuf>,
    /// Where to say what is worth a line.
    pub log: Log,
}

impl AgentOptions {
    /// A job of so many ranks on one host.
    pub fn alone(nproc: usize, token: Token) -> AgentOptions {
        AgentOptions {
            token,
            nproc,
            rendezvous: Rendezvous::Alone,
            nodes: 1..=1,
            node_rank: None,
            max_restarts: 0,
            cost_model: Vec::new(),
            program: 0,
            host: host_name(),
            join_limit: Duration::from_secs(600),
            settle: Duration::from_secs(5),
            stall: Duration::from_secs(300),
            tls: None,
            log: Arc::new(|line| eprintln!("oflow: {line}")),
        }
    }

    fn check(&self) -> Result<()> {
        let (min, max) = (*self.nodes.start(), *self.nodes.end());
        if !(1..=max).contains(&min) {
            return Err(
                Error::argument(format!("a job of {min} to {max} hosts")).help("give at least 1, and the least first")
            );
        }
        if self.rendezvous == Rendezvous::Alone && min > 1 {
            return Err(Error::argument(format!("a job of {min} hosts needs an address where they meet"))
                .help("give all of them the same --rdzv HOST:PORT, an address of node 0"));
        }
        if let Some(rank) = self.node_rank.filter(|rank| *rank >= max) {
            return Err(Error::argument(format!("there is no node {rank} in a job of {max} hosts, numbered from 0")));
        }
        if self.nproc == 0 {
            return Err(Error::argument("a host has at least 1 rank"));
        }
        Ok(())
    }

    fn hello(&self) -> pb::NodeHello {
        pb::NodeHello {
            version: env!("CARGO_PKG_VERSION").to_string(),
            host: self.host.clone(),
            nproc: u32::try_from(self.nproc).unwrap_or(u32::MAX),
            node_rank: self.node_rank.map(|n| u32::try_from(n).unwrap_or(u32::MAX)),
            program: self.program,
            min_nodes: u32::try_from(*self.nodes.start()).unwrap_or(u32::MAX),
            max_nodes: u32::try_from(*self.nodes.end()).unwrap_or(u32::MAX),
            instance: instance(&self.host),
        }
    }
}

/// Hash of the contents of a program, for [`AgentOptions::program`].
///
/// # Errors
/// The file cannot be read.
pub fn program_digest(path: &Path) -> std::io::Result<u64> {
    let mut file = std::fs::File::open(path)?;
    let (mut hash, mut buffer) = (FixedHasher::default(), vec![0; 1 << 20]);
    loop {
        match file.read(&mut buffer) {
            Ok(0) => return Ok(hash.finish()),
            Ok(n) => hash.write(&buffer[..n]),
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}

/// A number that no other run of an agent has, and never 0.
fn instance(host: &str) -> u64 {
    let mut hash = FixedHasher::default();
    hash.write(host.as_bytes());
    hash.write_u32(std::process::id());
    hash.write_u64(agent::now_ns());
    hash.write_u64(oflow_comm::now_ns());
    hash.finish() | 1
}

/// The name of this machine.
pub fn host_name() -> String {
    rustix::system::uname().nodename().to_string_lossy().into_owned()
}

/// An agent's part in the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Assignment {
    /// Number of this host.
    pub node: usize,
    /// Number of hosts.
    pub nodes: usize,
    /// World rank of the first rank here; the others follow.
    pub first_rank: usize,
    /// Number of ranks here.
    pub nproc: usize,
    /// Number of ranks in the job.
    pub world: usize,
    /// How often the job has been started again.
    pub restart: u32,
}

/// What comes after all ranks have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The job is over, with this exit code.
    Over(u8),
    /// All ranks start again.
    Again(Assignment),
}
