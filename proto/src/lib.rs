//! The protobuf types and gRPC stubs of oflow, generated from the `.proto` files beside this crate.
//!
//! The generated code is committed, so a build needs neither protoc nor a build script. `cargo xtask codegen` remakes it
//! and a test of `xtask` fails when it has drifted from the `.proto` files.

/// Service and messages of the control plane (`control.proto`).
#[allow(missing_docs, clippy::all, clippy::pedantic)]
#[rustfmt::skip]
pub mod control {
    include!("gen/oflow.control.v1.rs");
}

/// Largest control message either side accepts. Values are rendezvous data: ids, addresses, small tables.
pub const MAX_MESSAGE_BYTES: usize = 4 << 20;
