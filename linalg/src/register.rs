//! Registration of ops and functions.

use oflow::ops::Op;
use oflow::prelude::*;
use std::sync::OnceLock;

/// Registers the ops of this crate, `linalg.det` and so on, and the functions by name, and returns the ops. Every function of this crate
/// registers the ops by itself; call it before `oflow::init` in programs that run as several processes, because ranks compare their ops
/// when a job starts. Further calls return the same ops.
///
/// # Errors
/// Another crate has registered ops or functions of these names.
pub fn register() -> Result<&'static [&'static Op]> {
    static DONE: OnceLock<Result<(), String>> = OnceLock::new();
    let ops = crate::functions::registered()?;
    match DONE.get_or_init(|| crate::by_name::register().map_err(|e| e.to_string())) {
        Ok(()) => Ok(ops),
        Err(why) => Err(Error::registry(format!("the functions of linalg are not registered: {why}"))),
    }
}
