//! Modules, optimizers and the ways to train: whole programs, ZeRO, replicas, recomputation, mixed precision, mixtures of
//! experts, what is remembered between steps, guards of modes, checkpoints.

mod autocast;
mod checkpoint;
mod checkpointing;
mod convnet;
mod data;
mod graph;
mod graph_closures;
mod graph_memory;
mod graph_repeat;
mod graph_resumed;
mod graph_saved;
mod graph_session;
mod graph_update;
mod graph_zero;
mod guards;
mod lora;
mod memory_report;
mod metrics;
mod mlp;
mod modules;
mod moe;
mod optimizers;
mod remembered;
mod replicas;
mod summary;
mod zero;
