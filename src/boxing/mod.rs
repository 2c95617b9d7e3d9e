//! Changing a tensor's placement or nd-SBP without changing its logical value: cost model, plans.
//!
//! Pure: no I/O, no threads, no clock, no device.
