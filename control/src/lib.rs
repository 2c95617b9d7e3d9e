//! The control plane: ranks join a job, exchange small values, send heartbeats and report failures.
//!
//! A rank reads its place in the job from the environment ([`LaunchEnv::from_env`]) and connects to the service with
//! [`ControlClient::connect`]. `oflaunch` hosts the [`service`]. Tensor data does not pass here but through [`oflow_comm`].

mod client;
mod env;
mod failure;
#[doc(hidden)]
pub mod fuzz;
mod glimpse;
pub mod handshake;
mod local;
pub mod service;
mod session;
mod slurm;
mod starter;
#[cfg(test)]
mod starter_tests;
mod token;
mod vitals;

pub use client::{CasOutcome, ControlClient, Hello, HostClock};
pub use env::{
    ADDRESS_VARIABLE, CHECK_VARIABLE, COMM_VARIABLE, EXPERIMENTAL_VARIABLE, FLIGHT_VARIABLE, JOB_VARIABLE, LaunchEnv,
    MODEL_VARIABLE, RESTART_VARIABLE, SetBy, TRACE_MIB_VARIABLE, TRACE_STEPS_VARIABLE, TRACE_VARIABLE,
    TRANSPORT_VARIABLE, TRUST_VARIABLE, VARIABLES, Variable,
};
pub use failure::{Failure, FailureKind};
pub use glimpse::Watched;
pub use local::Local;
pub use oflow_base::Place;
pub use oflow_flight as flight;
pub use starter::{STARTERS, StartedRank, Starter};
pub use token::Token;
pub use vitals::moved;
