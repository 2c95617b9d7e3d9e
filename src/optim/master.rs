//! f32 masters of half parameters.
//!
//! A step of 1e-3 of a bf16 weight is below half of its last bit: added to the half itself it would vanish. The optimizer
//! therefore steps an f32 copy that it keeps, and the parameter becomes that, rounded.

use crate::error::Result;
use crate::state::{LoadState, SaveState};
use crate::tensor::Tensor;
use oflow_kernels::DType;

/// What the optimizer steps in the place of each parameter.
pub(super) struct Masters {
    on: bool,
    copies: Vec<Option<Tensor>>,
}

impl Masters {
    /// For that many parameters; `on`: half parameters have a master.
    pub fn new(parameters: usize, on: bool) -> Masters {
        Masters { on, copies: vec![None; parameters] }
    }
    /// The tensor to step for parameter `i`: its master, made at its first step, or the parameter itself.
    pub fn of(&mut self, i: usize, p: &Tensor) -> Result<Tensor> {
        if !(self.on && p.dtype().is_half()) {
            return Ok(p.clone());
        }
        match &self.copies[i] {
            Some(m) => Ok(m.clone()),
            None => Ok(self.copies[i].insert(p.detach().cast(DType::F32)?).clone()),
        }
    }
    /// Parameter `i` becomes what its master is now. Under `no_grad`.
    pub fn store(&self, i: usize, p: &Tensor) -> Result<()> {
        self.copies[i].as_ref().map_or(Ok(()), |m| p.copy_(m).map(drop))
    }
    /// Names the masters that there are: `3.master`.
    pub fn save(&self, to: &mut SaveState) {
        let there = self.copies.iter().enumerate().filter_map(|(i, m)| Some((i, m.as_ref()?)));
        there.for_each(|(i, m)| to.tensor(&format!("{i}.master"), m));
    }
    /// Asks for the masters that were saved. The others are made of their parameters again.
    pub fn load(&mut self, parameters: &[Tensor], from: &mut LoadState<'_>) -> Result<()> {
        for (i, p) in parameters.iter().enumerate() {
            let name = format!("{i}.master");
            self.copies[i] = None;
            if from.has(&name) && self.on && p.dtype().is_half() {
                from.fill(&name, &self.of(i, p)?);
            }
        }
        Ok(())
    }
}

/// Zeros for what an optimizer keeps of a parameter: laid out as it is, f32 for a half.
pub(super) fn state_like(p: &Tensor) -> Result<Tensor> {
    let zeros = crate::functional::zeros_like(p)?;
    if p.dtype().is_half() { zeros.cast(DType::F32) } else { Ok(zeros) }
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
