//! Aliasing and the engine of backward: views that share memory, writes through them, what is refused, missing gradients.

mod engine;
mod faults;
mod more;
mod views;
