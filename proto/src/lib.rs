//! The protobuf types and gRPC stubs of oflow, generated from the `.proto` files beside this crate.
//!
//! The generated code is committed, so a build needs neither protoc nor a build script. `cargo xtask codegen` remakes it
//! and a test of `xtask` fails when it has drifted from the `.proto` files.

use prost::{DecodeError, Message};

/// Service and messages of the control plane (`control.proto`).
#[allow(missing_docs, clippy::all, clippy::pedantic)]
#[rustfmt::skip]
pub mod control {
    include!("gen/oflow.control.v1.rs");
}

/// Messages of captured programs (`graph.proto`).
#[allow(missing_docs, clippy::all, clippy::pedantic)]
#[rustfmt::skip]
pub mod graph {
    include!("gen/oflow.graph.v1.rs");
}

/// Messages of Perfetto's traces (`perfetto.proto`).
#[allow(missing_docs, clippy::all, clippy::pedantic)]
#[rustfmt::skip]
pub mod perfetto {
    include!("gen/oflow.perfetto.rs");
}

/// Messages of saved graphs (`saved_graph.proto`).
#[allow(missing_docs, clippy::all, clippy::pedantic)]
#[rustfmt::skip]
pub mod saved_graph {
    include!("gen/oflow.saved_graph.v1.rs");
}

/// Messages of TensorBoard's event files (`tensorboard.proto`).
#[allow(missing_docs, clippy::all, clippy::pedantic)]
#[rustfmt::skip]
pub mod tensorboard {
    include!("gen/oflow.tensorboard.v1.rs");
}

/// Returns the bytes of an event of TensorBoard.
pub fn write_event(event: &tensorboard::Event) -> Vec<u8> {
    event.encode_to_vec()
}

/// Returns the bytes of a saved graph, which are sealed next.
pub fn write_saved_graph(graph: &saved_graph::SavedGraph) -> Vec<u8> {
    graph.encode_to_vec()
}

/// Returns a file with this content, of this hash.
pub fn seal_saved_graph(content: &[u8], sum: u64) -> Vec<u8> {
    saved_graph::Sealed { sum, content: content.to_vec() }.encode_to_vec()
}

/// Returns the content of a file of a saved graph; none if it is not one.
pub fn saved_graph_content(bytes: &[u8]) -> Vec<u8> {
    saved_graph::Sealed::decode(bytes).unwrap_or_default().content
}

/// Reads a saved graph; `None` if its content has another hash than it says.
///
/// # Errors
/// With the reason, if the bytes are no such message.
pub fn read_saved_graph(
    bytes: &[u8],
    sum: impl FnOnce(&[u8]) -> u64,
) -> Result<Option<saved_graph::SavedGraph>, DecodeError> {
    let sealed = saved_graph::Sealed::decode(bytes)?;
    match sum(&sealed.content) == sealed.sum {
        true => saved_graph::SavedGraph::decode(sealed.content.as_slice()).map(Some),
        false => Ok(None),
    }
}

/// Returns the bytes of a program's message. It stands here because generic code is compiled in the crate that calls it.
pub fn write_program(program: &graph::Program) -> Vec<u8> {
    program.encode_to_vec()
}

/// Reads the message of a program. Memory is bounded by the number of bytes, and so is the depth of lists.
///
/// # Errors
/// With the reason, if the bytes are no such message.
pub fn read_program(bytes: &[u8]) -> Result<graph::Program, DecodeError> {
    graph::Program::decode(bytes)
}

/// Appends a packet to the bytes of a trace: the next element of the field `packet`.
pub fn append_packet(packet: &perfetto::TracePacket, trace: &mut Vec<u8>) {
    // Field 1 of wire type 2, a message with its length before it.
    trace.push(0x0a);
    // A vector takes any number of bytes.
    let _fits = packet.encode_length_delimited(trace);
}

/// Reads a packet of a trace, without its length.
///
/// # Errors
/// With the reason, if the bytes are no such message.
pub fn read_packet(bytes: &[u8]) -> Result<perfetto::TracePacket, DecodeError> {
    perfetto::TracePacket::decode(bytes)
}

/// Reads a trace.
///
/// # Errors
/// With the reason, if the bytes are no such message.
pub fn read_trace(bytes: &[u8]) -> Result<perfetto::Trace, DecodeError> {
    perfetto::Trace::decode(bytes)
}

/// Largest control message either side accepts. Values are rendezvous data: ids, addresses, small tables.
pub const MAX_MESSAGE_BYTES: usize = 4 << 20;
