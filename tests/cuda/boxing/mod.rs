//! Boxing between GPUs, and between GPUs and hosts: values and bytes of random boxings, over NCCL (a GPU for each rank) and
//! through host memory (ranks that share GPUs), on the emulator; with `OFLOW_TEST_GPU=1` on the machine's GPUs, where those
//! that need more of them than there are take host memory.

#[path = "../../boxing/oracle.rs"]
#[allow(dead_code)]
mod oracle;
#[path = "../../boxing/ranks.rs"]
#[allow(dead_code)]
mod ranks;

mod collect;
mod failure;
mod random;
mod rig;
mod training;
