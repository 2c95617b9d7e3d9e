//! Backward where rules give nothing, and graphs too long to be dropped by recursion.

use oflow::functional::{grad, where_};
use oflow::prelude::*;
use oflow::{BackwardOptions, apply_custom};

fn leaf(values: &[f64]) -> Tensor {
    from_vec(values.to_vec(), [values.len()], Device::Cpu).unwrap().requires_grad_(true).unwrap()
}

#[test]
fn a_rule_that_gives_nothing_keeps_no_leaf_waiting() -> Result<()> {
    let (x, z) = (leaf(&[-1.0, 2.0]), leaf(&[5.0, 7.0]));
    // The condition decides and has a gradient of zeros; it depends on x.
    where_(&x.relu()?, &x, &z)?.sum(())?.backward()?;
    assert_eq!(x.grad().unwrap().to_vec::<f64>()?, [0.0, 1.0]);
    assert_eq!(z.grad().unwrap().to_vec::<f64>()?, [1.0, 0.0]);
    // A chain below the condition, two calls long, and a leaf that nothing else depends on.
    let (x, y) = (leaf(&[3.0]), leaf(&[4.0]));
    let cond = x.square()?.mul(&y)?.relu()?;
    where_(&cond, &x.mul(2.0)?, &x)?.sum(())?.backward()?;
    assert_eq!(x.grad().unwrap().to_vec::<f64>()?, [2.0]);
    assert_eq!(y.grad().unwrap().to_vec::<f64>()?, [0.0]);
    // A rule that gives None: the leaf above it gets nothing, and nobody waits for it.
    let (x, y) = (leaf(&[3.0]), leaf(&[4.0]));
    let below = x.square()?.mul(&y)?;
    let none = apply_custom("nothing", &[&below], |ins| Ok(vec![ins[0].mul(1.0)?]), |_| Ok(vec![None]))?;
    none[0].add(&x)?.sum(())?.backward()?;
    assert_eq!(x.grad().unwrap().to_vec::<f64>()?, [1.0]);
    assert!(y.grad().is_none());
    Ok(())
}

#[test]
fn apply_custom_may_give_none_on_any_edge() -> Result<()> {
    let x = leaf(&[2.0]);
    let between = x.mul(3.0)?;
    let y = apply_custom(
        "of mine",
        &[&between, &x],
        |ins| Ok(vec![ins[0].mul(ins[1])?]),
        |grads| Ok(vec![None, grads[0].as_ref().map(|g| g.mul(10.0)).transpose()?]),
    )?;
    y[0].sum(())?.backward()?;
    assert_eq!(x.grad().unwrap().to_vec::<f64>()?, [10.0]);
    let found = grad(&[y[0].sum(())?], &[x, between], &BackwardOptions::default())?;
    assert_eq!(found[0].as_ref().unwrap().to_vec::<f64>()?, [10.0]);
    assert!(found[1].is_none());
    Ok(())
}

fn small_stack(f: impl FnOnce() + Send + 'static) {
    std::thread::Builder::new().stack_size(128 << 10).spawn(f).unwrap().join().unwrap();
}

#[test]
fn a_long_chain_that_saved_its_inputs_is_dropped_without_recursion() {
    let mut y = leaf(&[0.5]);
    for _ in 0..200_000 {
        y = y.sin().unwrap();
    }
    small_stack(move || drop(y));
}

#[test]
fn a_long_chain_of_a_recorded_backward_is_dropped_without_recursion() {
    let x = leaf(&[0.5]);
    let mut y = x.clone();
    for _ in 0..20_000 {
        y = y.sin().unwrap();
    }
    let again = BackwardOptions { create_graph: true, ..Default::default() };
    let d = grad(&[y.sum(()).unwrap()], std::slice::from_ref(&x), &again).unwrap();
    small_stack(move || drop((d, y)));
    // The gradient of a leaf that holds a graph.
    let mut y = x.clone();
    for _ in 0..20_000 {
        y = y.mul(&x).unwrap().sin().unwrap();
    }
    y.sum(()).unwrap().backward_with(&again).unwrap();
    small_stack(move || drop((x, y)));
}
