//! Modules, optimizers and the ways to train: whole programs, ZeRO, replicas, recomputation, mixed precision, mixtures of experts. One
//! binary, because each takes four seconds to link.

mod autocast;
mod checkpointing;
mod convnet;
mod mlp;
mod modules;
mod moe;
mod optimizers;
mod replicas;
mod zero;
