//! f32 masters of half parameters.
//!
//! A step of 1e-3 of a bf16 weight is below half of its last bit: added to the half itself it would vanish. The optimizer
//! therefore steps an f32 copy that it keeps, and the parameter becomes that, rounded.

use super::rule::StateShape;
use crate::error::{CallSite, Result};
use crate::functional::{IntoTarget, where_, zeros};
use crate::interpreter::outside_capture;
use crate::memory::MemoryUse;
use crate::placement::Placement;
use crate::sbp::{NdSbp, Sbp};
use crate::state::{LoadState, SaveState};
use crate::tensor::Tensor;
use oflow_kernels::{DType, Dims};

/// An f32 copy of a half parameter.
struct Master {
    copy: Tensor,
    /// Version of the parameter at which its value was the copy, rounded. `None` if that is not known: the copy is being loaded.
    at: Option<u64>,
}

/// The copy takes over what was written to the parameter since its last step: `copy_`, a loaded state, a view, another library. Elements that
/// still are the copy, rounded, keep the bits that the half has no room for. Under `no_grad`.
pub(super) fn follow(copy: &Tensor, p: &Tensor) -> Result<()> {
    let value = p.detach();
    let kept = copy.cast(p.dtype())?.eq(&value)?;
    copy.copy_(&where_(&kept, copy, &value.cast(DType::F32)?)?)?;
    Ok(())
}

/// Tensors that the optimizer steps in the place of each parameter.
pub(super) struct Masters {
    on: bool,
    copies: Vec<Option<Master>>,
}

impl Masters {
    /// For that many parameters; `on`: half parameters have a master.
    pub fn new(parameters: usize, on: bool) -> Masters {
        Masters { on, copies: (0..parameters).map(|_| None).collect() }
    }
    /// Switches masters on or off for a state that is loaded next.
    pub fn switch(&mut self, on: bool) {
        self.on = on;
    }
    /// The tensor to step for parameter `i`: its master, made at its first step, or the parameter itself. A master follows what was
    /// written to the parameter meanwhile. Under `no_grad`.
    pub fn of(&mut self, i: usize, p: &Tensor, site: CallSite) -> Result<Tensor> {
        if !(self.on && p.dtype().is_half()) {
            return Ok(p.clone());
        }
        match &self.copies[i] {
            Some(m) => {
                if m.at != Some(p.version()) || p.is_shared_outside() {
                    follow(&m.copy, p)?;
                }
                Ok(m.copy.clone())
            }
            None => {
                // A graph that is captured needs it as a variable.
                let copy = outside_capture(site, || p.detach().cast(DType::F32))?;
                copy.set_memory_use(MemoryUse::OptimizerState);
                copy.name_memory(p.memory_scope());
                Ok(self.copies[i].insert(Master { copy, at: Some(p.version()) }).copy.clone())
            }
        }
    }
    /// The master of parameter `i`, if it has one.
    pub fn copy_of(&self, i: usize) -> Option<&Tensor> {
        self.copies[i].as_ref().map(|m| &m.copy)
    }
    /// Parameter `i` becomes what its master is now. Under `no_grad`.
    pub fn store(&self, i: usize, p: &Tensor) -> Result<()> {
        self.copies[i].as_ref().map_or(Ok(()), |m| p.copy_(&m.copy).map(drop))
    }
    /// Notes the versions of parameters that were stored. Called after all of a step: parameters that are views of one tensor share
    /// its version.
    pub fn stored<'a>(&mut self, all: impl IntoIterator<Item = (usize, &'a Tensor)>) {
        for (i, p) in all {
            if let Some(m) = &mut self.copies[i] {
                m.at = Some(p.version());
            }
        }
    }
    /// Names the masters that there are: `3.master`.
    pub fn save(&self, to: &mut SaveState) {
        let there = self.copies.iter().enumerate().filter_map(|(i, m)| Some((i, m.as_ref()?)));
        there.for_each(|(i, m)| to.tensor(&format!("{i}.master"), &m.copy));
    }
    /// Makes the wanted masters, as the first step does. Under `no_grad`.
    pub fn prepare(&mut self, parameters: &[Tensor], wanted: &LoadState<'_>) -> Result<()> {
        for (i, p) in parameters.iter().enumerate().filter(|(i, _)| wanted.has(&format!("{i}.master"))) {
            self.of(i, p, CallSite::here())?;
        }
        Ok(())
    }
    /// Asks for the masters that were saved. The others are made of their parameters again: returns whether there were such.
    pub fn load(&mut self, parameters: &[Tensor], from: &mut LoadState<'_>) -> Result<bool> {
        let mut gone = false;
        for (i, p) in parameters.iter().enumerate() {
            let name = format!("{i}.master");
            let there = self.copies[i].take();
            if from.has(&name) && self.on && p.dtype().is_half() {
                // What a graph has captured is filled, not replaced.
                let copy = match there.filter(|m| is_state_like(p, StateShape::Same, &m.copy)) {
                    Some(m) => m.copy,
                    None => self.of(i, p, CallSite::here())?,
                };
                from.fill(&name, &copy);
                self.copies[i] = Some(Master { copy, at: None });
            } else {
                gone |= there.is_some();
            }
        }
        Ok(gone)
    }
}

/// Shape and layout of what an optimizer keeps of a parameter: a dim that is reduced is split no more.
fn layout_of(p: &Tensor, shape: StateShape) -> Option<(Dims, Option<(Placement, NdSbp)>)> {
    let mut dims: Dims = p.shape().into();
    let mut layout = p.global().map(|g| (g.placement.clone(), g.sbp.clone()));
    match shape {
        StateShape::Absent => return None,
        StateShape::Same => {}
        StateShape::Reduced(dim) => {
            dims[dim] = 1;
            if let Some((_, sbp)) = &mut layout {
                *sbp = sbp.iter().map(|s| if *s == Sbp::Split(dim) { Sbp::Broadcast } else { *s }).collect();
            }
        }
    }
    Some((dims, layout))
}

/// The dtype of what an optimizer keeps of a parameter: f32 for a half.
fn kept_dtype(p: &Tensor) -> DType {
    if p.dtype().is_half() { DType::F32 } else { p.dtype() }
}

/// Zeros for what an optimizer keeps of a parameter, laid out as it is; `None` where it keeps nothing.
pub(super) fn state_like(p: &Tensor, shape: StateShape) -> Result<Option<Tensor>> {
    let Some((dims, layout)) = layout_of(p, shape) else { return Ok(None) };
    let dtype = kept_dtype(p);
    let state = match (shape, layout) {
        (StateShape::Same, _) => zeros_of(p)?,
        (_, Some((placement, sbp))) => zeros(&dims[..], (&placement, sbp).dtype(dtype))?,
        (_, None) => zeros(&dims[..], p.device().dtype(dtype))?,
    };
    state.set_memory_use(MemoryUse::OptimizerState);
    state.name_memory(p.memory_scope());
    Ok(Some(state))
}

/// Zeros in the shape and the layout of a parameter, f32 for a half.
pub(super) fn zeros_of(p: &Tensor) -> Result<Tensor> {
    let zeros = crate::functional::zeros_like(p)?;
    if p.dtype().is_half() { zeros.cast(DType::F32) } else { Ok(zeros) }
}

/// Whether a tensor is laid out as what an optimizer keeps of a parameter.
pub(super) fn is_state_like(p: &Tensor, shape: StateShape, t: &Tensor) -> bool {
    let layout = t.global().map(|g| (g.placement.clone(), g.sbp.clone()));
    (t.dtype(), t.device()) == (kept_dtype(p), p.device())
        && layout_of(p, shape).is_some_and(|(dims, want)| dims[..] == *t.shape() && want == layout)
}

#[cfg(test)]
mod tests {
    use crate::functional::{IntoTarget, full};
    use crate::optim::{AdamW, AdamWOptions, Optimizer, OptimizerExt, Sgd, SgdOptions};
    use crate::placement::{Device, Placement};
    use crate::tensor::Tensor;
    use crate::{run_ranks, sbp};
    use oflow_kernels::DType;

    /// The value after 64 steps of 2^-10, each of them less than half of the last bit of 1 in bf16.
    fn after_small_steps(master_weights: bool, adam: bool) -> f64 {
        let step = 1.0 / 1024.0;
        let p = full([3], 1.0, Device::Cpu.dtype(DType::BF16)).unwrap().requires_grad_(true).unwrap();
        let ps = vec![p.clone()];
        let mut opt: Box<dyn Optimizer> = if adam {
            Box::new(AdamW::new(ps, AdamWOptions { lr: step, weight_decay: 0.0, master_weights, ..Default::default() }))
        } else {
            Box::new(Sgd::new(ps, SgdOptions { lr: step, master_weights, ..Default::default() }))
        };
        for _ in 0..64 {
            p.set_grad(Some(full([3], 1.0, Device::Cpu.dtype(DType::BF16)).unwrap())).unwrap();
            opt.step().unwrap();
        }
        assert_eq!(p.dtype(), DType::BF16);
        p.to_f64_vec().unwrap()[0]
    }

    #[test]
    fn small_steps_of_half_parameters_add_up() {
        for adam in [false, true] {
            assert_eq!(after_small_steps(true, adam), 0.9375, "64 / 1024 less");
            assert_eq!(after_small_steps(false, adam), 1.0, "without a master every step is rounded away");
        }
    }

    #[test]
    fn masters_lie_as_their_parameters_do() {
        let run = |ranks: usize, layout: crate::sbp::NdSbp| {
            run_ranks(ranks, |_| {
                let mesh = Placement::all(Device::Cpu)?;
                crate::manual_seed(2);
                let t = (&mesh, layout.clone()).dtype(DType::F16);
                let p: Tensor = crate::functional::randn([7, 4], t)?.requires_grad_(true)?;
                let mut opt = AdamW::new(vec![p.clone()], AdamWOptions { lr: 1e-2, ..Default::default() });
                for _ in 0..3 {
                    opt.zero_grad();
                    p.square()?.sum(())?.backward()?;
                    opt.step()?;
                }
                assert_eq!(p.sbp()?, &layout);
                p.to_f64_vec()
            })
            .unwrap()
            .remove(0)
        };
        let want = run(1, sbp![B]);
        assert_eq!(run(3, sbp![S(0)]), want);
        assert_eq!(run(2, sbp![B]), want);
    }
}
