//! The gradient of a graph, as another graph.

use super::Graph;
use crate::error::{CallSite, Error, Result};
use crate::functional::grad;
use crate::interpreter::{BackwardOptions, call_again, capture, check_differentiable, check_outputs};
use crate::program::{Passes, ValueId};
use crate::tensor::Tensor;

impl<O> Graph<O> {
    /// Returns the graph of the gradients of `outputs`, single numbers, with respect to `inputs`: values of [`program`](Graph::program). The new
    /// graph takes the inputs of this one, and returns a gradient for each of `inputs`, that of the sum of the outputs. A value that calls make
    /// has a gradient too.
    ///
    /// The program is differentiated as a function of its values, by the rules of eager backward. `detach`, `no_grad` and functions with a
    /// gradient of their own leave no trace in a program. Calls that do not lead to the outputs, such as steps of an optimizer, are left
    /// out. Random calls draw what this graph draws. Gradients of gradients are those of the new graph, whose text is that of any program.
    ///
    /// ```
    /// use oflow::graph::{Graph, GraphOptions};
    /// use oflow::prelude::*;
    /// let (x0, w) = (zeros([2, 3], Device::Cpu)?, full([3, 1], 2.0, Device::Cpu)?);
    /// let loss = Graph::build(|g| g.input("x", &x0)?.matmul(&w)?.square()?.sum(()), GraphOptions::default())?;
    /// let (y, x) = (loss.program().outputs[0], loss.program().input("x").unwrap());
    /// let mut gradient = loss.gradient(&[y], &[x])?;
    /// let dx = gradient.run(&[&ones([2, 3], Device::Cpu)?])?.remove(0);
    /// assert_eq!(dx.to_vec::<f32>()?, [24.0; 6]); // 2 * (1 + 1 + 1) * 2 * 2
    /// # Ok::<(), oflow::Error>(())
    /// ```
    ///
    /// # Errors
    /// A value is unknown or not of floating or complex numbers, an output has more than one number or does not depend on one of the inputs, or
    /// a call that leads to the outputs writes in place.
    #[track_caller]
    pub fn gradient(&self, outputs: &[ValueId], inputs: &[ValueId]) -> Result<Graph<Vec<Tensor>>> {
        let site = CallSite::here();
        let of = self.runs.captured();
        check_outputs(of, outputs).and_then(|()| check_differentiable(of, inputs)).map_err(|e| e.at(site))?;
        let captured = capture(
            |capture| {
                capture.draw_as(of);
                let (outs, ins) = call_again(capture, of, outputs, inputs)?;
                let _line = site.scope();
                let found = grad(&outs, &ins, &BackwardOptions::default())?;
                let depends = |(v, g): (&ValueId, Option<Tensor>)| match g {
                    Some(g) => capture.output(&g, site),
                    None => Err(Error::autograd(format!("the outputs do not depend on {v}"))
                        .help("leave it out: its gradient is 0")),
                };
                inputs.iter().zip(found).map(depends).collect()
            },
            site,
        )?;
        Graph::of(captured, vec![], &Passes::default()).map_err(|e| e.at(site))
    }
}
