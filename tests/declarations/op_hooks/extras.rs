//! Calls and gradients around ops: an op with base attributes, gradients of closures against differences, hooks of saved tensors.

use oflow::ErrorKind;
use oflow::interpreter::OpCall;
use oflow::prelude::*;
use oflow::testing::{GradCheck, gradcheck, gradcheck_with};
use oflow::{apply_custom, op, saved_tensors_hooks};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

#[test]
fn an_op_with_base_attributes_is_called_many_times() {
    let x = from_vec(vec![1.0f64, -2.0, 3.0, -4.0], [2, 2], Device::Cpu).unwrap();
    let sum = OpCall::new(op!("sum").unwrap(), &[("dims", [1i64].into())]).unwrap();
    let of = |t: &Tensor| t.to_vec::<f64>().unwrap();
    for _ in 0..3 {
        assert_eq!(of(&sum.run(&[Some(&x)]).unwrap()[0]), [-1.0, -1.0]);
    }
    assert_eq!(of(&sum.run_with(&[Some(&x)], &[("dims", [0i64].into())]).unwrap()[0]), [4.0, -6.0]);
    let kept = sum.with(&[("keepdim", true.into())]).unwrap();
    assert_eq!((kept.run(&[Some(&x)]).unwrap()[0].shape(), kept.op().name()), (&[2usize, 1][..], "sum"));
    // Runtime attributes too.
    let scale = OpCall::new(op!("mul_scalar").unwrap(), &[("s", 2.0.into())]).unwrap();
    assert_eq!(of(&scale.run(&[Some(&x)]).unwrap()[0]), [2.0, -4.0, 6.0, -8.0]);
    assert_eq!(of(&scale.run_with(&[Some(&x)], &[("s", 0.5.into())]).unwrap()[0]), [0.5, -1.0, 1.5, -2.0]);
    let line = line!() + 1;
    let e = sum.run_with(&[Some(&x)], &[("axis", 0i64.into())]).unwrap_err();
    assert_eq!((e.message(), e.site().map(|s| s.line)), ("sum has no attribute 'axis'", Some(line)));
    assert!(OpCall::new(op!("sum").unwrap(), &[("dims", "all".into())]).is_err());
}

#[test]
fn gradients_of_a_closure_are_compared_with_differences() {
    let make = |data: Vec<f64>| from_vec(data, [2, 2], Device::Cpu).unwrap();
    let x = make(vec![0.3, -0.7, 1.1, 0.9]).requires_grad_(true).unwrap();
    let (w, c) = (make(vec![0.5, 0.2, -0.4, 0.8]).requires_grad_(true).unwrap(), make(vec![1.0, 2.0, 3.0, 4.0]));
    let f = |v: &[Tensor]| Ok(vec![v[0].matmul(&v[1])?.tanh()?, v[0].mul(&v[2])?.sum(())?]);
    let all = [x.clone(), w, c];
    assert_eq!(gradcheck(f, &all).unwrap(), 8);
    assert_eq!(gradcheck_with(GradCheck { second: true, ..Default::default() }, f, &all).unwrap(), 16);
    // A gradient that is wrong in one element.
    let wrong = |v: &[Tensor]| {
        apply_custom(
            "bent",
            &[&v[0]],
            |i| Ok(vec![i[0].square()?]),
            |g| Ok(vec![g[0].as_ref().map(|g| g.mul(2.5)).transpose()?]),
        )
    };
    let line = line!() + 1;
    let e = gradcheck(wrong, std::slice::from_ref(&x)).unwrap_err();
    assert_eq!((e.kind(), e.site().map(|s| s.line)), (ErrorKind::Autograd, Some(line)));
    assert!(e.message().starts_with("the gradient of input 0, element 0 is"), "{e}");
    let e = gradcheck(|v| Ok(vec![v[0].exp()?]), &[x.detach()]).unwrap_err();
    assert_eq!(e.message(), "no input requires a gradient");
    // On global tensors, in any layout, on every rank alike.
    oflow::run_ranks(2, |_| {
        let mesh = Placement::all(Device::Cpu)?;
        for sbp in [sbp![S(0)], sbp![P], sbp![B]] {
            let x = from_vec(vec![0.3f64, -0.7, 1.1], [3], (&mesh, sbp))?.requires_grad_(true)?;
            assert_eq!(gradcheck(|v| Ok(vec![v[0].exp()?.mul(&v[0])?]), &[x])?, 3);
        }
        Ok(())
    })
    .unwrap();
}

#[test]
fn saved_tensors_are_packed_and_unpacked() {
    let leaf = || from_vec(vec![1.0f64, -2.0], [2], Device::Cpu).unwrap().requires_grad_(true).unwrap();
    let counts = Arc::new((AtomicUsize::new(0), AtomicUsize::new(0)));
    let (a, b) = (counts.clone(), counts.clone());
    let seen = || (counts.0.load(Ordering::Relaxed), counts.1.load(Ordering::Relaxed));
    // As numbers in host memory, which is where a program could compress or store them.
    let pack = move |t: &Tensor| {
        a.0.fetch_add(1, Ordering::Relaxed);
        Ok((t.to_vec::<f64>()?, t.shape().to_vec()))
    };
    let unpack = move |(data, shape): &(Vec<f64>, Vec<usize>)| {
        b.1.fetch_add(1, Ordering::Relaxed);
        from_vec(data.clone(), shape.as_slice(), Device::Cpu)
    };
    let x = leaf();
    // square saves x; exp saves its result.
    let y = saved_tensors_hooks(pack, unpack, || x.square()?.exp()).unwrap();
    assert_eq!(seen(), (2, 0));
    let plain = x.square().unwrap();
    assert_eq!(seen(), (2, 0));
    y.sum(()).unwrap().backward().unwrap();
    plain.sum(()).unwrap().backward().unwrap();
    let want: Vec<f64> = [1.0f64, -2.0].iter().map(|v| 2.0 * v * (v * v).exp() + 2.0 * v).collect();
    for (have, want) in x.grad().unwrap().to_vec::<f64>().unwrap().iter().zip(&want) {
        assert!((have - want).abs() < 1e-9 * want.abs(), "{have} {want}");
    }
    assert_eq!(seen(), (2, 2));
    // Second derivatives go through what was unpacked.
    let x = leaf();
    let copy = |t: &Tensor| t.copy();
    let f = |v: &[Tensor]| saved_tensors_hooks(copy, copy, || Ok(vec![v[0].square()?.mul(&v[0])?]));
    assert_eq!(gradcheck_with(GradCheck { second: true, ..Default::default() }, f, &[x]).unwrap(), 4);
    // What does not give the tensor back is an error; so is a hook that fails.
    let x = leaf();
    let y = saved_tensors_hooks(|t| t.sum(()), |t: &Tensor| Ok(t.clone()), || x.square()).unwrap();
    let e = y.sum(()).unwrap().backward().unwrap_err();
    assert!(e.to_string().contains("gives f64[], but f64[2] was saved"), "{e}");
    let refuse = |_: &Tensor| Err::<u8, _>(Error::unsupported("no room"));
    let e = saved_tensors_hooks(refuse, |_| Err(Error::unsupported("never")), || x.square()).unwrap_err();
    assert!(e.to_string().contains("no room"), "{e}");
    // The scope has ended.
    assert!(x.square().is_ok());
}

#[test]
fn packed_global_tensors_come_back_in_their_layout() {
    oflow::run_ranks(2, |_| {
        let mesh = Placement::all(Device::Cpu)?;
        let x = from_vec(vec![0.5f32, 1.5, -2.0], [3], (&mesh, sbp![S(0)]))?.requires_grad_(true)?;
        let y = saved_tensors_hooks(|t| t.cast(DType::BF16), |t: &Tensor| t.cast(DType::F32), || x.square())?;
        y.sum(())?.backward()?;
        assert_eq!(x.grad().expect("a gradient").to_vec::<f32>()?, [1.0, 3.0, -4.0]);
        Ok(())
    })
    .unwrap();
}

#[test]
fn a_hook_sees_each_call_and_may_refuse_it() {
    let seen: std::rc::Rc<std::cell::RefCell<Vec<String>>> = Default::default();
    let x = ones([2, 3], Device::Cpu).unwrap().requires_grad_(true).unwrap();
    let names = seen.clone();
    let outer = oflow::interpreter::watch_calls(move |call| {
        // Its own calls are not seen.
        let n = zeros([1], Device::Cpu)?.add(1.0)?.item()?;
        names.borrow_mut().push(format!("{} {n}", call.op.name()));
        Ok(())
    });
    x.mul(2.0).unwrap().sum(()).unwrap().backward().unwrap();
    let all = std::mem::take(&mut *seen.borrow_mut());
    assert_eq!(all[..2], ["mul_scalar 1", "sum 1"]);
    assert!(all.len() > 3, "backward is seen: {all:?}");
    {
        let _inner = oflow::interpreter::watch_calls(|call| match call.op.name() {
            "relu" => Err(oflow::Error::argument("no relu here")),
            _ => Ok(()),
        });
        let e = x.relu().unwrap_err().to_string();
        assert!(e.contains("relu(") && e.contains("no relu here") && e.contains("extras.rs"), "{e}");
        x.neg().unwrap();
    }
    x.relu().unwrap();
    assert_eq!(*seen.borrow(), ["relu 1", "neg 1", "relu 1"]);
    // A write that keeps what its gradient reads is one call, and the copy is another.
    seen.borrow_mut().clear();
    let y = x.mul(2.0).unwrap();
    y.square_().unwrap();
    assert_eq!(*seen.borrow(), ["mul_scalar 1", "copy 1", "square 1"]);
    drop(outer);
    x.relu().unwrap();
    assert_eq!(seen.borrow().len(), 3);
}

#[test]
fn hooks_replace_add_to_and_refuse_the_nodes_of_a_graph() {
    use oflow::graph::{Graph, GraphOptions, Passes};
    use oflow::interpreter::{watch_calls, watch_results};
    let run = |x: Tensor| -> Result<()> {
        let names = |g: &Graph| {
            let ops = g.program().nodes.iter().filter_map(|n| Some(n.call()?.op.name()));
            ops.map(str::to_string).collect::<Vec<_>>()
        };
        // Calls that are fused are one node.
        let options = || Ok::<_, Error>(GraphOptions::default().passes(Passes::default().without("fuse")?));
        let build = || Graph::build(|g| g.input("x", &x)?.relu()?.exp(), options()?);
        let mut graph = {
            // Another value in the place of one result, made by two more calls.
            let _watch = watch_results(|call, outs| {
                if call.op.name() == "relu" {
                    outs[0] = outs[0].square()?.neg()?;
                }
                Ok(())
            });
            build()?
        };
        assert_eq!(names(&graph), ["relu", "square", "neg", "exp"]);
        let want = (-4.0f32).exp();
        assert!(graph.run(&[&x])?.to_vec::<f32>()?.iter().all(|y| (y - want).abs() < 1e-6));
        assert_eq!(names(&build()?), ["relu", "exp"]);
        let refused = {
            let _watch = watch_calls(|call| match call.op.name() {
                "exp" => Err(Error::argument("no exponentials here")),
                _ => Ok(()),
            });
            build().expect_err("an error").to_string()
        };
        assert!(refused.contains("no exponentials here") && refused.contains("extras.rs"), "{refused}");
        // A hook of runs sees their calls, and may replace and refuse what they give.
        let mut graph = build()?;
        let _watch = watch_results(|call, outs| {
            if call.op.name() == "exp" {
                outs[0] = outs[0].mul(0.0)?;
            }
            Ok(())
        });
        assert!(graph.run(&[&x])?.to_vec::<f32>()?.iter().all(|y| *y == 0.0));
        Ok(())
    };
    run(full([4], 2.0, Device::Cpu).unwrap()).unwrap();
    oflow::run_ranks(2, |_| run(full([4], 2.0, (&Placement::all(Device::Cpu)?, sbp![S(0)]))?)).unwrap();
}

#[test]
fn a_hook_sees_results_and_may_replace_them() {
    use oflow::interpreter::{watch_calls, watch_results};
    let x = ones([2], Device::Cpu).unwrap().requires_grad_(true).unwrap();
    let values = |t: &Tensor| t.to_vec::<f32>().unwrap();
    {
        let _first = watch_results(|call, outs| {
            if call.op.name() == "mul_scalar" {
                outs[0] = outs[0].mul(10.0)?;
            }
            Ok(())
        });
        // A later hook sees what the earlier one has put in place.
        let _second = watch_results(|call, outs| {
            if call.op.name() == "mul_scalar" {
                outs[0] = outs[0].add(1.0)?;
            }
            Ok(())
        });
        let y = x.mul(2.0).unwrap();
        assert_eq!(values(&y), [21.0; 2]);
        y.sum(()).unwrap().backward().unwrap();
    }
    assert_eq!(values(&x.grad().unwrap()), [20.0; 2]);
    type Replace = fn(&Tensor) -> Result<Vec<Tensor>>;
    let cases: [(Replace, &str); 5] = [
        (|y| Ok(vec![y.cast(DType::F64)?]), "replaced result 0"),
        (|y| Ok(vec![y.unsqueeze(0)?]), "replaced result 0"),
        (|_| Ok(vec![]), "left 0 tensors of 1"),
        (|y| Ok(vec![y.clone(), y.clone()]), "left 2 tensors of 1"),
        (|_| Err(oflow::Error::argument("not this result")), "not this result"),
    ];
    for (replace, why) in cases {
        let _watch = watch_results(move |_, outs| {
            *outs = replace(&outs[0])?.into();
            Ok(())
        });
        let e = x.relu().unwrap_err().to_string();
        assert!(e.contains("relu(") && e.contains(why) && e.contains("extras.rs"), "{e}");
    }
    {
        let y = x.detach().mul(2.0).unwrap();
        let _watch = watch_results(|_, outs| {
            outs[0] = outs[0].neg()?;
            Ok(())
        });
        let e = y.square_().unwrap_err().to_string();
        assert!(e.contains("the result of a call in place"), "{e}");
    }
    // A call that is refused has no results.
    let seen = std::rc::Rc::new(std::cell::Cell::new(0));
    let count = seen.clone();
    let _results = watch_results(move |_, _| {
        count.set(count.get() + 1);
        Ok(())
    });
    let refuse = watch_calls(|_| Err(oflow::Error::argument("none")));
    assert!(x.relu().is_err());
    drop(refuse);
    x.relu().unwrap();
    assert_eq!(seen.get(), 1);
}

#[test]
fn guards_of_hooks_may_end_in_any_order_and_beside_those_of_modes() {
    let count = || std::rc::Rc::new(std::cell::Cell::new(0));
    let watch = |n: &std::rc::Rc<std::cell::Cell<i32>>| {
        let n = n.clone();
        oflow::interpreter::watch_calls(move |_| {
            n.set(n.get() + 1);
            Ok(())
        })
    };
    let x = ones([2], Device::Cpu).unwrap();
    let (first, second) = (count(), count());
    let quiet = oflow::no_grad();
    let a = watch(&first);
    let b = watch(&second);
    drop(quiet);
    x.neg().unwrap();
    drop(a);
    x.neg().unwrap();
    let quiet = oflow::no_grad();
    drop(b);
    drop(quiet);
    x.neg().unwrap();
    assert_eq!((first.get(), second.get()), (1, 2));
}

#[test]
fn an_op_of_a_program_writes_an_input_that_its_declaration_marks() {
    use oflow::ops::{DTypeRule, Grad, OpDef, register};
    let op = OpDef::new("count_up(seen!: f64, by: f64) -> ()").unwrap().domain("hooks");
    let op = op.traits(|t| t.side_effect = true).shapes(|_| Ok(Default::default())).dtype(DTypeRule::Fixed(vec![]));
    let op = op.signatures(&["S(0), S(0) ->"]).grad(Grad::None).cpu(|cx| {
        // SAFETY: the tensor that this op declares to write, which nothing else uses while the kernel runs.
        let seen = unsafe { cx.input("seen")?.as_mut_slice::<f64>()? };
        seen.iter_mut().zip(cx.input("by")?.as_slice::<f64>()?).for_each(|(x, by)| *x += by);
        Ok(())
    });
    let op = register(op).unwrap();
    let call = |seen: &Tensor, by: &Tensor| OpCall::new(op, &[]).unwrap().run(&[Some(seen), Some(by)]);
    let make = |data: &[f64]| from_vec(data.to_vec(), [data.len()], Device::Cpu).unwrap();
    let seen = make(&[1.0, 2.0]);
    // A view is written through, and what backward needs is found out.
    let w = make(&[3.0, 4.0]).requires_grad_(true).unwrap();
    let product = w.mul(&seen).unwrap();
    call(&seen.reshape([2]).unwrap(), &make(&[10.0, 20.0])).unwrap();
    assert_eq!(seen.to_vec::<f64>().unwrap(), [11.0, 22.0]);
    let e = product.sum(()).unwrap().backward().unwrap_err();
    assert!(e.to_string().contains("changed in place"), "{e}");
    let e = call(&w, &make(&[1.0, 1.0])).unwrap_err();
    assert!(e.to_string().contains("no_grad"), "{e}");
    oflow::run_ranks(2, |_| {
        let mesh = Placement::all(Device::Cpu)?;
        let (seen, by) = (make(&[1.0, 2.0, 3.0]), make(&[1.0; 3]));
        let (seen, by) = (distribute(&seen, (&mesh, sbp![S(0)]))?, distribute(&by, (&mesh, sbp![B]))?);
        call(&seen, &by)?;
        assert_eq!((seen.sbp()?, seen.to_vec::<f64>()?), (&sbp![S(0)], vec![2.0, 3.0, 4.0]));
        Ok(())
    })
    .unwrap();
}
