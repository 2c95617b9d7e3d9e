//! Modules that run one after another.

use super::module::{Module, Part, part_at};
use super::{
    AlphaDropout, BatchNorm, Block, Buffer, Conv1d, Conv2d, Conv3d, ConvTranspose1d, ConvTranspose2d, ConvTranspose3d,
    Dropout, Embedding, FeatureDropout, GroupNorm, LayerNorm, Linear, Mlp, Prelu, RmsNorm, SelfAttention,
};
use crate::error::{CallSite, Error, Result};
use crate::tensor::Tensor;

/// A module that maps one tensor to one tensor, for [`Sequential`]. Implement it for your own modules by calling their `forward`.
pub trait Layer: Module {
    /// Maps a tensor.
    ///
    /// # Errors
    /// Those of the module.
    fn apply(&self, x: &Tensor) -> Result<Tensor>;
}

macro_rules! layers {
    ($($name:ident),*) => {$(
        impl Layer for $name {
            fn apply(&self, x: &Tensor) -> Result<Tensor> {
                self.forward(x)
            }
        }
    )*};
}
layers!(
    AlphaDropout,
    BatchNorm,
    Block,
    Conv1d,
    Conv2d,
    Conv3d,
    ConvTranspose1d,
    ConvTranspose2d,
    ConvTranspose3d,
    Dropout,
    Embedding,
    FeatureDropout,
    GroupNorm,
    LayerNorm,
    Linear,
    Mlp,
    Prelu,
    RmsNorm,
    SelfAttention
);

/// A function without parameters as a layer.
struct Function<F>(F);

impl<F> Part for Function<F> {
    fn visit<'a>(&'a self, _: &str, _: &mut dyn FnMut(&str, &'a Tensor)) {}
    fn visit_mut(&mut self, _: &str, _: &mut dyn FnMut(&str, &mut Tensor) -> Result<()>) -> Result<()> {
        Ok(())
    }
    fn set_training(&mut self, _: bool) {}
}
impl<F> Module for Function<F> {}
impl<F: Fn(&Tensor) -> Result<Tensor>> Layer for Function<F> {
    fn apply(&self, x: &Tensor) -> Result<Tensor> {
        (self.0)(x)
    }
}

/// Modules that run one after another. Their names are their numbers, `0`, `1`, …, unless given.
///
/// ```
/// use oflow::nn::{Linear, Module, Sequential};
/// use oflow::prelude::*;
/// let mut net = Sequential::new()
///     .add(Linear::new(4, 8, Device::Cpu)?)
///     .function(|x| x.relu())
///     .named("head", Linear::new(8, 2, Device::Cpu)?);
/// assert_eq!(net.forward(&ones([3, 4], Device::Cpu)?)?.shape(), [3, 2]);
/// let names: Vec<String> = net.named_parameters().into_iter().map(|(name, _)| name).collect();
/// assert_eq!(names, ["0.weight", "0.bias", "head.weight", "head.bias"]);
/// net.replace("head", Linear::new(8, 5, Device::Cpu)?)?;
/// assert_eq!(net.forward(&ones([3, 4], Device::Cpu)?)?.shape(), [3, 5]);
/// # Ok::<(), oflow::Error>(())
/// ```
#[derive(Default)]
pub struct Sequential {
    layers: Vec<(String, Box<dyn Layer>)>,
}

impl Sequential {
    /// Makes one without modules, which returns its input.
    pub fn new() -> Sequential {
        Sequential::default()
    }
    /// Adds a module at the end, under its number.
    #[must_use]
    #[allow(clippy::should_implement_trait)]
    pub fn add(self, layer: impl Layer + 'static) -> Sequential {
        let number = self.layers.len().to_string();
        self.named(&number, layer)
    }
    /// Adds a module at the end under a name. A module of that name is replaced, where it is.
    #[must_use]
    pub fn named(mut self, name: &str, layer: impl Layer + 'static) -> Sequential {
        match self.layers.iter_mut().find(|(n, _)| n == name) {
            Some((_, old)) => *old = Box::new(layer),
            None => self.layers.push((name.to_string(), Box::new(layer))),
        }
        self
    }
    /// Adds a function without parameters at the end.
    #[must_use]
    pub fn function(self, f: impl Fn(&Tensor) -> Result<Tensor> + 'static) -> Sequential {
        self.add(Function(f))
    }
    /// Puts another module in the place of the one of that name, and returns the old one. An optimizer of its parameters returns an
    /// error at its next step.
    ///
    /// # Errors
    /// If there is no module of that name.
    #[track_caller]
    pub fn replace(&mut self, name: &str, layer: impl Layer + 'static) -> Result<Box<dyn Layer>> {
        let names: Vec<String> = self.layers.iter().map(|(n, _)| n.clone()).collect();
        match self.layers.iter_mut().find(|(n, _)| n == name) {
            Some((_, old)) => Ok(super::replace(old, Box::new(layer))),
            None => Err(Error::argument(format!("unknown module '{name}'"))
                .at(CallSite::here())
                .help(format!("the modules are {}", names.join(", ")))),
        }
    }
    /// Returns the number of modules.
    pub fn len(&self) -> usize {
        self.layers.len()
    }
    /// Whether there are no modules.
    pub fn is_empty(&self) -> bool {
        self.layers.is_empty()
    }
    /// Returns the module of that name.
    pub fn get(&self, name: &str) -> Option<&dyn Layer> {
        self.layers.iter().find(|(n, _)| n == name).map(|(_, layer)| &**layer)
    }
    /// Runs the modules one after another. Errors and reports name the module.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let site = CallSite::here();
        self.layers.iter().try_fold(x.clone(), |x, (name, layer)| part_at(name, site, || layer.apply(&x)))
    }
}

impl Part for Sequential {
    fn visit<'a>(&'a self, name: &str, f: &mut dyn FnMut(&str, &'a Tensor)) {
        self.layers.iter().for_each(|(n, layer)| layer.visit(&super::init::dotted(name, n), f));
    }
    fn visit_mut(&mut self, name: &str, f: &mut dyn FnMut(&str, &mut Tensor) -> Result<()>) -> Result<()> {
        self.layers.iter_mut().try_for_each(|(n, layer)| layer.visit_mut(&super::init::dotted(name, n), f))
    }
    fn visit_buffers<'a>(&'a self, name: &str, f: &mut dyn FnMut(&str, &'a Buffer)) {
        self.layers.iter().for_each(|(n, layer)| layer.visit_buffers(&super::init::dotted(name, n), f));
    }
    fn visit_buffers_mut(&mut self, name: &str, f: &mut dyn FnMut(&str, &mut Buffer) -> Result<()>) -> Result<()> {
        self.layers.iter_mut().try_for_each(|(n, layer)| layer.visit_buffers_mut(&super::init::dotted(name, n), f))
    }
    fn set_training(&mut self, on: bool) {
        self.layers.iter_mut().for_each(|(_, layer)| layer.set_training(on));
    }
}
impl Module for Sequential {}
impl Layer for Sequential {
    fn apply(&self, x: &Tensor) -> Result<Tensor> {
        self.forward(x)
    }
}
