use super::*;
use crate::oracle::{check_overlapping, check_world, tag};
use crate::{Communicator, Group, Pulse};
use oflow_base::Error;
use std::process::Command;
use std::sync::Arc;

struct Well;

impl Pulse for Well {
    fn failure(&self) -> Option<Error> {
        None
    }
    fn has_left(&self, _rank: usize) -> bool {
        false
    }
}

const CHILD: &str = "OFLOW_TEST_MPI";

fn number(names: [&str; 2]) -> usize {
    names.iter().find_map(|n| std::env::var(n).ok()?.parse().ok()).unwrap()
}

/// The body of the processes that mpirun starts; on its own it does nothing.
#[test]
fn child_process() {
    let Ok(what) = std::env::var(CHILD) else { return };
    let rank = number(["OMPI_COMM_WORLD_RANK", "PMI_RANK"]);
    let world = number(["OMPI_COMM_WORLD_SIZE", "PMI_SIZE"]);
    let options = MpiOptions { capacity: 4096, ..MpiOptions::default() };
    let comm = join(rank, world, Arc::new(Well), options).unwrap();
    match what.as_str() {
        "oracle" => check_world(&comm, 4096),
        "overlapping" => check_overlapping(&comm, 200, 4096),
        _ => {
            let group = Group { ranks: (0..world).collect(), me: rank };
            let op = if rank == 0 { "relu" } else { "exp" };
            let error = comm.barrier(&group, &tag(if rank == 0 { 7 } else { 8 }, op)).unwrap_err().to_string();
            assert!(error.contains("ranks 0 and 1 issued different ops"), "{error}");
            assert!(error.contains("'relu' #7 (oracle.rs:8)") && error.contains("'exp' #8 (oracle.rs:9)"), "{error}");
        }
    }
    // The words that the parent looks for: a failed test must not pass because mpirun swallowed its code.
    println!("rank {rank} is well");
}

fn under_mpirun(ranks: usize, what: &str) {
    let out = Command::new("mpirun")
        .args(["-n", &ranks.to_string(), "--oversubscribe"])
        .arg(std::env::current_exe().unwrap())
        .args(["--exact", "mpi::tests::child_process", "--nocapture"])
        .env(CHILD, what)
        // In containers.
        .envs([("OMPI_ALLOW_RUN_AS_ROOT", "1"), ("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")])
        .output();
    let out = match out {
        Ok(out) => out,
        Err(e) => return println!("skipped: mpirun cannot be started ({e})"),
    };
    let text = format!("{}{}", String::from_utf8_lossy(&out.stdout), String::from_utf8_lossy(&out.stderr));
    for rank in 0..ranks {
        assert!(text.contains(&format!("rank {rank} is well")), "{what} on {ranks}: {text}");
    }
}

#[test]
fn collectives_agree_with_the_oracle() {
    for ranks in [1, 2, 3, 4] {
        under_mpirun(ranks, "oracle");
    }
}

#[test]
fn overlapping_groups_in_one_order_agree_with_the_oracle() {
    for ranks in [2, 4] {
        under_mpirun(ranks, "overlapping");
    }
}

#[test]
fn a_divergence_names_both() {
    under_mpirun(2, "divergence");
}
