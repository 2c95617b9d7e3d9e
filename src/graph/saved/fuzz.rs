//! Saved graphs for the fuzzer: their content without the hash that finds damage.

use super::file;

/// A file with this content.
pub fn sealed(content: &[u8]) -> Vec<u8> {
    file::sealed(content)
}

/// The content of a file.
pub fn content(file: &[u8]) -> Vec<u8> {
    oflow_proto::saved_graph_content(file)
}
