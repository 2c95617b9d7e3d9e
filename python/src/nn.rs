//! Functions of the library that modules in Python need: the layout of all parameters by rules on names, ZeRO, data
//! parallelism of local tensors, and the draw of a dropout whose rate is zero.

use crate::errors::OrRaise;
use crate::tensor::Tensor;
use crate::{context, site, types};
use oflow::nn::{Module, Part, Replicas, ZeroOptions};
use oflow::sbp::NdSbp;
use pyo3::prelude::*;

/// Tensors with their dotted names, as a module of the library.
struct Named(Vec<(String, oflow::Tensor)>);

impl Part for Named {
    fn visit<'a>(&'a self, _: &str, f: &mut dyn FnMut(&str, &'a oflow::Tensor)) {
        self.0.iter().for_each(|(name, t)| f(name, t));
    }
    fn visit_mut(
        &mut self,
        _: &str,
        f: &mut dyn FnMut(&str, &mut oflow::Tensor) -> oflow::Result<()>,
    ) -> oflow::Result<()> {
        self.0.iter_mut().try_for_each(|(name, t)| f(name, t))
    }
    fn set_training(&mut self, _: bool) {}
}
impl Module for Named {}

/// A leaf with the data of a tensor, trained or frozen: what a module holds.
#[pyfunction]
pub fn _leaf(py: Python<'_>, tensor: &Bound<'_, Tensor>, requires_grad: bool) -> PyResult<Tensor> {
    tensor.get().inner().to_leaf(requires_grad).or_raise(py).map(Tensor::of)
}

/// The tensors boxed to a placement: the first rule whose pattern matches a name gives the SBP, without one it is B on all axes.
#[pyfunction]
pub fn _relayout<'py>(
    py: Python<'py>,
    names: Vec<String>,
    tensors: Vec<Bound<'py, Tensor>>,
    placement: &Bound<'py, PyAny>,
    rules: Vec<(String, Bound<'py, PyAny>)>,
) -> PyResult<Vec<Tensor>> {
    context::enter(py)?;
    let placement = types::placement_of(placement).map_err(|no| types::raised(no, placement, "a placement"))?;
    let sbp = |s: &Bound<'py, PyAny>| types::sbp_of(s).map_err(|no| types::raised(no, s, "an sbp"));
    let rules: Vec<(String, NdSbp)> = rules.into_iter().map(|(p, s)| Ok((p, sbp(&s)?))).collect::<PyResult<_>>()?;
    let mut named = Named(names.into_iter().zip(tensors.iter().map(|t| t.get().inner().clone())).collect());
    if named.0.is_empty() && rules.iter().all(|(pattern, _)| pattern == "*") {
        return Ok(vec![]);
    }
    let site = site::caller(py);
    py.detach(|| {
        let _scope = site.scope();
        let rules: Vec<(&str, NdSbp)> = rules.iter().map(|(p, s)| (p.as_str(), s.clone())).collect();
        named.to_global(&placement, &rules).map(|()| named.0)
    })
    .or_raise(py)
    .map(|all| all.into_iter().map(|(_, t)| Tensor::of(t)).collect())
}

/// Notes that a module has put other tensors in the places of parameters: an optimizer of these tells so at its next step.
#[pyfunction]
pub fn _replaced(py: Python<'_>, old: Vec<Bound<'_, Tensor>>) {
    let site = site::caller(py);
    old.iter().for_each(|t| oflow::nn::note_replaced(t.get().inner(), site));
}

/// Divides parameters over a mesh axis, by a stage of ZeRO. Those that stay as they are come back as None.
#[pyfunction]
pub fn _zero<'py>(
    py: Python<'py>,
    names: Vec<String>,
    tensors: Vec<Bound<'py, Tensor>>,
    stage: u8,
    axis: String,
    min_elements: usize,
) -> PyResult<Vec<Option<Tensor>>> {
    context::enter(py)?;
    let mut named = named(names, &tensors);
    let before: Vec<oflow::Tensor> = named.0.iter().map(|(_, t)| t.clone()).collect();
    let site = site::caller(py);
    py.detach(|| {
        let _scope = site.scope();
        oflow::nn::zero(&mut named, &ZeroOptions { stage, axis, min_elements })
    })
    .or_raise(py)?;
    let after = named.0.into_iter().zip(&before);
    Ok(after.map(|((_, new), old)| (!new.same(old)).then(|| Tensor::of(new))).collect())
}

fn named(names: Vec<String>, tensors: &[Bound<'_, Tensor>]) -> Named {
    Named(names.into_iter().zip(tensors.iter().map(|t| t.get().inner().clone())).collect())
}

/// Data parallelism of local tensors.
#[pyclass(frozen, module = "oflow")]
pub struct _Replicas {
    inner: Replicas,
}

#[pymethods]
impl _Replicas {
    #[new]
    fn new<'py>(
        py: Python<'py>,
        names: Vec<String>,
        tensors: Vec<Bound<'py, Tensor>>,
        placement: &Bound<'py, PyAny>,
        bucket_bytes: usize,
    ) -> PyResult<_Replicas> {
        context::enter(py)?;
        let placement = types::placement_of(placement).map_err(|no| types::raised(no, placement, "a placement"))?;
        let (named, site) = (named(names, &tensors), site::caller(py));
        let made = py.detach(|| {
            let _scope = site.scope();
            Replicas::new(&named, &placement)
        });
        Ok(_Replicas { inner: made.or_raise(py)?.with_bucket_bytes(bucket_bytes) })
    }
    fn reduce_gradients<'py>(
        &self,
        py: Python<'py>,
        names: Vec<String>,
        tensors: Vec<Bound<'py, Tensor>>,
    ) -> PyResult<Vec<String>> {
        context::enter(py)?;
        let (named, site) = (named(names, &tensors), site::caller(py));
        py.detach(|| {
            let _scope = site.scope();
            self.inner.reduce_gradients(&named)
        })
        .or_raise(py)
    }
}

/// Draws the number that a dropout of `x` would draw, and drops nothing.
#[pyfunction]
pub fn _draw(py: Python<'_>, x: &Bound<'_, Tensor>) -> PyResult<()> {
    context::enter(py)?;
    oflow::nn::Dropout::new(0.0).forward(x.get().inner()).or_raise(py).map(drop)
}
