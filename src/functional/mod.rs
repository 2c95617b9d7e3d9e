//! The functions of oflow: methods of [`Tensor`], factories, and a table of all functions by name.
//!
//! The [landing page](crate#functions-by-subject) lists them by subject. [`call`] calls a function by name, [`functions`] lists the
//! table, [`register_function`] adds to it. A function calls one or several ops: it chooses among them by its arguments, fills in
//! defaults and reshapes.
//!
//! # How it works
//!
//! A function is a row of the table: a text that declares its parameters, and a body. Calls by name, from Python and from
//! `oflow run` match arguments to the parameters in one place, [`bind`]. `cargo xtask codegen` writes the
//! methods and functions of Rust from the texts (`generated/`). The body looks up the op once per place of use (the macro
//! `op!`) and makes a [`Call`], which has the op, its attributes, its inputs, and the user's
//! file and line. A function that calls other functions, and a call by name, opens a `CallSite::scope`: everything inside
//! reports the caller's line. The last op of such a function gets the layout that the program asked for (`inner_calls`).

/// Calls a macro with the members' types of tuples of one to eight members.
macro_rules! for_tuples {
    ($each:ident) => {
        $each! {
            A;
            A B;
            A B C;
            A B C D;
            A B C D E;
            A B C D E F;
            A B C D E F G;
            A B C D E F G H;
        }
    };
}

#[macro_use]
mod rows;

mod algebra;
mod argument_forms;
mod arrange;
mod attend;
mod autograd;
pub mod bind;
mod by_name;
mod by_place;
mod channels;
mod choose;
mod class_losses;
mod complex;
mod conv;
mod count;
mod create;
mod ctc;
mod data;
mod definition;
mod derived;
mod differences;
mod distinct;
mod draw;
mod drops;
mod einsum;
mod factory_forms;
mod forms;
mod gates;
mod gather;
// Functions have PyTorch's parameters, as many as there are.
#[allow(clippy::too_many_arguments)]
#[rustfmt::skip]
mod generated;
mod gradient;
mod grid;
mod histograms;
mod image;
mod index;
mod inplace;
mod ints;
mod layout;
mod losses;
mod multiplied;
mod names;
mod nn;
mod op_form;
mod operand;
mod operators;
mod pieces;
mod pools;
mod products;
mod pytorch;
mod quantize;
mod random;
mod recurrent;
mod reduce;
mod rules;
mod select;
mod shape;
mod signal;
mod sort;
mod special;
mod statistics;
mod table;
mod transforms;
mod values;
mod views;

pub use crate::ops::{FnParam, FnReturn, FnSig, ParamKind};
pub use autograd::{HookHandle, backward_from, grad, grad_at, grad_from};
pub use bind::{Arg, Bound};
pub use by_name::{Returned, call, call_any, call_value, named_in};
pub use create::{IntoTarget, TargetSpec, from_bytes, from_vec};
pub use definition::{FnBody, FnCode, FnDef, FnValue, RustForm};
pub use generated::functions::*;
pub use index::{IndexRange, IntoIndices, TensorIndex};
pub use ints::{IntLike, IntList};
pub use layout::{IntoLayout, LayoutSpec, box_many, distribute, from_boxes};
pub use names::ToTarget;
pub use op_form::OutputSlot;
pub use operand::{Operand, RightOperand};
pub use operators::{RightSide, Term};
pub use table::{functions, functions_generation, overloads, register_function};
pub use transforms::{jacobian, jvp, vjp};

pub(crate) use attend::attention_weights;
pub(crate) use image::{interpolate as interpolate_at, pad as pad_at};
use layout::everywhere;
pub(crate) use table::exchange_functions;

use crate::error::{CallSite, Result};
use crate::interpreter::{Call, Outputs, Target, first};
pub(crate) use crate::op;
use crate::ops::{Attrs, Op, RuntimeAttrs};
use crate::tensor::Tensor;

/// Calls an op on tensors.
pub(crate) fn invoke(
    op: Result<&'static Op>,
    inputs: &[Option<&Tensor>],
    attrs: Attrs,
    runtime: RuntimeAttrs,
    site: CallSite,
) -> Result<Outputs> {
    Call::of(op?, inputs, attrs, runtime, site).run()
}

/// The same, for ops of one output.
pub(crate) fn invoke1(
    op: Result<&'static Op>,
    inputs: &[Option<&Tensor>],
    attrs: Attrs,
    runtime: RuntimeAttrs,
    site: CallSite,
) -> Result<Tensor> {
    let op = op?;
    first(Call::of(op, inputs, attrs, runtime, site).run()?, op, site)
}

/// Calls a source op.
pub(crate) fn create(
    op: Result<&'static Op>,
    attrs: Attrs,
    runtime: RuntimeAttrs,
    target: &Target,
    site: CallSite,
) -> Result<Tensor> {
    Call::of(op?, &[], attrs, runtime, site).target(target).run1()
}
