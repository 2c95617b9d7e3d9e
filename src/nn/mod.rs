//! Neural nets: modules with named parameters, and the sharding of a whole module by rules on those names.
//!
//! A module is a struct whose fields are parameters (leaf tensors) and other modules; [`module!`](crate::module) derives
//! the walk over them. `forward` is each module's own method: nothing here is generic over it. The room knows global
//! tensors only through the functions users call. Start at [`Module`]; [`Block`] shows how layers are put together.

mod attention;
mod block;
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
pub use dropout::Dropout;
pub use embedding::Embedding;
pub use linear::Linear;
pub use mlp::Mlp;
pub use module::{Module, Part};
pub use norm::{LayerNorm, RmsNorm};
pub use sharding::glob;
