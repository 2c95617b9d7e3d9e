//! The control service of one job: an [`Agent`] on each host serves the ranks there and is connected to the root, which the
//! agent of node 0 hosts.
//!
//! State and decisions are pure: `node.rs` for the ranks of one host, `root.rs` for the hosts of the job, `kv_store.rs` for keys and
//! meetings, `root_cause.rs` for the cause among several failures, `transit.rs` for bytes in transit between hosts. They take calls and messages, with the time as an argument, and
//! collect answers and messages until these are taken. The other files do the I/O: `serve.rs` between a host's ranks and its
//! node, `link.rs` and `host.rs` between nodes and the root; `agent.rs` joins them, and `guard.rs` refuses strangers. A rank's
//! call goes through its node to the root and the answer comes back the same way. The arrivals of one host at a meeting of all
//! ranks are sent as one message, so the root's work grows with the number of hosts.
//!
//! # From a rank to the root
//!
//! A rank calls the agent of its own host over loopback. One stream connects each agent to the root. On node 0 the root
//! is behind a lock that is always taken first, so a call there is answered within the call.
//!
//! **Failures.** Every host reports its failures. The root collects the failures of a short time, decides which came
//! first (`root_cause.rs`), and sends all hosts the same answer; every host exits with its code. A rank that has waited in
//! vain for another rank says so at once (`Error::missing_rank`). A process that exits with 0 has left the job, with or
//! without a goodbye; that alone is no failure. The launcher tells the agent about processes that run and have not
//! joined, so `stall.rs` finds those that others wait for.
//!
//! **Streams of ops.** Within a host one rank speaks for all ranks that agree with it (`digest.rs`). The root compares
//! hosts (`divergence.rs`), and finds stalled ranks (`stall.rs`) and links that deliver no bytes (`transit.rs`).
//!
//! **Connections.** Every start of a job has a port, a state and keys of its own, so a message of an earlier start cannot
//! arrive. Both ends of a connection first prove that they know the token (`handshake.rs`). `guard.rs` passes on the
//! connections that have; the service reads nothing of others. The TLS handshake with a host follows there (`tls.rs`), so
//! node 0 prints why it refuses a host.
//!
//! **Outages.** A silent host is named after three seconds, and is lost after the longest outage that the job survives.
//! If the job may restart, a host that has lost the root ends its ranks and attaches again (`link.rs`), and the root
//! waits for hosts as at the first start (`gather.rs`). A rank gives a wait up after six times `--stall`, at least 30
//! minutes, if nothing else ends it.

mod admitted;
mod agent;
mod digest;
mod divergence;
#[doc(hidden)]
pub mod fuzz;
mod guard;
mod host;
mod kv_store;
mod limits;
mod link;
mod node;
mod root;
mod root_cause;
mod serve;
mod stall;
mod tls;
mod transit;
mod watching;

use std::hash::Hasher;
use std::io::Read;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::Token;
use oflow_base::intern::FixedHasher;
use oflow_base::{Error, Result};
use oflow_comm::tcp::Outage;
use oflow_proto::control as pb;

pub use agent::{Agent, Watcher};
pub(crate) use limits::missing_rank;
pub use node::{Absent, Missing, Silence};
pub use oflow_proto::control::{Glimpse, NodeEvent};
pub use root_cause::{Candidate, Ends};
pub use serve::Verdict;
pub use watching::{Held, HostPart, MESH_RANKS, MOST_BOXINGS, MOST_POINTS, Sight};

/// Receives the log lines of an agent.
pub type Log = Arc<dyn Fn(&str) + Send + Sync>;

/// Where the hosts of a job meet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Rendezvous {
    /// One host: the agent listens on the loopback interface only.
    Alone,
    /// This agent is node 0 and hosts the root at this address (`host:port`).
    Host(String),
    /// The root is at this address. It may be started later.
    Join(String),
    /// The first agent that can listen at this address is node 0; the others join it.
    Either(String),
}

/// Options of an agent.
#[derive(Clone)]
pub struct AgentOptions {
    /// Secret of the job.
    pub token: Token,
    /// Number of ranks on this host.
    pub nproc: usize,
    /// Where the hosts meet.
    pub rendezvous: Rendezvous,
    /// Smallest and largest number of hosts. The job starts with as many as join in time.
    pub nodes: RangeInclusive<usize>,
    /// Number of this host; `None`: hosts are numbered in the order of arrival.
    pub node_rank: Option<usize>,
    /// Number of restarts after failures. Node 0's value is used.
    pub max_restarts: u32,
    /// Constants of the cost model as JSON, sent to each rank that joins; empty: the fixed constants. Node 0's value is used.
    pub cost_model: Vec<u8>,
    /// Hash of the program's contents; hosts with another hash are refused. 0: not known.
    pub program: u64,
    /// Name of this host, for messages.
    pub host: String,
    /// Time-out for hosts to join, at every start: how long this host tries to reach node 0, and how long node 0 waits for enough
    /// hosts.
    pub join_limit: Duration,
    /// How long node 0 waits for more hosts once enough have joined.
    pub settle: Duration,
    /// Time-out for a rank that is alive but has not joined a collective; the job then ends. Node 0's value is used.
    pub stall: Duration,
    /// The longest outage of the network between hosts that the job survives.
    pub outage: Outage,
    /// Folder with `ca.pem`, `cert.pem` and `key.pem` for mutual TLS between hosts.
    pub tls: Option<PathBuf>,
    /// Receives the agent's log lines.
    pub log: Log,
}

impl AgentOptions {
    /// Makes the options of a job of `nproc` ranks on one host.
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
            outage: Outage::default(),
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
            return Err(Error::argument(format!(
                "node {rank} is out of range: a job of {max} hosts has nodes numbered from 0"
            )));
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
            outage_ms: u64::try_from(self.outage.limit().as_millis()).unwrap_or(u64::MAX),
        }
    }
}

/// Returns the hash of a program's contents, for [`AgentOptions::program`].
///
/// # Errors
/// If the file cannot be read.
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

/// Returns the name of this host.
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
    /// World rank of this host's first rank; the others follow it.
    pub first_rank: usize,
    /// Number of ranks on this host.
    pub nproc: usize,
    /// Number of ranks in the job.
    pub world: usize,
    /// Number of restarts so far.
    pub restart: u32,
}

/// Next step of a host after all its ranks have ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The job is over, with this exit code.
    Over(u8),
    /// All ranks are started again.
    Again(Assignment),
}
