//! Kernels that are not compiled for every dtype, for all of them: i16 and u16 are computed with as i32, u32 as i64.
//!
//! Elementwise kernels convert chunk by chunk by themselves, and kernels that move elements take any bytes. What is left works on
//! copies of its inputs and outputs.

use crate::backend::op_kernels::OpKernel;
use crate::error::Result;
use crate::memory::with_room;
use crate::ops::{DTypeClass, KernelCx};
use oflow_kernels::cpu::{copy, lane::Native};
use oflow_kernels::view::contiguous_strides;
use oflow_kernels::{DType, Dims, Strides, View};
use smallvec::SmallVec;
use std::sync::Arc;

/// The dtype that kernels compute with for one that they are not compiled for.
fn wider(dtype: DType) -> Option<DType> {
    let builtin = dtype.builtin().filter(|b| dtype.is_real() && b.native().is_none())?;
    Some(Native::of(builtin).dtype())
}

/// Whether the kernel of the call writes elements of its own output's dtype, whatever that is.
fn direct(cx: &KernelCx<'_>) -> bool {
    match cx.op.sig.name.as_str() {
        "full" => true,
        // The neutral element is that of the narrow dtype.
        "amax" | "amin" => cx.inputs.iter().flatten().any(View::is_empty),
        // A chain converts elements by itself.
        "fused" | "fused_reduce" => true,
        _ => cx.op.sig.inputs.iter().any(|i| i.dtypes.class() == Some(DTypeClass::Any)),
    }
}

/// The kernel for every dtype.
pub(super) fn widened((op, mut kernel): OpKernel) -> OpKernel {
    let run = kernel.run;
    kernel.run = Arc::new(move |cx| {
        let mut views = cx.inputs.iter().flatten().chain(cx.outputs);
        if !views.any(|v| wider(v.dtype()).is_some()) || direct(cx) {
            return run(cx);
        }
        let mut inputs: SmallVec<[Option<Wide>; 4]> = SmallVec::new();
        for v in cx.inputs {
            inputs.push(v.as_ref().map(Wide::of).transpose()?);
        }
        let outputs: SmallVec<[Wide; 2]> = cx.outputs.iter().map(Wide::of).collect::<Result<_>>()?;
        let given: SmallVec<[Option<View>; 4]> = inputs.iter().map(|w| w.as_ref().map(|w| w.view.clone())).collect();
        let made: SmallVec<[View; 2]> = outputs.iter().map(|w| w.view.clone()).collect();
        run(&KernelCx { inputs: &given, outputs: &made, ..*cx })?;
        for (wide, out) in outputs.iter().zip(cx.outputs) {
            if wide.memory.is_some() {
                // Integers wrap, as those of the narrower dtype would have.
                copy::copy(&wide.view, out)?;
            }
        }
        Ok(())
    });
    (op, kernel)
}

/// A view in a dtype that kernels compute with.
struct Wide {
    view: View,
    /// Memory of the view, where it is a copy. Words, so that every element is aligned.
    memory: Option<Vec<u64>>,
}

impl Wide {
    /// The view itself where kernels compute with its dtype, else a copy of its elements. An output is copied too: a kernel may write
    /// a part of it.
    fn of(v: &View) -> Result<Wide> {
        let Some(dtype) = wider(v.dtype()) else { return Ok(Wide { view: v.clone(), memory: None }) };
        // An expanded dim stays expanded.
        let kept = |d: usize| v.strides()[d] != 0;
        let dims: Dims = (0..v.rank()).map(|d| if kept(d) || v.dims()[d] == 0 { v.dims()[d] } else { 1 }).collect();
        let packed = contiguous_strides(&dims);
        let words = (dims.iter().product::<usize>() * dtype.size()).div_ceil(size_of::<u64>());
        let mut memory = with_room::<u64>(words)?;
        memory.resize(words, 0);
        let at: *mut u8 = memory.as_mut_ptr().cast();
        // SAFETY: the memory has the elements of `dims`, aligned and initialised, and lives as long as the views; the narrower view
        // of the source has the first element of each expanded dim.
        let (copied, source) = unsafe {
            (View::from_raw(at, dtype, dims.clone(), packed.clone()), v.restride(0, dims, v.strides().into()))
        };
        copy::copy(&source, &copied)?;
        let strides: Strides = (0..v.rank()).map(|d| if kept(d) { packed[d] } else { 0 }).collect();
        // SAFETY: an expanded dim repeats its element.
        let view = unsafe { copied.restride(0, v.dims().into(), strides) };
        Ok(Wide { view, memory: Some(memory) })
    }
}
