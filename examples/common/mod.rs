//! Support for the example programs: command-line options, checkpoints, measurements and output. Read the programs first;
//! nothing here is needed to write a program of your own. (The bench `cuda_speed` shares the model and the clock.)

// Each program uses a part of it.
#![allow(dead_code, unused_imports)]

pub mod digits;
pub mod meter;
pub mod model;
mod options;
mod progress;
mod saving;
mod scaler;
pub mod tokens;
mod training;

pub use options::{Options, Parallel};
pub use training::{OPTIONS, Setup};
