//! Environments as launchers make them, and what is read from them.

use super::{STARTERS, StartedRank};
use oflow_base::Result;
use std::collections::BTreeMap;
use std::ffi::OsString;

/// `A=1 B=2` as variables.
fn read(text: &str) -> Result<Option<StartedRank>> {
    let vars: BTreeMap<&str, &str> = text.split_whitespace().map(|v| v.split_once('=').unwrap()).collect();
    StartedRank::from_vars(|name| vars.get(name).map(OsString::from))
}

fn described(text: &str) -> String {
    match read(text) {
        Ok(Some(found)) => {
            let host = found.root_host.as_deref().unwrap_or("?");
            format!("{} at {host}", found.describe())
        }
        Ok(None) => "alone".into(),
        Err(e) => e.to_string(),
    }
}

#[track_caller]
fn check(text: &str, expected: &str) {
    let found = described(text);
    assert!(found.contains(expected), "{text}\n  is:     {found}\n  wanted: {expected}");
}

const OMPI: &str = "OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2 OMPI_COMM_WORLD_LOCAL_RANK=1 OMPI_COMM_WORLD_LOCAL_SIZE=2 \
                    OMPI_COMM_WORLD_NODE_RANK=1 PMIX_NAMESPACE=1587085313 PMIX_RANK=1";
const HYDRA: &str = "PMI_RANK=0 PMI_SIZE=2 MPI_LOCALRANKID=0 MPI_LOCALNRANKS=2 PMI_FD=6";
const SRUN: &str = "SLURM_JOB_ID=77 SLURM_STEP_ID=0 SLURM_PROCID=5 SLURM_NTASKS=7 SLURM_LOCALID=1 SLURM_NODEID=2 \
                    SLURM_NNODES=4 SLURM_STEP_TASKS_PER_NODE=2(x3),1 SLURM_NODELIST=gpu[03-06]";
const ELASTIC: &str = "RANK=3 WORLD_SIZE=4 LOCAL_RANK=1 LOCAL_WORLD_SIZE=2 GROUP_RANK=1 GROUP_WORLD_SIZE=2 \
                       MASTER_ADDR=node0 MASTER_PORT=29500 TORCHELASTIC_RUN_ID=none";

#[test]
fn every_starter_is_read() {
    check("", "alone");
    check(OMPI, "rank 1 of 2 by Open MPI; rank 1 of 2 on host 0 of 1");
    check(HYDRA, "rank 0 of 2 by MPICH; rank 0 of 2 on host 0 of 1");
    check(SRUN, "rank 5 of 7 by Slurm; rank 1 of 2 on host 2 of 4 at gpu03");
    check(ELASTIC, "rank 3 of 4 by RANK and WORLD_SIZE; rank 1 of 2 on host 1 of 2 at node0");
    // torchrun's own store has the port.
    assert_eq!(read(ELASTIC).unwrap().unwrap().root_port, 29501);
    // Kubernetes: one rank a pod.
    check("RANK=1 WORLD_SIZE=3 MASTER_ADDR=job-0.job MASTER_PORT=4711", "rank 0 of 1 on host 1 of 3 at job-0.job");
    // By hand on one machine.
    check("RANK=1 WORLD_SIZE=3 MASTER_ADDR=localhost MASTER_PORT=4711", "rank 1 of 3 on host 0 of 1");
    check("RANK=0 WORLD_SIZE=1", "rank 0 of 1 on host 0 of 1");
}

#[test]
fn hosts_of_mpi_are_told_by_the_numbers() {
    let two = |rank: usize, local: usize, size: usize, world: usize| {
        format!(
            "OMPI_COMM_WORLD_RANK={rank} OMPI_COMM_WORLD_SIZE={world} OMPI_COMM_WORLD_LOCAL_RANK={local} \
             OMPI_COMM_WORLD_LOCAL_SIZE={size} MASTER_ADDR=a PMIX_NAMESPACE=1"
        )
    };
    check(&two(5, 1, 2, 6), "rank 1 of 2 on host 2 of 3 at a");
    check(&two(1, 0, 2, 4), "must be consecutive, but rank 1 stands where rank 0 should");
    check(&two(1, 0, 2, 4), "--map-by slot");
    check(&two(0, 0, 2, 3), "the hosts have different numbers of ranks");
}

#[test]
fn an_allocation_is_no_step() {
    let allocation = "SLURM_JOB_ID=77 SLURM_NTASKS=4 SLURM_NNODES=2 SLURM_TASKS_PER_NODE=2(x2) SLURM_NODELIST=n[1-2]";
    check(allocation, "alone");
    // The batch script is task 0 of a step without a number, or with a special one.
    check(&format!("{allocation} SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_NODEID=0"), "alone");
    for special in [4294967290u32, 4294967291] {
        check(&format!("{allocation} SLURM_PROCID=0 SLURM_LOCALID=0 SLURM_STEP_ID={special}"), "alone");
    }
    // `srun --pty bash`.
    check(&format!("{SRUN} SLURM_PTY_PORT=40000"), "alone");
    check(&format!("{allocation} PMIX_RANK=0"), "alone");
    check("SLURM_JOB_ID=7 SLURM_STEP_ID=1 SLURM_PROCID=0 SLURM_NTASKS=1 SLURM_LOCALID=0", "rank 0 of 1 by Slurm");
}

#[test]
fn the_inner_starter_counts() {
    // mpirun in an allocation starts its daemons with srun.
    let daemon =
        "SLURM_JOB_ID=77 SLURM_STEP_ID=0 SLURM_PROCID=0 SLURM_NTASKS=1 SLURM_LOCALID=0 SLURM_NODEID=0 SLURM_NNODES=1";
    check(&format!("{OMPI} {daemon}"), "by Open MPI");
    check(&format!("{HYDRA} {daemon}"), "by MPICH");
    check(&format!("{ELASTIC} {daemon}"), "by RANK and WORLD_SIZE");
    // A script under mpirun that sets RANK and WORLD_SIZE only: mpirun knows the hosts.
    check(
        &format!("RANK=1 WORLD_SIZE=2 MASTER_ADDR=node0 MASTER_PORT=1 {OMPI}"),
        "rank 1 of 2 on host 0 of 1 at node0",
    );
}

#[test]
fn half_an_environment_is_an_error() {
    for starter in STARTERS.iter().filter(|s| s.name != "Slurm") {
        for name in [starter.rank, starter.world[0], starter.local_rank, starter.local_world] {
            check(&format!("{name}=1"), "is not set although");
            check(&format!("{name}=1"), "to run it alone");
        }
    }
    let without = |text: &str, name: &str| -> String {
        text.split_whitespace().filter(|v| !v.starts_with(&format!("{name}="))).collect::<Vec<_>>().join(" ")
    };
    check(
        &without(OMPI, "OMPI_COMM_WORLD_LOCAL_SIZE"),
        "OMPI_COMM_WORLD_LOCAL_SIZE is not set although OMPI_COMM_WORLD_LOCAL_RANK is",
    );
    check(&without(HYDRA, "PMI_SIZE"), "PMI_SIZE is not set although PMI_RANK is");
    check(&without(SRUN, "SLURM_NTASKS"), "SLURM_STEP_NUM_TASKS is not set although SLURM_PROCID is");
    check(&without(SRUN, "SLURM_LOCALID"), "SLURM_LOCALID is not set although SLURM_PROCID is");
    check(&without(SRUN, "SLURM_STEP_TASKS_PER_NODE"), "SLURM_STEP_TASKS_PER_NODE is not set");
    check("RANK=0 WORLD_SIZE=2", "MASTER_ADDR is not set although RANK is");
    check("RANK=0 WORLD_SIZE=2 MASTER_ADDR=a", "MASTER_PORT is not set although RANK is");
    check("PMIX_RANK=0", "no variable has the number of ranks");
}

#[test]
fn contradictions_are_errors() {
    let with = |text: &str, changed: &str| {
        let (name, _) = changed.split_once('=').unwrap();
        let kept = text.split_whitespace().filter(|v| !v.starts_with(&format!("{name}=")));
        kept.chain([changed]).collect::<Vec<_>>().join(" ")
    };
    check(&with(OMPI, "OMPI_COMM_WORLD_RANK=2"), "OMPI_COMM_WORLD_RANK is \"2\", not below OMPI_COMM_WORLD_SIZE=2");
    check(&with(OMPI, "OMPI_COMM_WORLD_SIZE=0"), "not at least 1");
    check(&with(OMPI, "OMPI_COMM_WORLD_LOCAL_RANK=2"), "not below OMPI_COMM_WORLD_LOCAL_SIZE=2");
    check(&with(OMPI, "OMPI_COMM_WORLD_LOCAL_SIZE=3"), "not from 1 to 2, the number of ranks");
    check(&with(OMPI, "OMPI_COMM_WORLD_RANK=one"), "not a whole number");
    check(&with(SRUN, "SLURM_STEP_TASKS_PER_NODE=2(x4)"), "means 8 tasks on 4 nodes, but there are 7 tasks on 4 nodes");
    check(&with(SRUN, "SLURM_STEP_TASKS_PER_NODE=lots"), "not a list of tasks per node");
    check(&with(SRUN, "SLURM_LOCALID=2"), "not below 2, the tasks of node 2");
    check(&with(SRUN, "SLURM_PROCID=6"), "rank 6 stands where rank 5 should");
    check(&with(SRUN, "SLURM_PROCID=6"), "--distribution=block");
    check(&with(SRUN, "SLURM_NODELIST=n["), "not a list of nodes");
    check(&with(SRUN, "SLURM_STEP_ID=x"), "not the number of a step");
    check(&with(ELASTIC, "MASTER_PORT=0"), "not a port number");
    check(&with(ELASTIC, "GROUP_RANK=2"), "GROUP_RANK is \"2\", not below GROUP_WORLD_SIZE=2");
    let secret = described(&format!("{OMPI} OFLOW_TOKEN=secret"));
    assert!(secret.contains("OFLOW_TOKEN is malformed") && !secret.contains("secret"), "{secret}");
}

#[test]
fn several_hosts_need_a_secret_and_an_address() {
    let found = read(SRUN).unwrap().unwrap();
    let error = found.need_token().unwrap_err().to_string();
    assert!(error.contains("on 4 hosts") && error.contains("export OFLOW_TOKEN=$(oflow token)"), "{error}");
    // The port follows from the job, alike for all its ranks.
    let (host, port) = found.need_root().unwrap();
    assert_eq!(host, "gpu03");
    assert!((20_000..32_000).contains(&port));
    let far = OMPI.replace("LOCAL_SIZE=2", "LOCAL_SIZE=1").replace("LOCAL_RANK=1", "LOCAL_RANK=0");
    let error = read(&far).unwrap().unwrap().need_root().unwrap_err().to_string();
    assert!(error.contains("MASTER_ADDR is not set") && error.contains("mpirun -x MASTER_ADDR"), "{error}");
}

#[test]
fn the_token_may_lie_in_a_file_that_is_private() {
    use std::os::unix::fs::PermissionsExt;
    let path = std::env::temp_dir().join(format!("oflow-token-test-{}", std::process::id()));
    let vars = format!("{OMPI} OFLOW_TOKEN_FILE={}", path.display());
    assert!(described(&vars).contains("cannot be read"));
    std::fs::write(&path, format!("{}\n", "ab".repeat(32))).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o644)).unwrap();
    let open = described(&vars);
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).unwrap();
    let found = read(&vars).unwrap().unwrap();
    std::fs::write(&path, "secret").unwrap();
    let malformed = described(&vars);
    // Somebody else's, where this test may make it so.
    let foreign = std::os::unix::fs::chown(&path, Some(12345), None).is_ok().then(|| described(&vars));
    std::fs::remove_file(&path).unwrap();
    // A pipe is not waited for, a device has no end.
    rustix::fs::mknodat(rustix::fs::CWD, &path, rustix::fs::FileType::Fifo, 0o600.into(), 0).unwrap();
    let pipe = described(&vars);
    std::fs::remove_file(&path).unwrap();
    assert!(foreign.is_none_or(|f| f.contains("belongs to user 12345")));
    assert!(pipe.contains("is not a regular file"), "{pipe}");
    assert!(open.contains("can be read by others") && open.contains("chmod 600"), "{open}");
    assert_eq!(found.token.unwrap().expose(), "ab".repeat(32));
    assert!(malformed.contains("64 hexadecimal digits") && !malformed.contains("secret"), "{malformed}");
}

#[test]
fn jobs_have_different_names() {
    let name = |text: &str| read(text).unwrap().unwrap().job;
    assert_eq!(name(OMPI), name(&OMPI.replace("WORLD_RANK=1", "WORLD_RANK=0").replace("LOCAL_RANK=1", "LOCAL_RANK=0")));
    assert_ne!(name(OMPI), name(&OMPI.replace("1587085313", "1587085314")));
    assert_ne!(name(SRUN), name(&SRUN.replace("STEP_ID=0", "STEP_ID=1")));
    // Two jobs by hand have two ports.
    assert_ne!(name(ELASTIC), name(&ELASTIC.replace("29500", "29501")));
    assert!(name(ELASTIC).bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-'));
}
