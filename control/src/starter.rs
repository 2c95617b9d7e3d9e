//! Launchers other than `oflaunch`: `mpirun`, `srun`, `torchrun`, or a person who sets `RANK` and `WORLD_SIZE`. The table
//! [`STARTERS`] lists the variables by which each is recognised; [`StartedRank::from_env`] reads them.
//!
//! Incomplete or contradictory variables are errors. If they were read as a world of one, N ranks would train N models.

use std::ffi::OsString;
use std::net::IpAddr;
use std::path::Path;

use super::env::{
    LOCAL_RANK, LOCAL_WORLD_SIZE, MASTER_ADDR, MASTER_PORT, OFLOW_THREADS, OFLOW_TOKEN, OFLOW_TOKEN_FILE, RANK, Reader,
    WORLD_SIZE, check, malformed, parse,
};
use super::{Token, slurm};
use oflow_base::intern::FixedHasher;
use oflow_base::{Error, Result};
use oflow_comm::tcp::Outage;
use std::hash::Hasher;

/// A launcher that tells ranks their numbers by environment variables.
#[derive(Clone, Copy, Debug)]
pub struct Starter {
    /// Name of the launcher.
    pub name: &'static str,
    /// Command line of a typical call.
    pub command: &'static str,
    /// Variable with the number of the rank.
    pub rank: &'static str,
    /// Variables with the number of ranks; the first that is set is used.
    pub world: &'static [&'static str],
    /// Variable with the number of the rank on its host.
    pub local_rank: &'static str,
    /// Variable with the number of ranks on the host.
    pub local_world: &'static str,
    /// Variables with the number of the host.
    pub node: &'static [&'static str],
    /// Variables with the number of hosts.
    pub nodes: &'static [&'static str],
    /// Variables that distinguish two jobs of one user on one host.
    pub job: &'static [&'static str],
    /// How to give the ranks of a host consecutive numbers.
    pub consecutive: &'static str,
    kind: StarterKind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum StarterKind {
    Variables,
    OpenMpi,
    Mpich,
    Slurm,
}

/// The known launchers, in order of precedence: a launcher that may run inside another one comes before it.
pub const STARTERS: &[Starter] = &[
    Starter {
        name: "RANK and WORLD_SIZE",
        command: "torchrun, Kubernetes, or by hand",
        rank: RANK,
        world: &[WORLD_SIZE],
        local_rank: LOCAL_RANK,
        local_world: LOCAL_WORLD_SIZE,
        node: &["GROUP_RANK", "NODE_RANK"],
        nodes: &["GROUP_WORLD_SIZE", "NNODES"],
        job: &["TORCHELASTIC_RUN_ID", "TORCHELASTIC_RESTART_COUNT", MASTER_ADDR, MASTER_PORT],
        consecutive: "give the ranks of a host consecutive numbers",
        kind: StarterKind::Variables,
    },
    Starter {
        name: "Open MPI",
        command: "mpirun -n 4 PROGRAM",
        rank: "OMPI_COMM_WORLD_RANK",
        world: &["OMPI_COMM_WORLD_SIZE"],
        local_rank: "OMPI_COMM_WORLD_LOCAL_RANK",
        local_world: "OMPI_COMM_WORLD_LOCAL_SIZE",
        node: &[],
        nodes: &[],
        job: &["PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid"],
        consecutive: "call mpirun with `--map-by slot`",
        kind: StarterKind::OpenMpi,
    },
    Starter {
        name: "MPICH",
        command: "mpiexec -n 4 PROGRAM",
        rank: "PMI_RANK",
        world: &["PMI_SIZE"],
        local_rank: "MPI_LOCALRANKID",
        local_world: "MPI_LOCALNRANKS",
        node: &[],
        nodes: &[],
        job: &["PMI_JOBID"],
        consecutive: "list each host once in the host file, with its number of ranks",
        kind: StarterKind::Mpich,
    },
    Starter {
        name: "Slurm",
        command: "srun -n 4 PROGRAM",
        rank: "SLURM_PROCID",
        world: &["SLURM_STEP_NUM_TASKS", "SLURM_NTASKS", "SLURM_NPROCS"],
        local_rank: "SLURM_LOCALID",
        local_world: "SLURM_STEP_TASKS_PER_NODE",
        node: &["SLURM_NODEID"],
        nodes: &["SLURM_STEP_NUM_NODES", "SLURM_NNODES"],
        job: &["SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_STEPID", "SLURM_RESTART_COUNT"],
        consecutive: "call srun with `--distribution=block`",
        kind: StarterKind::Slurm,
    },
];

/// Step numbers from here on are Slurm's own: the batch script, an interactive shell, the keeper of a node.
const FIRST_SPECIAL_STEP: u32 = 0xffff_fff0;
/// Ports that are made from a job's number: below those that systems give out by themselves.
const PORTS: std::ops::Range<u16> = 20_000..32_000;

/// This process's place in a job started by another launcher than `oflaunch`.
#[derive(Clone, Debug)]
pub struct StartedRank {
    /// Name of the launcher.
    pub starter: &'static str,
    /// Identifies the job among those of one user on one host; letters, digits and dashes only.
    pub job: String,
    /// Number of this rank.
    pub rank: usize,
    /// Number of ranks.
    pub world: usize,
    /// Number of this rank on its host.
    pub local_rank: usize,
    /// Number of ranks on this host.
    pub local_world: usize,
    /// Number of this host.
    pub node: usize,
    /// Number of hosts.
    pub nodes: usize,
    /// Name or address of the first host, if known.
    pub root_host: Option<String>,
    /// Port of the control service on the first host.
    pub root_port: u16,
    /// Address at which ranks of other hosts reach the ranks of this host, if set.
    pub address: Option<IpAddr>,
    /// The longest outage of the network between hosts that the job survives.
    pub outage: Outage,
    /// Secret of the job, if set.
    pub token: Option<Token>,
    /// Compute threads of this rank, if set.
    pub threads: Option<usize>,
}

impl StartedRank {
    /// Reads the process's environment. Returns `None` if no launcher of [`STARTERS`] has started this process.
    ///
    /// # Errors
    /// If the variables of a launcher are incomplete, malformed or contradictory.
    pub fn from_env() -> Result<Option<StartedRank>> {
        StartedRank::from_vars(|name| std::env::var_os(name))
    }

    /// Like [`StartedRank::from_env`], with `get` returning the value of each variable.
    pub fn from_vars(get: impl Fn(&str) -> Option<OsString>) -> Result<Option<StartedRank>> {
        let vars = Reader { get };
        let mut places = Vec::new();
        for starter in STARTERS {
            if let Some(place) = Position::read(starter, &vars)? {
                places.push(place);
            }
        }
        let Some(mut place) = places.first().cloned() else {
            return match vars.text("PMIX_RANK")? {
                Some(_) if !vars.is_set("SLURM_JOB_ID") => Err(Error::argument(
                    "PMIX_RANK is set, but no variable has the number of ranks",
                )
                .help("start the program with mpirun, srun or oflaunch; or set RANK, WORLD_SIZE, MASTER_ADDR and MASTER_PORT; or unset PMIX_RANK to run it alone")),
                _ => Ok(None),
            };
        };
        if place.local.is_none() {
            // RANK and WORLD_SIZE alone, set by a script that mpirun or srun has started: that one knows the hosts.
            let same = |p: &&Position| p.rank == place.rank && p.world == place.world && p.local.is_some();
            if let Some(by) = places.iter().skip(1).find(same).cloned() {
                place = by;
            }
        }
        place.complete(&vars).map(Some)
    }

    /// Returns the token, which jobs on several hosts need.
    ///
    /// # Errors
    /// If no token is set. The message says how to set one.
    pub fn need_token(&self) -> Result<&Token> {
        self.token.as_ref().ok_or_else(|| {
            Error::argument(format!(
                "the ranks of this job are on {} hosts, and no token is set",
                self.nodes
            ))
            .help(match self.starter {
                "Open MPI" => "`export OFLOW_TOKEN=$(oflow token)` and call `mpirun -x OFLOW_TOKEN …`, or name a file that only you can read in OFLOW_TOKEN_FILE",
                _ => "`export OFLOW_TOKEN=$(oflow token)` before starting the job, or name a file that only you can read in OFLOW_TOKEN_FILE",
            })
        })
    }

    /// Returns the name and port of the first host, which jobs on several hosts need.
    ///
    /// # Errors
    /// If the first host is not known. The message says how to set it.
    pub fn need_root(&self) -> Result<(&str, u16)> {
        let host = self.root_host.as_deref().ok_or_else(|| {
            Error::argument(format!("the ranks of this job are on {} hosts, and MASTER_ADDR is not set", self.nodes))
                .help(
                    "set MASTER_ADDR to the name of the host of rank 0, alike on all hosts (`mpirun -x MASTER_ADDR=…`)",
                )
        })?;
        Ok((host, self.root_port))
    }

    /// Returns a line of text for `oflow doctor`.
    pub fn describe(&self) -> String {
        format!(
            "rank {} of {} by {}; rank {} of {} on host {} of {}",
            self.rank, self.world, self.starter, self.local_rank, self.local_world, self.node, self.nodes
        )
    }
}

/// The values of one launcher's variables.
#[derive(Clone, Debug)]
struct Position {
    starter: &'static Starter,
    rank: usize,
    world: usize,
    /// Rank on the host, and ranks on the host.
    local: Option<(usize, usize)>,
    /// Host, and hosts.
    node: Option<(usize, usize)>,
}

impl Position {
    fn read<G: Fn(&str) -> Option<OsString>>(starter: &'static Starter, vars: &Reader<G>) -> Result<Option<Position>> {
        if starter.kind == StarterKind::Slurm && !in_a_step(vars)? {
            return Ok(None);
        }
        let world_name = starter.world.iter().copied().find(|n| vars.is_set(n));
        let some = |set: &'static str, missing: &'static str| {
            Err(Error::argument(format!("environment variable {missing} is not set although {set} is")).help(format!(
                "start the program with oflaunch or with {} ({}), or unset {set} to run it alone",
                starter.name, starter.command
            )))
        };
        let (rank_name, world_name) = match (vars.is_set(starter.rank), world_name) {
            (true, Some(world)) => (starter.rank, world),
            (true, None) => return some(starter.rank, starter.world[0]),
            // An allocation knows its size without being one of its tasks.
            (false, Some(world)) if starter.kind != StarterKind::Slurm => return some(world, starter.rank),
            (false, _) => {
                let halves = [starter.local_rank, starter.local_world];
                return match halves.into_iter().find(|n| starter.kind != StarterKind::Slurm && vars.is_set(n)) {
                    Some(half) => some(half, starter.rank),
                    None => Ok(None),
                };
            }
        };
        let world = vars.number(world_name)?.unwrap_or(0);
        let rank = vars.number(rank_name)?.unwrap_or(0);
        check(world_name, world, (1..=u32::MAX as usize).contains(&world), "at least 1")?;
        check(rank_name, rank, rank < world, &format!("below {world_name}={world}"))?;
        let mut place = Position { starter, rank, world, local: None, node: None };
        let node = vars.first_number(starter.node)?;
        let nodes = vars.first_number(starter.nodes)?;
        if let (Some((node_name, node)), Some((nodes_name, nodes))) = (node, nodes) {
            check(nodes_name, nodes, (1..=world).contains(&nodes), &format!("from 1 to {world_name}={world}"))?;
            check(node_name, node, node < nodes, &format!("below {nodes_name}={nodes}"))?;
            place.node = Some((node, nodes));
        }
        if starter.kind == StarterKind::Slurm {
            place.slurm(vars)?
        } else {
            place.local(vars)?
        }
        Ok(Some(place))
    }

    fn local<G: Fn(&str) -> Option<OsString>>(&mut self, vars: &Reader<G>) -> Result<()> {
        let (rank_name, world_name) = (self.starter.local_rank, self.starter.local_world);
        match (vars.number(rank_name)?, vars.number(world_name)?) {
            (Some(rank), Some(world)) => {
                let ranks = self.world;
                check(
                    world_name,
                    world,
                    (1..=ranks).contains(&world),
                    &format!("from 1 to {ranks}, the number of ranks"),
                )?;
                check(rank_name, rank, rank < world, &format!("below {world_name}={world}"))?;
                self.local = Some((rank, world));
                Ok(())
            }
            (None, None) => Ok(()),
            (a, _) => {
                let (set, missing) = if a.is_some() { (rank_name, world_name) } else { (world_name, rank_name) };
                Err(Error::argument(format!("environment variable {missing} is not set although {set} is"))
                    .help(format!("set both, or neither where each host has one rank ({})", self.starter.command)))
            }
        }
    }

    fn slurm<G: Fn(&str) -> Option<OsString>>(&mut self, vars: &Reader<G>) -> Result<()> {
        const LISTS: [&str; 3] = ["SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE", "SLURM_NTASKS_PER_NODE"];
        let local_rank = vars.number("SLURM_LOCALID")?.ok_or_else(|| {
            Error::argument("environment variable SLURM_LOCALID is not set although SLURM_PROCID is")
                .help("start the program with srun")
        })?;
        let (node, nodes) = self.node.unwrap_or((0, 1));
        let Some(list) = LISTS.into_iter().find(|n| vars.is_set(n)) else {
            if nodes > 1 {
                return Err(Error::argument(
                    "environment variable SLURM_STEP_TASKS_PER_NODE is not set although SLURM_PROCID is",
                ));
            }
            self.local = Some((local_rank, self.world));
            return Ok(());
        };
        let text = vars.text(list)?.unwrap_or_default();
        let mut tasks = slurm::tasks_per_node(&text)
            .ok_or_else(|| malformed(list, &text, "a list of tasks per node like `2(x3),1`"))?;
        if list == "SLURM_NTASKS_PER_NODE" && tasks.len() == 1 {
            tasks = vec![tasks[0]; nodes];
        }
        let sum: usize = tasks.iter().sum();
        if sum != self.world || tasks.len() != nodes {
            return Err(Error::argument(format!(
                "Slurm's variables contradict each other: {list}={text} means {sum} tasks on {} nodes, but there are {} tasks on {nodes} nodes",
                tasks.len(),
                self.world
            )).help("start the program with srun itself, with the numbers of the step"));
        }
        check(
            "SLURM_LOCALID",
            local_rank,
            local_rank < tasks[node],
            &format!("below {}, the tasks of node {node}", tasks[node]),
        )?;
        let expected = tasks[..node].iter().sum::<usize>() + local_rank;
        if expected != self.rank {
            return Err(self.scattered(expected));
        }
        self.local = Some((local_rank, tasks[node]));
        Ok(())
    }

    fn scattered(&self, expected: usize) -> Error {
        let (local, _) = self.local.unwrap_or((0, 1));
        Error::argument(format!(
            "the ranks of a host must be consecutive, but rank {} stands where rank {expected} should ({} says that it is number {local} on its host)",
            self.rank, self.starter.name
        ))
        .help(self.starter.consecutive)
    }

    /// Adds what is common to all starters, and what follows from the rest.
    fn complete<G: Fn(&str) -> Option<OsString>>(self, vars: &Reader<G>) -> Result<StartedRank> {
        let Position { starter, rank, world, .. } = self;
        let mut root_host = vars.text(MASTER_ADDR)?;
        let port = match vars.text(MASTER_PORT)? {
            None => None,
            Some(text) => {
                let port: u16 = parse(MASTER_PORT, &text, "a port number")?;
                check(MASTER_PORT, 0, port != 0, "a port number")?;
                Some(port)
            }
        };
        if starter.kind == StarterKind::Variables && world > 1 {
            for name in [MASTER_ADDR, MASTER_PORT] {
                if !vars.is_set(name) {
                    return Err(Error::argument(format!("environment variable {name} is not set although {RANK} is"))
                        .help("start the program with oflaunch, or say where the host of rank 0 is to be reached; unset RANK and WORLD_SIZE to run it alone"));
                }
            }
        }
        let here = |host: &str| host == "localhost" || host == "::1" || host.starts_with("127.");
        let (local_rank, local_world) = match self.local {
            Some(local) => local,
            // Each host has one rank, the rule under Kubernetes; unless all of them are here.
            None if root_host.as_deref().is_some_and(here) => (rank, world),
            None if starter.kind == StarterKind::Variables || world == 1 => (0, 1),
            None => {
                let name = starter.local_rank;
                return Err(Error::argument(format!(
                    "environment variable {name} is not set although {} is",
                    starter.rank
                ))
                .help(format!("start the program with {}", starter.command)));
            }
        };
        let (node, nodes) = match self.node {
            _ if local_world == world => (0, 1),
            Some(node) => node,
            None => {
                // Nothing says which host this is: it follows if all have as many ranks.
                if !world.is_multiple_of(local_world) {
                    return Err(Error::argument(format!(
                        "{} says that {local_world} of {world} ranks are on this host, so the hosts have different numbers of ranks, and which host this is cannot be told",
                        starter.name
                    ))
                    .help("give every host as many ranks, or start one oflaunch on each host (`--nnodes`)"));
                }
                if rank % local_world != local_rank {
                    return Err(self.scattered(rank - rank % local_world + local_rank));
                }
                (rank / local_world, world / local_world)
            }
        };
        if root_host.is_none() && starter.kind == StarterKind::Slurm {
            let lists = ["SLURM_STEP_NODELIST", "SLURM_JOB_NODELIST", "SLURM_NODELIST"];
            if let Some(name) = lists.into_iter().find(|n| vars.is_set(n)) {
                let list = vars.text(name)?.unwrap_or_default();
                root_host = Some(slurm::first_host(&list).ok_or_else(|| malformed(name, &list, "a list of nodes"))?);
            }
        }
        let mut job: Vec<String> = Vec::new();
        for name in starter.job {
            job.extend(vars.text(name)?);
        }
        if starter.kind == StarterKind::Mpich && job.is_empty() {
            job.push(hydra_proxy().to_string());
        }
        let job = job.join("-");
        // torchrun keeps its own store at MASTER_PORT.
        let torchrun = vars.is_set("TORCHELASTIC_RUN_ID") || vars.is_set("TORCHELASTIC_USE_AGENT_STORE");
        let root_port = match port {
            Some(port) if starter.kind == StarterKind::Variables && torchrun => port.checked_add(1).unwrap_or(port - 1),
            Some(port) => port,
            None => PORTS.start + (digest(&job) % PORTS.len() as u64) as u16,
        };
        let threads = match vars.number(OFLOW_THREADS)? {
            None => None,
            Some(threads) => {
                check(OFLOW_THREADS, threads, threads > 0, "at least 1")?;
                Some(threads)
            }
        };
        Ok(StartedRank {
            starter: starter.name,
            // With the host: a test may play several on one machine.
            job: format!("{}-{:016x}-{node}", kind_name(starter.kind), digest(&job)),
            rank,
            world,
            local_rank,
            local_world,
            node,
            nodes,
            root_host,
            root_port,
            address: vars.address()?,
            outage: vars.outage()?,
            token: given_token(vars)?,
            threads,
        })
    }
}

fn kind_name(kind: StarterKind) -> &'static str {
    match kind {
        StarterKind::Variables => "rank",
        StarterKind::OpenMpi => "openmpi",
        StarterKind::Mpich => "mpich",
        StarterKind::Slurm => "slurm",
    }
}

fn digest(text: &str) -> u64 {
    let mut hasher = FixedHasher::default();
    hasher.write(text.as_bytes());
    hasher.finish()
}

/// Whether this process is a task of a step started with srun. The shell of an allocation and its batch
/// script carry the variables of the allocation, and so does what a person starts in an interactive task by hand.
fn in_a_step<G: Fn(&str) -> Option<OsString>>(vars: &Reader<G>) -> Result<bool> {
    let Some(name) = ["SLURM_STEP_ID", "SLURM_STEPID"].into_iter().find(|n| vars.is_set(n)) else {
        return Ok(false);
    };
    let step: u32 = parse(name, &vars.text(name)?.unwrap_or_default(), "the number of a step")?;
    Ok(step < FIRST_SPECIAL_STEP && vars.is_set("SLURM_PROCID") && !vars.is_set("SLURM_PTY_PORT"))
}

/// The process of Hydra that has started all ranks of this host: what MPICH's ranks have in common.
fn hydra_proxy() -> u32 {
    let parent = std::os::unix::process::parent_id();
    let mut pid = parent;
    while pid > 1 {
        let Ok(stat) = std::fs::read_to_string(format!("/proc/{pid}/stat")) else { break };
        // The name stands in parentheses and may hold any character; state and parent follow the last one.
        let Some((head, tail)) = stat.rsplit_once(')') else { break };
        if head.contains("(hydra_") {
            return pid;
        }
        pid = tail.split_whitespace().nth(1).and_then(|p| p.parse().ok()).unwrap_or(0);
    }
    parent
}

/// The job token from the environment or from the file that it names.
fn given_token<G: Fn(&str) -> Option<OsString>>(vars: &Reader<G>) -> Result<Option<Token>> {
    if let Some(text) = vars.text(OFLOW_TOKEN)? {
        // The value stays out of the message: it may be most of a secret.
        return text.parse().map(Some).map_err(|e: Error| {
            Error::argument(format!("environment variable {OFLOW_TOKEN} is malformed: {}", e.message()))
                .help("`export OFLOW_TOKEN=$(oflow token)`")
        });
    }
    vars.text(OFLOW_TOKEN_FILE)?.map(|path| Token::from_file(Path::new(&path))).transpose()
}
