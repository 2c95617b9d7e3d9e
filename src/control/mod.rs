//! The control plane as a rank sees it: what the launcher says in the environment, and a client for its service.
//!
//! Knows ranks, keys and small values; tensor bytes travel through [`crate::comm`]. Start at [`LaunchEnv::from_env`], then
//! [`ControlClient::connect`]. The service itself, [`service`], is hosted by `oflaunch`.

mod client;
mod env;
pub mod service;
mod session;
mod token;

pub use client::{CasOutcome, ControlClient, Failure, Hello};
pub use env::{ADDRESS_VARIABLE, COMM_VARIABLE, LaunchEnv, MODEL_VARIABLE, SetBy, VARIABLES, Variable};
pub use token::Token;
