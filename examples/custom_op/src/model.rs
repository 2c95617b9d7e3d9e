//! A module of this crate's ops, and its training.

use crate::{leaky_relu, matmul_scale};
use oflow::functional::IntoTarget;
use oflow::nn::{Module, init};
use oflow::optim::{Sgd, SgdOptions};
use oflow::prelude::*;

/// Two layers without bias. Weights are about 1 in size, and each product is scaled by 1/√inputs.
#[derive(oflow::nn::Module)]
pub struct Mlp {
    /// Weight of the first layer, `[inputs, hidden]`.
    pub up: Tensor,
    /// Weight of the second layer, `[hidden, outputs]`.
    pub down: Tensor,
}

impl Mlp {
    /// Makes random weights.
    pub fn new([inputs, hidden, outputs]: [usize; 3], target: impl IntoTarget + Clone) -> Result<Mlp> {
        Ok(Mlp {
            up: init::uniform([inputs, hidden], 2.0, target.clone())?,
            down: init::uniform([hidden, outputs], 2.0, target)?,
        })
    }

    /// Maps `[batch, inputs]` to `[batch, outputs]`.
    #[track_caller]
    pub fn forward(&self, x: &Tensor) -> Result<Tensor> {
        let scale = |w: &Tensor| 1.0 / (w.shape()[0] as f64).sqrt();
        let hidden = leaky_relu(&matmul_scale(x, &self.up, scale(&self.up))?, 0.1)?;
        matmul_scale(&hidden, &self.down, scale(&self.down))
    }
}

/// Trains a module to do what another one does, and returns the loss of each step. The batch has the layout `batch`, the weights
/// those of `rules`: see [`Module::to_global`].
pub fn train(mesh: &Placement, batch: NdSbp, rules: &[(&str, NdSbp)], steps: usize) -> Result<Vec<f64>> {
    manual_seed(7);
    let whole = NdSbp::broadcast(mesh.axes());
    let teacher = Mlp::new([8, 16, 2], (mesh, whole.clone()))?;
    let mut model = Mlp::new([8, 16, 2], (mesh, whole))?;
    model.to_global(mesh, rules)?;
    let x = randn([32, 8], (mesh, batch))?;
    let want = teacher.forward(&x)?.detach();
    let mut sgd = Sgd::new(model.parameters(), SgdOptions { lr: 1.0, ..Default::default() });
    let mut losses = vec![];
    for _ in 0..steps {
        let loss = model.forward(&x)?.sub(&want)?.square()?.mean(())?;
        model.zero_grad();
        loss.backward()?;
        sgd.step()?;
        losses.push(loss.item()?);
    }
    Ok(losses)
}
