//! What follows from one room for aliasing: derivatives of every order, gradients of one's own, versions on every rank.

use oflow::functional::{call, grad};
use oflow::prelude::*;
use oflow::{BackwardOptions, apply_custom};
use oflow_tests::world;

fn numbers(values: &[f64]) -> Tensor {
    from_vec(values.to_vec(), [values.len()], Device::Cpu).unwrap()
}

#[test]
fn second_derivatives_pass_through_writes() -> Result<()> {
    let again = BackwardOptions { create_graph: true, ..Default::default() };
    let w = numbers(&[1.0, 2.0, 3.0, 4.0]).requires_grad_(true)?;
    // a = [w0³, w1³, 2 w2³, 2 w3³], with the middle overwritten by w0 w1 and w1 w2.
    let a = w.mul(&w)?.mul(&w)?;
    let (tail, middle) = (a.narrow(0, 2, 2)?, a.slice(0, 1, 3, 1)?);
    tail.mul_(2.0)?;
    middle.copy_(&w.narrow(0, 0, 2)?.mul(&w.narrow(0, 1, 2)?)?)?;
    let y = a.mul(&numbers(&[1.0, 10.0, 100.0, 1000.0]))?.sum(())?;
    let first = grad(&[y], std::slice::from_ref(&w), &again)?[0].clone().unwrap();
    assert_eq!(first.to_vec::<f64>()?, [3.0 + 20.0, 10.0 + 300.0, 200.0, 6000.0 * 16.0]);
    let second = grad(&[first.sum(())?], &[w], &BackwardOptions::default())?[0].clone().unwrap();
    assert_eq!(second.to_vec::<f64>()?, [6.0 + 10.0, 10.0 + 100.0, 100.0, 12000.0 * 4.0]);
    Ok(())
}

#[test]
fn a_repeated_view_of_a_written_base_adds_up() -> Result<()> {
    let w = numbers(&[2.0, 3.0]).requires_grad_(true)?;
    let a = w.mul(1.0)?;
    let wide = a.unsqueeze(1)?.expand([2, 3])?;
    a.mul_(&numbers(&[5.0, 7.0]))?;
    assert_eq!(wide.to_vec::<f64>()?, [10.0, 10.0, 10.0, 21.0, 21.0, 21.0]);
    wide.sum(())?.backward()?;
    assert_eq!(w.grad().unwrap().to_vec::<f64>()?, [15.0, 21.0]);
    // Views of a detached view, whose memory has gaps.
    let every = numbers(&[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).reshape([3, 2])?.t()?.detach();
    let v = every.select(0, 1)?;
    v.mul_(&w).unwrap_err();
    let v = v.slice(0, 1, 3, 1)?;
    v.mul_(&w.detach())?;
    every.select(0, 0)?.slice(0, 0, 2, 1)?.copy_(&w)?;
    assert_eq!(every.to_vec::<f64>()?, [2.0, 3.0, 5.0, 2.0, 8.0, 18.0]);
    w.set_grad(None).unwrap();
    every.mul(&every)?.sum(())?.backward()?;
    assert_eq!(w.grad().unwrap().to_vec::<f64>()?, [4.0, 6.0]);
    Ok(())
}

#[test]
fn views_of_several_and_views_of_no_grad_are_not_written() -> Result<()> {
    let a = numbers(&[1.0, 2.0, 3.0, 4.0]).requires_grad_(true)?.mul(1.0)?;
    let parts = a.split(2, 0)?;
    let e = parts[0].mul_(2.0).unwrap_err().to_string();
    assert!(e.contains("several views") && e.contains("narrow"), "{e}");
    let e = parts[1].narrow(0, 0, 1)?.mul_(2.0).unwrap_err().to_string();
    assert!(e.contains("several views"), "{e}");
    let quiet = {
        let _quiet = no_grad();
        a.narrow(0, 0, 2)?
    };
    let e = quiet.add_(&a.narrow(0, 0, 2)?).unwrap_err().to_string();
    assert!(e.contains("made under `no_grad()`"), "{e}");
    // Without gradients both are written.
    let b = numbers(&[1.0, 2.0]);
    b.split(1, 0)?[0].mul_(5.0)?;
    assert_eq!(b.to_vec::<f64>()?, [5.0, 2.0]);
    Ok(())
}

#[test]
fn gradients_of_two_leaves_are_two_tensors() {
    let check = |enter: &dyn Fn(Tensor) -> Result<Tensor>| -> Result<()> {
        let (a, b) = (enter(numbers(&[1.0, 2.0]))?, enter(numbers(&[3.0, 4.0]))?);
        let (a, b) = (a.requires_grad_(true)?, b.requires_grad_(true)?);
        let sum = a.add(&b.reshape([2, 1])?.reshape([2])?)?;
        sum.retain_grad()?;
        sum.sum(())?.backward()?;
        a.grad().unwrap().mul_(10.0)?;
        sum.grad().unwrap().zero_()?;
        assert_eq!(a.grad().unwrap().to_vec::<f64>()?, [10.0; 2]);
        assert_eq!(b.grad().unwrap().to_vec::<f64>()?, [1.0; 2]);
        Ok(())
    };
    check(&Ok).unwrap();
    world(2, |_, mesh| check(&|t| distribute(&t, (&mesh, sbp![B]))));
}

#[test]
fn what_is_given_twice_is_not_written() -> Result<()> {
    let (p, g) = (zeros([2], Device::Cpu)?, ones([2], Device::Cpu)?);
    let args: Vec<Tensor> = vec![p.clone(), g.clone(), p.reshape([2])?, zeros([2], Device::Cpu)?];
    let args: Vec<oflow::functional::Arg> = args.iter().map(Into::into).collect();
    let e = call("adamw_step", &args, &[("lr", 0.1.into()), ("step", 1i64.into())]).unwrap_err().to_string();
    assert!(e.contains("elements in common"), "{e}");
    assert_eq!(p.to_vec::<f32>()?, [0.0; 2]);
    // A source in another order of the same memory is read from a copy.
    let x = from_vec(vec![1.0f64, 2.0, 3.0, 4.0], [2, 2], Device::Cpu)?;
    x.copy_(&x.t()?)?;
    assert_eq!(x.to_vec::<f64>()?, [1.0, 3.0, 2.0, 4.0]);
    Ok(())
}

#[test]
fn i18_a_change_in_place_is_found_out_on_ranks_without_a_shard_too() {
    world(3, |_, _| {
        let two = Placement::new(Device::Cpu, &[0, 2], &[2])?;
        let x = ones([4], (&two, sbp![S(0)]))?.requires_grad_(true)?;
        let w = x.mul(1.0)?;
        let s = w.square()?.sum(())?;
        w.add_(1.0)?;
        let e = s.backward().unwrap_err();
        assert!(e.to_string().contains("changed in place"), "{e}");
        Ok(())
    });
}

#[test]
fn shards_are_written_by_a_call_of_all_ranks() {
    world(3, |w, _| {
        let two = Placement::new(Device::Cpu, &[0, 2], &[2])?;
        let x = zeros([3, 2], (&two, sbp![S(0)]))?;
        let mine = full([if w.rank() == 0 { 2 } else { 1 }, 2], 1.0 + w.rank() as f64, Device::Cpu)?;
        let before = x.version();
        x.write_shard(&mine)?;
        assert!(x.version() > before);
        assert_eq!(x.to_vec::<f32>()?, [1.0, 1.0, 1.0, 1.0, 3.0, 3.0]);
        // B is one value on all ranks, whatever they give.
        let b = zeros([2], (&two, sbp![B]))?;
        b.write_shard(&full([2], w.rank() as f64, Device::Cpu)?)?;
        assert_eq!(b.to_vec::<f32>()?, [0.0; 2]);
        // Refusals are alike on all ranks.
        let e = x.write_shard(&zeros([1, 2], Device::Cpu)?).unwrap_err().to_string();
        assert!(e.contains("write_shard(") && e.contains("more.rs"), "{e}");
        let e = x.write_shard(&zeros([if w.rank() == 0 { 3 } else { 2 }, 2], Device::Cpu)?).unwrap_err().to_string();
        assert!(e.contains("the shards are those of f32[5, 2]"), "{e}");
        let e = x.detach().write_shard(&mine).unwrap_err().to_string();
        assert!(e.contains("clone()"), "{e}");
        let leaf = zeros([3, 2], (&two, sbp![S(0)]))?.requires_grad_(true)?;
        assert!(leaf.write_shard(&mine).unwrap_err().to_string().contains("leaf"));
        let _quiet = no_grad();
        leaf.write_shard(&mine)?;
        assert_eq!(leaf.to_vec::<f32>()?[4], 3.0);
        Ok(())
    });
}

#[test]
fn what_a_users_function_returns_is_not_its_input() -> Result<()> {
    let x = numbers(&[1.0, 2.0]).requires_grad_(true)?;
    let y = apply_custom("same", &[&x], |ins| Ok(vec![ins[0].clone()]), |g| Ok(g.to_vec()))?.remove(0);
    y.mul_(3.0)?;
    assert_eq!(x.to_vec::<f64>()?, [1.0, 2.0]);
    y.sum(())?.backward()?;
    assert_eq!(x.grad().unwrap().to_vec::<f64>()?, [3.0, 3.0]);
    Ok(())
}

#[test]
fn remembered_forms_are_released() {
    world(2, |_, mesh| {
        let w = ones([2, 2], (&mesh, sbp![S(0)]))?;
        let x = ones([2, 2], (&mesh, sbp![B]))?;
        let gathers = || -> Result<usize> {
            oflow::take_comm_trace();
            let _asked = oflow::pin_sbp("matmul", sbp![B])?;
            x.matmul(&w)?;
            Ok(oflow::take_comm_trace().len())
        };
        let first = gathers()?;
        assert_eq!(gathers()?, 0, "remembered");
        w.clear_reshard_cache();
        assert_eq!(gathers()?, first, "made again");
        Ok(())
    });
}

#[test]
fn what_a_function_made_for_itself_is_no_view() {
    world(2, |_, mesh| {
        let (a, v) = (ones([3, 2], (&mesh, sbp![S(0)]))?, ones([2], (&mesh, sbp![B]))?);
        let y = a.matmul(&v)?;
        assert_eq!(y.add_(1.0)?.to_vec::<f32>()?, [3.0; 3]);
        // A leaf is a value of its own, however it was made.
        let leaf = a.reshape([6])?.requires_grad_(true)?;
        let _quiet = no_grad();
        leaf.mul_(5.0)?;
        assert_eq!((leaf.to_vec::<f32>()?, a.to_vec::<f32>()?), (vec![5.0; 6], vec![1.0; 6]));
        Ok(())
    });
}

#[test]
fn a_graph_of_writes_is_freed_without_backward() -> Result<()> {
    let token = std::sync::Arc::new(());
    let x = numbers(&[1.0, 2.0, 3.0]).requires_grad_(true)?;
    let held = token.clone();
    let _ = x.register_hook(move |g| {
        let _ = &held;
        Ok(Some(g.clone()))
    })?;
    let a = x.mul(1.0)?;
    let (v, u) = (a.narrow(0, 0, 2)?, a.narrow(0, 1, 2)?);
    v.mul_(&u)?;
    u.mul_(2.0)?;
    v.copy_(&u.mul(&u)?)?;
    assert!(v.sum(())?.requires_grad());
    drop((x, a, v, u));
    assert_eq!(std::sync::Arc::strong_count(&token), 1, "a cycle of handles and nodes");
    Ok(())
}

#[test]
fn a_view_taken_before_its_base_became_a_leaf_has_no_gradient() -> Result<()> {
    let a = numbers(&[1.0, 2.0]);
    let v = a.reshape([2, 1])?;
    let a = a.requires_grad_(true)?;
    assert!(!v.mul(2.0)?.requires_grad());
    assert!(v.base().is_some_and(|base| base.same(&a)));
    Ok(())
}
