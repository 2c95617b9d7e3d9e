//! Neural networks: modules with named parameters, and the sharding of a whole module by rules on those names.
//!
//! A module is a struct whose fields are parameters (leaf tensors) and other modules; `#[derive(Module)]` implements
//! [`Module`](trait@Module) for it. `forward` is a method of each struct, with arguments of its own. [`Module::to_global`] sets the layouts of
//! all parameters and [buffers](Buffer) by name. A field is replaced by assigning to it, or by [`replace`]. [`Block`] is an example of a module made of modules.

mod attention;
mod bag;
mod bilinear;
mod block;
mod buffer;
mod channels;
mod checkpointing;
mod conv;
mod dropout;
mod embedding;
pub mod init;
mod linear;
mod load;
mod lora;
mod mlp;
mod module;
mod moe;
mod multihead;
mod norm;
mod prelu;
mod recurrent;
mod replicas;
mod rotary;
mod rotary_scaling;
mod sequential;
mod sharding;
mod summary;
mod upsample;
mod zero_redundancy;

pub use attention::SelfAttention;
pub use bag::{BagMode, EmbeddingBag};
pub use bilinear::Bilinear;
pub use block::{Block, BlockOptions};
pub use buffer::Buffer;
pub use channels::{BatchNorm, GroupNorm, Mode};
pub use checkpointing::checkpoint;
pub use conv::{Conv1d, Conv2d, Conv3d, ConvOptions, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d, PaddingMode};
pub use dropout::{AlphaDropout, Dropout, FeatureDropout};
pub use embedding::Embedding;
pub use linear::Linear;
pub use load::Unmatched;
pub use lora::{Lora, LoraOptions, Trained};
pub use mlp::Mlp;
pub use module::{Module, Part, note_replaced, replace};
pub use moe::{MixtureOfExperts, MoeOptions};
pub use multihead::{KeyValues, Masks, MultiheadAttention, MultiheadOptions};
pub use norm::{LayerNorm, RmsNorm};
/// Implements [`Module`](trait@Module) for a struct or an enum.
pub use oflow_derive::Module;
pub use prelu::Prelu;
pub use recurrent::{Gru, Lstm, Nonlinearity, RecurrentOptions, Rnn};
pub use replicas::Replicas;
pub use rotary::{RotaryEmbedding, RotaryOptions};
pub use rotary_scaling::{RotaryScaling, Yarn};
pub use sequential::{Layer, Sequential};
pub use sharding::glob;
pub use summary::{ModuleRow, ParameterRow, Summary, summarize};
pub use upsample::Upsample;
pub use zero_redundancy::{ZeroOptions, zero, zero_parameter};
