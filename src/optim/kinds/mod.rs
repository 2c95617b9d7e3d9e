//! The optimizers, one file each, and the table that makes them one family: as types of Rust, as data (kind and settings as JSON or any
//! other format of serde), and as classes of Python.

mod adadelta;
mod adafactor;
mod adagrad;
mod adam;
mod adamax;
mod adamw;
mod asgd;
mod lamb;
mod lion;
mod muon;
mod nadam;
mod radam;
mod rmsprop;
mod rprop;
mod sgd;

pub use adadelta::AdadeltaOptions;
pub use adafactor::AdafactorOptions;
pub use adagrad::AdagradOptions;
pub use adam::AdamOptions;
pub use adamax::AdamaxOptions;
pub use adamw::AdamWOptions;
pub use asgd::AsgdOptions;
pub use lamb::LambOptions;
pub use lion::LionOptions;
pub use muon::{MuonOptions, MuonRate};
pub use nadam::NAdamOptions;
pub use radam::RAdamOptions;
pub use rmsprop::RmsPropOptions;
pub use rprop::RpropOptions;
pub use sgd::SgdOptions;

use super::rule::{OptimizerRule, StateShape};
use super::saved;
use super::stepper::Stepper;
use super::{Groups, Optimizer, by_decay, check_distinct};
use crate::error::{Error, Result};
use crate::state::{LoadState, SaveState, Stateful};
use crate::tensor::Tensor;
use serde::{Deserialize, Serialize};

/// An optimizer of the library, whose settings can be read and replaced as data.
pub trait Trainer: Optimizer + Stateful + Send {
    /// Returns the kind and the settings.
    fn config(&self) -> OptimizerConfig;
    /// Sets the settings of later steps. Masters are kept or not from the first step on.
    ///
    /// # Errors
    /// If they are those of another kind.
    fn set_config(&mut self, config: &OptimizerConfig) -> Result<()>;
    /// Sets all settings as a state that is loaded has them, also whether masters are kept.
    ///
    /// # Errors
    /// If they are those of another kind.
    fn restore_config(&mut self, config: &OptimizerConfig) -> Result<()>;
}

/// Saves the settings, the numbers of steps where they count, and tensors by number of the parameter: `3.mean`, `3.master`.
impl<R: OptimizerRule> Stateful for Stepper<R>
where
    Stepper<R>: Trainer,
{
    fn save_state(&self, to: &mut SaveState) -> Result<()> {
        self.save(to)?;
        saved::save(self, to)
    }
    fn load_state(&mut self, from: &mut LoadState<'_>) -> Result<()> {
        saved::load(self, from)?;
        self.load(from)
    }
    fn prepare(&mut self, wanted: &LoadState<'_>) -> Result<()> {
        self.make_state(wanted)
    }
}

fn other_kind(config: &OptimizerConfig, own: &str) -> Error {
    Error::argument(format!("settings of {} are given to an optimizer of kind {own}", config.kind()))
}

/// A kind of optimizer, for tools that write code.
pub struct OptimizerKind {
    /// Name of the kind in data, such as `rmsprop`.
    pub name: &'static str,
    /// Name of the class in Python, such as `RMSprop`.
    pub class: &'static str,
    /// Doc in one sentence or two.
    pub doc: &'static str,
    /// The default settings.
    pub config: OptimizerConfig,
    /// Names of the tensors of state of a parameter, under whatever settings, and their shapes for a matrix.
    pub state: Vec<(&'static str, StateShape)>,
    /// Whether the numbers of steps are saved.
    pub counts_steps: bool,
}

macro_rules! kinds {
    ($($kind:ident($options:ident, $name:literal, $class:literal, $doc:literal)),* $(,)?) => {
        $(#[doc = $doc]
        pub type $kind = Stepper<$options>;)*

        /// The kind of an optimizer and its settings. Settings that are left out have their defaults.
        ///
        /// ```
        /// use oflow::optim::{OptimizerConfig, OptimizerExt};
        /// use oflow::prelude::*;
        /// let config: OptimizerConfig = serde_json::from_str(r#"{"kind": "lion", "lr": 0.5}"#).unwrap();
        /// let w = ones([2], Device::Cpu)?.requires_grad_(true)?;
        /// let mut opt = config.build(vec![w.clone()]);
        /// w.sum(())?.backward()?;
        /// opt.step()?;
        /// assert_eq!(w.to_vec::<f32>()?, [0.5, 0.5]);
        /// # Ok::<(), oflow::Error>(())
        /// ```
        #[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
        #[serde(tag = "kind")]
        pub enum OptimizerConfig {
            $(#[doc = concat!("Of [`", stringify!($kind), "`].")] #[serde(rename = $name)] $kind($options),)*
        }

        impl OptimizerConfig {
            /// The names of all kinds, as data has them.
            pub const KINDS: &'static [&'static str] = &[$($name),*];

            /// Returns all kinds.
            pub fn kinds() -> Vec<OptimizerKind> {
                vec![$({
                    let options = $options::default();
                    OptimizerKind {
                        name: $name,
                        class: $class,
                        doc: $doc,
                        config: OptimizerConfig::$kind(options),
                        state: options.state().into_iter().map(|(n, _)| (n, options.shape_of_state(n, 2))).collect(),
                        counts_steps: options.counts_steps(),
                    }
                }),*]
            }
            /// Returns the name of the kind.
            pub fn kind(&self) -> &'static str {
                match self {
                    $(OptimizerConfig::$kind(_) => $name,)*
                }
            }
            /// Makes the optimizer of these parameters.
            pub fn build(&self, parameters: Vec<Tensor>) -> Box<dyn Trainer> {
                match *self {
                    $(OptimizerConfig::$kind(o) => Box::new($kind::new(parameters, o)),)*
                }
            }
            /// Refuses settings that contradict each other, as each step does.
            ///
            /// # Errors
            /// If they do, such as Nesterov momentum without momentum.
            pub fn check(&self) -> Result<()> {
                match self {
                    $(OptimizerConfig::$kind(o) => o.check(),)*
                }
            }
            /// Refuses parameters that the optimizer cannot step, and those that are given twice, as its first step does.
            ///
            /// # Errors
            /// If there are such.
            pub fn check_parameters(&self, parameters: &[Tensor]) -> Result<()> {
                check_distinct(parameters)?;
                match self {
                    $(OptimizerConfig::$kind(o) => parameters.iter().try_for_each(|p| o.check_parameter(p)),)*
                }
            }
            /// The learning rate.
            pub fn lr(&self) -> f64 {
                match self {
                    $(OptimizerConfig::$kind(o) => o.lr,)*
                }
            }
            /// The same settings with another learning rate.
            #[must_use]
            pub fn with_lr(self, lr: f64) -> OptimizerConfig {
                match self {
                    $(OptimizerConfig::$kind(o) => OptimizerConfig::$kind($options { lr, ..o }),)*
                }
            }
            /// The same settings with another weight decay, if the optimizer has one.
            #[must_use]
            pub fn with_weight_decay(self, weight_decay: f64) -> OptimizerConfig {
                match self {
                    $(OptimizerConfig::$kind(o) => OptimizerConfig::$kind(o.with_weight_decay(weight_decay)),)*
                }
            }
        }

        $(impl Trainer for $kind {
            fn config(&self) -> OptimizerConfig {
                OptimizerConfig::$kind(self.options())
            }
            fn set_config(&mut self, config: &OptimizerConfig) -> Result<()> {
                match *config {
                    OptimizerConfig::$kind(o) => self.set_options(o),
                    _ => return Err(other_kind(config, $name)),
                }
                Ok(())
            }
            fn restore_config(&mut self, config: &OptimizerConfig) -> Result<()> {
                match *config {
                    OptimizerConfig::$kind(o) => self.restore_options(o),
                    _ => return Err(other_kind(config, $name)),
                }
                Ok(())
            }
        })*
    };
}

// Type and settings in Rust, kind in data, class in Python, doc.
kinds! {
    AdamW(AdamWOptions, "adamw", "AdamW", "AdamW (Loshchilov and Hutter, 2019), with PyTorch's formula."),
    Sgd(SgdOptions, "sgd", "SGD", "Stochastic gradient descent with momentum, with PyTorch's formula."),
    Adam(AdamOptions, "adam", "Adam", "Adam (Kingma and Ba, 2015), with PyTorch's formula: weight decay is added to the gradient."),
    Lamb(
        LambOptions,
        "lamb",
        "Lamb",
        "LAMB (You et al., 2020), for large batches. The norms are those of logical parameters, whatever their layouts."
    ),
    RmsProp(RmsPropOptions, "rmsprop", "RMSprop", "RMSprop (Hinton), with PyTorch's formula."),
    Adagrad(AdagradOptions, "adagrad", "Adagrad", "Adagrad (Duchi et al., 2011), with PyTorch's formula."),
    Adadelta(AdadeltaOptions, "adadelta", "Adadelta", "Adadelta (Zeiler, 2012), with PyTorch's formula."),
    Adamax(AdamaxOptions, "adamax", "Adamax", "Adamax (Kingma and Ba, 2015), with PyTorch's formula."),
    NAdam(NAdamOptions, "nadam", "NAdam", "NAdam (Dozat, 2016), with PyTorch's formula: Adam with Nesterov momentum."),
    RAdam(
        RAdamOptions,
        "radam",
        "RAdam",
        "RAdam (Liu et al., 2020), with PyTorch's formula: Adam whose step is corrected for the variance of the mean of squares."
    ),
    Asgd(
        AsgdOptions,
        "asgd",
        "ASGD",
        "Averaged SGD (Polyak and Juditsky, 1992), with PyTorch's formula. The state `average` is the average of a parameter."
    ),
    Rprop(RpropOptions, "rprop", "Rprop", "Rprop (Riedmiller and Braun, 1993), with PyTorch's formula."),
    Adafactor(
        AdafactorOptions,
        "adafactor",
        "Adafactor",
        "Adafactor (Shazeer and Stern, 2018), with PyTorch's formula: of a matrix it keeps one number a row and one a column."
    ),
    Muon(
        MuonOptions,
        "muon",
        "Muon",
        "Muon (Jordan, 2024), with PyTorch's formula, for matrices; give other parameters to another optimizer, such as AdamW."
    ),
    Lion(
        LionOptions,
        "lion",
        "Lion",
        "Lion (Chen et al., 2023): the sign of a mix of momentum and gradient is the direction."
    ),
}

impl OptimizerConfig {
    /// Makes an optimizer of two groups: parameters of two dims and more, and the others (biases and the scales of norms), which
    /// have no weight decay.
    pub fn build_by_decay(&self, parameters: Vec<Tensor>) -> Groups {
        let (decayed, others) = by_decay(parameters);
        Groups::new(vec![self.build(decayed), self.with_weight_decay(0.0).build(others)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::optim::Schedule;

    #[test]
    fn every_kind_is_the_same_after_json() {
        for kind in OptimizerConfig::KINDS {
            let text = format!(r#"{{"kind":"{kind}","lr":0.25}}"#);
            let config: OptimizerConfig = serde_json::from_str(&text).unwrap();
            assert_eq!((config.kind(), config.lr()), (*kind, 0.25));
            let again = serde_json::to_string(&config).unwrap();
            assert_eq!(serde_json::from_str::<OptimizerConfig>(&again).unwrap(), config);
            let mut opt = config.build(vec![]);
            assert_eq!(opt.config(), config);
            let other = if *kind == "sgd" { "adamw" } else { "sgd" };
            let other = serde_json::from_str(&format!(r#"{{"kind":"{other}"}}"#)).unwrap();
            assert!(opt.set_config(&other).unwrap_err().to_string().contains(kind));
            let wrong = format!(r#"{{"kind":"{kind}","rate":0.25}}"#);
            assert!(serde_json::from_str::<OptimizerConfig>(&wrong).unwrap_err().to_string().contains("rate"));
        }
        let s = Schedule::WarmupCosine { warmup: 2, total: 9, floor: 0.5 };
        let text = serde_json::to_string(&s).unwrap();
        assert_eq!(text, r#"{"kind":"warmup_cosine","warmup":2,"total":9,"floor":0.5}"#);
        assert_eq!(serde_json::from_str::<Schedule>(&text).unwrap(), s);
    }
}
