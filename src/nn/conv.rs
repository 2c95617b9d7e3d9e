//! Convolutions and their transposed forms, over 1 to 3 spatial dims.

use super::init;
use crate::context::inner_calls;
use crate::error::{CallSite, Error, Result};
use crate::functional::{IntoTarget, pad_at};
use crate::tensor::Tensor;
use oflow_kernels::Scalar;

/// Values around the image of a convolution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PaddingMode {
    /// Zeros around the image.
    #[default]
    Zeros,
    /// The image mirrored at its border elements, which are not repeated.
    Reflect,
    /// The border elements of the image, repeated.
    Replicate,
    /// The opposite side of the image, as if it were periodic.
    Circular,
}

impl PaddingMode {
    /// The mode for the function `pad`; `None` for zeros, which the convolution op adds itself.
    fn of_pad(self) -> Option<&'static str> {
        match self {
            PaddingMode::Zeros => None,
            PaddingMode::Reflect => Some("reflect"),
            PaddingMode::Replicate => Some("replicate"),
            PaddingMode::Circular => Some("circular"),
        }
    }
}

/// Options of a convolution of `N` spatial dims besides its sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConvOptions<const N: usize> {
    /// Step of the kernel in elements; default 1. In a transposed convolution the step in the output.
    pub stride: [usize; N],
    /// Elements added at both ends of each spatial dim; default 0. A transposed convolution removes them from its output instead.
    pub padding: [usize; N],
    /// Values of the padding; default zeros, the only mode of a transposed convolution.
    pub padding_mode: PaddingMode,
    /// Distance between two elements of the kernel, in elements of the image; default 1.
    pub dilation: [usize; N],
    /// Number of groups: output channels of a group are computed from the input channels of the same group; default 1.
    pub groups: usize,
    /// Whether the layer has a bias; default true.
    pub bias: bool,
    /// Transposed convolutions only: additional size of the output at the end of each spatial dim; default 0.
    pub output_padding: [usize; N],
}

impl<const N: usize> Default for ConvOptions<N> {
    fn default() -> Self {
        ConvOptions {
            stride: [1; N],
            padding: [0; N],
            padding_mode: PaddingMode::Zeros,
            dilation: [1; N],
            groups: 1,
            bias: true,
            output_padding: [0; N],
        }
    }
}

/// Checks that `groups` divides the channels of a layer, and returns it.
fn groups(name: &str, inputs: usize, outputs: usize, groups: usize, site: CallSite) -> Result<usize> {
    match groups > 0 && inputs.is_multiple_of(groups) && outputs.is_multiple_of(groups) {
        true => Ok(groups),
        false => {
            Err(Error::argument(format!("{name}: {inputs} and {outputs} channels do not fall in {groups} groups"))
                .at(site))
        }
    }
}

/// Argument of the function `pad`: before and after of the last dim, then of the one before it, and so on.
fn around(padding: &[usize]) -> Vec<i64> {
    padding.iter().rev().flat_map(|p| [*p as i64; 2]).collect()
}

/// Refuses a padding mode other than zeros, for transposed convolutions.
fn zeros_only<const N: usize>(name: &str, options: &ConvOptions<N>, site: CallSite) -> Result<()> {
    match options.padding_mode {
        PaddingMode::Zeros => Ok(()),
        mode => {
            Err(Error::argument(format!("{name}: a transposed convolution adds zeros only, not {mode:?}")).at(site))
        }
    }
}

/// Calls the function of a layer. A macro, so that `#[track_caller]` gives errors the user's line.
macro_rules! call {
    (check direct $name:expr, $options:expr) => {};
    (check transposed $name:expr, $options:expr) => {
        zeros_only($name, $options, CallSite::here())?;
    };
    (direct $call:ident, $x:expr, $l:expr) => {{
        let (x, l, o) = ($x, $l, &$l.options);
        let Some(mode) = o.padding_mode.of_pad() else {
            return x.$call(&l.weight, l.bias.as_ref(), o.stride, o.padding, o.dilation, o.groups);
        };
        let inner = inner_calls();
        let x = pad_at(x, &around(&o.padding), mode, Scalar::Int(0), CallSite::here())?;
        drop(inner);
        x.$call(&l.weight, l.bias.as_ref(), o.stride, 0, o.dilation, o.groups)
    }};
    (transposed $call:ident, $x:expr, $l:expr) => {{
        let (x, l, o) = ($x, $l, &$l.options);
        x.$call(&l.weight, l.bias.as_ref(), o.stride, o.padding, o.output_padding, o.groups, o.dilation)
    }};
}

macro_rules! layer {
    ($name:ident, $n:literal, $doc:expr, $weight:expr, $inputs:ident, $outputs:ident, $shape:expr, $kind:ident $call:ident) => {
        #[doc = $doc]
        #[derive(crate::nn::Module)]
        pub struct $name {
            #[doc = $weight]
            pub weight: Tensor,
            /// Bias, one number for each output channel; `None` adds nothing.
            pub bias: Option<Tensor>,
            /// Stride, padding and the other options that the layer was made with.
            #[module(skip)]
            pub options: ConvOptions<$n>,
        }

        impl $name {
            /// Makes a layer with bias, a stride of 1 and no padding.
            #[track_caller]
            pub fn new($inputs: usize, $outputs: usize, kernel: [usize; $n], target: impl IntoTarget) -> Result<Self> {
                Self::with($inputs, $outputs, kernel, ConvOptions::default(), target)
            }
            /// Makes a layer. Weight and bias are drawn from U(-b, b) with b = 1/√fan_in, PyTorch's default.
            ///
            /// # Errors
            /// If the groups do not divide the channels, or a transposed convolution is to pad with anything but zeros.
            #[track_caller]
            pub fn with(
                $inputs: usize,
                $outputs: usize,
                kernel: [usize; $n],
                options: ConvOptions<$n>,
                target: impl IntoTarget,
            ) -> Result<Self> {
                let groups = groups(stringify!($name), $inputs, $outputs, options.groups, CallSite::here())?;
                call!(check $kind stringify!($name), &options);
                let target = target.into_target();
                let [first, second]: [usize; 2] = $shape(groups);
                let shape: Vec<usize> = [first, second].into_iter().chain(kernel).collect();
                let fan: usize = second * kernel.iter().product::<usize>();
                let bound = 1.0 / (fan.max(1) as f64).sqrt();
                let weight = init::uniform(&shape, bound, &target)?;
                let bias = if options.bias { Some(init::uniform([$outputs], bound, &target)?) } else { None };
                Ok(Self { weight, bias, options })
            }
            /// Maps `[batch, inputs, spatial dims…]` to `[batch, outputs, spatial dims…]`; the batch may be missing.
            #[track_caller]
            pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
                call!($kind $call, x, self)
            }
        }
    };
    (direct $name:ident, $n:literal, $call:ident, $dims:literal) => {
        layer!(
            $name,
            $n,
            concat!(
                "A convolution over ",
                $dims,
                ". S(0) on the weight splits the output channels, S(1) the input channels."
            ),
            "Weight, `[outputs, inputs / groups, kernel…]`.",
            inputs,
            outputs,
            |groups: usize| [outputs, inputs / groups],
            direct $call
        );
    };
    (transposed $name:ident, $n:literal, $call:ident, $dims:literal) => {
        layer!(
            $name,
            $n,
            concat!(
                "A transposed convolution over ",
                $dims,
                ". S(1) on the weight splits the output channels, S(0) the input channels."
            ),
            "Weight, `[inputs, outputs / groups, kernel…]`.",
            inputs,
            outputs,
            |groups: usize| [inputs, outputs / groups],
            transposed $call
        );
    };
}

layer!(direct Conv1d, 1, conv1d, "one spatial dim");
layer!(direct Conv2d, 2, conv2d, "two spatial dims");
layer!(direct Conv3d, 3, conv3d, "three spatial dims");
layer!(transposed ConvTranspose1d, 1, conv_transpose1d, "one spatial dim");
layer!(transposed ConvTranspose2d, 2, conv_transpose2d, "two spatial dims");
layer!(transposed ConvTranspose3d, 3, conv_transpose3d, "three spatial dims");
