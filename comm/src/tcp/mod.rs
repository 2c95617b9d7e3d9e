//! Connections between ranks of different hosts.
//!
//! Ranks exchange the addresses at which they listen ([`Listener`]) over the control plane. Then every two ranks on different
//! hosts open one connection ([`Listener::connect`]), authenticated on both sides by the job's token (`handshake`, `dial`,
//! `door`). It carries frames (`frame`): posts of the collectives, keep-alives, the rejection of a post, a goodbye. There is no
//! thread: a rank that waits reads and writes all its connections (`links`). Start reading at `frame`, then `link` (one
//! connection), then `links`.
//!
//! **Back-pressure**: a rank reads at most [`SLOTS`](super::transport::SLOTS) unreleased posts of a peer from the socket. The
//! rest stays in the sockets' buffers, which the kernels bound, and then in the sender's outbox or its caller's memory, for which
//! the sender waits. **Dead or slow**: a peer whose kernel answers is alive, however long it computes. A peer whose kernel is
//! silent for longer than the job's [`Outage`] allows is reported as lost.

mod dial;
mod door;
mod frame;
#[doc(hidden)]
pub mod fuzz;
mod handshake;
mod link;
mod links;
mod mesh;
mod outage;
mod socket;
mod tally;

pub use links::{Alarm, Connections, News};
pub use mesh::{Listener, MeshOptions, local_address};
pub use outage::{NAMED_AFTER, Outage};

#[cfg(test)]
mod faults;
#[cfg(test)]
mod memory_tests;
#[cfg(test)]
mod replay;
#[cfg(test)]
mod tests;
