//! libcublasLt.
