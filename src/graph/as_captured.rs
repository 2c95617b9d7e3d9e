//! The program of a graph as it was captured: saved graphs are compared with it, and so are the graphs of ranks that differ.

use crate::program::Program;

/// A program as it was captured; as bytes where only its file is known.
pub(super) enum AsCaptured {
    Program(Program),
    Bytes(Vec<u8>),
}

impl AsCaptured {
    /// The program; none where bytes are none.
    pub(super) fn program(&self) -> Option<Program> {
        match self {
            AsCaptured::Program(program) => Some(program.clone()),
            AsCaptured::Bytes(bytes) => Program::decode(bytes).ok(),
        }
    }

    /// The bytes of the program.
    pub(super) fn encode(&self) -> Vec<u8> {
        match self {
            AsCaptured::Program(program) => program.encode(),
            AsCaptured::Bytes(bytes) => bytes.clone(),
        }
    }
}
