//! Connections between ranks of different hosts.
//!
//! Ranks exchange the addresses at which they listen ([`Listener`]) over the control plane; then every pair of ranks on
//! different hosts has one connection ([`mesh`](Listener::connect)), opened by the lower rank and proven on both sides by
//! the job's token (`handshake`, `dial`, `door`). What goes over it are frames (`frame`): posts of the collectives, signs of life, the
//! rejection of a post, a goodbye. There is no thread: whoever waits reads and writes (`links`). Start reading at `frame`,
//! then `link` (one connection), then `links`.
//!
//! **Back-pressure**: a rank takes at most [`SLOTS`](super::transport::SLOTS) posts of a peer off the socket before it has
//! released them; the rest stays in the sockets' buffers, which the kernels bound, and then in the sender's outbox or its caller's memory, which it
//! waits for. **Dead or slow**: a peer whose kernel answers is alive, however long it computes; one whose kernel is silent
//! for `links::DEAD_AFTER` is reported.

mod dial;
mod door;
mod frame;
#[doc(hidden)]
pub mod fuzz;
mod handshake;
mod link;
mod links;
mod mesh;
mod socket;
mod tally;

pub use links::{Alarm, Links, News};
pub use mesh::{Listener, MeshOptions, local_address};

#[cfg(test)]
mod faults;
#[cfg(test)]
mod memory_tests;
#[cfg(test)]
mod replay;
#[cfg(test)]
mod tests;
