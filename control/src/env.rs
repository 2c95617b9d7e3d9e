//! The environment variables that oflow reads, and the part of them that the launcher sets for each rank.

use std::ffi::OsString;
use std::net::IpAddr;
use std::os::fd::RawFd;
use std::str::FromStr;
use std::time::Duration;

use super::Token;
use oflow_base::{Error, Result};
use oflow_comm::tcp::Outage;

/// Setter of a variable: the launcher or the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetBy {
    /// `oflaunch` sets it for each rank.
    Launcher,
    /// The user may set it; `oflaunch` sets it too.
    Either,
    /// The user may set it; `oflaunch` leaves it as it is.
    User,
}

/// An environment variable that oflow reads.
#[derive(Clone, Copy, Debug)]
pub struct Variable {
    /// Name of the variable.
    pub name: &'static str,
    /// Meaning, as shown in the help text and in `docs/running.md`.
    pub meaning: &'static str,
    /// Setter of the variable.
    pub set_by: SetBy,
}

pub(super) const RANK: &str = "RANK";
pub(super) const LOCAL_RANK: &str = "LOCAL_RANK";
pub(super) const WORLD_SIZE: &str = "WORLD_SIZE";
pub(super) const LOCAL_WORLD_SIZE: &str = "LOCAL_WORLD_SIZE";
pub(super) const MASTER_ADDR: &str = "MASTER_ADDR";
pub(super) const MASTER_PORT: &str = "MASTER_PORT";
const NODE_RANK: &str = "NODE_RANK";
const NNODES: &str = "NNODES";
pub(super) const OFLOW_TOKEN: &str = "OFLOW_TOKEN";
/// Inherited descriptor with the job token, for ranks that get no OFLOW_TOKEN.
const OFLOW_TOKEN_FD: &str = "OFLOW_TOKEN_FD";
/// File with the job token, for ranks that get neither.
pub(super) const OFLOW_TOKEN_FILE: &str = "OFLOW_TOKEN_FILE";
/// Set by oflaunch only, so a rank recognises oflaunch by it. Other launchers set some of the other variables too.
const OFLOW_CONTROL: &str = "OFLOW_CONTROL";
const OFLOW_SHM_FD: &str = "OFLOW_SHM_FD";
const OFLOW_REPORT: &str = "OFLOW_REPORT";
const OFLOW_STALL: &str = "OFLOW_STALL";
const OUTAGE_LIMIT: &str = "OFLOW_OUTAGE_LIMIT";
pub(super) const OFLOW_THREADS: &str = "OFLOW_THREADS";
pub(super) const START_LIMIT: &str = "OFLOW_START_TIMEOUT";
pub(super) const END_LIMIT: &str = "OFLOW_TIMEOUT";
/// How GPUs of different ranks communicate: `nccl` or `staged`.
pub const COMM_VARIABLE: &str = "OFLOW_COMM";

/// Transport between ranks: `own` or `mpi`.
pub const TRANSPORT_VARIABLE: &str = "OFLOW_TRANSPORT";

/// Address at which ranks of other hosts reach the ranks of this host.
pub const ADDRESS_VARIABLE: &str = "OFLOW_ADDR";
/// Folder of the ranks' flight records.
pub const FLIGHT_VARIABLE: &str = "OFLOW_FLIGHT_DIR";

/// `1`: ranks compare hashes of the data given to `from_vec` and `distribute`.
pub const CHECK_VARIABLE: &str = "OFLOW_CHECK";

/// Folder in which each rank writes a timeline.
pub const TRACE_VARIABLE: &str = "OFLOW_TRACE";

/// Steps of the program that timelines have, as `100..120`.
pub const TRACE_STEPS_VARIABLE: &str = "OFLOW_TRACE_STEPS";

/// Largest size of the timeline of a rank, in MiB.
pub const TRACE_MIB_VARIABLE: &str = "OFLOW_TRACE_MIB";

/// File with the measured constants of the cost model; read by the launcher.
pub const MODEL_VARIABLE: &str = "OFLOW_MODEL";

/// Experimental kernels that may be chosen: `1`, or names with commas between them.
pub const EXPERIMENTAL_VARIABLE: &str = "OFLOW_EXPERIMENTAL";

/// Mark of the job: ranks and the processes that they start have it in their environment.
pub const JOB_VARIABLE: &str = "OFLOW_JOB";

/// Number of restarts of the job after failures so far; 0 in the first run.
pub const RESTART_VARIABLE: &str = "OFLOW_RESTART";

pub use oflow_files::TRUST_VARIABLE;

/// Every environment variable that oflow reads, in the order of the help text.
pub const VARIABLES: &[Variable] = &[
    launcher(OFLOW_CONTROL, "address of the control service, as HOST:PORT"),
    either(RANK, "number of this rank, from 0"),
    either(LOCAL_RANK, "number of this rank on its host, from 0"),
    either(WORLD_SIZE, "number of ranks in the job"),
    either(LOCAL_WORLD_SIZE, "number of ranks on this host"),
    either(MASTER_ADDR, "host of rank 0"),
    either(MASTER_PORT, "port of the control service there"),
    either(OFLOW_TOKEN, "secret of the job, 64 hexadecimal digits (`oflow token` makes one)"),
    launcher(OFLOW_TOKEN_FD, "inherited descriptor of the secret, used if OFLOW_TOKEN is not set"),
    launcher(OFLOW_SHM_FD, "inherited descriptor of the host's shared memory arena"),
    launcher(
        OFLOW_REPORT,
        "1: at its end the rank sends the launcher a report of its communication (`oflaunch --report`)",
    ),
    launcher(
        OFLOW_STALL,
        "time-out in seconds for a rank that is alive but has not joined a collective (`oflaunch --stall`)",
    ),
    either(
        OUTAGE_LIMIT,
        "longest outage of the network between hosts, in seconds, that the job survives (`oflaunch --outage-limit`) [default: 10]",
    ),
    either(JOB_VARIABLE, "mark of the job's processes, by which they are found at its end"),
    either(RESTART_VARIABLE, "number of restarts of the job after failures so far (`oflaunch --max-restarts`)"),
    either(NODE_RANK, "number of this rank's host, from 0"),
    either(NNODES, "number of hosts in the job"),
    either(OFLOW_THREADS, "compute threads of this rank"),
    Variable {
        name: OFLOW_TOKEN_FILE,
        meaning: "file with the secret of the job, used if OFLOW_TOKEN is not set; readable by its owner only",
        set_by: SetBy::User,
    },
    Variable {
        name: START_LIMIT,
        meaning: "time-out in seconds for joining, for ranks started without oflaunch [default: 300]",
        set_by: SetBy::User,
    },
    Variable {
        name: END_LIMIT,
        meaning: "seconds that the other ranks have to end by themselves after a rank has failed, for ranks started without oflaunch [default: 3]",
        set_by: SetBy::User,
    },
    Variable {
        name: ADDRESS_VARIABLE,
        meaning: "address at which ranks of other hosts reach the ranks of this host [default: that of the route to the control service]",
        set_by: SetBy::Either,
    },
    Variable {
        name: "OFLOW_LOG",
        meaning: "log filter of the ranks, which log to stderr, e.g. oflow=debug [default: no log]",
        set_by: SetBy::User,
    },
    Variable {
        name: CHECK_VARIABLE,
        meaning: "how far ranks compare what all of them give alike: the data of `from_vec` and `distribute`, and at an optimizer's first step the parameters that are B; if it differs the job ends with a report. 0: not at all; 1: all bytes, memory of GPUs too, and an op that combines a P input with an infinity or NaN is an error that names the op and its line [default: a sample of up to 16 KiB of each value in host memory]",
        set_by: SetBy::User,
    },
    Variable {
        name: "OFLOW_GRAPH",
        meaning: "how graphs run. plan: as they were planned when they were built; replay: call by call, with the same bits [default: plan]",
        set_by: SetBy::User,
    },
    Variable {
        name: MODEL_VARIABLE,
        meaning: "cost model that oflaunch gives to the ranks: a file of `oflow calibrate`, or `default` for the fixed constants [default: the file of the last `oflow calibrate`, if there is one]",
        set_by: SetBy::User,
    },
    Variable {
        name: EXPERIMENTAL_VARIABLE,
        meaning: "experimental kernels that ops may use: 1 (all), or names with commas between them [default: none]",
        set_by: SetBy::User,
    },
    Variable {
        name: "CUDA_VISIBLE_DEVICES",
        meaning: "GPUs that the ranks of this host may use; local rank r uses entry r modulo the number of entries [default: all]",
        set_by: SetBy::User,
    },
    Variable {
        name: COMM_VARIABLE,
        meaning: "how GPUs of different ranks communicate: nccl (an error if NCCL cannot be used), or staged (through host memory) [default: nccl if every rank of a group has its own GPU]",
        set_by: SetBy::User,
    },
    Variable {
        name: TRANSPORT_VARIABLE,
        meaning: "transport between ranks: own (shared memory and TCP), or mpi (the site's MPI library; cargo feature `mpi`) [default: own]",
        set_by: SetBy::User,
    },
    Variable {
        name: TRUST_VARIABLE,
        meaning: "1: files and folders are used although other users own them or can write to them: caches, sources and libraries of ops, checkpoints, logs [default: 0]",
        set_by: SetBy::User,
    },
    Variable {
        name: FLIGHT_VARIABLE,
        meaning: "folder of the flight records: each rank's last ops, for `oflow postmortem` [default: a folder made by oflaunch and deleted if the job succeeds]",
        set_by: SetBy::Either,
    },
    Variable {
        name: TRACE_VARIABLE,
        meaning: "folder in which each rank writes a timeline, for Perfetto (`oflaunch --trace`) [default: none is written]",
        set_by: SetBy::Either,
    },
    Variable {
        name: TRACE_STEPS_VARIABLE,
        meaning: "steps that timelines have, from the first to the one before the last, counted from 0, e.g. 100..120 [default: all]",
        set_by: SetBy::Either,
    },
    Variable {
        name: TRACE_MIB_VARIABLE,
        meaning: "largest size of the timeline of a rank in MiB; what comes after it is left out [default: 64]",
        set_by: SetBy::Either,
    },
    Variable {
        name: "OFLOW_PYTHON",
        meaning: "interpreter of Python programs, a path or a name in PATH [default: python3 of VIRTUAL_ENV, else the one beside oflaunch, else of PATH]",
        set_by: SetBy::User,
    },
    Variable { name: "OFLOW_HOME", meaning: "oflow source tree that scripts are built against", set_by: SetBy::User },
];

const fn launcher(name: &'static str, meaning: &'static str) -> Variable {
    Variable { name, meaning, set_by: SetBy::Launcher }
}

const fn either(name: &'static str, meaning: &'static str) -> Variable {
    Variable { name, meaning, set_by: SetBy::Either }
}

/// This rank's place in the job, as the launcher has set it in the environment.
#[derive(Clone, Debug)]
pub struct LaunchEnv {
    /// Number of this rank, from 0.
    pub rank: usize,
    /// Number of this rank on its host.
    pub local_rank: usize,
    /// Number of ranks in the job.
    pub world: usize,
    /// Number of ranks on this host.
    pub local_world: usize,
    /// Number of this rank's host, from 0.
    pub node: usize,
    /// Number of hosts in the job. Ranks are numbered by host; hosts may have different numbers of ranks.
    pub nodes: usize,
    /// Host of the control service.
    pub master_addr: String,
    /// Port of the control service.
    pub master_port: u16,
    /// Secret of the job.
    pub token: Token,
    /// Inherited file descriptor of the host's shared memory arena, if there is one.
    pub shm_fd: Option<RawFd>,
    /// Address at which ranks of other hosts reach the ranks of this host, if known.
    pub address: Option<IpAddr>,
    /// Whether the rank sends the launcher a report of its communication at its end.
    pub report: bool,
    /// Time-out for a rank that is alive but has not joined a collective, if set. The control plane then ends the job.
    pub stall: Option<Duration>,
    /// The longest outage of the network between hosts that the job survives.
    pub outage: Outage,
    /// Compute threads of this rank, if set.
    pub threads: Option<usize>,
}

impl LaunchEnv {
    /// Reads the process's environment. Returns `None` if `oflaunch` has not started this process; another launcher may have
    /// ([`StartedRank`](super::StartedRank)).
    ///
    /// # Errors
    /// If some of oflaunch's variables are set and others are not, or if one is malformed. The message names the variable. An
    /// incomplete environment is never read as a world of one.
    pub fn from_env() -> Result<Option<LaunchEnv>> {
        LaunchEnv::from_vars(|name| std::env::var_os(name))
    }

    /// The number of compute threads that the environment asks for, whoever has started the program.
    ///
    /// # Errors
    /// If it is no number, or 0.
    pub fn threads_asked() -> Result<Option<usize>> {
        Reader { get: |name: &str| std::env::var_os(name) }.threads()
    }

    /// Like [`LaunchEnv::from_env`], with `get` returning the value of each variable.
    pub fn from_vars(get: impl Fn(&str) -> Option<OsString>) -> Result<Option<LaunchEnv>> {
        let reader = Reader { get };
        let launcher = || VARIABLES.iter().filter(|v| v.set_by == SetBy::Launcher);
        let Some(present) = launcher().find(|v| reader.is_set(v.name)) else {
            return Ok(None);
        };
        let need = |name: &'static str| {
            reader.text(name)?.ok_or_else(|| {
                Error::argument(format!("environment variable {name} is not set although {} is", present.name))
                    .help(format!("start the program with oflaunch, or unset {} to run it alone", present.name))
            })
        };
        let number = |name: &'static str| -> Result<usize> { parse(name, &need(name)?, "a whole number") };

        let world = number(WORLD_SIZE)?;
        let rank = number(RANK)?;
        let local_world = number(LOCAL_WORLD_SIZE)?;
        let local_rank = number(LOCAL_RANK)?;
        check(WORLD_SIZE, world, (1..=u32::MAX as usize).contains(&world), "at least 1")?;
        check(RANK, rank, rank < world, &format!("below {WORLD_SIZE}={world}"))?;
        let fits = (1..=world).contains(&local_world);
        check(LOCAL_WORLD_SIZE, local_world, fits, &format!("from 1 to {WORLD_SIZE}={world}"))?;
        check(LOCAL_RANK, local_rank, local_rank < local_world, &format!("below {LOCAL_WORLD_SIZE}={local_world}"))?;

        let or = |name: &'static str, default: usize| -> Result<usize> {
            reader.text(name)?.map_or(Ok(default), |text| parse(name, &text, "a whole number"))
        };
        let (node, nodes) = (or(NODE_RANK, 0)?, or(NNODES, 1)?);
        check(NNODES, nodes, (1..=world).contains(&nodes), &format!("from 1 to {WORLD_SIZE}={world}"))?;
        check(NODE_RANK, node, node < nodes, &format!("below {NNODES}={nodes}"))?;

        let control = need(OFLOW_CONTROL)?;
        let (master_addr, master_port) = control
            .rsplit_once(':')
            .and_then(|(host, port)| Some((host, port.parse::<u16>().ok().filter(|p| *p != 0)?)))
            .filter(|(host, _)| !host.is_empty())
            .ok_or_else(|| malformed(OFLOW_CONTROL, &control, "HOST:PORT"))?;
        let descriptor = |name: &'static str| -> Result<Option<RawFd>> {
            let Some(text) = reader.text(name)? else { return Ok(None) };
            let fd: RawFd = parse(name, &text, "a file descriptor")?;
            if fd < 0 { Err(malformed(name, &text, "a file descriptor")) } else { Ok(Some(fd)) }
        };
        let token = match (reader.text(OFLOW_TOKEN)?, descriptor(OFLOW_TOKEN_FD)?) {
            (None, Some(fd)) => Token::from_descriptor(fd)?,
            _ => need(OFLOW_TOKEN)?.parse::<Token>().map_err(|e| {
                // The value stays out of the message: it may be most of a secret.
                Error::argument(format!("environment variable {OFLOW_TOKEN} is malformed: {}", e.message()))
            })?,
        };
        let shm_fd = descriptor(OFLOW_SHM_FD)?;
        let report = match reader.text(OFLOW_REPORT)? {
            None => false,
            Some(text) if text == "1" => true,
            Some(text) => return Err(malformed(OFLOW_REPORT, &text, "1")),
        };
        if let Some(text) = reader.text(CHECK_VARIABLE)?.filter(|t| !["0", "1"].contains(&t.as_str())) {
            return Err(malformed(CHECK_VARIABLE, &text, "0 or 1"));
        }
        let stall = match reader.text(OFLOW_STALL)? {
            None => None,
            Some(text) => {
                let seconds = Duration::try_from_secs_f64(parse(OFLOW_STALL, &text, "seconds")?);
                Some(seconds.map_err(|_| malformed(OFLOW_STALL, &text, "seconds"))?)
            }
        };
        let address = reader.address()?;
        let outage = reader.outage()?;
        let threads = reader.threads()?;
        Ok(Some(LaunchEnv {
            rank,
            local_rank,
            world,
            local_world,
            node,
            nodes,
            master_addr: master_addr.to_string(),
            master_port,
            token,
            shm_fd,
            address,
            report,
            stall,
            outage,
            threads,
        }))
    }

    /// Returns the variables that the launcher sets; [`LaunchEnv::from_vars`] reads them back. `token`: the inherited
    /// descriptor of the token, which keeps it out of the environment; without one the token itself is a variable.
    pub fn to_vars(&self, token: Option<RawFd>) -> Vec<(&'static str, String)> {
        let mut vars = vec![
            (OFLOW_CONTROL, format!("{}:{}", self.master_addr, self.master_port)),
            (RANK, self.rank.to_string()),
            (LOCAL_RANK, self.local_rank.to_string()),
            (WORLD_SIZE, self.world.to_string()),
            (LOCAL_WORLD_SIZE, self.local_world.to_string()),
            (NODE_RANK, self.node.to_string()),
            (NNODES, self.nodes.to_string()),
            (MASTER_ADDR, self.master_addr.clone()),
            (MASTER_PORT, self.master_port.to_string()),
        ];
        vars.push(match token {
            Some(fd) => (OFLOW_TOKEN_FD, fd.to_string()),
            None => (OFLOW_TOKEN, self.token.expose().to_string()),
        });
        vars.extend(self.shm_fd.map(|fd| (OFLOW_SHM_FD, fd.to_string())));
        vars.extend(self.address.map(|address| (ADDRESS_VARIABLE, address.to_string())));
        vars.extend(self.report.then(|| (OFLOW_REPORT, "1".to_string())));
        vars.extend(self.stall.map(|stall| (OFLOW_STALL, stall.as_secs_f64().to_string())));
        vars.push((OUTAGE_LIMIT, self.outage.limit().as_secs_f64().to_string()));
        vars.extend(self.threads.map(|threads| (OFLOW_THREADS, threads.to_string())));
        vars
    }

    /// Returns the time-out of a wait in the data plane: six times `stall`, at least 30 minutes. The control plane ends a stalled
    /// job much earlier and with a reason; this time-out is for a lost control plane.
    pub fn wait_limit(&self) -> Duration {
        let limit = |stall: Duration| stall.saturating_mul(STALLS_WAITED).clamp(LEAST_WAIT_LIMIT, MOST_WAIT_LIMIT);
        self.stall.map_or(LEAST_WAIT_LIMIT, limit)
    }
}

/// See [`LaunchEnv::wait_limit`].
const STALLS_WAITED: u32 = 6;
const LEAST_WAIT_LIMIT: Duration = Duration::from_secs(30 * 60);
/// An `Instant` can be this much in the future without overflow.
const MOST_WAIT_LIMIT: Duration = Duration::from_secs(1000 * 24 * 60 * 60);

/// Variables, read with errors that name them.
pub(super) struct Reader<G> {
    pub(super) get: G,
}

impl<G: Fn(&str) -> Option<OsString>> Reader<G> {
    pub(super) fn is_set(&self, name: &str) -> bool {
        (self.get)(name).is_some()
    }

    pub(super) fn number(&self, name: &'static str) -> Result<Option<usize>> {
        self.text(name)?.map(|text| parse(name, &text, "a whole number")).transpose()
    }

    pub(super) fn address(&self) -> Result<Option<IpAddr>> {
        self.text(ADDRESS_VARIABLE)?.map(|text| parse(ADDRESS_VARIABLE, &text, "an address of this host")).transpose()
    }

    /// The first of `names` that is set, with its value.
    pub(super) fn first_number(&self, names: &[&'static str]) -> Result<Option<(&'static str, usize)>> {
        match names.iter().find(|n| self.is_set(n)) {
            Some(name) => Ok(self.number(name)?.map(|n| (*name, n))),
            None => Ok(None),
        }
    }

    pub(super) fn outage(&self) -> Result<Outage> {
        let Some(text) = self.text(OUTAGE_LIMIT)? else { return Ok(Outage::default()) };
        let limit = text.parse().ok().and_then(|s| Duration::try_from_secs_f64(s).ok()).and_then(Outage::of);
        let wanted = || format!("a number of seconds from {} to {}", Outage::LEAST, Outage::MOST);
        limit.ok_or_else(|| malformed(OUTAGE_LIMIT, &text, &wanted()))
    }

    fn threads(&self) -> Result<Option<usize>> {
        let threads = self.number(OFLOW_THREADS)?;
        if let Some(threads) = threads {
            check(OFLOW_THREADS, threads, threads > 0, "at least 1")?;
        }
        Ok(threads)
    }

    pub(super) fn text(&self, name: &'static str) -> Result<Option<String>> {
        match (self.get)(name).map(OsString::into_string) {
            None => Ok(None),
            Some(Ok(text)) if !text.is_empty() => Ok(Some(text)),
            Some(Ok(_)) => Err(Error::argument(format!("environment variable {name} is empty"))),
            Some(Err(_)) => Err(Error::argument(format!("environment variable {name} is not UTF-8"))),
        }
    }
}

pub(super) fn parse<T: FromStr>(name: &str, text: &str, wanted: &str) -> Result<T> {
    text.parse().map_err(|_| malformed(name, text, wanted))
}

pub(super) fn check(name: &str, value: usize, ok: bool, wanted: &str) -> Result<()> {
    if ok { Ok(()) } else { Err(malformed(name, &value.to_string(), wanted)) }
}

pub(super) fn malformed(name: &str, text: &str, wanted: &str) -> Error {
    Error::argument(format!("environment variable {name} is {text:?}, not {wanted}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    fn full() -> LaunchEnv {
        LaunchEnv {
            rank: 3,
            local_rank: 1,
            world: 4,
            local_world: 2,
            node: 1,
            nodes: 2,
            master_addr: "127.0.0.1".into(),
            master_port: 4711,
            token: "0123456789abcdef".repeat(4).parse().unwrap(),
            shm_fd: Some(7),
            address: Some([10, 0, 0, 2].into()),
            report: true,
            stall: Some(Duration::from_millis(2500)),
            outage: Outage::of(Duration::from_millis(4500)).unwrap(),
            threads: Some(2),
        }
    }

    fn read(vars: &BTreeMap<&str, String>) -> Result<Option<LaunchEnv>> {
        LaunchEnv::from_vars(|name| vars.get(name).map(OsString::from))
    }

    #[test]
    fn round_trip() {
        let vars: BTreeMap<_, _> = full().to_vars(None).into_iter().collect();
        let back = read(&vars).unwrap().unwrap();
        assert_eq!(back.to_vars(None), full().to_vars(None));
        for name in vars.keys() {
            assert!(VARIABLES.iter().any(|v| v.name == *name), "{name} is not in the table");
        }
    }

    #[test]
    fn waits_follow_the_stall_of_the_job() {
        let minutes = |stall: Option<u64>| {
            let stall = stall.map(|m| Duration::from_secs(60 * m));
            LaunchEnv { stall, ..full() }.wait_limit().as_secs() / 60
        };
        assert_eq!([None, Some(1), Some(5), Some(60)].map(minutes), [30, 30, 30, 360]);
        assert_eq!(minutes(Some(u64::MAX / 60)), 1000 * 24 * 60);
    }

    #[test]
    fn nothing_of_a_launcher_means_alone() {
        assert!(read(&BTreeMap::new()).unwrap().is_none());
        assert!(read(&BTreeMap::from([("OFLOW_THREADS", "2".to_string())])).unwrap().is_none());
    }

    #[test]
    fn every_missing_variable_is_named() {
        let whole: BTreeMap<_, _> = full().to_vars(None).into_iter().collect();
        let not_needed = [
            ADDRESS_VARIABLE,
            OFLOW_SHM_FD,
            OFLOW_REPORT,
            OFLOW_STALL,
            OUTAGE_LIMIT,
            OFLOW_THREADS,
            NODE_RANK,
            NNODES,
            MASTER_ADDR,
            MASTER_PORT,
        ];
        for name in whole.keys().filter(|n| !not_needed.contains(*n)) {
            let mut vars = whole.clone();
            vars.remove(name);
            let error = read(&vars).unwrap_err().to_string();
            assert!(error.contains(&format!("{name} is not set")), "{name}: {error}");
        }
    }

    #[test]
    fn one_variable_alone_is_an_error() {
        for variable in VARIABLES.iter().filter(|v| v.set_by == SetBy::Launcher) {
            let error = read(&BTreeMap::from([(variable.name, "1".to_string())])).unwrap_err().to_string();
            assert!(error.contains("is not set although"), "{error}");
        }
    }

    #[test]
    fn every_malformed_value_is_named() {
        let whole: BTreeMap<_, _> = full().to_vars(None).into_iter().collect();
        for (name, bad) in [
            (RANK, "4"),
            (RANK, "-1"),
            (RANK, "two"),
            (LOCAL_RANK, "2"),
            (WORLD_SIZE, "0"),
            (WORLD_SIZE, "99999999999999999999999"),
            (LOCAL_WORLD_SIZE, "5"),
            (LOCAL_WORLD_SIZE, "0"),
            (OFLOW_CONTROL, "localhost"),
            (OFLOW_CONTROL, ":80"),
            (OFLOW_CONTROL, "localhost:0"),
            (OFLOW_CONTROL, "localhost:65536"),
            (OFLOW_TOKEN, "secret"),
            (OFLOW_TOKEN_FD, "-1"),
            (OFLOW_TOKEN_FD, "x"),
            (OFLOW_SHM_FD, "-3"),
            (OFLOW_SHM_FD, "x"),
            (OFLOW_REPORT, "yes"),
            (OFLOW_STALL, "soon"),
            (OFLOW_STALL, "-1"),
            (OFLOW_THREADS, "0"),
            (ADDRESS_VARIABLE, "node7"),
            (NODE_RANK, "2"),
            (NNODES, "5"),
        ] {
            let mut vars = whole.clone();
            vars.insert(name, bad.to_string());
            let error = read(&vars).unwrap_err().to_string();
            assert!(error.contains(&format!("environment variable {name} is")), "{name}={bad}: {error}");
            assert!(!error.contains("secret"), "the token must not be printed: {error}");
        }
    }
}
