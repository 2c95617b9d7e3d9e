//! Neural networks: modules with named parameters, and the sharding of a whole module by rules on those names.
//!
//! A module is a struct whose fields are parameters (leaf tensors) and other modules; [`module!`](crate::module) implements
//! [`Module`] for it. `forward` is a method of each struct, with arguments of its own. [`Module::to_global`] sets the layouts of
//! all parameters by name. [`Block`] is an example of a module made of modules.

mod attention;
mod block;
mod conv;
mod dropout;
mod embedding;
pub mod init;
mod linear;
mod mlp;
mod module;
mod norm;
mod sharding;

pub use attention::SelfAttention;
pub use block::{Block, BlockOptions};
pub use conv::{Conv1d, Conv2d, Conv3d, ConvOptions, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d};
pub use dropout::Dropout;
pub use embedding::Embedding;
pub use linear::Linear;
pub use mlp::Mlp;
pub use module::{Module, Part};
pub use norm::{LayerNorm, RmsNorm};
pub use sharding::glob;
