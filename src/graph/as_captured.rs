//! The program of a graph as it was captured: saved graphs are compared with it.

use crate::program::Program;

/// A program as it was captured; as bytes where only its file is known.
pub(super) enum AsCaptured {
    Program(Program),
    Bytes(Vec<u8>),
}

impl AsCaptured {
    /// The bytes of the program.
    pub(super) fn encode(&self) -> Vec<u8> {
        match self {
            AsCaptured::Program(program) => program.encode(),
            AsCaptured::Bytes(bytes) => bytes.clone(),
        }
    }
}
