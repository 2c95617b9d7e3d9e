//! Carrying out calls: local, global and lazy interpreters, boxing execution.

mod box_copy;
pub mod box_exec;
