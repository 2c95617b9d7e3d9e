//! The protobuf code.

use crate::root;
use std::error::Error;
use std::fs;

/// The `.proto` files, each with the file its package is generated into. Paths are relative to `proto/`.
const PROTOS: &[(&str, &str)] = &[
    ("control.proto", "oflow.control.v1.rs"),
    ("graph.proto", "oflow.graph.v1.rs"),
    ("perfetto.proto", "oflow.perfetto.rs"),
    ("saved_graph.proto", "oflow.saved_graph.v1.rs"),
    ("tensorboard.proto", "oflow.tensorboard.v1.rs"),
];

/// The generated files as (path, text).
pub fn generated() -> Result<Vec<(String, String)>, Box<dyn Error>> {
    // The generator only writes to a directory; a temporary one keeps this function free of side effects.
    let out = tempfile::tempdir()?;
    let descriptors = protox::compile(PROTOS.iter().map(|(proto, _)| proto), [root().join("proto")])?;
    tonic_prost_build::configure().out_dir(out.path()).compile_fds(descriptors)?;
    let read = |file: &str| Ok((format!("proto/src/gen/{file}"), fs::read_to_string(out.path().join(file))?));
    PROTOS.iter().map(|&(_, file)| read(file)).collect()
}
