//! LSTM, GRU and simple recurrent networks of several layers, with PyTorch's names of parameters.

use super::init;
use super::module::{Module, Part};
use crate::error::{CallSite, Result};
use crate::functional::{IntoTarget, zeros};
use crate::interpreter::Target;
use crate::sbp::NdSbp;
use crate::tensor::Tensor;
use serde::{Deserialize, Serialize};

/// Sizes of a recurrent network; `new` of [`Lstm`], [`Gru`] and [`Rnn`] takes them. PyTorch's defaults.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RecurrentOptions {
    /// Width of the input.
    pub input_size: usize,
    /// Width of the state.
    pub hidden_size: usize,
    /// Number of layers.
    #[serde(default = "one")]
    pub num_layers: usize,
    /// Whether there are biases.
    #[serde(default = "yes")]
    pub bias: bool,
    /// Whether the batch is the first dim of input and output, and time the second.
    #[serde(default)]
    pub batch_first: bool,
    /// Probability of dropping an element between layers, in training mode.
    #[serde(default)]
    pub dropout: f64,
    /// Whether a second network runs over the sequence backwards.
    #[serde(default)]
    pub bidirectional: bool,
}

fn one() -> usize {
    1
}

fn yes() -> bool {
    true
}

impl RecurrentOptions {
    /// Sizes of one layer.
    pub fn new(input_size: usize, hidden_size: usize) -> RecurrentOptions {
        RecurrentOptions {
            input_size,
            hidden_size,
            num_layers: 1,
            bias: true,
            batch_first: false,
            dropout: 0.0,
            bidirectional: false,
        }
    }
    fn directions(&self) -> usize {
        1 + usize::from(self.bidirectional)
    }
}

/// The weights of all layers and directions.
struct Weights {
    options: RecurrentOptions,
    /// In the order in which the functions take them.
    all: Vec<Tensor>,
    training: bool,
}

impl Weights {
    fn new(options: RecurrentOptions, gates: usize, target: impl IntoTarget) -> Result<Weights> {
        let (o, t) = (options, target.into_target());
        let bound = 1.0 / (o.hidden_size.max(1) as f64).sqrt();
        let (rows, mut all) = (gates * o.hidden_size, vec![]);
        for layer in 0..o.num_layers {
            let width = if layer == 0 { o.input_size } else { o.hidden_size * o.directions() };
            for _ in 0..o.directions() {
                all.push(init::uniform([rows, width], bound, &t)?);
                all.push(init::uniform([rows, o.hidden_size], bound, &t)?);
                if o.bias {
                    all.push(init::uniform([rows], bound, &t)?);
                    all.push(init::uniform([rows], bound, &t)?);
                }
            }
        }
        Ok(Weights { options, all, training: true })
    }
    /// `weight_ih_l0`, `weight_hh_l0_reverse` …: PyTorch's names.
    fn names(&self) -> Vec<String> {
        let kinds: &[&str] = match self.options.bias {
            true => &["weight_ih", "weight_hh", "bias_ih", "bias_hh"],
            false => &["weight_ih", "weight_hh"],
        };
        let mut names = vec![];
        for layer in 0..self.options.num_layers {
            for end in ["", "_reverse"].iter().take(self.options.directions()) {
                names.extend(kinds.iter().map(|kind| format!("{kind}_l{layer}{end}")));
            }
        }
        names
    }
    fn visit<'a>(&'a self, name: &str, f: &mut dyn FnMut(&str, &'a Tensor)) {
        self.names().iter().zip(&self.all).for_each(|(n, t)| f(&init::dotted(name, n), t));
    }
    fn visit_mut(&mut self, name: &str, f: &mut dyn FnMut(&str, &mut Tensor) -> Result<()>) -> Result<()> {
        self.names().iter().zip(&mut self.all).try_for_each(|(n, t)| f(&init::dotted(name, n), t))
    }
    /// Zeros for a state: whole on all ranks, and split by batch where the sequence is.
    fn state(&self, x: &Tensor) -> Result<Tensor> {
        let o = &self.options;
        let at = usize::from(x.ndim() == 3 && !o.batch_first);
        let mut shape = vec![o.num_layers * o.directions(), o.hidden_size];
        if x.ndim() == 3 {
            shape.insert(1, x.shape()[at]);
        }
        let target = match x.global() {
            Some(g) => Target::Global(g.placement.clone(), NdSbp::broadcast(g.placement.axes())),
            None => Target::Local(x.device()),
        };
        zeros(shape, target.dtype(self.all.first().map_or(x.dtype(), Tensor::dtype)))
    }
}

macro_rules! network {
    ($(#[$doc:meta])* $name:ident, $gates:literal) => {
        $(#[$doc])*
        pub struct $name(Weights);

        impl $name {
            /// Makes a network with new random parameters, uniform in ±1/√`hidden_size`, PyTorch's default.
            #[track_caller]
            pub fn new(options: RecurrentOptions, target: impl IntoTarget) -> Result<$name> {
                Ok($name(Weights::new(options, $gates, target)?))
            }
            /// Returns the sizes.
            pub fn options(&self) -> RecurrentOptions {
                self.0.options
            }
        }

        impl Part for $name {
            fn visit<'a>(&'a self, name: &str, f: &mut dyn FnMut(&str, &'a Tensor)) {
                self.0.visit(name, f);
            }
            fn visit_mut(&mut self, name: &str, f: &mut dyn FnMut(&str, &mut Tensor) -> Result<()>) -> Result<()> {
                self.0.visit_mut(name, f)
            }
            fn set_training(&mut self, on: bool) {
                self.0.training = on;
            }
        }
        impl Module for $name {}
    };
}

network!(
    /// A long short-term memory over sequences `[T, B, input]` (`batch_first`: `[B, T, input]`), or `[T, input]` without a batch.
    /// Its parameters have PyTorch's names: `weight_ih_l0`, `weight_hh_l0`, `bias_ih_l0`, `bias_hh_l0`, `weight_ih_l0_reverse` …
    Lstm,
    4
);

network!(
    /// Gated recurrent units over sequences, with the shapes and names of [`Lstm`].
    Gru,
    3
);

impl Lstm {
    /// Runs over a sequence, from the states h and c `[layers · directions, B, hidden]`, or from zeros. Returns the output `[T, B, hidden
    /// · directions]`, and h and c behind the last step.
    #[track_caller]
    pub fn forward(&self, x: &Tensor, state: Option<[&Tensor; 2]>) -> Result<(Tensor, [Tensor; 2])> {
        let (o, _scope) = (&self.0.options, CallSite::here().scope());
        let zeros = if state.is_none() { Some(self.0.state(x)?) } else { None };
        let state = state.or_else(|| zeros.as_ref().map(|z| [z, z])).unwrap_or([x, x]);
        let mut out = x.lstm_with(
            &state[..],
            &self.0.all.iter().collect::<Vec<_>>(),
            &crate::functional::LstmOptions {
                has_biases: o.bias,
                num_layers: o.num_layers as i64,
                dropout: o.dropout,
                train: self.0.training,
                bidirectional: o.bidirectional,
                batch_first: o.batch_first,
            },
        )?;
        let (c, h) = (out.swap_remove(2), out.swap_remove(1));
        Ok((out.swap_remove(0), [h, c]))
    }
}

impl Gru {
    /// Runs over a sequence, from the state `[layers · directions, B, hidden]`, or from zeros. Returns the output `[T, B, hidden ·
    /// directions]` and the state behind the last step.
    #[track_caller]
    pub fn forward(&self, x: &Tensor, state: Option<&Tensor>) -> Result<(Tensor, Tensor)> {
        let (o, _scope) = (&self.0.options, CallSite::here().scope());
        let h = state.map_or_else(|| self.0.state(x), |s| Ok(s.clone()))?;
        let mut out = x.gru_with(
            &h,
            &self.0.all,
            &crate::functional::GruOptions {
                has_biases: o.bias,
                num_layers: o.num_layers as i64,
                dropout: o.dropout,
                train: self.0.training,
                bidirectional: o.bidirectional,
                batch_first: o.batch_first,
            },
        )?;
        let h = out.swap_remove(1);
        Ok((out.swap_remove(0), h))
    }
}

/// The nonlinearity of an [`Rnn`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Nonlinearity {
    /// The hyperbolic tangent.
    #[default]
    Tanh,
    /// The rectifier, `max(x, 0)`.
    Relu,
}

/// A simple recurrent network (Elman): tanh or relu of inputs and state, with the shapes and names of [`Lstm`].
pub struct Rnn {
    weights: Weights,
    nonlinearity: Nonlinearity,
}

impl Rnn {
    /// Makes a network with new random parameters, uniform in ±1/√`hidden_size`, PyTorch's default.
    #[track_caller]
    pub fn new(options: RecurrentOptions, nonlinearity: Nonlinearity, target: impl IntoTarget) -> Result<Rnn> {
        Ok(Rnn { weights: Weights::new(options, 1, target)?, nonlinearity })
    }
    /// Returns the sizes.
    pub fn options(&self) -> RecurrentOptions {
        self.weights.options
    }
    /// Runs over a sequence, as [`Gru::forward`] does.
    #[track_caller]
    pub fn forward(&self, x: &Tensor, state: Option<&Tensor>) -> Result<(Tensor, Tensor)> {
        let (w, _scope) = (&self.weights, CallSite::here().scope());
        let o = &w.options;
        let h = state.map_or_else(|| w.state(x), |s| Ok(s.clone()))?;
        let (has_biases, num_layers, dropout, train) = (o.bias, o.num_layers as i64, o.dropout, w.training);
        let (bidirectional, batch_first) = (o.bidirectional, o.batch_first);
        let mut out = match self.nonlinearity {
            Nonlinearity::Tanh => {
                let options = crate::functional::RnnTanhOptions {
                    has_biases,
                    num_layers,
                    dropout,
                    train,
                    bidirectional,
                    batch_first,
                };
                x.rnn_tanh_with(&h, &w.all, &options)?
            }
            Nonlinearity::Relu => {
                let options = crate::functional::RnnReluOptions {
                    has_biases,
                    num_layers,
                    dropout,
                    train,
                    bidirectional,
                    batch_first,
                };
                x.rnn_relu_with(&h, &w.all, &options)?
            }
        };
        let h = out.swap_remove(1);
        Ok((out.swap_remove(0), h))
    }
}

impl Part for Rnn {
    fn visit<'a>(&'a self, name: &str, f: &mut dyn FnMut(&str, &'a Tensor)) {
        self.weights.visit(name, f);
    }
    fn visit_mut(&mut self, name: &str, f: &mut dyn FnMut(&str, &mut Tensor) -> Result<()>) -> Result<()> {
        self.weights.visit_mut(name, f)
    }
    fn set_training(&mut self, on: bool) {
        self.weights.training = on;
    }
}
impl Module for Rnn {}
