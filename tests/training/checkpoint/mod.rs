//! Checkpoints: any layout to any other, plans for thousands of ranks, what is damaged, what fails, what is kept.

mod cuda;
mod damage;
mod flips;
mod full;
mod layouts;
mod notation;
mod others;
mod plan;
mod python;
mod resume;
mod tampered;
mod values;
