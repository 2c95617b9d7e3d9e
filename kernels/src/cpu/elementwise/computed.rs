//! The result of a program that is not stored: a kernel that reads it has parts of it computed where it needs them.

use super::operands::{Flat, Operands};
use super::{DIVIDED_BY_ZERO, MOST, Program, Walk};
use crate::cpu::strided::broadcast_strides;
use crate::view::contiguous_strides;
use crate::{Builtin, Dims, KernelError, Result, Strides, View};
use smallvec::SmallVec;
use std::borrow::Borrow;
use std::ops::Range;
use std::sync::atomic::{AtomicBool, Ordering};

/// A program with its inputs. Its result has the elements that [`Program::run`] would store in contiguous memory.
pub(crate) struct Computed<'a> {
    program: &'a Program,
    dims: Dims,
    operands: Lay<'a>,
    zero: &'a AtomicBool,
}

/// Where the elements of the inputs lie.
enum Lay<'a> {
    Flat(Operands<'a, Flat>),
    Strided(Box<Operands<'a, Walk>>),
}

impl<'a> Computed<'a> {
    /// The result of `dims`, to which the inputs are broadcast. `zero` is set where integers are divided by 0.
    ///
    /// # Errors
    /// As [`Program::run`]; where the program takes numbers of a call.
    pub(crate) fn new<V: Borrow<View>>(
        program: &'a Program,
        inputs: &[V],
        dims: Dims,
        zero: &'a AtomicBool,
    ) -> Result<Computed<'a>> {
        let steps = contiguous_strides(&dims);
        let nowhere = std::ptr::without_provenance_mut(program.out.size());
        // SAFETY: nothing reads or writes through it; it says the dims and strides of what would be stored.
        let out = unsafe { View::from_raw(nowhere, program.out.dtype(), dims.clone(), steps.clone()) };
        super::check((&program.inputs, program.scalars.len(), program.out), inputs, &[], &out)?;
        let operands = match Flat::of(inputs, &out, out.len()) {
            Some(flat) => Lay::Flat(Operands::new(flat, inputs, &out, zero)),
            None => {
                let mut strides: SmallVec<[Strides; MOST]> = SmallVec::new();
                for v in inputs {
                    strides.push(broadcast_strides(v.borrow(), &dims)?);
                }
                let mut all: SmallVec<[&[isize]; MOST + 1]> = SmallVec::new();
                all.push(&steps);
                all.extend(strides.iter().map(|s| s.as_slice()));
                Lay::Strided(Box::new(Operands::new(Walk::new(&dims, &all, true), inputs, &out, zero)))
            }
        };
        Ok(Computed { program, dims, operands, zero })
    }

    /// The dims of the result.
    pub(crate) fn dims(&self) -> &[usize] {
        &self.dims
    }

    /// The dtype of the result.
    pub(crate) fn dtype(&self) -> Builtin {
        self.program.out
    }

    /// Computes elements `range` of the result, in the order of contiguous memory.
    ///
    /// # Safety
    /// The elements exist, and `to` has room for them.
    pub(crate) unsafe fn write(&self, range: Range<usize>, to: *mut u8) {
        // Where element 0 would lie.
        let out = to.wrapping_sub(range.start * self.program.out.size());
        match &self.operands {
            Lay::Flat(o) => self.program.compute(o, out, &[], range),
            Lay::Strided(o) => self.program.compute(&**o, out, &[], range),
        }
    }

    /// An error if integers were divided by 0.
    pub(crate) fn checked(&self) -> Result<()> {
        match self.program.divides && self.zero.load(Ordering::Relaxed) {
            true => Err(KernelError::new(DIVIDED_BY_ZERO)),
            false => Ok(()),
        }
    }
}
