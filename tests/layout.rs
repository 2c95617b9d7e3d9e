//! Layout ops (boxing, ways in and out of global tensors, devices): gradients of every order, remembered boxed forms,
//! refusals, and the keys of their calls.

use oflow::functional::grad;
use oflow::prelude::*;
use oflow::{BackwardOptions, ErrorKind};

fn world(n: usize, f: impl Fn(&oflow::World, Placement) -> Result<()> + Sync) {
    oflow::run_ranks(n, |w| f(w, Placement::all(Device::Cpu)?)).unwrap();
}

fn again() -> BackwardOptions {
    BackwardOptions { create_graph: true, ..Default::default() }
}

fn derivative(y: &Tensor, x: &Tensor) -> Result<Tensor> {
    Ok(grad(&[y.clone()], &[x.clone()], &again())?[0].clone().expect("y depends on x"))
}

#[test]
fn second_derivatives_pass_through_the_ways_in_and_out() {
    world(2, |_, mesh| {
        let two = |t| full([2], 2.0, t);
        // x^3 on the shards, then x times that on the whole: (x^4)'' at 2 is 48.
        let x = two((&mesh, sbp![S(0)]).dtype(DType::F64))?.requires_grad_(true)?;
        let y = x.to_local()?.pow(3.0)?.to_global((&mesh, sbp![S(0)]))?.mul(&x)?.sum(())?;
        let d = derivative(&y, &x)?;
        assert_eq!(d.to_vec::<f64>()?, [32.0; 2]);
        assert_eq!(derivative(&d.sum(())?, &x)?.to_vec::<f64>()?, [48.0; 2]);
        // The same by way of the logical value.
        let l = full([2], 2.0, Device::Cpu.dtype(DType::F64))?.requires_grad_(true)?;
        let y = distribute(&l.pow(3.0)?, (&mesh, sbp![S(0)]))?.mul(&distribute(&l, (&mesh, sbp![S(0)]))?)?;
        let d = derivative(&y.sum(())?, &l)?;
        assert_eq!(d.to_vec::<f64>()?, [32.0; 2]);
        assert_eq!(derivative(&d.sum(())?, &l)?.to_vec::<f64>()?, [48.0; 2]);
        Ok(())
    });
}

#[test]
fn the_gradient_of_a_leaf_keeps_its_graph_when_it_is_boxed() {
    world(2, |_, mesh| {
        // The gradient of w arrives as P and goes to B: 3 (x w)^2 x, whose derivative is 6 x^2 (x w).
        let w = full([2, 1], 2.0, (&mesh, sbp![B]).dtype(DType::F64))?.requires_grad_(true)?;
        let x = full([4, 2], 1.0, (&mesh, sbp![S(0)]).dtype(DType::F64))?;
        let d = derivative(&x.matmul(&w)?.pow(3.0)?.sum(())?, &w)?;
        assert_eq!((d.sbp()?, d.to_vec::<f64>()?), (&sbp![B], vec![4.0 * 3.0 * 16.0; 2]));
        assert_eq!(derivative(&d.sum(())?, &w)?.to_vec::<f64>()?, [4.0 * 6.0 * 4.0 * 2.0; 2]);
        Ok(())
    });
}

#[test]
fn a_device_is_no_end_of_the_graph() {
    let x = full([2], 3.0, Device::Cpu).unwrap().requires_grad_(true).unwrap();
    let y = x.to_device(Device::Async).unwrap().square().unwrap().to_device(Device::Cpu).unwrap();
    y.sum(()).unwrap().backward().unwrap();
    assert_eq!(x.grad().unwrap().to_vec::<f32>().unwrap(), [6.0; 2]);
}

#[test]
fn a_boxed_form_follows_what_its_tensor_requires() {
    world(2, |_, mesh| {
        let x = ones([4, 2], (&mesh, sbp![S(0)]))?;
        let w = ones([2, 2], (&mesh, sbp![S(0)]))?;
        // Gathered without a gradient, then wanted.
        x.matmul(&w)?;
        let w = w.requires_grad_(true)?;
        x.matmul(&w)?.sum(())?.backward()?;
        assert_eq!(w.grad().map(|g| g.to_vec::<f32>()).transpose()?, Some(vec![4.0; 4]));
        // And no more wanted.
        let w = w.requires_grad_(false)?;
        assert!(!x.matmul(&w)?.requires_grad());
        // A new slot is not the one that the form of the old leaf has.
        let w = w.requires_grad_(true)?;
        x.matmul(&w)?.sum(())?.backward()?;
        assert_eq!(w.grad().unwrap().to_vec::<f32>()?, [4.0; 4]);
        Ok(())
    });
}

#[test]
fn a_layout_that_cannot_be_is_an_error_although_its_key_wraps() {
    world(2, |_, mesh| {
        zeros([2], (&mesh, sbp![B]))?;
        let wrapped = NdSbp::new(&[Sbp::Split(usize::MAX - 15)]);
        let e = zeros([2], (&mesh, wrapped)).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::Sbp, "{e}");
        Ok(())
    });
}

#[test]
fn ranks_outside_the_world_and_many_dims_are_no_panic() {
    world(2, |_, mesh| {
        let far = Placement::new(Device::Cpu, &[1, 7], &[2])?;
        let (l, g) = (ones([2], Device::Cpu)?, ones([2], (&mesh, sbp![B]))?);
        for e in [
            l.to_global((&far, sbp![B])).unwrap_err(),
            g.to_global((&far, sbp![B])).unwrap_err(),
            distribute(&l, (&far, sbp![B])).unwrap_err(),
            oflow::box_many(&[(&g, (&far, sbp![B]))]).unwrap_err(),
            oflow::from_boxes(&[(&[0], &l)], [2], (&far, sbp![B])).unwrap_err(),
        ] {
            assert_eq!(e.kind(), ErrorKind::Placement, "{e}");
            assert!(e.to_string().contains("needs rank 7, but the world has 2 ranks"), "{e}");
        }
        let nine = ones([1; 9], Device::Cpu)?;
        assert_eq!(nine.to_global((&mesh, sbp![S(8)]))?.shape(), [1, 1, 1, 1, 1, 1, 1, 1, 2]);
        Ok(())
    });
}
