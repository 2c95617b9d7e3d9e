//! `oflow doctor`: reports what oflow finds on this machine. It changes nothing.

use std::fs;
use std::io::Write;
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::Command;

use oflow::control::{LaunchEnv, STARTERS, StartedRank};
use rustix::fs::{MemfdFlags, memfd_create};

use crate::cli::Profile;
use crate::libraries::{self, Farm};
use crate::model::{self, InForce};
use crate::{cores, doctor_cuda, script};

/// How a finding is to be taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Level {
    Fine,
    /// An optional component is missing.
    Note,
    /// oflow cannot run jobs without it.
    Bad,
}

pub(crate) struct Finding {
    level: Level,
    text: String,
}

pub(crate) fn fine(text: impl Into<String>) -> Finding {
    Finding { level: Level::Fine, text: text.into() }
}

pub(crate) fn note(text: impl Into<String>) -> Finding {
    Finding { level: Level::Note, text: text.into() }
}

pub(crate) fn bad(text: impl Into<String>) -> Finding {
    Finding { level: Level::Bad, text: text.into() }
}

type Check = fn() -> Finding;

/// Every check with its name, in the order of the report.
const CHECKS: &[(&str, Check)] = &[
    ("oflow", version),
    ("source tree", source_tree),
    ("rustc", rustc),
    ("cores", core_count),
    ("launcher", launcher),
    ("memory", memory),
    ("huge pages", huge_pages),
    ("memfd", memfd),
    ("loopback", loopback),
    ("cost model", cost_model),
    ("CUDA driver", doctor_cuda::driver),
    ("GPUs", doctor_cuda::gpus),
    ("NVRTC", doctor_cuda::nvrtc),
    ("cuBLASLt", doctor_cuda::cublaslt),
    ("NCCL", doctor_cuda::nccl),
    ("cuFFT", doctor_cuda::cufft),
    ("cuSOLVER", doctor_cuda::cusolver),
    ("cuDNN", doctor_cuda::cudnn),
    ("kernel cache", doctor_cuda::cache),
    ("Device::Cuda", doctor_cuda::device),
];

/// Set for a doctor that has the search path that ranks would have.
const AS_A_RANK: &str = "OFLOW_DOCTOR_AS_A_RANK";

/// Prints the report and returns the exit code: 1 if oflow cannot run jobs here. CUDA's libraries are looked for in a child
/// process with the environment that oflaunch gives to ranks.
pub fn run() -> u8 {
    if std::env::var_os(AS_A_RANK).is_none()
        && let Some(code) = run_as_a_rank()
    {
        return code;
    }
    report()
}

/// The report of a process that is started as a rank is; none where that would be no other.
fn run_as_a_rank() -> Option<u8> {
    let farm = Farm::prepare().ok()??;
    let own = std::env::current_exe().ok()?;
    let status =
        Command::new(own).arg("doctor").env(AS_A_RANK, "1").env(libraries::PATH, farm.search_path()).status().ok()?;
    let linked: Vec<String> = farm.linked().iter().map(|f| f.display().to_string()).collect();
    println!("\noflaunch links the ranks to {}", linked.join(", "));
    Some(status.code().and_then(|c| u8::try_from(c).ok()).unwrap_or(1))
}

fn report() -> u8 {
    let width = CHECKS.iter().map(|(name, _)| name.len()).max().unwrap_or(0);
    let mut code = 0;
    for (name, check) in CHECKS {
        let finding = check();
        let mark = match finding.level {
            Level::Fine => "ok  ",
            Level::Note => "note",
            Level::Bad => "BAD ",
        };
        println!("{mark}  {name:width$}  {}", finding.text);
        code |= u8::from(finding.level == Level::Bad);
    }
    code
}

fn version() -> Finding {
    fine(format!("{} ({} build)", env!("CARGO_PKG_VERSION"), Profile::own().name()))
}

fn source_tree() -> Finding {
    match script::home() {
        Ok(home) => fine(home.display().to_string()),
        Err(failed) => note(failed.message),
    }
}

fn rustc() -> Finding {
    match Command::new("rustc").arg("-V").output() {
        Ok(output) if output.status.success() => fine(String::from_utf8_lossy(&output.stdout).trim()),
        Ok(output) => note(format!("rustc -V fails ({}); scripts cannot be built", output.status)),
        Err(e) => note(format!("not found ({e}); scripts cannot be built, executables can be run")),
    }
}

fn core_count() -> Finding {
    let cores = cores::available();
    let nodes = cores::numa_nodes(&cores);
    let numa: Vec<String> = nodes.iter().map(|n| cores::describe(n)).collect();
    let numa = if nodes.len() > 1 { format!("; NUMA nodes: {}", numa.join(" | ")) } else { String::new() };
    fine(format!("{} usable: {}{numa}", cores.len(), cores::describe(&cores)))
}

/// The launcher of this process, as `oflow::init()` would find it.
fn launcher() -> Finding {
    match (LaunchEnv::from_env(), StartedRank::from_env()) {
        (Ok(Some(env)), _) => fine(format!("rank {} of {} by oflaunch", env.rank, env.world)),
        (Ok(None), Ok(Some(found))) => {
            let lacks = |e: oflow::Error| note(format!("{}: {e}", found.describe()));
            match (found.need_token(), found.need_root()) {
                (Err(e), _) | (_, Err(e)) if found.nodes > 1 => lacks(e),
                _ => fine(found.describe()),
            }
        }
        (Ok(None), Ok(None)) => {
            let known: Vec<&str> = STARTERS.iter().map(|s| s.name).collect();
            fine(format!("none: programs started here run alone (looked for oflaunch, {})", known.join(", ")))
        }
        (Err(e), _) | (_, Err(e)) => bad(e.to_string()),
    }
}

fn memory() -> Finding {
    let info = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let gib = |field: &str| {
        let line = info.lines().find_map(|l| l.strip_prefix(field)?.strip_prefix(':'))?;
        let kib: f64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
        Some(kib / f64::from(1 << 20))
    };
    match (gib("MemTotal"), gib("MemAvailable")) {
        (Some(total), Some(available)) => fine(format!("{available:.1} GiB available of {total:.1} GiB")),
        _ => note("/proc/meminfo cannot be read"),
    }
}

fn huge_pages() -> Finding {
    // The kernel marks the choice: `always [madvise] never`.
    let chosen = |file: &str| {
        let text = fs::read_to_string(Path::new("/sys/kernel/mm/transparent_hugepage").join(file)).ok()?;
        Some(text.split_once('[')?.1.split_once(']')?.0.to_string())
    };
    let shared = chosen("shmem_enabled").unwrap_or_else(|| "unknown".into());
    match chosen("enabled") {
        Some(mode) if mode != "never" => fine(format!("{mode}; for shared memory: {shared}")),
        Some(mode) => note(format!("{mode}; large tensors are slower (set transparent_hugepage to madvise)")),
        None => note("this kernel has no transparent huge pages; large tensors are slower"),
    }
}

fn memfd() -> Finding {
    let attempt = || -> std::io::Result<()> {
        let mut file = fs::File::from(memfd_create("oflow-doctor", MemfdFlags::CLOEXEC)?);
        file.set_len(1 << 20)?;
        file.write_all(b"oflow")
    };
    match attempt() {
        Ok(()) => fine("shared memory between ranks works"),
        Err(e) => bad(format!("cannot make shared memory for ranks: {e}")),
    }
}

fn loopback() -> Finding {
    let attempt = || -> std::io::Result<()> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        TcpStream::connect(listener.local_addr()?)?;
        listener.accept()?;
        Ok(())
    };
    match attempt() {
        Ok(()) => fine("127.0.0.1 works"),
        Err(e) => bad(format!("ranks cannot reach their launcher on 127.0.0.1: {e}")),
    }
}

fn cost_model() -> Finding {
    match model::in_force() {
        Ok(found @ InForce::Default(_)) => fine(found.describe()),
        Ok(InForce::Measured(path, c)) => match c.doubt(cores::available().len()) {
            Some(doubt) => note(format!("{}: {doubt}", path.display())),
            None => fine(InForce::Measured(path, c).describe()),
        },
        // No job starts with it.
        Err(failed) => bad(failed.message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_bad_where_the_tests_run() {
        for (name, check) in CHECKS {
            let finding = check();
            assert!(finding.level != Level::Bad, "{name}: {}", finding.text);
            assert!(!finding.text.is_empty(), "{name}");
        }
    }
}
