//! Checkpoints: any layout to any other, plans for thousands of ranks, what is damaged, what fails, what is kept.

mod damage;
mod full;
mod layouts;
mod plan;
mod python;
mod resume;
