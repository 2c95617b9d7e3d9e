//! The [`Transport`](super::transport::Transport) over the MPI library of a site, point to point; all collectives come with
//! it. Cargo feature `mpi`: building needs `mpicc` and libclang, and the program runs under the `mpirun` of that library.
//!
//! A post is a header with the bytes in it where they are few; else the bytes follow in a message of their own. Headers are
//! sent synchronously (`MPI_Issend`), so that a sender runs ahead of its readers by no more than its buffers and the memory
//! of a reader is bounded. Waiting looks at MPI again and again, because MPI moves bytes only while it is called, and
//! between looks at the alarms: a rank that has left, that rejected a post, a job that has failed.

mod calls;
mod transport;

#[cfg(test)]
mod tests;

pub use transport::{MpiComm, MpiOptions, join};
